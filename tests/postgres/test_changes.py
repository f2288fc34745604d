"""Changes of tables: first the snapshot, then the stream, with row kinds and types; clear errors where a source cannot
continue."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal

import pytest
from cdc_running import Mirror, Running

from millstream.common import Row, RowKind
from millstream.connectors.jdbc.cdc import enumerator as enumerators
from millstream.connectors.jdbc.cdc.pgoutput import DatabaseSnapshot, format_lsn, parse_lsn
from millstream.connectors.jdbc.cdc.slot import SlotAdvanced
from millstream.datastream.connectors.postgres_cdc import (
    JsonDebeziumDeserializationSchema,
    PostgresSource,
    StartupOptions,
)
from millstream.errors import UserError
from millstream.times import Instant


def builder(database, *tables):
    names = tables or ("public.items",)
    return (
        PostgresSource.builder().url(database.url).table_list(*names).slot_name(f"slot_{database.name}").split_size(1)
    )


@pytest.fixture
def items(database):
    database.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    return database


def table_of(database, table="items"):
    return {(row[0],): list(row) for row in database.execute(f"SELECT * FROM {table}")}


def collected(running):
    """The records of all epochs until the source has nothing left."""
    rows = []
    running.mirror.apply = rows.append
    running.drain()
    return rows


def test_a_snapshot_then_changes(items):
    items.execute("INSERT INTO items SELECT n, 'n' || n FROM generate_series(1, 25) AS n")
    running = Running(builder(items).build(), Mirror(["id"]))
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
    items.execute("UPDATE items SET name = 'b'")
    items.execute("UPDATE items SET id = 2")
    items.execute("DELETE FROM items")
    kinds = [(row.get_row_kind(), *row) for row in collected(running)]
    assert kinds == [
        (RowKind.INSERT, 1, "a"),
        (RowKind.UPDATE_AFTER, 1, "b"),
        (RowKind.DELETE, 1, None),
        (RowKind.INSERT, 2, "b"),
        (RowKind.DELETE, 2, None),
    ]
    running.close()


def test_with_full_identity_an_update_has_the_old_row(items):
    items.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    items.execute("INSERT INTO items VALUES (1, 'a')")
    running = Running(builder(items).build(), Mirror(["id"]))
    running.drain()
    items.execute("UPDATE items SET name = 'b'")
    items.execute("UPDATE items SET id = 2")
    items.execute("DELETE FROM items")
    kinds = [(row.get_row_kind(), *row) for row in collected(running)]
    assert kinds == [
        *((RowKind.UPDATE_BEFORE, 1, "a"), (RowKind.UPDATE_AFTER, 1, "b")),
        *((RowKind.UPDATE_BEFORE, 1, "b"), (RowKind.UPDATE_AFTER, 2, "b")),
        (RowKind.DELETE, 2, "b"),
    ]
    running.close()


def test_every_type_is_the_same_from_snapshot_and_stream(database):
    database.execute(
        "CREATE TABLE items (id int8 PRIMARY KEY, n numeric, t text, b bool, at timestamp, z timestamptz, day date, "
        "raw bytea, doc jsonb, u uuid, list int[], d float8, odd interval)"
    )
    insert = (
        "INSERT INTO items VALUES ({}, 1.10, E'a\\nb\\\\', true, '2024-01-02 03:04:05.6', '1969-12-31 23:59:59.5+00', "
        "'2024-02-29', '\\x00ff', '{{\"a\": 1}}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{{1,NULL}}', 0.1, '1 day'), "
        "({}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    database.execute(insert.format(1, 2))
    source = builder(database).build()
    running = Running(source, Mirror(["id"]))
    running.drain()
    database.execute(insert.format(3, 4))
    running.drain()
    values = [
        *(
            Decimal("1.10"),
            "a\nb\\",
            True,
            datetime.datetime.fromisoformat("2024-01-02 03:04:05.6"),
            Instant(-1, 500_000_000),
        ),
        *(
            datetime.date(2024, 2, 29),
            b"\0\xff",
            '{"a": 1}',
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            [1, None],
            0.1,
            "P1D",
        ),
    ]
    assert list(running.mirror.rows.values()) == [[1, *values], [2, *[None] * 12], [3, *values], [4, *[None] * 12]]
    rows = [Row(*row) for row in running.mirror.rows.values()]
    kind = source.type_info()
    assert [list(row) for row in kind.from_arrow(kind.to_arrow(rows))] == [list(row) for row in rows]
    running.close()


def test_the_log_is_kept_until_the_checkpoint_and_no_longer(items):
    source = builder(items).build()
    running = Running(source, Mirror(["id"]))
    running.drain()
    running.checkpoint()
    old = running.saved
    held = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
    before = items.execute(held)
    items.execute("INSERT INTO items VALUES (1, 'a')")
    running.drain()
    assert items.execute(held) == before
    running.checkpoint()
    assert parse_lsn(items.execute(held)[0][0]) == running.saved[0]["lsn"]
    running.close()
    with pytest.raises(SlotAdvanced, match="begins at"):
        source.create_enumerator(1, old[0])
    source.drop_slot()
    assert items.execute("SELECT count(*) FROM pg_replication_slots") == [(0,)]


def test_an_unchanged_table_does_not_hold_the_log_back(items, monkeypatch):
    monkeypatch.setattr(enumerators, "_HEARTBEAT", 300_000)
    running = Running(builder(items).build(), Mirror(["id"]))
    running.drain()
    running.checkpoint()
    items.execute("CREATE TABLE other (t text)")
    assert running.epoch() == 0
    items.execute("INSERT INTO other SELECT repeat('x', 100) FROM generate_series(1, 5000)")
    assert running.epoch() == 1
    running.checkpoint()
    assert running.epoch() == 0
    running.close()


def test_old_changes_of_a_slot_are_skipped(items, monkeypatch):
    """A slot of an earlier job, long behind: a new snapshot begins where the log is now, in bounded memory."""
    source = builder(items).build()
    running = Running(source, Mirror(["id"]))
    running.drain()
    running.close()
    items.execute("INSERT INTO items SELECT n, 'old' FROM generate_series(1, 500) AS n")
    items.execute("UPDATE items SET name = 'new'")
    monkeypatch.setattr(enumerators, "_HEARTBEAT", 1000)
    anew = Running(source, Mirror(["id"]), records=1000)
    rows = []
    anew.mirror.apply = rows.append
    assert (anew.epoch(), len(rows)) == (1, 0)
    assert (anew.epoch(), len(rows)) == (1, 500)
    assert {row.name for row in rows} == {"new"}
    anew.close()


def test_a_large_value_that_an_update_did_not_change(items):
    items.execute("ALTER TABLE items ADD note text")
    items.execute("ALTER TABLE items ALTER name SET STORAGE EXTERNAL")
    items.execute("INSERT INTO items VALUES (1, repeat('x', 100000), 'a')")
    running = Running(builder(items).build(), Mirror(["id"]))
    running.drain()
    items.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    items.execute("UPDATE items SET note = 'b'")
    running.mirror.full = True
    running.drain()
    assert running.mirror.rows == table_of(items)
    items.execute("ALTER TABLE items REPLICA IDENTITY DEFAULT")
    items.execute("UPDATE items SET note = 'c'")
    with pytest.raises(UserError, match="did not change the large value in name") as told:
        running.drain()
    assert "REPLICA IDENTITY FULL" in str(told.value)
    running.close()


def test_a_table_that_changes_its_columns(items, caplog):
    items.execute("INSERT INTO items VALUES (1, 'a')")
    source = builder(items).build()
    running = Running(source, Mirror(["id"]))
    running.drain()
    items.execute("ALTER TABLE items ADD more int")
    items.execute("INSERT INTO items VALUES (2, 'b', 3)")
    running.drain()
    assert running.mirror.rows == {(1,): [1, "a"], (2,): [2, "b"]}
    assert "new columns of public.items are ignored" in caplog.text
    items.execute("ALTER TABLE items ALTER name TYPE varchar(9)")
    items.execute("INSERT INTO items VALUES (3, 'c')")
    with pytest.raises(UserError, match="the type of name was text"):
        running.drain()
    running.close()
    items.execute("ALTER TABLE items DROP name")
    with pytest.raises(UserError, match="name"):
        Running(replace(source, slot_name="another", publication="another"), Mirror(["id"])).drain()


def test_a_truncated_table_is_an_error_or_ignored(items):
    running = Running(builder(items).build(), Mirror(["id"]))
    running.drain()
    items.execute("TRUNCATE items")
    with pytest.raises(UserError, match="was truncated"):
        running.drain()
    running.close()
    ignoring = Running(builder(items).on_truncate("ignore").slot_name(f"other_{items.name}").build(), Mirror(["id"]))
    ignoring.drain()
    items.execute("TRUNCATE items")
    items.execute("INSERT INTO items VALUES (1, 'a')")
    ignoring.drain()
    assert ignoring.mirror.rows == table_of(items)
    ignoring.close()


def test_bounded_sources_end(items):
    items.execute("INSERT INTO items SELECT n, 'n' || n FROM generate_series(1, 30) AS n")
    for source in (
        builder(items).startup_options(StartupOptions.snapshot()).build(),
        builder(items).stop_at().slot_name(f"stop_{items.name}").build(),
    ):
        running = Running(source, Mirror(["id"]))
        while not running.enumerator.finished():
            running.epoch()
        assert len(running.mirror.rows) == 30
        assert running.enumerator.splits() == []
        running.close()


def test_a_table_without_a_key_is_read_in_one_chunk(database):
    database.execute("CREATE TABLE items (id int, name text)")
    database.execute("INSERT INTO items VALUES (1, 'a'), (1, 'a')")
    running = Running(builder(database).build(), Mirror(["id"]), records=1)
    rows = collected(running)
    database.execute("INSERT INTO items VALUES (2, 'b')")
    assert [list(row) for row in rows + collected(running)] == [[1, "a"], [1, "a"], [2, "b"]]
    running.close()


def test_debezium_json(items):
    items.execute("INSERT INTO items VALUES (1, 'a')")
    source = builder(items).deserializer(JsonDebeziumDeserializationSchema("shop")).build()
    running = Running(source, Mirror(["id"]))
    texts = collected(running)
    items.execute("UPDATE items SET name = 'b'")
    items.execute("DELETE FROM items")
    found = [json.loads(text) for text in texts + collected(running)]
    assert [(each["op"], each["before"], each["after"]) for each in found] == [
        ("r", None, {"id": 1, "name": "a"}),
        ("u", None, {"id": 1, "name": "b"}),
        ("d", {"id": 1, "name": None}, None),
    ]
    assert found[0]["source"]["table"] == "items"
    assert found[0]["source"]["db"] == "shop"
    running.close()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda d: builder(d, "public.nothing"), "there is no table public.nothing"),
        (lambda d: builder(d, "pg_catalog.pg_tables"), "it is a view"),
        (lambda d: builder(d).schema_list("sales"), "not in the schemas sales"),
        (lambda d: PostgresSource.builder().url(d.url), "needs slot_name"),
    ],
)
def test_what_cannot_be_captured_is_refused(items, make, words):
    with pytest.raises(UserError, match=words):
        make(items).build()


def test_positions_and_snapshots_survive_a_round_trip():
    assert parse_lsn(format_lsn(0x16_B374_D848)) == 0x16_B374_D848
    assert format_lsn(0x16B374D848) == "16/B374D848"
    seen = DatabaseSnapshot.parse("10:20:12,15")
    assert [xid for xid in range(8, 22) if seen.contains(xid)] == [8, 9, 10, 11, 13, 14, 16, 17, 18, 19]
    wrapped = DatabaseSnapshot.parse(f"{(1 << 32) - 2}:{(1 << 32) + 5}:{(1 << 32) + 1}")
    assert wrapped.contains((1 << 32) - 3)
    assert wrapped.contains(0)
    assert not wrapped.contains(1)
    assert wrapped.contains(4)
    assert not wrapped.contains(5)
