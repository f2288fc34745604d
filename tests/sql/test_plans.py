"""Compiled plans: the stored plan is executed operator by operator, and nothing is planned again.

Every recorded query is compiled; the plan is read in a session without its tables, and must be the same plan."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sql_cases import content, environment

from millstream.errors import UserError
from millstream.sql import operators
from millstream.sql.compiled.codec import Writer
from millstream.sql.compiled.objects import NamedFunctions
from millstream.sql.compiled.stored import write_nodes
from millstream.sql.operators import library
from millstream.sql.operators.spec import SqlOperatorSpec
from millstream.sql.physical.identity.identity import assign_identities
from millstream.sql.physical.identity.state_traits import UnknownOperator
from millstream.sql.physical.nodes import FORWARD, Operation
from millstream.sql.types import data_types as t
from millstream.table import DataTypes, EnvironmentSettings, PlanReference, TableDescriptor, TableEnvironment
from millstream.table.udf import udf

TOPICS = ("aggregates", "joins", "order", "patterns", "sets", "windows")


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Run jobs in this process."""


@pytest.fixture
def env() -> TableEnvironment:
    return create_session()


def create_session(**options: str) -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"parallelism.default": "1", **options}.items():
        environment.get_config().set(key, value)
    return environment


def reread(plan: Any, **options: str) -> Any:
    return create_session(**options).load_plan(PlanReference.from_json_string(plan.as_json_string()))


def nodes_of(plan: Any) -> list[dict[str, Any]]:
    """Write the operations of a plan, and return the nodes."""
    return write_nodes(plan._operations, Writer(NamedFunctions(plan._t_env._catalogs).name))


