"""A real PostgreSQL for these tests, and a database of its own for each of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from millstream.connectors.jdbc import driver
from millstream.connectors.jdbc.options import JdbcConnectionOptions
from millstream.testing.postgres import NoPostgres, PostgresServer, postgres_server

sys.path.append(str(Path(__file__).parent))

from postgres_faults import Faults, FaultyConnection


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """The real server. No package of Python's registry brings one, and only an administrator can install it: where the
    machine has none, these tests say so and are left out."""
    try:
        with postgres_server() as running:
            yield running
            driver.forget_idle()
    except NoPostgres as problem:
        pytest.skip(f"there is no PostgreSQL to test against: {problem}; {problem.hint}")


@dataclass(frozen=True)
class Database:
    """One database of the server."""

    server: PostgresServer
    name: str
    connection: Any

    @property
    def url(self) -> str:
        return self.server.url_of(self.name)

    @property
    def options(self) -> JdbcConnectionOptions:
        return JdbcConnectionOptions(f"jdbc:{self.url}")

    def execute(self, sql: str, parameters: Any = None) -> list[Any]:
        if self.connection.closed:  # the server was restarted
            return self.server.execute(sql, parameters, database=self.name)
        try:
            cursor = self.connection.execute(sql, parameters)
        except psycopg.OperationalError:
            if not self.connection.closed:
                raise
            return self.server.execute(sql, parameters, database=self.name)
        return list(cursor.fetchall()) if cursor.description is not None else []


_numbers = iter(range(1_000_000))


@pytest.fixture
def database(server: PostgresServer) -> Iterator[Database]:
    name = f"test_{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name}")
    made = Database(server, name, server.connect(name))
    yield made
    driver.forget_idle()
    for (gid,) in server.execute("SELECT gid FROM pg_prepared_xacts WHERE database = %s", (made.name,)):
        made.execute(f"ROLLBACK PREPARED '{gid}'")
    for (slot,) in server.execute("SELECT slot_name FROM pg_replication_slots WHERE database = %s", (made.name,)):
        made.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
    made.connection.close()
    server.execute(f"DROP DATABASE {made.name} WITH (FORCE)")


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Every job of this folder runs on the inline engine."""


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Connections that break at a point of the test's choice."""
    made = Faults()
    real = driver.connected
    monkeypatch.setattr(driver, "connected", lambda conninfo: FaultyConnection(real(conninfo), made))
    return made
