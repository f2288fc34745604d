"""Tables of MySQL and SQLite in SQL: scanned, looked up by key, written to by primary key; JdbcSink."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from millstream.common import Row, Types
from millstream.connector.sink import WriterContext
from millstream.connectors.jdbc.commit_records import OutputLost
from millstream.connectors.jdbc.options import InvalidJdbcOption
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcLookupFunction, JdbcSink, JdbcSource
from millstream.errors import MillstreamError
from millstream.sql.connectors.simple import register_values
from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.row import RowKind

ITEMS = "id INT, name STRING, price DECIMAL(10, 2), made TIMESTAMP(3)"
CREATE = "CREATE TABLE items (id int PRIMARY KEY, name varchar(50), price decimal(10, 2), made datetime{})"


class SqliteDatabase:
    def __init__(self, path: Path) -> None:
        self.url, self.precision = f"jdbc:sqlite:{path}", ""
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=30)

    def execute(self, sql: str) -> list[Any]:
        return list(self._connection.execute(sql))


@pytest.fixture(params=["mysql", "sqlite"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        return SqliteDatabase(tmp_path / "shop.db")
    database = request.getfixturevalue("database")
    database.url, database.precision = database.server.jdbc_url_of(database.name), "(3)"
    return database


@pytest.fixture
def env(db: Any) -> TableEnvironment:
    db.execute(CREATE.format(db.precision))
    rows = ", ".join(f"({n}, 'item {n}', {n * 1.5}, '2024-01-01 00:00:{n % 60:02}.5')" for n in range(1, 101))
    db.execute(f"INSERT INTO items VALUES {rows}")
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    return env


@pytest.fixture
def table(env: TableEnvironment, db: Any) -> Callable[..., None]:
    def create(name: str, columns: str, target: str, more: str = "") -> None:
        env.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector'='jdbc', 'url'='{db.url}', "
            f"'table-name'='{target}'{more})"
        )

    return create


def rows_of(env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    with env.execute_sql(sql).collect() as rows:
        return sorted(tuple(row) for row in rows)


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Return rows of a database, in which SQLite's decimals are texts or numbers."""
    return sorted(tuple(Decimal(str(v)) if isinstance(v, float | Decimal) else v for v in row) for row in rows)


def test_a_table_is_scanned_whole_and_in_parts(env: TableEnvironment, table: Callable[..., None]) -> None:
    table("whole", ITEMS, "items")
    bounds = ", 'scan.partition.lower-bound'='11', 'scan.partition.upper-bound'='20'"
    table("part", ITEMS, "items", f", 'scan.partition.column'='id', 'scan.partition.num'='3'{bounds}")
    whole = rows_of(env, "SELECT * FROM whole")
    assert len(whole) == 100
    assert whole[1][:3] == (2, "item 2", Decimal("3.00"))
    assert str(whole[1][3]) == "2024-01-01 00:00:02.500000"
    assert [row[0] for row in rows_of(env, "SELECT id FROM part")] == list(range(11, 21))
    table("missing", "id INT, gone STRING", "items")
    with pytest.raises(SqlError, match=r"the table items has no column gone(?s:.*)it has id, name, price, made"):
        env.execute_sql("SELECT * FROM missing")
    table("nowhere", "id INT", "nowhere")
    with pytest.raises(SqlError, match="has no table nowhere"):
        env.execute_sql("SELECT * FROM nowhere")


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_updates_and_deletions_reach_the_row_of_their_key(
    env: TableEnvironment, table: Callable[..., None], db: Any, guarantee: str
) -> None:
    db.execute("CREATE TABLE counts (word varchar(9) PRIMARY KEY, n bigint)")
    more = f", 'sink.delivery-guarantee'='{guarantee}'"
    table("counts", "word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED", "counts", more)
    register_values("words", [("a",), ("b",), ("a",)])
    env.execute_sql("CREATE TABLE words (word STRING) WITH ('connector'='values', 'data-id'='words')")
    env.execute_sql("INSERT INTO counts SELECT word, COUNT(*) FROM words GROUP BY word").wait()
    assert plain(db.execute("SELECT * FROM counts")) == [("a", 2), ("b", 1)]
    env.execute_sql(
        "INSERT INTO counts SELECT word, n FROM (SELECT word, COUNT(*) AS n FROM words GROUP BY word) WHERE n < 2"
    ).wait()
    assert plain(db.execute("SELECT * FROM counts")) == [("b", 1)]
    db.execute("CREATE TABLE log (word varchar(9))")
    table("log", "word STRING", "log", more)
    env.execute_sql("INSERT INTO log SELECT word FROM words").wait()
    assert plain(db.execute("SELECT * FROM log")) == [("a",), ("a",), ("b",)]


def test_rows_are_looked_up(env: TableEnvironment, table: Callable[..., None]) -> None:
    table("items", f"{ITEMS}, gone STRING", "items")  # a column that is not used is not asked for
    register_values("orders", [(n, n * 50) for n in range(4)] + [(9, None)])
    env.execute_sql(
        "CREATE TABLE orders (n INT, item INT, p AS PROCTIME()) WITH ('connector'='values', 'data-id'='orders')"
    )
    assert rows_of(
        env,
        "SELECT o.n, d.name, d.price FROM orders AS o LEFT JOIN items FOR SYSTEM_TIME AS OF o.p AS d ON o.item = d.id",
    ) == [
        (0, None, None), (1, "item 50", Decimal("75.00")), (2, "item 100", Decimal("150.00")), (3, None, None),
        (9, None, None),
    ]  # fmt: skip


