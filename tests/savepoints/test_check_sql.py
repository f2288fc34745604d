"""`millstream savepoint check job.sql`: predicts which state a changed query keeps, with reasons. The prediction must
hold: an accepted script starts, and a refused one fails to restore."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.checkpoint.restore import StateNotClaimed
from millstream.cli import main
from millstream.sql.syntax import parse_statement

HERE = Path(__file__).parents[1] / "golden" / "compiled_plans"
GROUPS = "INSERT INTO groups SELECT k, COUNT(*), SUM(v), AVG(v), COUNT(DISTINCT v) FROM events WHERE v > 0 GROUP BY k;"
TOP = """INSERT INTO top SELECT k, v, r FROM
  (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM events) WHERE r <= 2;"""
JOINED = "INSERT INTO joined SELECT e.k, e.v, n.name FROM events e JOIN names n ON e.k = n.k;"
WINDOWS = """INSERT INTO windows SELECT k, window_start, COUNT(*), MAX(v)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;"""
BASE = f"{GROUPS}{TOP}{JOINED}"


@pytest.fixture(autouse=True)
def inline() -> None:
    """Jobs are started by hand here."""


@pytest.fixture(scope="module")
def record() -> Any:
    spec = importlib.util.spec_from_file_location("golden_sql_record", HERE / "record.py")
    made = sys.modules["golden_sql_record"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def planned(env: Any, statements: str) -> Any:
    node = parse_statement(f"EXECUTE STATEMENT SET BEGIN {statements} END")
    return env._planner().plan(env._bind_statement(node))


@pytest.fixture(scope="module")
def saved(record: Any, tmp_path_factory: Any) -> str:
    directory = tmp_path_factory.mktemp("saved")
    files = record.PROGRAM.open_world()
    env = record.PROGRAM.environment({"execution.checkpointing.savepoint-dir": str(directory)})
    record.PROGRAM.give(record.PROGRAM.FIRST)
    return record.stopped(record.start(env, planned(env, BASE)), files)


@pytest.fixture
def check(record: Any, saved: str, tmp_path: Path, capsys: Any) -> Callable[..., Any]:
    """The verdicts on statements, by kind of operator, and the exit code."""

    def run(statements: str, *arguments: str, before: str = "") -> Any:
        script = tmp_path / "job.sql"
        script.write_text(f"{record.PROGRAM.TABLES}{before}EXECUTE STATEMENT SET BEGIN {statements} END;")
        code = main(["savepoint", "check", *arguments, "--json", str(script), saved])
        found = json.loads(capsys.readouterr().out)
        told: dict[str, list[tuple[str, str]]] = {}
        for each in found:
            scope, kind, *_ = each["operator"].split("/")
            name = f"{scope}/{kind}" if each["state"] is None else f"{scope}/{kind}:{each['state']}"
            told.setdefault(name, []).append((each["fate"], "; ".join(each["notes"])))
        return told, code

    return run


@pytest.fixture
def restore(record: Any, saved: str) -> Callable[..., None]:
    """Go on from the savepoint with other statements."""

    def run(statements: str, **options: str) -> None:
        record.PROGRAM.open_world()
        record.PROGRAM.give(record.PROGRAM.FIRST)
        record.PROGRAM.give(record.PROGRAM.LATER)
        record.PROGRAM.close()
        settings = {"execution.state-recovery.path": saved, "restart-strategy.type": "none"}
        env = record.PROGRAM.environment(settings | {key.replace("__", "."): value for key, value in options.items()})
        record.start(env, planned(env, statements)).get_job_execution_result().result(60)

    return run


def verdicts_of(told: dict[str, list[tuple[str, str]]]) -> set[str]:
    return {fate for each in told.values() for fate, _ in each}


def test_the_same_statements_keep_everything(check: Any, restore: Any) -> None:
    told, code = check(BASE)
    assert code == 0
    assert verdicts_of(told) == {"kept"}
    assert {"groups/GroupAggregate", "groups/GroupAggregate:groups", "top/Rank", "joined/Join", "joined/Sink"} <= set(
        told
    )
    assert len(told["joined/TableSourceScan"]) == 2
    restore(BASE)


def test_neither_order_nor_other_statements_matter(check: Any, restore: Any) -> None:
    changed = f"{WINDOWS}{JOINED}{GROUPS}{TOP}"
    told, code = check(changed)
    assert code == 0
    assert {name for name, each in told.items() if ("kept", "") not in each} == {
        "windows/GlobalWindowAggregate", "windows/TableSourceScan", "windows/Sink"
    }  # fmt: skip
    assert told["windows/GlobalWindowAggregate"] == [("new", "starts without state")]
    restore(changed)


def test_a_changed_filter_keeps_state(check: Any, restore: Any) -> None:
    changed = BASE.replace("v > 0", "v > 2")
    told, code = check(changed)
    assert code == 0
    assert told["groups/GroupAggregate"] == [("kept", "")]
    assert told["groups/Calc"] == [("kept", "where: (events.v > 0) becomes (events.v > 2)")]
    restore(changed)


def test_changes_downstream_of_an_operator_keep_its_state(check: Any) -> None:
    told, code = check(BASE.replace("SELECT k, COUNT(*)", "SELECT LOWER(k), COUNT(*)"))
    assert code == 0
    assert told["groups/GroupAggregate"] == [("kept", "")]


@pytest.mark.parametrize(
    ("old", "new", "operator", "reason"),
    [
        ("AVG(v), COUNT(DISTINCT v)", "MAX(v), COUNT(DISTINCT v)", "groups/GroupAggregate",
         "aggregates: COUNT(*) BIGINT, SUM(events.v INT) INT, AVG"),
        ("events WHERE v > 0 GROUP BY k", "(SELECT UPPER(k) AS k, v FROM events) GROUP BY k", "groups/GroupAggregate",
         "key: events.k STRING becomes UPPER(events.k) STRING"),
        ("SUM(v), AVG", "SUM(CHAR_LENGTH(k)), AVG", "groups/GroupAggregate", "SUM(CHAR_LENGTH(events.k) INT) INT"),
        ("r <= 2", "r <= 3", "top/Rank", "range: 1..2 becomes 1..3"),
        ("ORDER BY v DESC", "ORDER BY v", "top/Rank", "order: events.v DESC becomes events.v ASC"),
        ("e.v, n.name FROM", "CAST(e.v + EXTRACT(SECOND FROM e.ts) AS INT), n.name FROM", "joined/Join", "left rows: "),
        ("JOIN names", "LEFT JOIN names", "joined/Join", "join: inner becomes left"),
    ],
)  # fmt: skip
def test_state_with_another_meaning_is_refused(check: Any, old: str, new: str, operator: str, reason: str) -> None:
    assert old in BASE
    changed = BASE.replace(old, new)
    told, code = check(changed)
    assert code == 1
    (refused,) = [note for fate, note in told[operator] if fate == "refused"]
    assert reason in refused
    assert "-n drops it" in refused
    assert ("new", "starts without state") in told[operator]
    told, code = check(changed, "-n")
    assert code == 0
    assert {fate for fate, _ in told[operator]} == {"dropped", "new"}


def test_operators_downstream_of_a_changed_operator_are_refused_too(check: Any) -> None:
    inner = (
        "(SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts{}) AS r FROM events) WHERE r = 1)"
    )
    told, code = check(BASE.replace("FROM events WHERE v > 0 GROUP", f"FROM {inner.format('')} GROUP"))
    assert code == 1
    assert any("what it reads: events becomes Deduplicate/" in note for _, note in told["groups/GroupAggregate"])


def test_a_removed_statement_is_refused_unless_that_is_allowed(check: Any, restore: Any) -> None:
    told, code = check(f"{GROUPS}{TOP}")
    assert code == 1
    assert told["joined/Join"][0][0] == "refused"
    assert "no such operator any more" in told["joined/Join"][0][1]
    with pytest.raises(StateNotClaimed, match="Join"):
        restore(f"{GROUPS}{TOP}")
    told, code = check(f"{GROUPS}{TOP}", "-n")
    assert code == 0
    assert told["joined/Join"][0][0] == "dropped"
    restore(f"{GROUPS}{TOP}", **{"execution__state-recovery__ignore-unclaimed-state": "true"})


def test_options_that_change_the_form_of_state_are_detected(check: Any) -> None:
    told, code = check(BASE, "-D", "table.exec.mini-batch.enabled=true")
    assert code == 1
    assert ("refused") in {fate for fate, _ in told["groups/GroupAggregate"]}
    told, code = check(BASE, before="SET 'table.exec.state.ttl' = '1 h';")
    assert code == 1
    assert any("expires: none becomes yes" in note for _, note in told["groups/GroupAggregate"])


def test_the_job_of_the_savepoint_is_chosen_among_several(record: Any, saved: str, tmp_path: Path, capsys: Any) -> None:
    script = tmp_path / "jobs.sql"
    script.write_text(
        f"{record.PROGRAM.TABLES}{WINDOWS}SET 'pipeline.name' = 'golden';EXECUTE STATEMENT SET BEGIN {BASE} END;"
        f"SET 'pipeline.name' = 'other';{WINDOWS}"
    )
    assert main(["savepoint", "check", str(script), saved]) == 0
    assert "the job can start from it" in capsys.readouterr().out
    assert main(["savepoint", "check", "--job", "other", str(script), saved]) == 1
    assert "refused: the job cannot start from it" in capsys.readouterr().out


def test_compiled_plans_and_table_programs_are_checked_too(
    record: Any, saved: str, tmp_path: Path, capsys: Any
) -> None:
    env = record.PROGRAM.environment({})
    plan = env.compile_plan_sql(f"EXECUTE STATEMENT SET BEGIN {BASE} END")
    plan.write_to_file(str(tmp_path / "plan.json"))
    script = tmp_path / "job.sql"
    script.write_text(f"EXECUTE PLAN '{tmp_path / 'plan.json'}';")
    assert main(["savepoint", "check", str(script), saved]) == 0
    program = tmp_path / "job.py"
    program.write_text(
        "from millstream.table import EnvironmentSettings, PlanReference, TableEnvironment\n"
        "env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())\n"
        f"env.execute_plan(PlanReference.from_file({str(tmp_path / 'plan.json')!r})).wait()\n"
    )
    assert main(["savepoint", "check", str(program), saved]) == 0
    assert "refused" not in capsys.readouterr().out


def test_a_failing_script_names_the_statement(record: Any, saved: str, tmp_path: Path, capsys: Any) -> None:
    script = tmp_path / "job.sql"
    script.write_text(f"{record.PROGRAM.TABLES}\nINSERT INTO groups SELECT nothing FROM events;")
    assert main(["savepoint", "check", str(script), saved]) == 1
    said = capsys.readouterr()
    assert "job.sql" in said.err
    assert "nothing" in said.err
    assert not said.out


def test_nothing_is_changed(check: Any, saved: str) -> None:
    before = {each: each.read_bytes() for each in Path(saved).rglob("*") if each.is_file()}
    check(BASE)
    assert {each: each.read_bytes() for each in Path(saved).rglob("*") if each.is_file()} == before
