"""A real MariaDB for these tests, and a database of its own for each of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from millstream.connectors.jdbc.mysql.driver import pymysql
from millstream.testing.mysql import MysqlServer, NoMysql, mysql_server

sys.path += [str(Path(__file__).parent), str(Path(__file__).parent.parent / "postgres")]  # for cdc_running


@pytest.fixture(scope="session")
def server() -> Iterator[MysqlServer]:
    """A real server: the installed one, or that of Debian's packages."""
    try:
        with mysql_server() as running:
            yield running
    except NoMysql as problem:
        pytest.skip(str(problem))


@dataclass
class Database:
    """One database of the server."""

    server: MysqlServer
    name: str
    connection: Any = None

    def execute(self, sql: str, parameters: Any = None) -> list[Any]:
        """Run a statement with Python values; the connection is opened again after the server was restarted."""
        if self.connection is None or not self.connection.open:
            self.connection = self.connect()
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(sql, parameters)
            except (pymysql().err.OperationalError, pymysql().err.InterfaceError) as problem:
                if problem.args[0] not in (0, 2006, 2013):
                    raise
                self.connection = self.connect()
                return self.execute(sql, parameters)
            return list(cursor.fetchall())

    def connect(self) -> Any:
        return pymysql().connect(
            host=self.server.host,
            port=self.server.port,
            user=self.server.user,
            password=self.server.password,
            database=self.name,
            autocommit=True,
        )


_numbers = iter(range(1_000_000))


@pytest.fixture
def database(server: MysqlServer) -> Iterator[Database]:
    name = f"test_{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name}")
    made = Database(server, name)
    yield made
    if made.connection is not None:
        made.connection.close()
    server.execute(f"DROP DATABASE {name}")


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Every job of this folder runs on the inline engine."""
