"""A PostgreSQL database as a sink, under the names of Flink's JDBC connector.

Promises: at least once, or exactly once: by prepared transactions, or by staging for tables with keys; what cannot work
is refused before the job starts.
Does not know: SQL of other databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connectors.jdbc.direct import DirectWriter
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import (
    InvalidJdbcOption,
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from millstream.connectors.jdbc.prepared import PreparedCommitter, PreparedWriter, check_enabled
from millstream.connectors.jdbc.proofs import ensure_table
from millstream.connectors.jdbc.staged import StagedCommitter, StagedWriter, ensure_tables
from millstream.connectors.jdbc.targets import StatementTarget, TableTarget, Target
from millstream.types.factory import RowTypeInfo


@dataclass(frozen=True)
class JdbcSink(Sink):
    """Writes records to a database. `exactly_once` None means at least once; `staged`: rows wait in a table."""

    target: Target
    connection: JdbcConnectionOptions
    execution: JdbcExecutionOptions = field(default_factory=JdbcExecutionOptions)
    exactly_once: JdbcExactlyOnceOptions | None = None
    staged: bool = False

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Run a statement for every record, at least once; each field of the record takes one question mark."""
        target = StatementTarget(sql, len(type_info.get_field_names()))
        return JdbcSink(target, jdbc_connection_options, jdbc_execution_options or JdbcExecutionOptions())

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        jdbc_exactly_once_options: JdbcExactlyOnceOptions | None = None,
    ) -> JdbcSink:
        """Run a statement for every record in transactions that are committed with the checkpoint."""
        return JdbcSink(
            StatementTarget(sql, len(type_info.get_field_names())),
            jdbc_connection_options,
            jdbc_execution_options or JdbcExecutionOptions(),
            jdbc_exactly_once_options or JdbcExactlyOnceOptions(),
        )

    @staticmethod
    def builder() -> JdbcSink.JdbcSinkBuilder:
        """A builder, also for sinks that write to a table by its name."""
        return JdbcSink.JdbcSinkBuilder()

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer of the kind that the guarantee needs."""
        conninfo = self.connection.conninfo()
        if self.exactly_once is None:
            return DirectWriter(conninfo, self.target, self.execution)
        if self.staged and isinstance(self.target, TableTarget):
            return StagedWriter(conninfo, self.target, context)
        return PreparedWriter(conninfo, self.target, self.execution, self.exactly_once, context)

    def create_committer(self) -> Committer | None:
        """None when rows are visible as soon as they are written."""
        conninfo = self.connection.conninfo()
        if self.exactly_once is None:
            return None
        if self.staged and isinstance(self.target, TableTarget):
            return StagedCommitter(conninfo, self.target, self.exactly_once)
        return PreparedCommitter(conninfo, self.exactly_once)

    def check(self) -> None:
        """The database must answer, have the table, and be able to do what the guarantee needs."""
        session = Session(self.connection.conninfo())
        try:
            session.run("the sink cannot write to the database", self._check)
        finally:
            session.close()

    def _check(self, connection: object) -> None:
        self.target.check(connection)
        if self.exactly_once is None:
            return
        if self.staged and isinstance(self.target, TableTarget):
            ensure_tables(connection, self.target)
        else:
            check_enabled(connection)
            ensure_table(connection)

    class JdbcSinkBuilder:
        """Makes a JdbcSink."""

        def __init__(self) -> None:
            self._target: Target | None = None
            self._execution = JdbcExecutionOptions()
            self._staged: bool | None = None

        def with_query_statement(self, sql: str, type_info: RowTypeInfo | None = None) -> JdbcSink.JdbcSinkBuilder:
            """Run a statement for every record."""
            self._target = StatementTarget(sql, None if type_info is None else len(type_info.get_field_names()))
            return self

        def with_table(
            self, table: str, columns: RowTypeInfo | Sequence[str], key_fields: Sequence[str] = ()
        ) -> JdbcSink.JdbcSinkBuilder:
            """Write to a table; with key fields, rows are inserted, updated and deleted as their kind says."""
            names = columns.get_field_names() if isinstance(columns, RowTypeInfo) else columns
            self._target = TableTarget(table, tuple(names), tuple(key_fields))
            return self

        def with_execution_options(self, options: JdbcExecutionOptions) -> JdbcSink.JdbcSinkBuilder:
            """Say how many rows go at once, and how often a write is tried."""
            self._execution = options
            return self

        def with_staging(self, staged: bool = True) -> JdbcSink.JdbcSinkBuilder:
            """Say whether exactly-once output waits in a table or in prepared transactions.

            Without this, tables with key fields stage and everything else is prepared."""
            self._staged = staged
            return self

        def build_at_least_once(self, connection_options: JdbcConnectionOptions) -> JdbcSink:
            """A sink whose rows are visible at once."""
            return JdbcSink(self._checked(), connection_options, self._execution)

        def build_exactly_once(
            self, connection_options: JdbcConnectionOptions, exactly_once_options: JdbcExactlyOnceOptions | None = None
        ) -> JdbcSink:
            """A sink whose rows are visible after their checkpoint, each once."""
            target = self._checked()
            keyed = isinstance(target, TableTarget) and bool(target.keys)
            staged = keyed if self._staged is None else self._staged
            if staged and not isinstance(target, TableTarget):
                message = "only rows for a table can be staged"
                raise InvalidJdbcOption(message, hint="call with_table(...) instead of with_query_statement(...)")
            if keyed and not staged:
                message = "a table with key fields cannot be written to by prepared transactions"
                hint = "leave with_staging out, or write the upsert as a statement: INSERT ... ON CONFLICT ..."
                raise InvalidJdbcOption(message, hint=hint)
            options = exactly_once_options or JdbcExactlyOnceOptions()
            return JdbcSink(target, connection_options, self._execution, options, staged)

        def _checked(self) -> Target:
            if self._target is None:
                message = "a JDBC sink needs a statement or a table"
                raise InvalidJdbcOption(message, hint="call with_query_statement(...) or with_table(...)")
            return self._target
