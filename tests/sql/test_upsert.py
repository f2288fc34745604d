"""Upsert sources are normalized, and a sink with a primary key has the current rows at the end."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sql_cases import changelog

from millstream.connectors.collect import CollectSink, forget, get_results
from millstream.errors import UserError
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink
from millstream.sql.connectors.registry import register
from millstream.sql.connectors.simple import register_values
from millstream.sql.errors import SqlError
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.row import Row, RowKind

pytestmark = pytest.mark.usefixtures("inline_engine")

CASES = yaml.safe_load((Path(__file__).parents[1] / "golden" / "sql" / "ends" / "changelogs.yaml").read_text())["cases"]
INS, UB, UA, DEL = RowKind
_names = (f"told-{number}" for number in itertools.count())


def _create_sink_source(context: TableContext) -> TableSink:
    return TableSink(CollectSink(context.required("name")), ChangelogMode[context.options.get("mode", "UPSERT")])


register(TableConnector("told", write=_create_sink_source))


def environment(parallelism: int = 1, **options: str) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", str(parallelism))
    for key, value in options.items():
        env.get_config().set(key.replace("__", ".").replace("_", "-"), value)
    return env


def insert_and_collect(env: TableEnvironment, columns: str, insert: str, mode: str = "UPSERT") -> list[tuple[str, ...]]:
    """Execute an INSERT, and return the row kinds and cells that the sink gets."""
    name = next(_names)
    env.execute_sql(f"CREATE TABLE `{name}` ({columns}) WITH ('connector'='told', 'name'='{name}', 'mode'='{mode}')")
    env.execute_sql(insert.replace("sink", f"`{name}`")).wait()
    queue, rows = get_results(name), []
    while not queue.empty():
        row = queue.get()
        rows.append((str(row.get_row_kind()), *row))
    forget(name)
    return rows


def register_changes(env: TableEnvironment, rows: list[Any], columns: str, mode: str = "I,UB,UA,D") -> None:
    register_values("t", rows)
    env.execute_sql(f"CREATE TABLE t ({columns}) WITH ('connector'='values', 'data-id'='t', 'changelog-mode'='{mode}')")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_sources_and_sinks_have_the_changes_of_flink(case: dict[str, Any], tmp_path: Path, capfd: Any) -> None:
    env = environment(**{"table__local_time_zone": "UTC"})
    for key, value in case.get("options", {}).items():
        env.get_config().set(key, value)
    for name, table in case["tables"].items():
        (tmp_path / f"{name}.json").write_text("".join(f"{line}\n" for line in table["lines"]))
        table_format = table.get("format", "debezium-json")
        env.execute_sql(
            f"CREATE TABLE {name} ({table['columns']}) WITH ('connector'='filesystem', "
            f"'path'='{tmp_path / name}.json', 'format'='{table_format}')"
        )
    options = case.get("sink_options", {"connector": "print"})
    text = ", ".join(f"'{k}'='{str(v).replace('$FOLDER', str(tmp_path))}'" for k, v in options.items())
    env.execute_sql(f"CREATE TABLE sink ({case['sink']}) WITH ({text})")
    capfd.readouterr()
    if "refused" in case:
        with pytest.raises(UserError):
            env.execute_sql(case["insert"]).wait()
        return
    env.execute_sql(case["insert"]).wait()
    printed = [line.removeprefix("1> ") for line in capfd.readouterr().out.splitlines()]
    assert printed == case["printed"]


def test_an_upsert_source_is_normalized() -> None:
    env = environment()
    rows = [(INS, 1, "a"), (UA, 1, "b"), (UA, 1, "b"), (DEL, 2, "x"), (UA, 2, "y"), (DEL, 1, None), (INS, 1, "c")]
    register_changes(
        env, [Row.of_kind(*row) for row in rows], "id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED", "I,UA,D"
    )
    changes = changelog(env, "SELECT * FROM t")[2]
    assert changes == [
        ["+I", "1", "a"], ["-U", "1", "a"], ["+U", "1", "b"], ["+I", "2", "y"], ["-D", "1", "b"], ["+I", "1", "c"],
    ]  # fmt: skip


def test_an_upsert_source_needs_a_primary_key() -> None:
    env = environment()
    register_changes(env, [Row.of_kind(INS, 1, "a")], "id INT, v STRING", "I,UA,D")
    with pytest.raises(SqlError, match="needs a primary key"):
        env.execute_sql("SELECT * FROM t")


def test_an_upsert_sink_gets_no_update_before_rows() -> None:
    env = environment()
    register_changes(env, [Row.of_kind(INS, k) for k in ("a", "b", "a")], "k STRING", "I")
    columns = "k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED"
    changes = insert_and_collect(env, columns, "INSERT INTO sink SELECT k, COUNT(*) FROM t GROUP BY k")
    assert changes == [("+I", "a", 1), ("+I", "b", 1), ("+U", "a", 2)]


def test_a_join_emits_no_update_before_rows_to_an_upsert_sink() -> None:
    env = environment()
    columns = "id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED"
    register_changes(env, [Row.of_kind(INS, 1, "a"), Row.of_kind(UB, 1, "a"), Row.of_kind(UA, 1, "b")], columns)
    insert = "INSERT INTO sink SELECT t.id, o.v FROM t JOIN t AS o ON t.id = o.id"
    changes = insert_and_collect(env, columns, insert)
    assert {row_kind for row_kind, *_ in changes} <= {"+I", "+U", "-D"}
    assert changes[-1][1:] == (1, "b")


def test_a_row_that_no_longer_passes_a_filter_is_deleted_from_an_upsert_sink() -> None:
    env = environment()
    register_changes(env, [Row.of_kind(INS, k) for k in ("a", "b", "a")], "k STRING", "I")
    columns = "k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED"
    changes = insert_and_collect(
        env, columns, "INSERT INTO sink SELECT * FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) WHERE n < 2"
    )
    assert changes == [("+I", "a", 1), ("+I", "b", 1), ("-D", "a", 1)]


def test_a_row_whose_key_changes_is_deleted_under_the_old_key() -> None:
    env = environment()
    columns = "id INT, v STRING, PRIMARY KEY (id{}) NOT ENFORCED"
    rows = [Row.of_kind(INS, 1, "a"), Row.of_kind(UB, 1, "a"), Row.of_kind(UA, 1, "b")]
    register_changes(env, rows, columns.format(""))
    changes = insert_and_collect(env, columns.format(", v"), "INSERT INTO sink SELECT * FROM t")
    assert changes == [("+I", 1, "a"), ("-D", 1, "a"), ("+U", 1, "b")]


def test_a_deduplicated_row_is_upserted_by_its_partition_key() -> None:
    env = environment()
    register_changes(
        env,
        [Row.of_kind(INS, *row) for row in ((1, "a", 5), (2, "a", 3))],
        "id INT PRIMARY KEY NOT ENFORCED, k STRING, v INT",
        "I",
    )
    best = "SELECT id, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n FROM t) WHERE n = 1"
    columns = "id INT, k STRING, v INT, PRIMARY KEY ({}) NOT ENFORCED"
    assert insert_and_collect(env, columns.format("k"), f"INSERT INTO sink {best}") == [
        ("+I", 1, "a", 5),
        ("+U", 2, "a", 3),
    ]
    with pytest.raises(SqlError, match="ON CONFLICT"):
        insert_and_collect(env, columns.format("id"), f"INSERT INTO sink {best}")
    changes = insert_and_collect(env, columns.format("id"), f"INSERT INTO sink {best} ON CONFLICT DO DEDUPLICATE")
    assert changes == [("+I", 1, "a", 5), ("-D", 1, "a", 5), ("+I", 2, "a", 3)]


def test_updates_of_a_row_without_a_key_are_refused_by_an_upsert_sink() -> None:
    env = environment()
    register_changes(env, [Row.of_kind(INS, "a")], "k STRING", "I")
    with pytest.raises(SqlError, match="no primary key"):
        insert_and_collect(env, "k STRING, n BIGINT", "INSERT INTO sink SELECT k, COUNT(*) FROM t GROUP BY k")


def test_an_error_names_the_operator_that_emits_updates() -> None:
    env = environment()
    register_changes(env, [Row.of_kind(INS, "a")], "k STRING", "I")
    with pytest.raises(SqlError, match="GroupAggregate"):
        insert_and_collect(
            env, "k STRING, n BIGINT", "INSERT INTO sink SELECT k, COUNT(*) FROM t GROUP BY k", "INSERT_ONLY"
        )


@st.composite
def histories(draw: Any) -> list[tuple[RowKind, int, str, int]]:
    """Draw changes of rows by id: inserts, updates and deletes."""
    current_rows: dict[int, tuple[str, int]] = {}
    history: list[tuple[RowKind, int, str, int]] = []
    for _ in range(draw(st.integers(0, 12))):
        key = draw(st.integers(0, 3))
        new = (draw(st.sampled_from("abc")), draw(st.integers(0, 9)))
        if key not in current_rows:
            history.append((INS, key, *new))
            current_rows[key] = new
        elif draw(st.booleans()):
            history += [(UB, key, *current_rows[key]), (UA, key, *new)]
            current_rows[key] = new
        else:
            history.append((DEL, key, *current_rows.pop(key)))
    return history


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=histories(), parallelism=st.sampled_from([1, 2]), keyed=st.booleans(), cut=st.booleans())
def test_a_sink_with_another_key_has_current_rows_at_the_end(
    rows: list[tuple[RowKind, int, str, int]], parallelism: int, keyed: bool, cut: bool
) -> None:
    remaining: dict[int, list[Any]] = {}
    for row_kind, key, *cells in rows:
        remaining[key] = cells
        if row_kind is DEL:
            del remaining[key]
    env = environment(parallelism, **({"millstream__epoch__max_records": "1"} if cut else {}))
    promised = ", PRIMARY KEY (id) NOT ENFORCED" if keyed else ""
    register_changes(env, [Row.of_kind(*row) for row in rows], f"id INT, name STRING, v INT{promised}")
    columns = "id INT, name STRING, v INT, PRIMARY KEY (name) NOT ENFORCED"
    sink_rows: dict[str, tuple[Any, ...]] = {}
    for row_kind, *cells in insert_and_collect(
        env, columns, "INSERT INTO sink SELECT * FROM t ON CONFLICT DO DEDUPLICATE"
    ):
        if row_kind == "-D":
            del sink_rows[cells[1]]
        else:
            sink_rows[cells[1]] = tuple(cells)
    assert set(sink_rows) == {name for name, _ in remaining.values()}
    assert all(list(remaining[key]) == [name, v] for key, name, v in sink_rows.values())


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=histories(), cut=st.booleans())
def test_normalized_upserts_are_the_original_changes(rows: list[tuple[RowKind, int, str, int]], cut: bool) -> None:
    expected = [
        (str(row[0]), *row[1:])
        for i, row in enumerate(rows)
        if not (row[0] is UB and rows[i + 1][1:] == row[1:]) and not (row[0] is UA and rows[i - 1][1:] == row[1:])
    ]
    env = environment(**({"millstream__epoch__max_records": "1"} if cut else {}))
    upserts = [Row.of_kind(*row) for row in rows if row[0] is not UB]
    register_changes(env, upserts, "id INT, name STRING, v INT, PRIMARY KEY (id) NOT ENFORCED", "I,UA,D")
    changes = changelog(env, "SELECT * FROM t")[2]
    assert [(row_kind, int(key), name, int(v)) for row_kind, key, name, v in changes] == expected


def register_timed_changes(env: TableEnvironment, rows: list[Any], mode: str = "I,UB,UA,D") -> None:
    """Register the changes of a table (order, product, time), with a watermark after each row."""
    register_values("timed", [Row.of_kind(row_kind, *cells, at) for row_kind, *cells, at in rows])
    env.execute_sql(
        "CREATE TABLE t (id INT, product STRING, at BIGINT, ts AS TO_TIMESTAMP_LTZ(at, 3), WATERMARK FOR ts AS ts) "
        f"WITH ('connector'='values', 'data-id'='timed', 'changelog-mode'='{mode}')"
    )


BY_PRODUCT = "product STRING PRIMARY KEY NOT ENFORCED, id INT"
TO_PRODUCT = "INSERT INTO sink SELECT product, id FROM t ON CONFLICT DO "
CONFLICT = [(INS, 1, "laptop", 1), (INS, 2, "phone", 1), (INS, 3, "laptop", 1)]
MOVED = [(INS, 1, "laptop", 1), (INS, 3, "laptop", 1), (UB, 1, "laptop", 1), (UA, 1, "phone", 1)]


@pytest.mark.parametrize("action", ["ERROR", "NOTHING"])
def test_changes_that_cancel_each_other_are_not_a_conflict(action: str) -> None:
    env = environment()
    register_timed_changes(env, MOVED)
    assert sorted(insert_and_collect(env, BY_PRODUCT, TO_PRODUCT + action)) == [("+I", "laptop", 3), ("+I", "phone", 1)]


@pytest.mark.parametrize("mode", ["I", "I,UB,UA,D"])
def test_conflicts_are_errors_or_keep_the_first_row(mode: str) -> None:
    env = environment(**{"restart_strategy__type": "none"})
    register_timed_changes(env, CONFLICT, mode)
    assert sorted(insert_and_collect(env, BY_PRODUCT, f"{TO_PRODUCT}NOTHING")) == [
        ("+I", "laptop", 1),
        ("+I", "phone", 2),
    ]
    message = r"2 rows with different upsert keys have the same primary key \[product=laptop\](?s:.*)DO NOTHING"
    with pytest.raises(UserError, match=message):
        insert_and_collect(env, BY_PRODUCT, f"{TO_PRODUCT}ERROR")


def test_a_retraction_of_a_row_that_was_not_kept_has_no_effect() -> None:
    env = environment()
    later = [*CONFLICT, (DEL, 3, "laptop", 5), (DEL, 2, "phone", 5)]
    register_timed_changes(env, later)
    rows = insert_and_collect(env, BY_PRODUCT, f"{TO_PRODUCT}NOTHING")
    assert {row[1:]: row[0] for row in rows}.get(("laptop", 3)) is None
    assert [row for row in rows if row[1] == "laptop"] == [("+I", "laptop", 1)]


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("INSERT_ONLY", "ON CONFLICT is allowed for upsert sinks only, and the sink of this table gets inserts only"),
        ("RETRACT", "gets inserts only"),
        ("UPSERT", r"ON CONFLICT DO ERROR needs watermarks, and these tables have none: default_catalog\.\S+\.t"),
    ],
)
def test_on_conflict_needs_an_upsert_sink_and_watermarks(mode: str, message: str) -> None:
    env = environment()
    register_changes(env, [(1, "a")], "id INT, product STRING", "I")
    with pytest.raises(SqlError, match=message):
        insert_and_collect(env, BY_PRODUCT, f"{TO_PRODUCT}ERROR", mode)