def without_state(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return json.loads(json.dumps([{key: part for key, part in entry.items() if key != "state"} for entry in nodes]))


# ------------------------------------------------------------------------------------------------ writing and reading


@pytest.mark.parametrize(
    ("topic", "mini_batch"), [*((topic, "false") for topic in TOPICS), ("aggregates", "true"), ("order", "true")]
)
def test_a_plan_is_read_as_it_was_written(topic: str, mini_batch: str) -> None:
    case = content(topic)
    env = environment(case, {"table.exec.mini-batch.enabled": mini_batch})
    for query in [entry for entry in case["queries"] if "changelog" in entry]:
        table = env.sql_query(query["sql"])
        plan = table.insert_into(TableDescriptor.for_connector("blackhole").build()).compile_plan()
        restored = reread(plan)
        assert without_state(nodes_of(restored)) == without_state(plan._content["nodes"]), query["name"]
        assert restored.explain() == plan.explain(), query["name"]
        assert restored.as_json_string() == plan.as_json_string()
        restored._check_state()
        uids = [node["uid"] for node in plan._content["nodes"]]
        assert len(set(uids)) == len(uids), query["name"]
        for node in plan._content["nodes"]:
            assert not node["state"] or set(node["traits"]["fixed"]) - {"reads"}, "state must say what it is made of"


def test_every_operator_spec_is_listed_in_the_library() -> None:
    for module in pkgutil.walk_packages(operators.__path__, f"{operators.__name__}."):
        importlib.import_module(module.name)
    specs = {spec for spec in _subclasses(SqlOperatorSpec) if dataclasses.is_dataclass(spec)}
    assert {spec for spec in specs if spec.__module__.startswith(operators.__name__)} == set(library.OPERATOR_SPECS)


def test_an_operator_that_does_not_declare_its_state_is_an_error() -> None:
    schema = t.row_of(["a"], [t.BigIntType()], null=False)
    scan = Operation("Scan", "", schema, source=object())
    foreign = Operation("Foreign", "", schema, (scan,), (FORWARD,), spec=object())
    with pytest.raises(UnknownOperator, match="Foreign"):
        assign_identities([foreign])


def _subclasses(cls: type) -> Iterator[type]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def test_constants_of_every_type_are_read_as_they_were_written(env: TableEnvironment) -> None:
    literals = (
        "CAST('NaN' AS DOUBLE), 1.50, X'00ff', DATE '2026-01-02', TIME '01:02:03', TIMESTAMP '2026-01-02 03:04:05.678'"
        ", INTERVAL '3' DAY, INTERVAL '2' MONTH, 'it''s', TRUE, CAST(NULL AS BIGINT), ARRAY[1, 2], MAP['a', 1]"
    )
    table = env.sql_query(f"SELECT v.*, {literals} FROM (VALUES (1, {literals})) AS v")
    plan = table.insert_into(TableDescriptor.for_connector("blackhole").build()).compile_plan()
    assert without_state(nodes_of(reread(plan))) == without_state(plan._content["nodes"])


# ------------------------------------------------------------------------------------------------------------ execution


def printed(env: TableEnvironment, tmp_path: Path, plan: Any) -> list[str]:
    plan.execute().wait()
    return sorted(line for entry in (tmp_path / "out").rglob("part*") for line in entry.read_text().split())


def tables(env: TableEnvironment, tmp_path: Path, kind: str = "BIGINT") -> None:
    env.execute_sql(
        f"CREATE TABLE numbers (n {kind}) WITH ('connector' = 'datagen', 'number-of-rows' = '4',"
        " 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '4')"
    )
    env.execute_sql(
        f"CREATE TABLE sink (n BIGINT, m BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out',"
        " 'format' = 'csv')"
    )


JOIN = "INSERT INTO sink SELECT a.n, b.n FROM numbers a JOIN numbers b ON a.n = b.n WHERE a.n > 2"


def test_a_plan_runs_without_the_catalog_of_its_compilation(env: TableEnvironment, tmp_path: Path) -> None:
    tables(env, tmp_path)
    assert printed(env, tmp_path, reread(env.compile_plan_sql(JOIN))) == ["3,3", "4,4"]


def test_a_changed_planner_does_not_change_a_plan(
    env: TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables(env, tmp_path)
    plan = env.compile_plan_sql(JOIN)
    monkeypatch.setattr("millstream.sql.logical.rules.RULES", ())
    later = create_session()
    tables(later, tmp_path)
    assert [entry["type"] for entry in later.compile_plan_sql(JOIN)._content["nodes"]] != [
        entry["type"] for entry in plan._content["nodes"]
    ]
    restored = later.load_plan(PlanReference.from_json_string(plan.as_json_string()))
    assert without_state(nodes_of(restored)) == without_state(plan._content["nodes"])


def test_functions_are_found_by_name(env: TableEnvironment, tmp_path: Path) -> None:
    tables(env, tmp_path)
    double = udf(lambda n: n * 2, result_type=DataTypes.BIGINT())
    env.create_temporary_system_function("twice", double)
    plan = env.compile_plan_sql("INSERT INTO sink SELECT n, twice(n) FROM numbers WHERE n > 3")
    with pytest.raises(UserError, match="'twice', which is not registered"):
        reread(plan)
    later = create_session()
    later.create_temporary_system_function("twice", udf(lambda n: n * 3, result_type=DataTypes.BIGINT()))
    restored = later.load_plan(PlanReference.from_json_string(plan.as_json_string()))
    assert printed(later, tmp_path, restored) == ["4,12"]


def test_a_function_without_a_name_cannot_be_compiled(env: TableEnvironment, tmp_path: Path) -> None:
    tables(env, tmp_path)
    numbers = env.from_path("numbers")
    double = udf(lambda n: n * 2, result_type=DataTypes.BIGINT())
    with pytest.raises(UserError, match="is not registered, so a plan cannot refer to it"):
        numbers.select(numbers.n, double(numbers.n)).insert_into("sink").compile_plan()


def test_a_table_of_the_program_cannot_be_compiled(env: TableEnvironment, tmp_path: Path) -> None:
    tables(env, tmp_path)
    with pytest.raises(UserError, match="not in a catalog"):
        env.from_elements([(1, 2)], ["n", "m"]).insert_into("sink").compile_plan()


# ------------------------------------------------------------------------------------------------------ catalog objects


@pytest.mark.parametrize(
    ("compiled", "restored", "known", "problem"),
    [
        ("ALL", "ALL", None, None),
        ("ALL", "ALL", "BIGINT", None),
        ("ALL", "ALL", "INT", "column 'n' has changed"),
        ("ALL", "ALL_ENFORCED", "INT", None),
        ("ALL", "IDENTIFIER", None, "not in a catalog"),
        ("ALL", "IDENTIFIER", "BIGINT", None),
        ("SCHEMA", "ALL", None, "not in a catalog"),
        ("SCHEMA", "ALL", "BIGINT", None),
        ("SCHEMA", "ALL", "INT", "column 'n' has changed"),
        ("IDENTIFIER", "ALL", None, "not in a catalog"),
        ("IDENTIFIER", "ALL", "BIGINT", None),
        ("IDENTIFIER", "ALL_ENFORCED", "BIGINT", "not in a catalog"),
        ("EVERYTHING", "ALL", None, "must be ALL, SCHEMA, IDENTIFIER"),
    ],
)
def test_catalog_objects(
    env: TableEnvironment, tmp_path: Path, compiled: str, restored: str, known: str | None, problem: str | None
) -> None:
    tables(env, tmp_path)
    env.get_config().get_configuration().set_string("table.plan.compile.catalog-objects", compiled)

    def run() -> list[str]:
        plan = env.compile_plan_sql("INSERT INTO sink SELECT n, n FROM numbers WHERE n > 3")
        later = create_session(**{"table.plan.restore.catalog-objects": restored})
        if known is not None:
            tables(later, tmp_path, known)
        return printed(later, tmp_path, later.load_plan(PlanReference.from_json_string(plan.as_json_string())))

    if problem is None:
        assert run() == ["4,4"]
    else:
        with pytest.raises(UserError, match=problem):
            run()


def test_a_source_with_a_changed_schema_is_refused_by_name(env: TableEnvironment, tmp_path: Path) -> None:
    env.get_config().set("table.plan.compile.catalog-objects", "IDENTIFIER")
    tables(env, tmp_path)
    environment = "CREATE TABLE files (n {}) WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv')"
    env.execute_sql(environment.format("BIGINT"))
    plan = env.compile_plan_sql("INSERT INTO sink SELECT n, n FROM files")
    later = create_session()
    tables(later, tmp_path)
    later.execute_sql(environment.format("INT"))
    with pytest.raises(UserError, match=r"operator 'sink/TableSourceScan/.*' .* its table now has .*INT"):
        later.load_plan(PlanReference.from_json_string(plan.as_json_string()))


def test_a_plan_file_is_overwritten_only_with_force_recompile(env: TableEnvironment, tmp_path: Path) -> None:
    tables(env, tmp_path)
    file = tmp_path / "plan.json"
    env.execute_sql(f"COMPILE PLAN '{file}' FOR INSERT INTO sink SELECT n, n FROM numbers")
    before = file.read_text()
    with pytest.raises(UserError, match="already"):
        env.execute_sql(f"COMPILE PLAN '{file}' FOR {JOIN}")
    assert file.read_text() == before
    env.get_config().set("table.plan.force-recompile", "true")
    env.execute_sql(f"COMPILE PLAN '{file}' IF NOT EXISTS FOR {JOIN}")
    assert file.read_text() == before
    env.execute_sql(f"COMPILE AND EXECUTE PLAN '{file}' FOR {JOIN}").wait()
    assert file.read_text() == before
    env.execute_sql(f"COMPILE PLAN '{file}' FOR {JOIN}")
    assert "Join" in file.read_text()


# ------------------------------------------------------------------------------------------------------------- refusals


def test_state_in_another_form_is_refused_by_the_operators_name(env: TableEnvironment, tmp_path: Path) -> None:
    tables(env, tmp_path)
    changed = json.loads(env.compile_plan_sql(JOIN).as_json_string())
    (join,) = [node for node in changed["nodes"] if node["type"] == "Join"]
    join["state"][0]["name"] = "join/another/form"
    plan = create_session().load_plan(PlanReference.from_json_string(json.dumps(changed)))
    with pytest.raises(UserError, match=f"'{join['uid']}'.*'join/another/form' does not exist"):
        plan.execute()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda plan: plan.update(version=3), "version 3"),
        (lambda plan: plan.pop("nodes"), "not a millstream plan: the field 'nodes' is missing"),
        (lambda plan: plan["nodes"][1].pop("schema"), "not a millstream plan: the field 'schema' is missing"),
        (lambda plan: plan["nodes"][-2]["operator"].update({"$": "Popen"}), "a part 'Popen'"),
        (lambda plan: plan["nodes"][-2]["operator"].update(sharper=1), "is not what this release has"),
        (lambda plan: plan["nodes"][-1].update(schema={"$type": "QUATERNION"}), "a type 'QUATERNION'"),
        (lambda plan: plan["nodes"][-1].update(schema={"$python": "1"}), "a part '\\$python'"),
    ],
)
def test_a_damaged_plan_is_refused(env: TableEnvironment, tmp_path: Path, change: Any, problem: str) -> None:
    tables(env, tmp_path)
    plan = json.loads(env.compile_plan_sql(JOIN).as_json_string())
    change(plan)
    with pytest.raises(UserError, match=problem):
        create_session().load_plan(PlanReference.from_json_string(json.dumps(plan)))


