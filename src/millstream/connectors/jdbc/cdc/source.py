"""The PostgreSQL CDC source: a snapshot of tables, then the stream of their changes, exactly once.

Promises: every row that exists when the job starts is emitted once, then every change of it, in the order of commits;
after a failure the job continues from its checkpoint; the server keeps the log for it. Reading needs no lock.
Does not know: what records are; a deserializer does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from millstream.connector.source import Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator
from millstream.connectors.jdbc.cdc.builder import ChangeSourceBuilder
from millstream.connectors.jdbc.cdc.changes import ChangeDeserializer, RowDeserializer
from millstream.connectors.jdbc.cdc.enumerator import ChangeEnumerator
from millstream.connectors.jdbc.cdc.pgoutput import parse_lsn
from millstream.connectors.jdbc.cdc.progress import Progress
from millstream.connectors.jdbc.cdc.reader import ChangeReader
from millstream.connectors.jdbc.cdc.slot import Slot
from millstream.connectors.jdbc.cdc.tables import Table, check_server, describe_table, list_tables
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import InvalidJdbcOption, JdbcConnectionOptions
from millstream.connectors.jdbc.types import SESSION
from millstream.types.factory import TypeInformation


class StartupOptions(Enum):
    """Where a job without a checkpoint begins reading.

    Example:
        >>> builder = PostgresSource.builder().startup_options(StartupOptions.latest())

    """

    INITIAL = "initial"
    LATEST = "latest-offset"
    SNAPSHOT = "snapshot"
    COMMITTED = "committed-offset"

    @staticmethod
    def initial() -> StartupOptions:
        """Begin with all rows, then read their changes."""
        return StartupOptions.INITIAL

    @staticmethod
    def latest() -> StartupOptions:
        """Begin with changes from now on; an existing slot continues at its position."""
        return StartupOptions.LATEST

    @staticmethod
    def snapshot() -> StartupOptions:
        """Read all rows and end."""
        return StartupOptions.SNAPSHOT

    @staticmethod
    def committed() -> StartupOptions:
        """Begin with changes from the position of the slot, which must exist."""
        return StartupOptions.COMMITTED


@dataclass(frozen=True)
class PostgresSource(Source):
    """Reads changes of tables. `stop`: a position in the log, or "latest" for the one when the job starts.

    Example:
        >>> builder = PostgresSource.builder().hostname("localhost").database("shop").table_list("public.orders")
        >>> builder = builder.username("replicator").password("secret").slot_name("orders")  # .build() connects

    """

    connection: JdbcConnectionOptions
    tables: tuple[Table, ...]
    slot_name: str
    publication: str
    deserializer: ChangeDeserializer
    startup: StartupOptions = StartupOptions.INITIAL
    stop: str | None = None
    split_size: int = 8096
    ignore_truncate: bool = False
    #: Whether the source halts when the columns of a table change, and accepts rows with the previous columns.
    halt_on_schema_change: bool = False

    @staticmethod
    def builder() -> PostgresSourceBuilder:
        """Return a new builder."""
        return PostgresSourceBuilder()

    def type_info(self) -> TypeInformation:
        """Return the type that the deserializer produces."""
        return self.deserializer.type_info(self.tables)

    def boundedness(self) -> Boundedness:
        """Return unbounded, unless there is a stopping position."""
        bounded = self.stop is not None or self.startup is StartupOptions.SNAPSHOT
        return Boundedness.BOUNDED if bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def max_parallelism(self) -> int:
        """Return 1: a log has one order, and a slot one reader."""
        return 1

    def check(self) -> None:
        """Check that the server supports logical replication."""
        session = Session(self.connection.conninfo())
        try:
            check_server(session)
        finally:
            session.close()

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator, which creates the slot if it is missing, or continues from a checkpoint."""
        session, slot = self._open()
        if state is not None:
            progress, stop = Progress.from_json(state), state["stop"]
            if self.halt_on_schema_change:  # tables may be new since the state was written
                slot.publish(self.tables)
        else:
            exists = slot.exists()
            if not exists and self.startup is StartupOptions.COMMITTED:
                message = f"there is no slot {self.slot_name}, at whose position the source should begin"
                raise InvalidJdbcOption(
                    message, hint="create the slot, or begin with a snapshot: StartupOptions.initial()"
                )
            slot.publish(self.tables)
            if not exists:
                slot.create()
            without_snapshot = self.startup in (StartupOptions.LATEST, StartupOptions.COMMITTED)
            tables_read = {table.id: None for table in self.tables} if without_snapshot else {}
            progress, stop = Progress(slot.confirmed(), tables_read), self._stop(slot)
        return ChangeEnumerator(
            session,
            slot,
            self.slot_name,
            self._prefix,
            self.tables,
            progress=progress,
            stop=stop,
            snapshot_only=self.startup is StartupOptions.SNAPSHOT,
            chunk_rows=self.split_size,
            describe=(lambda: self._describe(session)) if self.halt_on_schema_change else None,
        )

    def tables_have_changed(self) -> bool:
        """Return whether the columns of a captured table have changed since the source was built, or the table was
        dropped."""
        session = Session(self.connection.conninfo())
        try:
            return self._describe(session) != list(self.tables)
        finally:
            session.close()

    def _describe(self, session: Session) -> list[Table]:
        existing = set(list_tables(session))
        tables = [table for table in self.tables if (table.schema, table.name) in existing]
        return [describe_table(session, table.quoted_name) for table in tables]

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of ranges of the log."""
        session, slot = self._open()
        return ChangeReader(
            session,
            slot,
            self._prefix,
            self.tables,
            self.deserializer,
            ignore_truncate=self.ignore_truncate,
            block_records=context.block_records,
            lenient=self.halt_on_schema_change,
        )

    def drop_slot(self) -> None:
        """Drop the slot and its publication. An unread slot makes the server keep its log, until the disk is full."""
        session, slot = self._open()
        try:
            slot.drop()
        finally:
            session.close()

    def _open(self) -> tuple[Session, Slot]:
        session = Session(self.connection.conninfo(), SESSION)
        return session, Slot(session, self.slot_name, self.publication)

    def _stop(self, slot: Slot) -> int | None:
        if self.stop is None:
            return None
        return slot.flushed() if self.stop == "latest" else parse_lsn(self.stop)

    @property
    def _prefix(self) -> str:
        return f"millstream:{self.slot_name}"


class PostgresSourceBuilder(ChangeSourceBuilder):
    """Builds a PostgresSource, under the names of Flink CDC; `build` reads the columns of the tables from the
    database. The role needs REPLICATION. Tables are named `schema.table`; names may be quoted.

    Example:
        >>> builder = PostgresSourceBuilder().url("postgresql://localhost/shop").username("replicator").password("secret")
        >>> builder = builder.table_list("public.orders").slot_name("orders").stop_at("latest")  # .build() connects

    """

    default_port = 5432

    def __init__(self) -> None:
        super().__init__()
        self._url: str | None = None
        self._database = ""
        self._schemas: tuple[str, ...] = ()
        self._slot, self._publication = "", ""
        self._startup = StartupOptions.INITIAL
        self._stop: str | None = None

    def url(self, url: str) -> PostgresSourceBuilder:
        """Set the URL of the database, instead of host name, port and database name.

        Args:
            url: The URL, such as `postgresql://localhost:5432/shop`.

        """
        self._url = url
        return self

    def connection(self, options: JdbcConnectionOptions) -> PostgresSourceBuilder:
        """Set the database, the user and the password.

        Args:
            options: The URL with the user name and the password.

        """
        self._url, self._user, self._password = options.url, options.user_name or "", options.password or ""
        return self

    def database(self, database: str) -> PostgresSourceBuilder:
        """Set the name of the database.

        Args:
            database: The name of the database.

        """
        self._database = database
        return self

    def schema_list(self, *schemas: str) -> PostgresSourceBuilder:
        """Set the schemas that tables may be in; tables of other schemas are refused.

        Args:
            *schemas: The names of the schemas; without them, tables may be in any schema.

        """
        self._schemas = schemas
        return self

    def slot_name(self, slot_name: str) -> PostgresSourceBuilder:
        """Set the name of the replication slot: one for each job.

        Args:
            slot_name: The name of the slot.

        """
        self._slot = slot_name
        return self

    def publication_name(self, publication: str) -> PostgresSourceBuilder:
        """Set the name of the publication; it is created if it does not exist.

        Args:
            publication: The name of the publication; `millstream_` and the name of the slot by default.

        """
        self._publication = publication
        return self

    def decoding_plugin_name(self, name: str) -> PostgresSourceBuilder:
        """Set the decoding plugin, which must be `pgoutput`.

        Args:
            name: `pgoutput`.

        """
        if name != "pgoutput":
            message = f"the decoding plugin {name} is not supported"
            raise InvalidJdbcOption(message, hint="use pgoutput, which is part of every server")
        return self

    def startup_options(self, options: StartupOptions) -> PostgresSourceBuilder:
        """Set where a job without a checkpoint begins.

        Args:
            options: Where to begin; `StartupOptions.initial()` by default.

        """
        self._startup = options
        return self

    def stop_at(self, position: str = "latest") -> PostgresSourceBuilder:
        """End at a position in the log, `16/B374D848`, or at the latest when the job starts.

        Args:
            position: The position in the log, or `latest`.

        """
        self._stop = position
        return self

    def build(self) -> PostgresSource:
        """Build the source."""
        if not self._slot or not self._tables or not (self._url or self._database):
            message = "a source of changes needs slot_name(...), table_list(...), and database(...) or url(...)"
            raise InvalidJdbcOption(message)
        url = self._url or f"postgresql://{self._hostname}:{self._port}/{self._database}"
        options = JdbcConnectionOptions(url, None, self._user or None, self._password or None)
        session = Session(options.conninfo())
        try:
            check_server(session)
            tables = tuple(describe_table(session, table) for table in self._tables)
        finally:
            session.close()
        self._check_schemas(tables)
        deserializer = self._deserializer or RowDeserializer(nested=len(tables) > 1)
        return PostgresSource(
            options,
            tables,
            self._slot,
            self._publication or f"millstream_{self._slot}",
            deserializer,
            self._startup,
            self._stop,
            self._split_size,
            self._ignore_truncate,
        )

    def _check_schemas(self, tables: Sequence[Table]) -> None:
        outside = [table.id for table in tables if self._schemas and table.schema not in self._schemas]
        if outside:
            message = f"{', '.join(outside)} is not in the schemas {', '.join(self._schemas)}"
            raise InvalidJdbcOption(message)
