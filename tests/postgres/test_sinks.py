"""Rows in a real database, at least once: statements, types, upserts."""

from __future__ import annotations

import datetime
import gc
import weakref
from decimal import Decimal

import pytest

from millstream.common import Row, RowKind, Types
from millstream.connector.sink import WriterContext
from millstream.connectors.jdbc import driver
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.jdbc import (
    JdbcExecutionOptions,
    JdbcSink,
)
from millstream.errors import UserError
from millstream.times import Instant

ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
ONCE = JdbcExecutionOptions.builder().with_max_retries(0).build()


def context(epoch=1, subtask=0, attempt="0-a", parallelism=1) -> WriterContext:
    return WriterContext("job", "sink", subtask, parallelism, epoch, attempt, 0)


def written(sink, rows, **where):
    writer = sink.create_writer(context(**where))
    writer.write(rows, None)
    staged = writer.prepare_commit()
    writer.close()
    return staged


@pytest.fixture
def items(database):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, name text)")
    return lambda: database.execute("SELECT id, name FROM items ORDER BY id")


@pytest.mark.parametrize(
    "sql",
    ["INSERT INTO items (id, name) VALUES (?, ?)", "INSERT INTO items VALUES (?, ?) ON CONFLICT (id) DO NOTHING"],
)
def test_a_statement_runs_for_every_record(database, items, sql):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    stream = env.from_collection([Row(n, f"n{n}") for n in range(100)], ROWS)
    options = JdbcExecutionOptions.builder().with_batch_size(7).with_batch_interval_ms(1).with_max_retries(1).build()
    stream.sink_to(JdbcSink.sink(sql, ROWS, database.options, options))
    env.execute()
    assert items() == [(n, f"n{n}") for n in range(100)]


def test_every_type_arrives(database):
    kinds = Types.ROW_NAMED(
        ["i", "d", "n", "t", "b", "at", "day", "raw", "list", "doc", "none"],
        [
            Types.INT(),
            Types.DOUBLE(),
            Types.BIG_DEC(),
            Types.STRING(),
            Types.BOOLEAN(),
            Types.INSTANT(),
            Types.SQL_DATE(),
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Types.LIST(Types.INT()),
            Types.MAP(Types.STRING(), Types.INT()),
            Types.STRING(),
        ],
    )
    database.execute(
        "CREATE TABLE kinds (i int, d float8, n numeric, t text, b bool, at timestamptz, day date, raw bytea, "
        "list int[], doc jsonb, none text)"
    )
    row = Row(
        1,
        0.5,
        Decimal("1.10"),
        "tab\there\n\\N",
        True,
        Instant(-1, 500_000_000),
        datetime.date(2024, 2, 29),
        b"\0\xff",
        [1, 2],
        {"a": 1},
        None,
    )
    sink = JdbcSink.builder().with_table("kinds", kinds).build_at_least_once(database.options)
    sink.check()
    written(sink, [row])
    at = datetime.datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=datetime.UTC)
    assert database.execute("SELECT *, n::text FROM kinds")[0] == (
        *(1, 0.5, Decimal("1.10"), "tab\there\n\\N", True, at, datetime.date(2024, 2, 29)),
        *(b"\0\xff", [1, 2], {"a": 1}, None, "1.10"),
    )


def changes():
    return [
        Row(1, "one"),
        Row(2, "two"),
        Row.of_kind(RowKind.UPDATE_BEFORE, 1, "one"),
        Row.of_kind(RowKind.UPDATE_AFTER, 1, "uno"),
        Row(3, "three"),
        Row.of_kind(RowKind.DELETE, 2, "two"),
        Row.of_kind(RowKind.UPDATE_BEFORE, 3, "three"),
        Row.of_kind(RowKind.UPDATE_AFTER, 4, "four"),
    ]


@pytest.mark.parametrize("batch", [1, 3, 0])
def test_an_upsert_follows_the_row_kinds(database, items, batch):
    options = JdbcExecutionOptions(batch_size=batch)
    builder = JdbcSink.builder().with_table("items", ROWS, ["id"]).with_execution_options(options)
    written(builder.build_at_least_once(database.options), changes())
    assert items() == [(1, "uno"), (4, "four")]


def test_a_failed_write_is_retried(database, items, faults):
    sink = JdbcSink.builder().with_table("items", ROWS, ["id"]).build_at_least_once(database.options)
    for after in (False, True):
        for at in range(100):
            faults.arm(at, after=after)
            written(sink, [Row(1, "one"), Row(2, "two")])
            if faults.broken is None:
                break
            assert items() == [(1, "one"), (2, "two")]
        assert at > 5


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda b: b.with_table("items", ["id", "nome"]), "nome"),
        (lambda b: b.with_table("nothing", ["id"]), "nothing"),
        (lambda b: b.with_table("items", ["id", "name"], ["name"]), "no unique index on name"),
    ],
)
def test_invalid_targets_are_refused_before_the_job_starts(database, items, make, words):
    sink = make(JdbcSink.builder()).build_at_least_once(database.options)
    with pytest.raises(UserError, match=words):
        sink.check()
    plain = JdbcSink.builder().with_table("items", ["id", "name"]).build_at_least_once(database.options)
    with pytest.raises(UserError, match="can only insert"):
        written(plain, [Row.of_kind(RowKind.DELETE, 1, "a")])


def test_a_garbage_collected_session_closes_its_connection_without_a_warning(database):
    older = driver.connect(database.url)  # finalizers of a cycle run in the order of age
    driver.return_connection(database.url, older)
    session = driver.Session(database.url)
    assert session.connection() is older
    cycle = [session, older]
    cycle.append(cycle)
    gone = weakref.ref(older)
    del session, older, cycle
    gc.collect()  # a connection that is dropped while open gives a warning, which is an error in tests
    assert gone() is None
