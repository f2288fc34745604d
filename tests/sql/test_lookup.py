"""A lookup join joins each row with the rows of a table for its key, with as few lookups as necessary."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sql_cases import changelog, materialize

from millstream.connector.lookup_cache import CachePolicy, LookupCache
from millstream.errors import MillstreamError
from millstream.sql.connector.lookup import (
    CACHE_OPTIONS,
    Key,
    Lookup,
    LookupRows,
    TableLookup,
    read_cache_policy,
)
from millstream.sql.connector.table_connector import TableConnector, TableContext
from millstream.sql.connectors.registry import register
from millstream.sql.connectors.simple import register_values
from millstream.sql.errors import SqlError
from millstream.sql.operators.join.lookup_join import find_distinct_keys
from millstream.sql.types import data_types as t
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.row import Row, RowKind

pytestmark = pytest.mark.usefixtures("inline_engine")

ORDERS = [(1, "a", 10), (2, "b", 20), (3, None, 30), (4, "a", 40), (5, "z", 50)]
ITEMS = [("a", 1, "apple"), ("b", 2, "bean"), ("b", 3, "broad bean"), ("c", 4, "corn")]

asked: list[list[Key]] = []
hidden = {"until": 0}
pause = {"seconds": 0.0}
barriers: list[threading.Barrier] = []


@dataclass(frozen=True)
class Counted(Lookup):
    """Items; every lookup is recorded, and the first lookups can return nothing."""

    key_index: int

    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        asked.append(list(keys))
        time.sleep(pause["seconds"])
        for each in barriers:
            each.wait(60)
        if len(asked) <= hidden["until"]:
            return {}
        return {key: [row for row in ITEMS if (row[self.key_index],) == key] for key in keys}


def _counted(context: TableContext, keys: tuple[str, ...]) -> TableLookup:
    context.check(["most", *CACHE_OPTIONS])
    (key,) = keys
    lookup, most = Counted(context.schema.names.index(key)), context.integer("most", 1000) or 0
    return TableLookup(lookup, context.schema, read_cache_policy(context), context.flag("lookup.async"), most)


register(TableConnector("counted", lookup=_counted))


@pytest.fixture
def env() -> TableEnvironment:
    asked.clear()
    barriers.clear()
    hidden["until"], pause["seconds"] = 0, 0.0
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    register_values("orders", ORDERS)
    register_values("items", ITEMS)
    env.execute_sql(
        "CREATE TABLE orders (id INT, item STRING, n INT, p AS PROCTIME()) "
        "WITH ('connector'='values', 'data-id'='orders')"
    )
    env.execute_sql(
        "CREATE TABLE items (item STRING, kind INT, name STRING) WITH ('connector'='values', 'data-id'='items')"
    )
    return env


def rows_of(env: TableEnvironment, sql: str) -> list[tuple[str, ...]]:
    return [tuple(cells) for _, *cells in changelog(env, sql)[2]]


def counted(env: TableEnvironment, options: str = "") -> None:
    env.execute_sql(f"CREATE TABLE dim (item STRING, kind INT, name STRING) WITH ('connector'='counted'{options})")


JOIN = "SELECT o.id, d.name FROM orders AS o {} JOIN {} FOR SYSTEM_TIME AS OF o.p AS d ON o.item = d.item{}"


def test_rows_are_joined_with_the_rows_of_their_key(env: TableEnvironment) -> None:
    actual = rows_of(env, JOIN.format("", "items", ""))
    assert actual == [("1", "apple"), ("2", "bean"), ("2", "broad bean"), ("4", "apple")]


def test_left_rows_without_a_match_keep_their_position(env: TableEnvironment) -> None:
    actual = rows_of(env, JOIN.format("LEFT", "items", " AND d.kind < 3 AND o.n > 10"))
    assert actual == [("1", "<NULL>"), ("2", "bean"), ("3", "<NULL>"), ("4", "apple"), ("5", "<NULL>")]


@pytest.mark.parametrize("join_type", ["", "LEFT"])
def test_a_lookup_join_equals_a_regular_join_of_a_table_that_does_not_change(
    env: TableEnvironment, join_type: str
) -> None:
    looked_up = changelog(env, JOIN.format(join_type, "items", " AND d.kind + o.n < 60"))[2]
    regular = JOIN.format(join_type, "items", " AND d.kind + o.n < 60").replace(" FOR SYSTEM_TIME AS OF o.p", "")
    assert materialize(looked_up) == materialize(changelog(env, regular)[2])


def test_looked_up_rows_can_be_projected_and_filtered(env: TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE wide (item STRING, kind INT, name STRING, twice AS kind * 2) "
        "WITH ('connector'='values', 'data-id'='items')"
    )
    env.execute_sql("CREATE VIEW some AS SELECT UPPER(name) AS name, item, twice FROM wide WHERE kind <> 2")
    sql = "SELECT o.id, d.name, d.twice FROM orders AS o JOIN some FOR SYSTEM_TIME AS OF o.p AS d ON o.item = d.item"
    assert rows_of(env, sql) == [("1", "APPLE", "2"), ("2", "BROAD BEAN", "6"), ("4", "APPLE", "2")]


def test_a_key_can_be_an_expression(env: TableEnvironment) -> None:
    sql = "SELECT o.id, d.item FROM orders AS o JOIN items FOR SYSTEM_TIME AS OF o.p AS d ON MOD(o.id, 3) = d.kind"
    assert rows_of(env, sql) == [("1", "a"), ("2", "b"), ("4", "a"), ("5", "b")]


def test_a_row_keeps_its_row_kind(env: TableEnvironment) -> None:
    register_values("changes", [Row.of_kind(RowKind.INSERT, "a"), Row.of_kind(RowKind.DELETE, "a")])
    env.execute_sql(
        "CREATE TABLE changes (item STRING, p AS PROCTIME()) "
        "WITH ('connector'='values', 'data-id'='changes', 'changelog-mode'='I,UB,UA,D')"
    )
    sql = "SELECT d.name FROM changes AS o JOIN items FOR SYSTEM_TIME AS OF o.p AS d ON o.item = d.item"
    assert changelog(env, sql)[2] == [["+I", "apple"], ["-D", "apple"]]


def test_the_distinct_keys_of_a_batch_are_one_lookup(env: TableEnvironment) -> None:
    counted(env)
    assert len(rows_of(env, JOIN.format("", "dim", ""))) == 4
    assert asked == [[("a",), ("b",), ("z",)]]


def test_many_keys_are_looked_up_concurrently(env: TableEnvironment) -> None:
    counted(env, ", 'most'='1', 'lookup.async'='true'")
    barriers.append(threading.Barrier(3))  # no lookup returns before all three have started
    assert len(rows_of(env, JOIN.format("", "dim", ""))) == 4
    assert sorted(asked) == [[("a",)], [("b",)], [("z",)]]


def test_the_lookup_of_a_missing_key_is_retried(env: TableEnvironment) -> None:
    counted(env)
    hidden["until"] = 1
    hint = "/*+ LOOKUP('table'='d', 'retry-predicate'='lookup_miss', 'retry-strategy'='fixed_delay', {}) */"
    hint = hint.format("'fixed-delay'='1 ms', 'max-attempts'='2'")
    actual = rows_of(env, JOIN.format("LEFT", "dim", "").replace("SELECT", f"SELECT {hint}", 1))
    assert actual[0] == ("1", "apple")
    assert [len(keys) for keys in asked] == [3, 3, 1]


def test_a_lookup_has_a_timeout(env: TableEnvironment) -> None:
    counted(env)
    pause["seconds"] = 0.5
    hint = "/*+ LOOKUP('table'='d', 'async'='true', 'timeout'='20 ms') */"
    with pytest.raises(MillstreamError, match="timed out"):
        rows_of(env, JOIN.format("", "dim", "").replace("SELECT", f"SELECT {hint}", 1))


def test_rows_can_be_partitioned_by_key_before_the_lookup(env: TableEnvironment) -> None:
    env.get_config().set("parallelism.default", "2")
    sql = JOIN.format("LEFT", "items", "")
    hinted = sql.replace("SELECT", "SELECT /*+ LOOKUP('table'='d', 'shuffle'='true') */", 1)
    assert materialize(changelog(env, hinted)[2]) == materialize(changelog(env, sql)[2])


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        ("'asynk'='true'", "did you mean 'async'"),
        ("'async'='maybe'", "must be true or false"),
        ("'retry-predicate'='lookup_miss'", "is missing"),
        ("'capacity'='none'", "must be a number"),
    ],
)
def test_a_wrong_hint_is_refused(env: TableEnvironment, hint: str, reason: str) -> None:
    sql = JOIN.format("", "items", "").replace("SELECT", f"SELECT /*+ LOOKUP('table'='items', {hint}) */", 1)
    with pytest.raises(SqlError, match=reason):
        env.execute_sql(sql)


@given(
    rows=st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None])), max_size=8),
    width=st.sampled_from([1, 2]),
)
def test_the_distinct_keys_are_those_of_the_rows(rows: list[tuple[str | None, int | None]], width: int) -> None:
    columns = [pa.array([row[0] for row in rows], pa.string()), pa.array([row[1] for row in rows], pa.int32())]
    key_indexes, keys = find_distinct_keys(columns[:width], [t.STRING, t.INT][:width])
    assert len(set(keys)) == len(keys)
    assert [None if key_index == len(keys) else keys[key_index] for key_index in key_indexes.tolist()] == [
        None if None in row[:width] else row[:width] for row in rows
    ]


def test_results_are_cached_across_batches(env: TableEnvironment) -> None:
    counted(env, ", 'lookup.cache'='PARTIAL', 'lookup.partial-cache.max-rows'='100'")
    env.get_config().set("millstream.epoch.max-records", "1")
    assert len(rows_of(env, JOIN.format("", "dim", ""))) == 4
    assert sorted(key for keys in asked for key in keys) == [("a",), ("b",), ("z",)]


def test_a_cache_needs_a_limit(env: TableEnvironment) -> None:
    counted(env, ", 'lookup.cache'='PARTIAL'")
    with pytest.raises(SqlError, match="needs a limit"):
        env.execute_sql(JOIN.format("", "dim", ""))


def test_a_cached_result_expires() -> None:
    cache = LookupCache(CachePolicy(after_write=10))
    cache.put(("a",), [1], 0)
    assert cache.get(("a",), 9) == [1]
    assert cache.get(("a",), 10) is None
    used = LookupCache(CachePolicy(after_access=10))
    used.put(("a",), [1], 0)
    assert used.get(("a",), 9) == [1]
    assert used.get(("a",), 18) == [1]
    assert used.get(("a",), 28) is None


def test_the_least_recently_used_result_is_evicted() -> None:
    cache = LookupCache(CachePolicy(max_rows=3))
    cache.put(("a",), [1, 2], 0)
    cache.put(("b",), [], 0)
    cache.get(("a",), 0)
    cache.put(("c",), [3], 0)
    assert cache.get(("b",), 0) is None
    assert cache.get(("a",), 0) == [1, 2]
    cache.put(("d",), [4], 0)
    assert cache.get(("c",), 0) is None


def test_a_missing_key_is_cached_unless_the_option_disables_it() -> None:
    cache = LookupCache(CachePolicy(max_rows=3, missing=False))
    cache.put(("a",), [], 0)
    assert cache.get(("a",), 0) is None