def test_update_delete_and_truncate(env: TableEnvironment, table: Callable[..., None], db: Any) -> None:
    env.get_config().set("execution.runtime-mode", "batch")
    env.get_config().set("restart-strategy.type", "none")
    table("items", f"{ITEMS}, PRIMARY KEY (id) NOT ENFORCED", "items")
    with pytest.raises(MillstreamError):
        env.execute_sql("UPDATE items SET price = 1 / (id - 100)").wait()
    assert plain(db.execute("SELECT price FROM items WHERE id = 1")) == [(Decimal("1.5"),)]
    env.execute_sql("DELETE FROM items WHERE id > 3").wait()
    env.execute_sql("UPDATE items SET price = price + 1, name = UPPER(name) WHERE id < 3").wait()
    assert plain(db.execute("SELECT id, name, price FROM items")) == [
        (1, "ITEM 1", Decimal("2.50")),
        (2, "ITEM 2", Decimal("4.00")),
        (3, "item 3", Decimal("4.50")),
    ]
    env.execute_sql("TRUNCATE TABLE items")
    assert db.execute("SELECT * FROM items") == type(db.execute("SELECT * FROM items"))()


def options_of(db: Any) -> JdbcConnectionOptions:
    return JdbcConnectionOptions.builder().with_url(db.url).build()


PAIR = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])


def test_statements_of_a_stream(db: Any) -> None:
    db.execute("CREATE TABLE pairs (id int PRIMARY KEY, name varchar(9))")
    env = StreamExecutionEnvironment.get_execution_environment()
    sql = "REPLACE INTO pairs (id, name) VALUES (?, ?)"
    env.from_collection([Row(1, "50%"), Row(2, "?"), Row(1, "b")], PAIR).sink_to(
        JdbcSink.sink(sql, PAIR, options_of(db))
    )
    env.execute()
    assert plain(db.execute("SELECT * FROM pairs")) == [(1, "b"), (2, "?")]
    with pytest.raises(InvalidJdbcOption, match=r"a statement cannot be run exactly once in (mysql|sqlite)"):
        JdbcSink.exactly_once_sink(sql, PAIR, options_of(db))


def test_a_repeated_commit_changes_nothing(db: Any) -> None:
    """Rows are invisible until the commit; of a key the last row of the checkpoint counts, over epochs."""
    db.execute("CREATE TABLE pairs (id int PRIMARY KEY, name varchar(9))")
    db.execute("INSERT INTO pairs VALUES (3, 'old')")
    sink = JdbcSink.builder().with_table("pairs", PAIR, ["id"]).build_exactly_once(options_of(db))
    sink.check()

    def stage(epoch: int, attempt: str, *rows: Row) -> Any:
        writer = sink.create_writer(WriterContext("job", "sink", 0, 1, epoch, attempt, 0))
        writer.write(rows, None)
        committables = writer.prepare_commit()
        writer.close()
        return committables

    gone = Row(3, None)
    gone.set_row_kind(RowKind.DELETE)
    dead = stage(2, "1-dead", Row(9, "dead"))
    staged = [*stage(1, "1-a", Row(1, "a"), Row(2, "b")), *stage(2, "1-b", Row(1, "c"), gone)]
    assert plain(db.execute("SELECT * FROM pairs")) == [(3, "old")]
    for _ in range(2):
        committer = sink.create_committer()
        assert committer is not None
        committer.commit(1, staged)
        assert plain(db.execute("SELECT * FROM pairs")) == [(1, "c"), (2, "b")]
        committer.close()
        db.execute("DELETE FROM pairs WHERE id = 3")
    committer = sink.create_committer()
    assert committer is not None
    with pytest.raises(OutputLost, match="0 of its 1 rows are staged"):  # removed with the epoch that was committed
        committer.commit(2, dead)
    committer.abort(dead)
    committer.close()


@pytest.mark.parametrize(
    ("url", "driver", "words"),
    [
        ("jdbc:sqlite::memory:", None, "is not the URL of a file"),
        ("jdbc:mysql://h/d", "org.postgresql.Driver", "is not one for jdbc:mysql"),
        ("jdbc:oracle:thin:@h", None, "is not the URL of a PostgreSQL database"),
    ],
)
def test_other_addresses_are_refused(url: str, driver: str | None, words: str) -> None:
    with pytest.raises(InvalidJdbcOption, match=words):
        JdbcConnectionOptions(url, driver)


def test_features_of_postgresql_only_are_refused() -> None:
    options = JdbcConnectionOptions("jdbc:mysql://me:secret@h/d")
    assert "secret" not in repr(options)
    with pytest.raises(InvalidJdbcOption, match="is not the URL of a PostgreSQL database"):
        JdbcLookupFunction(options, "t", ["k"])
    with pytest.raises(InvalidJdbcOption, match="is not the URL of a PostgreSQL database"):
        JdbcSource.builder().set_connection_options(options).set_table("t").build()


def test_keys_need_a_unique_index(db: Any) -> None:
    db.execute("CREATE TABLE pairs (id int, name varchar(9))")
    sink = JdbcSink.builder().with_table("pairs", PAIR, ["id"]).build_at_least_once(options_of(db))
    with pytest.raises(InvalidJdbcOption, match="has no unique index on id"):
        sink.check()
