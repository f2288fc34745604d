"""A full lookup cache has the same results as lookups, and is reloaded as the options of the table say."""

import datetime
from pathlib import Path

import pytest
from sql_cases import changelog, materialize

from millstream.sql.columns import create_row_type_info
from millstream.sql.connector.lookup_reload import PeriodicReload, TimedReload
from millstream.sql.connectors.simple import register_values
from millstream.sql.errors import SqlError
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.operators.join.lookup_join import LookupJoinSpec
from millstream.sql.physical.nodes import Operation
from millstream.sql.syntax import parse_statement
from millstream.sql.syntax.tree import SelectStatement
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.testing.harness import OperatorHarness
from millstream.types.row import Row

JOIN = "SELECT o.id, d.name, d.tag FROM orders AS o {} JOIN dim FOR SYSTEM_TIME AS OF o.p AS d ON o.item = d.item{}"
FULL = "'lookup.cache'='FULL', 'lookup.full-cache.periodic-reload.interval'='10 s'"
ORDERS = [(1, "a"), (2, "b"), (3, None), (4, "a"), (5, "z")]
ITEMS = [("a", "apple", 1), ("b", "bean", 2), ("b", "broad bean", 3), (None, "nothing", 4)]
MINUTE, HOUR = 60_000, 3_600_000


@pytest.fixture
def env() -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    register_values("orders", ORDERS)
    register_values("items", ITEMS)
    env.execute_sql(
        "CREATE TABLE orders (id INT, item STRING, p AS PROCTIME()) WITH ('connector'='values', 'data-id'='orders')"
    )
    return env


def values_table(env: TableEnvironment, options: str) -> None:
    env.execute_sql(
        "CREATE OR REPLACE TABLE dim (item STRING, name STRING, tag INT) "
        f"WITH ('connector'='values', 'data-id'='items'{options})"
    )


def files_table(env: TableEnvironment, folder: Path, options: str = FULL) -> None:
    for tag, item, name in ((1, "a", "apple"), (2, "b", "bean"), (3, "b", "broad bean")):
        (folder / f"tag={tag}").mkdir(exist_ok=True)
        (folder / f"tag={tag}" / "part").write_text(f"{name},{item}\n")
    env.execute_sql(
        "CREATE TABLE dim (tag INT, name STRING, item STRING) PARTITIONED BY (tag) "
        f"WITH ('connector'='filesystem', 'path'='{folder}', 'format'='csv', {options})"
    )


def spec_of(env: TableEnvironment, sql: str) -> LookupJoinSpec:
    node = parse_statement(sql)
    assert isinstance(node, SelectStatement)
    waiting: list[Operation] = [env._planner().plan_collect(QueryBinder(env._session()).query(node.query))]
    for operation in waiting:
        if isinstance(operation.spec, LookupJoinSpec):
            return operation.spec
        waiting += operation.inputs
    raise AssertionError(sql)


@pytest.mark.parametrize("condition", ["", " AND d.tag > 1", " AND o.id < d.tag"])
@pytest.mark.parametrize("kind", ["", "LEFT"])
def test_a_full_cache_has_the_results_of_lookups(
    env: TableEnvironment, inline_engine: None, kind: str, condition: str
) -> None:
    sql = JOIN.format(kind, condition)
    values_table(env, "")
    looked_up = changelog(env, sql)[2]
    values_table(env, f", {FULL}")
    assert changelog(env, sql)[2] == looked_up


def test_files_are_looked_up_with_a_full_cache(env: TableEnvironment, inline_engine: None, tmp_path: Path) -> None:
    files_table(env, tmp_path)
    actual = materialize(changelog(env, JOIN.format("", " AND d.tag < 3"))[2])
    assert sorted(actual) == [("1", "apple", "1"), ("2", "bean", "2"), ("4", "apple", "1")]


def test_a_table_is_reloaded_when_it_is_due(env: TableEnvironment, tmp_path: Path) -> None:
    files_table(env, tmp_path)
    spec = spec_of(env, JOIN.format("", ""))
    type_infos = [create_row_type_info(spec.left)]
    row = [1, "a", datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)]
    width = len(spec.left)
    with OperatorHarness.of_spec(
        spec, input_types=type_infos, output_type=create_row_type_info(spec.output)
    ) as harness:
        loaded = []
        for now, name in ((0, "apple"), (9_999, "pear"), (10_000, "plum"), (19_999, "fig"), (25_000, "kiwi")):
            (tmp_path / "tag=1" / "part").write_text(f"{name},a\n")
            harness.processing_time(now)
            harness.process(Row(*row[:width]))
            loaded.append(harness.take_output()[-1].value[width + 1])
        assert loaded == ["apple", "apple", "plum", "plum", "kiwi"]
        assert harness.counter("lookup.loaded") == 9


def test_the_interval_begins_at_the_last_load_or_at_the_first() -> None:
    assert PeriodicReload(10).next_reload(0, 13) == 23
    assert [PeriodicReload(10, fixed_rate=True).next_reload(3, last) for last in (3, 12, 13, 40)] == [13, 13, 23, 43]


def test_a_time_of_day_is_in_its_own_time_zone_or_that_of_the_session() -> None:
    noon = TimedReload(datetime.time(12), "UTC")
    assert noon.next_reload(11 * HOUR, 11 * HOUR) == 12 * HOUR
    assert noon.next_reload(11 * HOUR, 12 * HOUR) == 36 * HOUR
    assert noon.next_reload(12 * HOUR, 12 * HOUR) == 36 * HOUR
    assert TimedReload(datetime.time(12), "Asia/Tokyo").next_reload(0, 0) == 3 * HOUR
    assert TimedReload(datetime.time.fromisoformat("12:00+07:00"), "Asia/Tokyo").next_reload(0, 0) == 5 * HOUR
    assert TimedReload(datetime.time(12), "UTC", days=3).next_reload(0, 12 * HOUR) == (12 + 72) * HOUR


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("'lookup.cache'='FULL'", "needs 'lookup.full-cache.periodic-reload.interval'"),
        ("'lookup.cache'='ALL'", "must be NONE, PARTIAL or FULL"),
        (f"{FULL}, 'lookup.full-cache.reload-strategy'='SOMETIMES'", "must be periodic, timed"),
        ("'lookup.cache'='FULL', 'lookup.full-cache.reload-strategy'='TIMED'", "iso-time' is missing"),
        (
            "'lookup.cache'='FULL', 'lookup.full-cache.reload-strategy'='TIMED', "
            "'lookup.full-cache.timed-reload.iso-time'='noon'",
            "must be a time of day",
        ),
        (f"{FULL}, 'lookup.full-cache.timed-reload.iso-tme'='10:15'", "did you mean"),
        (f"{FULL}, 'changelog-mode'='I,UB,UA,D'", "needs a bounded table without updates"),
    ],
)
def test_wrong_options_are_refused(env: TableEnvironment, options: str, reason: str) -> None:
    values_table(env, f", {options}")
    with pytest.raises(SqlError, match=reason):
        env.execute_sql(JOIN.format("", ""))


def test_monitored_files_cannot_be_cached_completely(env: TableEnvironment, tmp_path: Path) -> None:
    files_table(env, tmp_path, f"{FULL}, 'source.monitor-interval'='1 s'")
    with pytest.raises(SqlError, match="needs a bounded table without updates"):
        env.execute_sql(JOIN.format("", ""))


def test_the_plan_shows_the_full_cache(env: TableEnvironment) -> None:
    values_table(env, f", {FULL}")
    assert "cache=[FULL]" in env.explain_sql(JOIN.format("", ""))
