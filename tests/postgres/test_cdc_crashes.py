"""Changes are neither lost nor repeated while writers are busy, connections break and commits are late."""

from __future__ import annotations

import random
import threading
import time

import psycopg
import pytest
from cdc_running import Mirror, Running

from millstream.connectors.jdbc.cdc import enumerator as enumerators
from millstream.datastream.connectors.postgres_cdc import (
    PostgresSource,
)
from millstream.errors import ExternalError


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


class Writers:
    """Threads that change a table in small transactions, some of which are rolled back."""

    def __init__(self, database, seed, *, key, threads=2):
        self._database, self._key, self._stop = database, key, threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(seed + n,)) for n in range(threads)]

    def _work(self, seed):
        chance = random.Random(seed)
        with self._database.server.connect(self._database.name) as connection:
            while not self._stop.is_set():
                try:
                    with connection.transaction():
                        for _ in range(chance.randint(1, 4)):
                            self._change(connection, chance)
                        if chance.random() < 0.2:
                            raise ZeroDivisionError
                except (ZeroDivisionError, psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                    continue

    def _change(self, connection, chance):
        one, other = (self._key(chance.randrange(300)) for _ in range(2))
        match chance.randrange(5):
            case 0 | 1:
                insert = "INSERT INTO items VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name"
                connection.execute(insert, (one, str(chance.random())))
            case 2:
                connection.execute("UPDATE items SET name = %s WHERE id = %s", (str(chance.random()), one))
            case 3:
                connection.execute("DELETE FROM items WHERE id = %s", (one,))
            case 4:
                move = "UPDATE items SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM items WHERE id = %s)"
                connection.execute(move, (other, one, other))

    def __enter__(self):
        for thread in self._threads:
            thread.start()

    def __exit__(self, *problem):
        self._stop.set()
        for thread in self._threads:
            thread.join()


WORDS = [chr(97 + n % 26).upper() * (n % 3) + chr(97 + n % 26) + "-_ é"[n % 4] + str(n) for n in range(300)]


@pytest.mark.parametrize(
    ("kind", "key", "full"),
    [("int", lambda n: n, False), ("int", lambda n: n, True), ("text", lambda n: WORDS[n], False)],
    ids=["numbers", "full", "words"],
)
def test_concurrent_writers_and_crashes_do_not_change_the_output(database, kind, key, full):
    """Each row once from the snapshot, then its changes, whatever happens meanwhile; the mirror raises an error
    otherwise."""
    seed = 4711
    if kind == "text":  # words are not in the order of their bytes, unless the server is built without ICU
        icu = database.execute("SELECT FROM pg_collation WHERE collname = 'en-x-icu'")
        kind = f'text COLLATE "{"en-x-icu" if icu else "ucs_basic"}"'
    database.execute(f"CREATE TABLE items (id {kind} PRIMARY KEY, name text)")
    if full:
        database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    with database.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO items VALUES (%s, 'first')", [(key(n),) for n in range(0, 300, 2)])
    chance = random.Random(seed)
    mirror = Mirror(["id"], full=full)
    running = Running(builder(database).build(), mirror, records=10)
    with Writers(database, seed, key=key):
        for _ in range(40):
            running.epoch()
            if chance.random() < 0.2:
                running.checkpoint()
            if chance.random() < 0.2:
                running.crash()
    running.drain()
    running.crash()
    running.drain()
    assert mirror.rows == table_of(database)
    assert len(mirror.rows) > 50
    running.close()


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_statement_loses_and_duplicates_nothing(items, faults, after):
    source = builder(items).build()
    for at in range(1000):
        items.execute("DELETE FROM items")
        items.execute("INSERT INTO items SELECT n, 'first' FROM generate_series(1, 12) AS n")
        running = Running(source, Mirror(["id"]), records=5)
        faults.arm(at, after=after)
        changes = iter(
            [
                *("UPDATE items SET name = 'x' WHERE id IN (2, 8)", "DELETE FROM items WHERE id = 11"),
                *("UPDATE items SET id = 20 WHERE id = 3", "INSERT INTO items VALUES (3, 'y')"),
            ]
        )
        quiet = 0
        while quiet < 2:
            items.execute(next(changes, "SELECT 1"))
            try:
                quiet = 0 if running.epoch() else quiet + 1
                running.checkpoint()
            except ExternalError:
                quiet = 0
                running.crash()
        broken = faults.broken
        faults.disarm()
        assert running.mirror.rows == table_of(items), broken
        running.close()
        source.drop_slot()
        if broken is None:
            break
    assert at > 20


def test_a_commit_that_is_in_the_log_but_not_yet_visible_is_not_lost(database):
    """As with a slow synchronous standby: the commit is in the log but not yet visible. The snapshot of its table must
    wait for it."""
    server = database.server
    database.execute("CREATE TABLE one (id int PRIMARY KEY)")
    database.execute("CREATE TABLE two (id int PRIMARY KEY)")
    source = builder(database, "public.one", "public.two").build()
    running = Running(source, Mirror(["id"]))
    rows = []
    running.mirror.apply = lambda row: rows.append((row.table, row.row.id))
    writer = server.connect(database.name)
    writer.add_notice_handler(lambda notice: None)
    server.execute("ALTER SYSTEM SET synchronous_standby_names = 'slow'")
    server.execute("SELECT pg_reload_conf()")
    try:
        cancelled = threading.Event()

        def write():
            number = 0
            while not cancelled.is_set():  # until the server has read its new setting
                writer.execute("INSERT INTO two VALUES (%s)", (number,))
                number += 1
                time.sleep(0.01)

        hanging = threading.Thread(target=write)
        hanging.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
        while server.execute(waits, (writer.info.backend_pid,)) != [(1,)]:
            time.sleep(0.01)
        assert running.epoch() == 1  # the snapshot of one: its range goes past the commit
        assert [running.epoch() for _ in range(2)] == [0, 0]
        cancelled.set()
        server.execute("SELECT pg_cancel_backend(%s)", (writer.info.backend_pid,))
        hanging.join()
    finally:
        server.execute("ALTER SYSTEM RESET synchronous_standby_names")
        server.execute("SELECT pg_reload_conf()")
        writer.close()
    running.drain()
    assert sorted(rows) == [("public.two", number) for (number,) in database.execute("SELECT id FROM two ORDER BY id")]
    running.close()


def test_a_snapshot_does_not_wait_for_ever(items, monkeypatch):
    monkeypatch.setattr(enumerators, "_MAX_WAIT", 0.3)
    running = Running(builder(items).build(), Mirror(["id"]))
    with items.server.connect(items.name) as writer:
        writer.execute("BEGIN")
        writer.execute("INSERT INTO items VALUES (1, 'a')")
        with pytest.raises(ExternalError, match="waits for transactions that began before"):
            running.drain()
        writer.execute("ROLLBACK")
    running.close()


@pytest.mark.parametrize("hook", ["_writers", "_chunk_limit"])
def test_a_transaction_that_was_open_when_its_rows_were_read_follows_them(items, monkeypatch, hook):
    """It began after the range, so nothing waits for it. It commits after the chunk was read, or between the snapshot
    of the chunk and its reading: in both cases its change must come after the old rows."""
    items.execute("INSERT INTO items VALUES (1, 'a'), (2, 'b')")
    running = Running(builder(items).build(), Mirror(["id"]), records=100)
    applied = []
    apply = running.mirror.apply
    running.mirror.apply = lambda row: (applied.append(list(row)), apply(row))
    with items.server.connect(items.name) as writer:
        asked, sized = enumerators.ChangeEnumerator._writers, enumerators.ChangeEnumerator._chunk_limit

        def then_write(enumerator, table):
            found = asked(enumerator, table)
            writer.execute("BEGIN")
            writer.execute("UPDATE items SET name = 'late' WHERE id = 1")
            return found

        def then_commit(enumerator, connection, table, budget):
            rows = sized(enumerator, connection, table, budget)  # the first query: this is what the chunk sees
            if hook == "_chunk_limit":
                writer.execute("COMMIT")
            return rows

        monkeypatch.setattr(enumerators.ChangeEnumerator, "_writers", then_write)
        monkeypatch.setattr(enumerators.ChangeEnumerator, "_chunk_limit", then_commit)
        assert running.epoch() == 1
        assert len(applied) == (2 if hook == "_writers" else 3)
        if hook == "_writers":
            writer.execute("COMMIT")
    running.drain()
    assert applied == [[1, "a"], [2, "b"], [1, "late"]]
    running.close()


def test_a_chunk_of_a_driver_that_died_before_it_logged_the_plan_is_skipped(items):
    items.execute("INSERT INTO items VALUES (1, 'a'), (2, 'b')")
    running = Running(builder(items).build(), Mirror(["id"]), records=100)
    running.enumerator.plan(running.budget)  # in the log of the database, not in ours
    running.crash()
    running.drain()
    assert running.mirror.rows == table_of(items)
    running.close()


def test_changes_of_rows_that_were_read_are_in_the_range_of_an_empty_chunk(items):
    """The rows of the last chunk are deleted before it is read, and a row of the first one changes: its range has no
    rows, but it has a change."""
    items.execute("INSERT INTO items VALUES (1, 'a'), (2, 'b')")
    running = Running(builder(items).build(), Mirror(["id"]), records=1)
    assert running.epoch() == 1
    assert running.mirror.rows == {(1,): [1, "a"]}
    items.execute("DELETE FROM items WHERE id = 2")
    items.execute("UPDATE items SET name = 'changed' WHERE id = 1")
    running.drain()
    assert running.mirror.rows == {(1,): [1, "changed"]}
    running.close()