def test_batch_plans_are_not_compiled(tmp_path: Path) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables(env, tmp_path)
    with pytest.raises(UserError, match="plans of batch jobs"):
        env.compile_plan_sql(JOIN)


# ---------------------------------------------------------------------------------------------- identities of operators


def uids(*statements: str, **options: str) -> dict[str, set[str]]:
    """Return the uids of a statement set, by sink table."""
    env = create_session(**options)
    env.execute_sql("CREATE TABLE t (k INT, v INT, s STRING) WITH ('connector' = 'datagen')")
    env.execute_sql("CREATE TABLE a (k INT, n BIGINT) WITH ('connector' = 'blackhole')")
    env.execute_sql("CREATE TABLE b (k INT, n BIGINT) WITH ('connector' = 'blackhole')")
    env.execute_sql("CREATE VIEW counted AS SELECT k AS customer, COUNT(*) AS n FROM t GROUP BY k")
    environment = env.create_statement_set()
    for entry in statements:
        environment.add_insert_sql(entry)
    uids_by_table: dict[str, set[str]] = {}
    for node in environment.compile_plan()._content["nodes"]:
        uids_by_table.setdefault(node["traits"]["scope"], set()).add(node["uid"])
    return uids_by_table


COUNTS = "INSERT INTO a SELECT k, COUNT(*) FROM t GROUP BY k"


