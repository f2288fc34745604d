"""A parallel scan of a table returns every row once, with its values, whatever the splits and interruptions."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pytest

from millstream.common import Configuration, Row, Time, Types, WatermarkStrategy
from millstream.connector.source import Budget, ReaderContext, SplitRange
from millstream.datastream import AsyncDataStream, StreamExecutionEnvironment
from millstream.datastream.connectors.jdbc import JdbcAsyncLookupFunction, JdbcLookupFunction, JdbcSource
from millstream.datastream.functions import MapFunction
from millstream.errors import UserError
from millstream.times import Instant


@pytest.fixture
def numbers(database):
    database.execute(
        "CREATE TABLE numbers AS SELECT CASE WHEN n % 10 <> 0 THEN n END AS id, 'n' || n AS name "
        "FROM generate_series(1, 5000) AS n"
    )
    database.execute("ANALYZE numbers")
    return [f"n{n}" for n in range(1, 5001)]


def builder(database):
    return JdbcSource.builder().set_connection_options(database.options)


def read_all(source, *, parallelism=2, records=1000, stop=None, replay=False):
    """All rows, by way of JSON as in a real job; interrupted once after `stop` epochs."""
    reader = source.create_reader(ReaderContext(0, 1, 300))
    enumerator, rows, logged = source.create_enumerator(parallelism), [], []
    for epoch in range(1000):
        if epoch == stop:
            state = json.loads(json.dumps(enumerator.snapshot()))
            enumerator = source.create_enumerator(parallelism, None if replay else state)
            for ranges in logged if replay else ():
                enumerator.replayed(ranges)
        ranges = [
            SplitRange.from_json(json.loads(json.dumps(p.to_json()))) for p in enumerator.plan(Budget(records, 1, 0))
        ]
        logged.append(ranges)
        for part in ranges:
            for read in reader.read(part):
                assert len(read.values) <= 300
                rows += source.type_info().from_arrow(read.values)
        if enumerator.finished():
            break
    reader.close()
    return rows, epoch + 1


CUTS = {
    "blocks": lambda b: b.set_table("numbers"),
    "column": lambda b: b.set_table("numbers").set_partition("id", 3),
    "query": lambda b: b.set_sql("SELECT * FROM numbers").set_partition("id"),
    "whole": lambda b: b.set_sql("SELECT * FROM numbers"),
    "parameters": lambda b: b.set_sql(
        "SELECT * FROM numbers WHERE coalesce(id, 1) % 2 = ?"
    ).set_jdbc_parameter_values_provider([(0,), (1,)]),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(("stop", "replay"), [(None, False), (0, True), (1, False), (2, True)])
def test_every_row_is_read_once(database, numbers, cut, stop, replay):
    rows, epochs = read_all(CUTS[cut](builder(database)).build(), stop=stop, replay=replay)
    assert sorted(row["name"] for row in rows) == sorted(numbers)
    assert all(row["id"] is None or f"n{row['id']}" == row["name"] for row in rows)
    assert cut in ("whole", "parameters") or epochs > 2


def test_the_layout_stays_when_the_table_grows_before_a_replay(database, numbers):
    source = CUTS["column"](builder(database)).build()
    enumerator = source.create_enumerator(2)
    first = enumerator.plan(Budget(1000, 1, 0))
    database.execute("INSERT INTO numbers SELECT n, 'more' FROM generate_series(5001, 9000) AS n")
    again = source.create_enumerator(2)
    again.replayed(first)
    assert again.snapshot() == enumerator.snapshot()


def test_rows_outside_the_bounds_are_not_read(database, numbers):
    source = builder(database).set_table("numbers").set_partition("id", 4, 100, 199).build()
    rows, _ = read_all(source)
    assert sorted(row["id"] for row in rows) == [n for n in range(100, 200) if n % 10]


def test_a_job_reads_a_table_with_all_its_types(database):
    database.execute(
        "CREATE TABLE kinds (s int2, i int4, l int8, f float4, d float8, n numeric, t text, v varchar(9), b bool, "
        "day date, clock time, at timestamp, z timestamptz, raw bytea, u uuid, doc jsonb, list int[], words text[])"
    )
    row = (
        *(1, 2, 3, 0.5, 0.25, Decimal("1.10"), 'comma, "quote"\nline', "", True, datetime.date(1960, 2, 29)),
        *(datetime.time(1, 2, 3, 4), datetime.datetime.fromisoformat("2024-01-02 03:04:05.000006")),
    )
    database.execute(
        f"INSERT INTO kinds VALUES ({', '.join(['%s'] * 12)}, '1969-12-31 23:59:59.5+00', '\\x00ff', "
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": 1}', '{1,NULL}', '{a,\"b,c\"}'), "
        f"({', '.join(['NULL'] * 18)})",
        row,
    )
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    stream = env.from_source(builder(database).set_table("kinds").build(), WatermarkStrategy.no_watermarks(), "kinds")
    found = list(stream.execute_and_collect())
    uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    expected = [*row, Instant(-1, 500_000_000), b"\0\xff", uuid, '{"a": 1}', [1, None], ["a", "b,c"]]
    assert [list(each) for each in found] == [expected, [None] * 18]
    assert found[0].as_dict()["v"] == ""


def test_one_column_of_nulls_and_an_empty_result(database):
    database.execute("CREATE TABLE one (t text)")
    source = builder(database).set_table("one").build()
    assert read_all(source)[0] == []
    database.execute("INSERT INTO one VALUES (NULL), (''), ('x'), (NULL)")
    assert [row["t"] for row in read_all(source)[0]] == [None, "", "x", None]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda b: b.set_table("nothing"), "nothing"),
        (lambda b: b.set_table("numbers").set_partition("name", 2), "partition column name has the type text"),
        (lambda b: b.set_table("numbers").set_partition("x", 2), "is not in the result"),
        (lambda b: b, "a table or a query"),
    ],
)
def test_invalid_sources_are_refused_when_they_are_built(database, numbers, make, words):
    with pytest.raises(UserError, match=words):
        make(builder(database)).build()


def test_a_value_that_cannot_be_represented_is_named(database):
    database.execute("CREATE TABLE odd (at timestamp)")
    database.execute("INSERT INTO odd VALUES ('infinity')")
    with pytest.raises(UserError, match="infinity"):
        read_all(builder(database).set_table("odd").build())


# -------------------------------------------------------------------------------------------------------- lookups


@pytest.fixture
def users(database):
    database.execute("CREATE TABLE users (id int, name text)")
    database.execute("INSERT INTO users VALUES (1, 'ann'), (2, 'bob'), (2, 'rob')")
    return lambda **how: JdbcLookupFunction(database.options, "users", ["id"], ["name"], **how)


def test_a_lookup_finds_all_rows_and_caches_them(database, users):
    lookup = users(cache_max_rows=2)
    lookup.open()
    assert lookup.lookup(1) == [Row(name="ann")]
    assert sorted(row.name for row in lookup.lookup(2)) == ["bob", "rob"]
    database.execute("UPDATE users SET name = 'eve' WHERE id = 1")
    assert lookup.lookup(1) == [Row(name="ann")]
    assert lookup.lookup(3) == []  # the least recently used one is evicted: 2
    assert lookup.lookup(1) == [Row(name="ann")]
    database.execute("DELETE FROM users WHERE id = 2")
    assert lookup.lookup(2) == []
    assert (lookup.cache.hits, lookup.cache.misses) == (2, 4)
    lookup.close()


def test_a_lookup_returns_the_types_of_the_source(database):
    database.execute("CREATE TABLE kinds (id int, n numeric, z timestamptz, u uuid, list int[])")
    uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    database.execute("INSERT INTO kinds VALUES (1, 1.10, '1969-12-31 23:59:59.5+00', %s, '{1,NULL}')", (uuid,))
    lookup = JdbcLookupFunction(database.options, "kinds", ["id"])
    lookup.open()
    (found,) = lookup.lookup(1)
    assert [found] == read_all(builder(database).set_table("kinds").build())[0]
    assert list(found) == [1, Decimal("1.10"), Instant(-1, 500_000_000), uuid, [1, None]]
    lookup.close()


def test_a_cached_row_expires(database, users):
    lookup = users(cache_max_rows=9, cache_ttl_ms=1000)
    lookup.open()
    now = 0
    lookup._now = lambda: now
    lookup.lookup(1)
    database.execute("UPDATE users SET name = 'eve' WHERE id = 1")
    now = 900
    assert lookup.lookup(1) == [Row(name="ann")]
    now = 1100
    assert lookup.lookup(1) == [Row(name="eve")]
    lookup.close()


def test_a_lookup_survives_a_broken_connection(users, faults):
    lookup = users()
    lookup.open()
    lookup.lookup(1)
    for after in (False, True):
        faults.arm(0, after=after)
        assert lookup.lookup(1) == [Row(name="ann")]
        assert faults.broken is not None
    lookup.close()


class Named(MapFunction):
    def __init__(self, lookup):
        self.lookup = lookup

    def open(self, runtime_context):
        self.lookup.open(runtime_context)

    def map(self, value):
        return value, sorted(row.name for row in self.lookup.lookup(value))

    def close(self):
        self.lookup.close()


def test_a_stream_is_enriched(users):
    configuration = Configuration()
    configuration.set_string("millstream.epoch.max-records", "3")
    expected = [(1, ["ann"]), (2, ["bob", "rob"]), (3, [])] * 2

    def stream():
        env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
        return env.from_collection([1, 2, 3, 1, 2, 3], Types.INT())

    assert list(stream().map(Named(users(cache_max_rows=5))).execute_and_collect()) == expected
    function = JdbcAsyncLookupFunction(
        users(), lambda value: value, lambda value, rows: [(value, sorted(row.name for row in rows))]
    )
    enriched = AsyncDataStream.ordered_wait(stream(), function, Time.seconds(10), 3, Types.PICKLED_BYTE_ARRAY())
    assert list(enriched.execute_and_collect()) == expected
