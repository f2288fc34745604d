"""Connections to MySQL and MariaDB through PyMySQL, which is imported on first use, and their errors.

Promises: every error is raised as `DatabaseRefused` when the statement or its data are wrong, or as `DatabaseFailure`
when a retry may help. A broken connection is opened again by the next call.
Does not know: statements, epochs. Only this module uses members of PyMySQL that are not public."""

from __future__ import annotations

import contextlib
import importlib
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from millstream.connectors.jdbc.driver import DatabaseFailure, DatabaseRefused
from millstream.errors import UserError

_COM_BINLOG_DUMP = 0x12
_CONNECT_SECONDS = 30
_SILENCE_SECONDS = 120  # seconds without a response after which a connection counts as broken
# Errors of the server after which the same statement may succeed: too many connections, shutdown, killed, read-only
# during a failover, lock wait timeout, deadlock, lost connections, an XA transaction of another connection.
_RETRIABLE = frozenset({1040, 1042, 1053, 1077, 1078, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1205, 1213,
                        1290, 1317, 1836, 1927, 2002, 2003, 2006, 2013, 2055, 3024, 4031})  # fmt: skip


class MissingMysqlDriver(UserError):
    """PyMySQL is not installed."""

    hint = "pip install 'millstream[mysql]'"

    def __init__(self, problem: ImportError) -> None:
        super().__init__(f"connecting to MySQL needs PyMySQL, which cannot be imported: {problem}")


def pymysql() -> Any:
    """Import PyMySQL."""
    try:
        return importlib.import_module("pymysql")
    except ImportError as problem:
        raise MissingMysqlDriver(problem) from problem


@contextlib.contextmanager
def translate_errors(action: str) -> Iterator[None]:
    """Raise errors of PyMySQL as millstream errors whose text begins with `action`."""
    errors = pymysql().err
    try:
        yield
    except errors.Error as problem:
        number = problem.args[0] if problem.args and isinstance(problem.args[0], int) else 0
        text = Exception(f"{problem.args[-1]} (error {number})" if number else str(problem) or "connection lost")
        if number in _RETRIABLE or isinstance(problem, errors.InterfaceError) or number == 0:
            raise DatabaseFailure(action, text) from problem
        raise DatabaseRefused(action, text) from problem
    except (OSError, EOFError) as problem:
        raise DatabaseFailure(action, problem) from problem


def parse_url(url: str) -> dict[str, Any]:
    """Return the arguments of a connection from `mysql://user:password@host:port/database?parameters`."""
    parts = urlsplit(url)
    arguments: dict[str, Any] = {"host": parts.hostname or "localhost", "port": parts.port or 3306}
    if parts.username:
        arguments["user"] = unquote(parts.username)
    if parts.password:
        arguments["password"] = unquote(parts.password)
    if parts.path.strip("/"):
        arguments["database"] = unquote(parts.path.strip("/"))
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "ssl":
            arguments["ssl"] = {"check_hostname": False, "verify_mode": False} if value == "true" else None
        elif name == "connect_timeout":
            arguments["connect_timeout"] = max(int(value), 1)
    return arguments


def connect(url: str) -> Any:
    """Open a connection in autocommit mode, in UTC, whose text columns are strings and binary ones bytes."""
    driver = pymysql()
    arguments = {"connect_timeout": _CONNECT_SECONDS, **parse_url(url)}
    with translate_errors("cannot connect to the database"):
        connection = driver.connect(
            charset="utf8mb4",
            autocommit=True,
            defer_connect=True,
            ssl_disabled=None if "ssl" in arguments else True,
            read_timeout=_SILENCE_SECONDS,
            init_command="SET SESSION time_zone = '+00:00'",
            conv={key: convert for key, convert in driver.converters.conversions.items() if not isinstance(key, int)},
            **arguments,
        )
        if "ssl" not in arguments:
            # encrypted if the server supports it, with a shared context: PyMySQL reads all certificates for each one
            connection.ssl, connection._ssl_required, connection.ctx = True, False, _unverified_context()
        connection.connect()
        return connection


@cache
def _unverified_context() -> ssl.SSLContext:
    """Return the TLS context of connections that do not verify the server's certificate, the default of MySQL's
    drivers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class MysqlSession:
    """One connection, opened on first use, and again after it broke. Values of results are text or bytes."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None

    def connection(self) -> Any:
        """Return the connection; it is opened if it is not open."""
        if self._connection is None or not self._connection.open:
            self._connection = connect(self._url)
        return self._connection

    def run(self, action: str, work: Callable[[Any], Any]) -> Any:
        """Call `work` with the connection; after a failure the next call opens a new one."""
        try:
            with translate_errors(action):
                return work(self.connection())
        except DatabaseFailure:
            self.drop()
            raise

    def query(self, action: str, statement: str, parameters: Sequence[Any] | None = None) -> list[Any]:
        """Return the rows of a statement, none if it has no result."""
        rows: list[Any] = self.run(action, lambda connection: fetch(connection, statement, parameters))
        return rows

    def drop(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    close = drop


def fetch(connection: Any, statement: str, parameters: Sequence[Any] | None = None) -> list[Any]:
    """Run a statement and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def fetch_named(connection: Any, statement: str) -> list[Mapping[str, Any]]:
    """Run a statement and return its rows by the names of their columns."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def dump_binlog(url: str, file: str, position: int, server_id: int) -> Generator[bytes, None, None]:
    """Yield the events of the binary log from a position to its current end, each as bytes with its header. The first
    events are not in the file: the server sends them to describe it."""
    with translate_errors("cannot read the binary log"):
        connection = connect(url)
        try:
            checksum = "@@global.binlog_checksum"
            fetch(connection, f"SET @master_binlog_checksum = {checksum}, @source_binlog_checksum = {checksum}")
            fetch(connection, "SET @mariadb_slave_capability = 4")
            header = position.to_bytes(4, "little") + b"\1\0" + server_id.to_bytes(4, "little")  # 1: do not wait
            connection._execute_command(_COM_BINLOG_DUMP, header + file.encode())
            while True:
                packet = connection._read_packet()
                if packet.is_eof_packet():
                    return
                yield packet.get_all_data()[1:]
        finally:
            connection._force_close()