def test_other_statements_and_their_order_do_not_change_a_uid() -> None:
    other = "INSERT INTO b SELECT v, COUNT(*) FROM t GROUP BY v"
    alone = uids(COUNTS)["a"]
    assert uids(COUNTS, other)["a"] == uids(other, COUNTS)["a"] == alone
    assert uids(COUNTS, other) == uids(other, COUNTS)


@pytest.mark.parametrize(
    ("statement", "is_same"),
    [
        ("INSERT INTO a SELECT k, COUNT(*) FROM t WHERE v > 2 GROUP BY k", True),
        ("INSERT INTO a SELECT customer, n + 1 FROM counted WHERE n > 3", True),
        ("INSERT INTO a SELECT x, COUNT(*) FROM (SELECT s, k AS x, v FROM t) GROUP BY x HAVING COUNT(*) > 2", True),
        ("INSERT INTO a SELECT k, n FROM counted c (k, n) WHERE k IN (SELECT v FROM t)", True),
        ("INSERT INTO a SELECT v, COUNT(*) FROM t GROUP BY v", False),
        ("INSERT INTO a SELECT k + 1, COUNT(*) FROM t GROUP BY k + 1", False),
        ("INSERT INTO a SELECT k, COUNT(v) FROM t GROUP BY k", False),
        ("INSERT INTO a SELECT k, COUNT(DISTINCT v) FROM t GROUP BY k", False),
        ("INSERT INTO a SELECT k, COUNT(*) FILTER (WHERE v > 2) FROM t GROUP BY k", False),
        ("INSERT INTO b SELECT k, COUNT(*) FROM t GROUP BY k", False),
    ],
)
def test_a_uid_depends_on_the_content_of_the_state(statement: str, is_same: bool) -> None:
    (aggregate,) = [entry for entry in uids(COUNTS)["a"] if "GroupAggregate" in entry]
    assert any(aggregate in entry for entry in uids(statement).values()) == is_same


def test_uids_are_unique_in_a_program(env: TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (k INT) WITH ('connector' = 'datagen')")
    env.execute_sql("CREATE TABLE a (k INT) WITH ('connector' = 'blackhole')")
    environment = env.create_statement_set()
    for _ in range(2):
        environment.add_insert_sql("INSERT INTO a SELECT x.k FROM t x JOIN t y ON x.k = y.k")
    uids_by_table = [node.uid for node in env._graph_of(environment._plans).nodes]
    assert None not in uids_by_table
    assert len(set(uids_by_table)) == len(uids_by_table)
