"""Connections to PostgreSQL through psycopg, which is imported on first use, and their errors.

Promises: every error of the database is raised as `DatabaseRefused` when the statement or its data are wrong, or as
`DatabaseFailure` when a retry may help. An idle connection is kept for the next epoch of the same process. A server
that cannot be reached any more is detected by TCP keepalive after about a minute.
Does not know: statements, epochs."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import socket
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from millstream.errors import ExternalError, UserError

_idle: dict[tuple[int, str], list[Any]] = {}
_MAX_IDLE = 4  # idle connections to one database in a process
# Defaults that a URL may override: how long a server may be silent before the connection counts as broken, while it is
# idle (keepalives) or when sent data is not acknowledged (tcp_user_timeout, in milliseconds).
_TIMEOUTS = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


class MissingDriver(UserError):
    """psycopg is not installed."""

    hint = "pip install 'millstream[postgres]'"

    def __init__(self, problem: ImportError) -> None:
        super().__init__(f"connecting to PostgreSQL needs psycopg 3, which cannot be imported: {problem}")


class DatabaseFailure(ExternalError):
    """The database cannot be reached, or the connection broke."""

    hint = "check that the server runs, and that the driver and all executors can reach it"

    def __init__(self, action: str, problem: Exception) -> None:
        self.action, self.sqlstate = action, getattr(problem, "sqlstate", None)
        super().__init__(f"{action}: {_first_line(problem)}")


class DatabaseRefused(UserError):
    """The database rejected a statement or its data."""

    def __init__(self, action: str, problem: Exception) -> None:
        self.action, self.sqlstate = action, getattr(problem, "sqlstate", None)
        diagnosis = getattr(problem, "diag", None)
        details = [text for name in ("message_detail", "message_hint") if (text := getattr(diagnosis, name, None))]
        super().__init__(f"{action}: {_first_line(problem)}", hint="; ".join(details) or None)


def psycopg() -> Any:
    """Import psycopg."""
    try:
        return importlib.import_module("psycopg")
    except ImportError as problem:
        raise MissingDriver(problem) from problem


@contextlib.contextmanager
def translate_errors(action: str) -> Iterator[None]:
    """Raise errors of psycopg as millstream errors whose text begins with `action`."""
    driver = psycopg()
    try:
        yield
    except (driver.OperationalError, driver.InterfaceError, driver.InternalError) as problem:
        raise DatabaseFailure(action, problem) from problem
    except driver.Error as problem:
        raise DatabaseRefused(action, problem) from problem


def connect(conninfo: str) -> Any:
    """Open a connection in autocommit mode; transactions are begun explicitly."""
    with translate_errors("cannot connect to the database"):
        settings = {**_TIMEOUTS, **psycopg().conninfo.conninfo_to_dict(conninfo)}
        return psycopg().connect(autocommit=True, fallback_application_name="millstream", **settings)


def borrow_connection(conninfo: str, on_taken: Callable[[Any], None] = lambda _: None) -> Any:
    """Return an idle connection of this process, or a new one. Broken idle connections are skipped; `on_taken` is
    called with each connection before it is tested."""
    idle = _idle.get((os.getpid(), conninfo), [])
    while idle:
        connection = idle.pop()
        on_taken(connection)
        if _is_alive(connection):
            return connection
        discard(connection)
    return connect(conninfo)


def _is_alive(connection: Any) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg().Error:
        return False
    return True


def return_connection(conninfo: str, connection: Any) -> None:
    """Keep a connection for reuse; close it if it is broken or inside a transaction."""
    idle_connections = _idle.setdefault((os.getpid(), conninfo), [])
    idle = psycopg().pq.TransactionStatus.IDLE
    if connection.closed or connection.info.transaction_status != idle or len(idle_connections) >= _MAX_IDLE:
        discard(connection)
    else:
        idle_connections.append(connection)


def discard(connection: Any) -> None:
    """Close a connection, whatever state it is in."""
    with contextlib.suppress(Exception):
        connection.close()


def forget_idle() -> None:
    """Close all idle connections."""
    for (process, _), connections in _idle.items():
        if process == os.getpid():  # a forked process must not use connections of its parent
            for connection in connections:
                discard(connection)
    _idle.clear()


atexit.register(forget_idle)


class Session:
    """One connection, opened on first use, and again after it broke.

    `setup` is a statement that every connection begins with."""

    def __init__(self, conninfo: str, setup: str | None = None) -> None:
        self._conninfo = conninfo
        self._setup = setup
        self._connection: Any = None
        self._waited_for: Any = None
        self._finalizer: Any = None

    def connection(self) -> Any:
        """Return the connection; it is opened if it is not open."""
        if self._connection is None or self._connection.closed:
            self.drop()
            self._connection = self._waited_for = borrow_connection(self._conninfo, self._wait_for)
            # The writer of an abandoned attempt is garbage-collected while it is open. In a reference cycle this runs
            # before the connection's own finalizer, which would log a warning.
            self._finalizer = weakref.finalize(self, discard, self._connection)
            self._finalizer.atexit = False  # a forked process must not close connections of its parent
            if self._setup is not None:
                self._connection.execute(self._setup)
        return self._connection

    def run(self, action: str, work: Callable[[Any], Any]) -> Any:
        """Call `work` with the connection; after a failure the next call opens a new one."""
        with translate_errors(action):
            try:
                return work(self.connection())
            except psycopg().OperationalError:
                self.drop()
                raise

    def query(self, action: str, statement: Any, parameters: Any = None) -> list[Any]:
        """Return the rows of a statement, none if it has no result."""

        def fetch(connection: Any) -> list[Any]:
            cursor = connection.execute(statement, parameters)
            return list(cursor.fetchall()) if cursor.description is not None else []

        rows: list[Any] = self.run(action, fetch)
        return rows

    def _wait_for(self, connection: Any) -> None:
        self._waited_for = connection

    def interrupt(self) -> None:
        """Break the connection from another thread: a pending call to the database fails."""
        connection = self._waited_for
        if connection is None or connection.closed:
            return
        # a duplicate of the descriptor: if libpq's own were closed, another file could get its number
        with (
            contextlib.suppress(OSError, psycopg().Error),
            socket.socket(fileno=os.dup(connection.fileno())) as duplicate,
        ):
            duplicate.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        if (connection := self._release()) is not None:
            discard(connection)

    def close(self) -> None:
        """Return the connection to the pool of this process."""
        if (connection := self._release()) is not None:
            return_connection(self._conninfo, connection)

    def _release(self) -> Any:
        connection, self._connection, self._waited_for = self._connection, None, None
        if connection is not None:
            self._finalizer.detach()
        return connection


def _first_line(problem: Exception) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(problem).__name__
