"""Changes of MySQL tables: first the snapshot, then the stream, with row kinds and types; clear errors where a source
cannot continue."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal

import pytest
from cdc_running import Mirror, Running
from mysql_items import builder, table_of

from millstream.common import Row, RowKind
from millstream.connectors.jdbc.mysql.binlog import PositionGone, offset_of
from millstream.connectors.jdbc.mysql.driver import MysqlSession
from millstream.connectors.jdbc.mysql.log import BinaryLog
from millstream.datastream.connectors.mysql_cdc import (
    JsonDebeziumDeserializationSchema,
    MySqlSource,
    StartupOptions,
)
from millstream.errors import UserError


@pytest.fixture
def items(database):
    database.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    return database


def collected(running):
    """The records of all epochs until the source has nothing left."""
    rows = []
    running.mirror.apply = rows.append
    running.drain()
    return rows


@pytest.mark.parametrize("exact", [True, False], ids=["as MariaDB", "as MySQL"])
def test_a_snapshot_then_changes(items, exact):
    items.execute("INSERT INTO items SELECT seq, CONCAT('n', seq) FROM seq_1_to_25")
    running = Running(replace(builder(items).build(), mariadb=exact), Mirror(["id"], full=True))
    running.drain()
    assert running.mirror.rows == table_of(items)
    items.execute("INSERT INTO items VALUES (100, 'new')")
    items.execute("UPDATE items SET name = 'x' WHERE id <= 3")
    items.execute("UPDATE items SET id = 200 WHERE id = 100")
    items.execute("DELETE FROM items WHERE id = 25")
    running.drain()
    assert running.mirror.rows == table_of(items)
    running.close()


def test_rows_have_their_kind(items):
    running = Running(builder(items).startup_options(StartupOptions.latest()).build(), Mirror(["id"]))
    items.execute("INSERT INTO items VALUES (1, 'a')")
    items.execute("UPDATE items SET name = NULL")
    items.execute("UPDATE items SET id = 2")
    items.execute("DELETE FROM items")
    assert [(row.get_row_kind(), *row) for row in collected(running)] == [
        (RowKind.INSERT, 1, "a"),
        *((RowKind.UPDATE_BEFORE, 1, "a"), (RowKind.UPDATE_AFTER, 1, None)),
        *((RowKind.UPDATE_BEFORE, 1, None), (RowKind.UPDATE_AFTER, 2, None)),
        (RowKind.DELETE, 2, None),
    ]
    running.close()


def test_changes_while_the_last_chunk_has_no_rows_are_kept(items):
    """The last chunk of a table is empty when its size divides the rows; changes of earlier rows are in its range."""
    items.execute("INSERT INTO items SELECT seq, 'old' FROM seq_1_to_20")
    running = Running(builder(items).build(), Mirror(["id"], full=True), records=10)
    assert (running.epoch(), running.epoch()) == (1, 1)
    assert len(running.mirror.rows) == 20
    items.execute("UPDATE items SET name = 'new' WHERE id = 7")
    items.execute("DELETE FROM items WHERE id = 8")
    assert running.epoch() == 1
    assert running.mirror.rows == table_of(items)
    running.close()


COLUMNS = (
    "i8 tinyint, u8 tinyint unsigned, i16 smallint, u16 smallint unsigned, i24 mediumint, u24 mediumint unsigned, "
    "i32 int, u32 int unsigned, i64 bigint, u64 bigint unsigned, flag tinyint(1), one bit(1), bits bit(20), "
    "f float, d double, n decimal(30,4), big decimal(60,2), day date, t time(3), at datetime(6), ts timestamp(2) NULL, "
    "y year, c char(5), v varchar(300), t1 varchar(20) CHARACTER SET latin1, txt longtext, b binary(4), "
    "vb varbinary(9), bl blob, e enum('red','gr''een'), s set('p','q','r'), doc json"
)
VALUES = (
    "-128, 255, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808, "
    "18446744073709551615, 1, b'1', b'10000000000000000001', 0.1, -1.5e300, -12345.6789, "
    "123456789012345678901234567890.5, '2024-02-29', '23:59:58.125', '2024-01-02 03:04:05.678901', "
    "'2024-07-01 10:00:00.25', 2024, 'ab', 'é😀', 'ü', 'long', x'01', x'00ff', x'', 'gr''een', "
    "'p,r', '{\"a\": [1, null]}'"
)
EXPECTED = [
    -128, 255, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808,
    Decimal(18446744073709551615), True, True, b"\x08\0\x01", pytest.approx(0.1), -1.5e300, Decimal("-12345.6789"),
    "123456789012345678901234567890.50", datetime.date(2024, 2, 29), datetime.time(23, 59, 58, 125000),
    datetime.datetime.fromisoformat("2024-01-02 03:04:05.678901"),
    datetime.datetime.fromisoformat("2024-07-01 12:00:00.250000"),
    2024, "ab", "é😀", "ü", "long", b"\x01\0\0\0", b"\0\xff", b"", "gr'een", ["p", "r"], '{"a": [1, null]}',
]  # fmt: skip


def test_every_type_is_the_same_from_snapshot_and_log(database):
    database.execute(f"CREATE TABLE items (id bigint PRIMARY KEY, {COLUMNS})")
    database.execute("SET time_zone = '+00:00'")
    insert = f"INSERT INTO items VALUES (%s, {VALUES}), (%s, {', '.join(['NULL'] * 32)})"
    database.execute(insert, (1, 2))
    source = builder(database).server_time_zone("Europe/Berlin").build()
    running = Running(source, Mirror(["id"]))
    running.drain()
    database.execute(insert, (3, 4))
    running.drain()
    nothing = [None] * 32
    assert list(running.mirror.rows.values()) == [[1, *EXPECTED], [2, *nothing], [3, *EXPECTED], [4, *nothing]]
    rows = [Row(*row) for row in running.mirror.rows.values()]
    kind = source.type_info()
    assert [list(row)[1:] for row in kind.from_arrow(kind.to_arrow(rows))] == [EXPECTED, nothing] * 2
    running.close()


def test_invalid_dates_and_bytes_as_text(database):
    database.execute("CREATE TABLE items (id int PRIMARY KEY, day date, at datetime, ts timestamp, b varbinary(3))")
    database.execute("SET sql_mode = ''")
    running = Running(builder(database).binary_handling_mode("base64").build(), Mirror(["id"]))
    for number in (1, 2):
        database.execute(f"INSERT INTO items VALUES ({number}, '0000-00-00', '0000-00-00', 0, x'00ff')")
        running.drain()
    assert list(running.mirror.rows.values()) == [[1, None, None, None, "AP8="], [2, None, None, None, "AP8="]]
    running.close()


def test_keys_of_several_columns_and_of_texts(database):
    database.execute(
        "CREATE TABLE items (k varchar(9) COLLATE utf8mb4_general_ci, e enum('z','a'), at datetime(3), n int, "
        "PRIMARY KEY (k, e, at))"
    )
    rows = [(word, kind, f"2024-01-0{day}") for word in ("b", "A", "ß", "Z", "_") for kind in "za" for day in (1, 2)]
    for number, row in enumerate(rows):
        database.execute("INSERT INTO items VALUES (%s, %s, %s, %s)", (*row, number))
    for exact in (True, False):
        mirror = Mirror(["k", "e", "at"], full=True)
        running = Running(replace(builder(database).build(), mariadb=exact), mirror, records=3)
        for number in range(len(rows)):
            database.execute("UPDATE items SET n = n + 100 WHERE n %% 100 = %s", (number,))
            running.epoch()
        running.drain()
        assert mirror.rows == {tuple(row[:3]): list(row) for row in database.execute("SELECT * FROM items")}
        running.close()


def test_a_table_without_a_key_needs_a_chunk_key_column(database):
    database.execute("CREATE TABLE items (id int NOT NULL, name text, other int)")
    with pytest.raises(UserError, match="has no primary key") as told:
        builder(database).build()
    assert "scan.incremental.snapshot.chunk.key-column" in str(told.value)
    with pytest.raises(UserError, match=r"the chunk key other of .* may be null"):
        builder(database).chunk_key_column("other").build()
    database.execute("INSERT INTO items VALUES (1, 'a', 1), (2, 'a', 1), (2, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    for exact in (True, False):
        source = replace(builder(database).chunk_key_column("id").build(), mariadb=exact)
        running = Running(source, Mirror(["id"]), records=2)
        rows = []
        running.mirror.apply = rows.append
        running.epoch()
        database.execute("INSERT INTO items VALUES (9, 'new', 1), (1, 'more', 1)")
        running.drain()
        assert sorted(list(row)[:2] for row in rows) == [
            *([1, "a"], [1, "more"], [2, "a"], [2, "a"], [2, "b"], [3, "c"], [9, "new"]),
        ]
        running.close()
        database.execute("DELETE FROM items WHERE name IN ('new', 'more')")


def test_where_a_job_begins(items):
    def log_position():
        session = MysqlSession(items.server.url_of(""))
        log = BinaryLog(session, "", 1)
        position = log.current()
        found = log.file(position), offset_of(position)
        session.close()
        return found

    def rows_from(options):
        running = Running(builder(items).startup_options(options).build(), Mirror(["id"]))
        rows = [row.id for row in collected(running)]
        running.close()
        return rows

    items.execute("INSERT INTO items VALUES (1, 'a')")
    file, offset = log_position()
    gtid = items.execute("SELECT @@gtid_binlog_pos")[0][0]
    items.server.execute("FLUSH BINARY LOGS")
    items.execute("SET timestamp = UNIX_TIMESTAMP() + 3600")
    items.execute("INSERT INTO items VALUES (2, 'b')")
    later = int(items.execute("SELECT UNIX_TIMESTAMP() * 1000")[0][0])
    items.execute("SET timestamp = DEFAULT")
    assert rows_from(StartupOptions.earliest()) == [1, 2]
    assert rows_from(StartupOptions.latest()) == []
    assert rows_from(StartupOptions.initial()) == [1, 2]
    assert rows_from(StartupOptions.snapshot()) == [1, 2]
    assert rows_from(StartupOptions.specific_offset(file, offset)) == [2]
    assert rows_from(StartupOptions.specific_offset(gtid)) == [2]
    assert rows_from(StartupOptions.timestamp(later)) == [2]
    assert rows_from(StartupOptions.timestamp(later + 1000)) == []
    with pytest.raises(UserError, match="'0-1' is not a GTID set"):
        rows_from(StartupOptions.specific_offset("0-1"))
    with pytest.raises(PositionGone, match=r"has no binlog\.000999:4"):
        rows_from(StartupOptions.specific_offset("binlog.000999", 4))


def test_the_heartbeat_advances_the_position_of_an_unchanged_table(items):
    running = Running(builder(items).heartbeat_interval_ms(1000).build(), Mirror(["id"]))
    running.drain()
    items.execute("CREATE TABLE other (t int)")
    items.execute("INSERT INTO other VALUES (1)")
    assert running.epoch() == 0
    running.budget = replace(running.budget, now=2000)
    assert running.epoch() == 1
    assert running.log[-1][0].records == 0
    assert running.epoch() == 0
    running.close()


def test_a_table_that_changes_its_columns(items, caplog):
    items.execute("INSERT INTO items VALUES (1, 'a')")
    source = builder(items).build()
    running = Running(source, Mirror(["id"]))
    running.drain()
    items.execute("ALTER TABLE items ADD more int FIRST")
    items.execute("INSERT INTO items VALUES (3, 2, 'b')")
    running.drain()
    assert running.mirror.rows == {(1,): [1, "a"], (2,): [2, "b"]}
    assert f"new columns of {items.name}.items are ignored" in caplog.text
    items.execute("ALTER TABLE items DROP name")
    items.execute("INSERT INTO items VALUES (3, 3)")
    with pytest.raises(UserError, match=r"the column name was dropped|other types or numbers"):
        running.drain()
    running.close()


def test_columns_are_found_by_the_names_in_the_log(items):
    items.execute("SET GLOBAL binlog_row_metadata = FULL")
    try:
        running = Running(builder(items).build(), Mirror(["id"]))
        running.drain()
        items.execute("ALTER TABLE items ADD other text AFTER id")
        items.execute("INSERT INTO items VALUES (1, 'other', 'a')")
        items.execute("ALTER TABLE items MODIFY name text FIRST")
        items.execute("INSERT INTO items VALUES ('b', 2, 'other')")
        running.drain()
        assert running.mirror.rows == {(1,): [1, "a"], (2,): [2, "b"]}
        running.close()
    finally:
        items.execute("SET GLOBAL binlog_row_metadata = NO_LOG")


def test_a_truncated_table_is_an_error_or_ignored(items):
    for reaction in ("fail", "ignore"):
        items.execute("INSERT INTO items VALUES (1, 'a')")
        running = Running(builder(items).on_truncate(reaction).build(), Mirror(["id"]))
        running.drain()
        items.execute("TRUNCATE TABLE items")
        items.execute("INSERT INTO items VALUES (2, 'a')")
        if reaction == "fail":
            with pytest.raises(UserError, match="was truncated"):
                running.drain()
        else:
            running.drain()
            assert set(running.mirror.rows) == {(1,), (2,)}
        running.close()
        items.execute("DELETE FROM items")


def test_a_position_that_the_server_has_deleted(items):
    running = Running(builder(items).build(), Mirror(["id"]))
    running.drain()
    running.checkpoint()
    running.close()
    first = items.server.execute("SHOW BINARY LOGS")[0][0]
    while items.server.execute("SHOW BINARY LOGS")[0][0] == first:  # the server keeps files that are still in use
        items.server.execute("FLUSH BINARY LOGS")
        items.server.execute(f"PURGE BINARY LOGS TO '{items.server.execute('SHOW BINARY LOGS')[-1][0]}'")
    with pytest.raises(PositionGone, match="it begins with binlog") as told:
        running.source.create_enumerator(1, running.saved[0])
    assert "binlog_expire_logs_seconds" in str(told.value)


def test_debezium_json_and_several_tables(database):
    for name in ("one_1", "one_2", "two"):
        database.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v decimal(5,2))")
        database.execute(f"INSERT INTO {name} VALUES (1, 1.5)")
    source = (
        builder(database, f"{database.name}\\.one_.*").deserializer(JsonDebeziumDeserializationSchema("shop")).build()
    )
    running = Running(source, Mirror(["id"]))
    texts = collected(running)
    database.execute("UPDATE one_2 SET v = 2")
    database.execute("DELETE FROM one_1")
    found = [json.loads(text) for text in texts + collected(running)]
    assert [(each["op"], each["source"]["table"], each["before"], each["after"]) for each in found] == [
        ("r", "one_1", None, {"id": 1, "v": "1.50"}),
        ("r", "one_2", None, {"id": 1, "v": "1.50"}),
        ("u", "one_2", {"id": 1, "v": "1.50"}, {"id": 1, "v": "2.00"}),
        ("d", "one_1", {"id": 1, "v": "1.50"}, None),
    ]
    assert found[0]["source"]["db"] == database.name
    assert found[0]["source"]["connector"] == "mysql"
    running.close()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda d: builder(d, f"{d.name}.nothing"), "no table of the server matches"),
        (lambda d: builder(d).database_list("sales"), "no table of the server matches"),
        (lambda d: builder(d, "("), "neither the name of a table nor a regular expression"),
        (lambda d: builder(d).server_time_zone("Mars"), "there is no time zone Mars"),
        (lambda d: builder(d).server_id("x"), "the server id 'x' is neither"),
        (lambda d: builder(d).password("wrong"), "Access denied"),
        (lambda d: MySqlSource.builder(), "needs hostname"),
    ],
)
def test_what_cannot_be_captured_is_refused(items, make, words):
    with pytest.raises(UserError, match=words):
        make(items).build()
