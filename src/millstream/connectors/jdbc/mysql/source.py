"""The MySQL CDC source: a snapshot of tables, then the binary log, exactly once.

Promises: every row that exists when the job starts is emitted once, then every change of it, in the order of commits;
after a failure the job continues from its checkpoint. Reading needs no lock.
Does not know: what records are; a deserializer does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from millstream.connector.source import Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator
from millstream.connectors.jdbc.cdc.builder import ChangeSourceBuilder
from millstream.connectors.jdbc.cdc.captured import CannotCapture
from millstream.connectors.jdbc.cdc.changes import ChangeDeserializer, RowDeserializer
from millstream.connectors.jdbc.cdc.progress import Progress
from millstream.connectors.jdbc.mysql.binlog import position_of
from millstream.connectors.jdbc.mysql.driver import MysqlSession
from millstream.connectors.jdbc.mysql.enumerator import MysqlEnumerator
from millstream.connectors.jdbc.mysql.gtid import parse_gtids
from millstream.connectors.jdbc.mysql.log import BinaryLog
from millstream.connectors.jdbc.mysql.reader import MysqlReader
from millstream.connectors.jdbc.mysql.tables import (
    MysqlTable,
    ReadOptions,
    check_server,
    describe_table,
    find_tables,
)
from millstream.connectors.jdbc.mysql.types import parse_zone
from millstream.connectors.jdbc.options import InvalidJdbcOption
from millstream.errors import UserError
from millstream.types.factory import TypeInformation

_FIRST_ID, _IDS = 5400, 1001  # the range from which Flink CDC chooses server ids
BINARY_MODES = ("none", "bytes", "base64", "base64-url-safe", "hex")


@dataclass(frozen=True)
class StartupOptions:
    """Where a job without a checkpoint begins reading.

    Example:
        >>> StartupOptions.specific_offset("mysql-bin.000003", 4).mode
        'specific-offset'

    """

    mode: str = "initial"
    file: str | None = None
    offset: int | None = None
    gtid_set: str | None = None
    millis: int | None = None

    @staticmethod
    def initial() -> StartupOptions:
        """Begin with all rows, then read their changes."""
        return StartupOptions()

    @staticmethod
    def snapshot() -> StartupOptions:
        """Read all rows and end."""
        return StartupOptions("snapshot")

    @staticmethod
    def earliest() -> StartupOptions:
        """Begin with the oldest change that the server still has."""
        return StartupOptions("earliest-offset")

    @staticmethod
    def latest() -> StartupOptions:
        """Begin with changes from now on."""
        return StartupOptions("latest-offset")

    @staticmethod
    def specific_offset(file_or_gtid_set: str, offset: int | None = None) -> StartupOptions:
        """Begin at an offset in a file of the binary log, or with the first transaction that is not in a set of GTIDs.

        Args:
            file_or_gtid_set: The name of a file of the binary log, or without an offset a set of GTIDs.
            offset: The offset in the file.

        """
        if offset is None:
            return StartupOptions("specific-offset", gtid_set=file_or_gtid_set)
        return StartupOptions("specific-offset", file_or_gtid_set, offset)

    @staticmethod
    def timestamp(millis: int) -> StartupOptions:
        """Begin with changes from this time on, in milliseconds since 1970.

        Args:
            millis: Milliseconds since 1970-01-01 UTC.

        """
        return StartupOptions("timestamp", millis=millis)

    def find(self, log: BinaryLog) -> int:
        """Return the position in a log.

        Args:
            log: The binary log of the server.

        """
        if self.mode == "earliest-offset":
            return log.first()
        if self.mode == "timestamp":
            millis = self.millis or 0
            return log.find(lambda event: event.at >= millis)
        if self.mode == "specific-offset" and self.gtid_set is not None:
            known = parse_gtids(self.gtid_set)
            return log.find(lambda event: not known.contains(event))
        if self.mode == "specific-offset":
            position = position_of(self.file or "", self.offset or 4)
            log.check_available(position)
            return position
        return log.current()

    @property
    def has_snapshot(self) -> bool:
        """Whether the job begins with the rows that exist."""
        return self.mode in ("initial", "snapshot")


@dataclass(frozen=True)
class MySqlSource(Source):
    """Reads changes of tables.

    Example:
        >>> builder = MySqlSource.builder().hostname("localhost").table_list("shop.orders")
        >>> builder = builder.username("replicator").password("secret")  # .build() connects

    """

    url: str
    tables: tuple[MysqlTable, ...]
    server_id: int
    deserializer: ChangeDeserializer
    startup: StartupOptions = StartupOptions()
    split_size: int = 8096
    heartbeat_ms: int = 30_000
    ignore_truncate: bool = False
    mariadb: bool = False
    options: ReadOptions = field(default_factory=ReadOptions)
    #: Previous descriptions of the tables, if the source halts when the columns of a table change; None if it does not.
    earlier: tuple[MysqlTable, ...] | None = None

    def __repr__(self) -> str:
        return f"MySqlSource({', '.join(table.id for table in self.tables)})"

    @staticmethod
    def builder() -> MySqlSourceBuilder:
        """Return a new builder."""
        return MySqlSourceBuilder()

    def type_info(self) -> TypeInformation:
        """Return the type that the deserializer produces."""
        return self.deserializer.type_info(self.tables)

    def boundedness(self) -> Boundedness:
        """Return unbounded, unless only the snapshot is read."""
        return Boundedness.BOUNDED if self.startup.mode == "snapshot" else Boundedness.CONTINUOUS_UNBOUNDED

    def max_parallelism(self) -> int:
        """Return 1: a log has one order."""
        return 1

    def check(self) -> None:
        """Check that the server writes a binary log of rows."""
        session = MysqlSession(self.url)
        try:
            check_server(session)
        finally:
            session.close()

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator, which begins as the startup options say, or continues from a checkpoint."""
        session = MysqlSession(self.url)
        log = BinaryLog(session, self.url, self.server_id)
        if state is not None:
            progress = Progress.from_json(state)
            log.check_available(progress.lsn)
        else:
            tables_read = {} if self.startup.has_snapshot else {table.id: None for table in self.tables}
            progress = Progress(self.startup.find(log), tables_read)
        return MysqlEnumerator(
            session,
            log,
            "binlog",
            self.tables,
            progress=progress,
            stop=None,
            snapshot_only=self.startup.mode == "snapshot",
            chunk_rows=self.split_size,
            heartbeat_ms=self.heartbeat_ms,
            exact=self.mariadb,
            describe=None if self.earlier is None else lambda: self._describe(session),
        )

    def tables_have_changed(self) -> bool:
        """Return whether the columns of a captured table have changed since the source was built, or the table was
        dropped."""
        session = MysqlSession(self.url)
        try:
            return self._describe(session) != list(self.tables)
        finally:
            session.close()

    def _describe(self, session: MysqlSession) -> list[MysqlTable]:
        paths = {(table.schema, table.name) for table in self.tables}
        existing = [path for path in find_tables(session, (), [".*"]) if path in paths]
        return [describe_table(session, *path, self.options) for path in existing]

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of ranges of the log."""
        session = MysqlSession(self.url)
        return MysqlReader(
            session,
            BinaryLog(session, self.url, self.server_id),
            self.tables,
            self.deserializer,
            ignore_truncate=self.ignore_truncate,
            block_records=context.block_records,
            earlier=self.earlier,
        )


class MySqlSourceBuilder(ChangeSourceBuilder):
    """Builds a MySqlSource, under the names of Flink CDC; `build` reads the columns of the tables from the database.
    The user needs SELECT, REPLICATION SLAVE and REPLICATION CLIENT. Tables are named `database.table`, or by regular
    expressions of that.

    Example:
        >>> builder = MySqlSourceBuilder().hostname("localhost").username("replicator").password("secret")
        >>> builder = builder.database_list("shop").table_list("shop.orders_.*").server_id("5400-5408")
        >>> builder = builder.startup_options(StartupOptions.initial())  # .build() connects

    """

    default_port = 3306

    def __init__(self) -> None:
        super().__init__()
        self._databases: tuple[str, ...] = ()
        self._server_id: str | None = None
        self._options = ReadOptions()
        self._zone: str | None = None
        self._startup = StartupOptions()
        self._heartbeat_ms = 30_000
        self._parameters: dict[str, str] = {}

    def database_list(self, *databases: str) -> MySqlSourceBuilder:
        """Set the databases that tables may be in: names or regular expressions.

        Args:
            *databases: Names or regular expressions.

        """
        self._databases = databases
        return self

    def server_id(self, server_id: str) -> MySqlSourceBuilder:
        """Set the id under which the source reads the log, or a range of ids, of which the first is used. It must be
        unique among the servers and readers of a cluster.

        Args:
            server_id: A number, such as `5400`, or a range, such as `5400-5408`.

        """
        if not re.fullmatch(r"\s*\d+\s*(-\s*\d+\s*)?", server_id):
            message = f"the server id {server_id!r} is neither a number nor a range"
            raise InvalidJdbcOption(message, hint="write 5400 or 5400-5408")
        self._server_id = server_id
        return self

    def server_time_zone(self, zone: str) -> MySqlSourceBuilder:
        """Set the time zone of the values of TIMESTAMP columns; the default is that of the server's sessions.

        Args:
            zone: The name of the time zone, such as `Europe/Berlin`, or an offset, such as `+02:00`.

        """
        parse_zone(zone)
        self._zone = zone
        return self

    def startup_options(self, options: StartupOptions) -> MySqlSourceBuilder:
        """Set where a job without a checkpoint begins.

        Args:
            options: Where to begin; `StartupOptions.initial()` by default.

        """
        self._startup = options
        return self

    def chunk_key_column(self, column: str, table: str = "") -> MySqlSourceBuilder:
        """Set the column by which a table without a primary key is read, or each such table.

        Args:
            column: The name of the column.
            table: The table as `database.table`; by default every table without a primary key.

        """
        self._options = replace(self._options, key_columns=(*self._options.key_columns, (table, column)))
        return self

    def heartbeat_interval_ms(self, millis: int) -> MySqlSourceBuilder:
        """Set how often the position advances while captured tables do not change; 0 for never.

        Args:
            millis: The interval in milliseconds; 30,000 by default.

        """
        self._heartbeat_ms = millis
        return self

    def binary_handling_mode(self, mode: str) -> MySqlSourceBuilder:
        """Set the form of binary values: `bytes`, or text in `base64`, `base64-url-safe` or `hex`.

        Args:
            mode: `bytes` (or `none`, which means the same), `base64`, `base64-url-safe` or `hex`.

        """
        if mode not in BINARY_MODES:
            message = f"the binary handling mode {mode!r} is not known"
            raise InvalidJdbcOption(message, hint=f"use one of {', '.join(BINARY_MODES)}")
        self._options = replace(self._options, binary="bytes" if mode == "none" else mode)
        return self

    def tiny_int_numbers(self, *columns: str) -> MySqlSourceBuilder:
        """Set the columns of the type TINYINT(1) that are numbers and not booleans.

        Args:
            *columns: The names of the columns.

        """
        self._options = replace(self._options, numbers=frozenset(columns))
        return self

    def jdbc_properties(self, properties: Mapping[str, str]) -> MySqlSourceBuilder:
        """Set parameters of the connection; only `useSSL` has an effect.

        Args:
            properties: The values of the parameters by name.

        """
        if properties.get("useSSL", "").lower() == "true":
            self._parameters["ssl"] = "true"
        return self

    def connect_timeout_ms(self, millis: int) -> MySqlSourceBuilder:
        """Set how long connecting may take.

        Args:
            millis: The time in milliseconds; it is rounded down to seconds, and is at least one second.

        """
        self._parameters["connect_timeout"] = str(max(millis // 1000, 1))
        return self

    def url(self) -> str:
        """Return the address of the server."""
        login = quote(self._user, safe="") + (f":{quote(self._password, safe='')}" if self._password else "")
        query = "&".join(f"{name}={value}" for name, value in self._parameters.items())
        return f"mysql://{login}@{self._hostname}:{self._port}/{'?' if query else ''}{query}"

    def build(self) -> MySqlSource:
        """Build the source."""
        if not self._tables or not self._user:
            message = "a source of changes needs hostname(...), username(...) and table_list(...)"
            raise InvalidJdbcOption(message)
        session = MysqlSession(self.url())
        try:
            server = check_server(session)
            paths = find_tables(session, self._databases, self._tables)
            if not paths:
                message = f"no table of the server matches {', '.join(self._tables)}"
                known = find_tables(session, (), [".*"])[:20]
                raise CannotCapture(message, hint=f"it has {', '.join('.'.join(path) for path in known) or 'none'}")
            options = replace(self._options, zone=self._zone or _session_zone(session))
            tables = tuple(describe_table(session, *path, options) for path in paths)
            server_id = int(self._server_id.partition("-")[0]) if self._server_id else _choose_id(session)
        finally:
            session.close()
        return MySqlSource(
            self.url(),
            tables,
            server_id,
            self._deserializer or RowDeserializer(nested=len(tables) > 1),
            self._startup,
            self._split_size,
            self._heartbeat_ms,
            self._ignore_truncate,
            bool(server["mariadb"]),
            options,
        )


def _choose_id(session: MysqlSession) -> int:
    """Return a server id that is probably unique, from the id of the connection."""
    ((connection,),) = session.query("cannot read the number of the connection", "SELECT CONNECTION_ID()")
    return _FIRST_ID + int(connection) % _IDS


def _session_zone(session: MysqlSession) -> str:
    """Return the time zone of the server, in which its TIMESTAMP columns are printed."""
    zone, system, offset = session.query(
        "cannot read the time zone of the server",
        "SELECT @@global.time_zone, @@system_time_zone, "
        "TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', @@global.time_zone))",
    )[0]
    for name in (zone, system) if zone == "SYSTEM" else (zone,):
        try:
            parse_zone(name)
        except UserError:
            continue
        return str(name)
    minutes = int(offset or 0)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
