"""Changes are neither lost nor repeated while writers are busy, connections break and the server dies."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

import pytest
from cdc_running import Mirror, Running
from mysql_items import builder, table_of

from millstream.connectors.jdbc.mysql import driver
from millstream.connectors.jdbc.mysql.driver import pymysql
from millstream.errors import ExternalError

WORDS = [chr(97 + n % 26).upper() * (n % 3) + chr(97 + n % 26) + "-_ é"[n % 4] + str(n) for n in range(300)]


class Writers:
    """Threads that change a table in small transactions, some of which are rolled back."""

    def __init__(self, database, seed, *, key, threads=2):
        self._database, self._key, self._stop = database, key, threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(seed + n, database.connect())) for n in range(threads)
        ]

    def _work(self, seed, connection):
        chance = random.Random(seed)
        errors = pymysql().err
        while not self._stop.is_set():
            try:
                connection.begin()
                with connection.cursor() as cursor:
                    for _ in range(chance.randint(1, 4)):
                        self._change(cursor, chance)
                self._stop.wait(0.002)  # so that the reader keeps up
                if chance.random() < 0.2:
                    connection.rollback()
                else:
                    connection.commit()
            except (errors.IntegrityError, errors.OperationalError, errors.InterfaceError):
                try:
                    connection.rollback()
                except (errors.OperationalError, errors.InterfaceError):
                    if not self._stop.wait(0.02):
                        self._reconnect(connection)

    @staticmethod
    def _reconnect(connection):
        try:
            connection.connect()
        except pymysql().err.OperationalError:
            return  # the server is not up yet

    def _change(self, cursor, chance):
        one, other = (self._key(chance.randrange(300)) for _ in range(2))
        match chance.randrange(5):
            case 0 | 1:
                cursor.execute(
                    "INSERT INTO items VALUES (%s, %s) ON DUPLICATE KEY UPDATE name = VALUES(name)",
                    (one, str(chance.random())),
                )
            case 2:
                cursor.execute("UPDATE items SET name = %s WHERE id = %s", (str(chance.random()), one))
            case 3:
                cursor.execute("DELETE FROM items WHERE id = %s", (one,))
            case 4:
                cursor.execute("UPDATE IGNORE items SET id = %s WHERE id = %s", (other, one))

    def __enter__(self):
        for thread in self._threads:
            thread.start()

    def __exit__(self, *problem):
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize(
    ("kind", "key", "exact"),
    [("int", lambda n: n, True), ("int", lambda n: n, False), ("varchar(20)", lambda n: WORDS[n], True)],
    ids=["as MariaDB", "as MySQL", "words"],
)
def test_concurrent_writers_and_crashes_do_not_change_the_output(database, kind, key, exact):
    """Each row once from the snapshot, then its changes, whatever happens meanwhile; the mirror raises an error
    otherwise."""
    database.execute(f"CREATE TABLE items (id {kind} PRIMARY KEY, name text)")
    for number in range(0, 300, 2):
        database.execute("INSERT INTO items VALUES (%s, 'first')", (key(number),))
    chance = random.Random(4711)
    mirror = Mirror(["id"], full=True)
    running = Running(replace(builder(database).build(), mariadb=exact), mirror, records=10)
    with Writers(database, 4711, key=key):
        for _ in range(25):
            running.epoch()
            if chance.random() < 0.2:
                running.checkpoint()
            if chance.random() < 0.2:
                running.crash()
    running.budget = replace(running.budget, records=10_000)
    running.drain()
    running.crash()
    running.drain()
    assert mirror.rows == table_of(database)
    assert len(mirror.rows) > 50
    running.close()


def test_connections_and_the_server_die(database):
    """The server is killed and started again while the snapshot and the changes are read; totals stay exact."""
    database.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    for number in range(0, 300, 2):
        database.execute("INSERT INTO items VALUES (%s, 'first')", (number,))
    running = Running(builder(database).build(), Mirror(["id"], full=True), records=20)
    failures = 0
    with Writers(database, 4711, key=lambda n: n):
        for number in range(30):
            if number in (3, 20):
                database.server.restart(kill=True)
            elif number % 7 == 6:
                database.server.execute(f"KILL USER {database.server.user}")
            try:
                running.epoch()
            except ExternalError:
                failures += 1
                running.crash()
            else:
                running.checkpoint()
    running.budget = replace(running.budget, records=10_000)
    running.drain()
    assert running.mirror.rows == table_of(database)
    assert failures
    running.close()


def test_a_crash_at_any_statement_loses_and_duplicates_nothing(database, monkeypatch):
    database.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    real, countdown = driver.fetch, [-1]

    def fetch(connection, statement, parameters=None):
        countdown[0] -= 1
        if countdown[0] == 0:
            connection.close()
        return real(connection, statement, parameters)

    for module in ("driver", "enumerator"):
        monkeypatch.setattr(f"millstream.connectors.jdbc.mysql.{module}.fetch", fetch)
    source = builder(database).build()
    for at in range(2, 1000, 3):
        database.execute("DELETE FROM items")
        database.execute("INSERT INTO items SELECT seq, 'first' FROM seq_1_to_12")
        countdown[0] = -1
        running = Running(source, Mirror(["id"], full=True), records=5)
        countdown[0] = at
        changes = iter(
            [
                *("UPDATE items SET name = 'x' WHERE id IN (2, 8)", "DELETE FROM items WHERE id = 11"),
                *("UPDATE items SET id = 20 WHERE id = 3", "INSERT INTO items VALUES (3, 'y')"),
            ]
        )
        quiet = 0
        while quiet < 2:
            database.execute(next(changes, "SELECT 1"))
            try:
                quiet = 0 if running.epoch() else quiet + 1
                running.checkpoint()
            except ExternalError:
                quiet = 0
                running.crash()
        assert running.mirror.rows == table_of(database)
        running.close()
        if countdown[0] > 0:
            break
    assert at > 20
