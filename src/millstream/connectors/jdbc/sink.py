"""The JDBC sink, under the names of Flink's JDBC connector.

Promises: at least once, or exactly once: by prepared transactions, or by staging for tables with keys; an invalid
setting is refused before the job starts.
Does not know: SQL of other databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connectors.jdbc.at_least_once import AtLeastOnceWriter
from millstream.connectors.jdbc.commit_records import ensure_table
from millstream.connectors.jdbc.dialects import Dialect, find_dialect
from millstream.connectors.jdbc.dialects.output import DialectWriter, StagedDialectCommitter, StagedDialectWriter
from millstream.connectors.jdbc.dialects.output import ensure_tables as ensure_staging
from millstream.connectors.jdbc.dialects.scan import choose_columns
from millstream.connectors.jdbc.driver import Session
from millstream.connectors.jdbc.options import (
    InvalidJdbcOption,
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from millstream.connectors.jdbc.prepared import PreparedCommitter, PreparedWriter, check_enabled
from millstream.connectors.jdbc.staged import StagedCommitter, StagedWriter, ensure_tables
from millstream.connectors.jdbc.targets import StatementTarget, TableTarget, Target
from millstream.functions import SinkFunction
from millstream.types.factory import RowTypeInfo


@dataclass(frozen=True)
class JdbcSink(Sink, SinkFunction):
    """Writes records to a database. `exactly_once` None means at least once; `staged`: rows are staged in a table.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.connectors.jdbc import JdbcConnectionOptions
        >>> row_type = Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()])
        >>> options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:postgresql://localhost/shop")
        >>> sink = JdbcSink.sink("INSERT INTO totals VALUES (?, ?)", row_type, options.build())

    """

    target: Target
    connection: JdbcConnectionOptions
    execution: JdbcExecutionOptions = field(default_factory=JdbcExecutionOptions)
    exactly_once: JdbcExactlyOnceOptions | None = None
    staged: bool = False

    def __post_init__(self) -> None:
        if (
            self.exactly_once is not None
            and self.connection.database() != "postgresql"
            and isinstance(self.target, StatementTarget)
        ):
            message = f"a statement cannot be run exactly once in {self.connection.database()}"
            hint = (
                "use an idempotent statement at least once, or with_table(...), whose rows are staged; XA is not used"
            )
            raise InvalidJdbcOption(message, hint=hint)

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Return a sink that runs a statement for every record, at least once; each field fills one question mark.

        Args:
            sql: The statement, with a question mark for each field.
            type_info: The row type of the records.
            jdbc_connection_options: How to connect.
            jdbc_execution_options: The size of batches and the number of retries; Flink's defaults without them.

        """
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
        """Return a sink that runs a statement for every record, in transactions that are committed with the
        checkpoint.

        Args:
            sql: The statement, with a question mark for each field.
            type_info: The row type of the records.
            jdbc_connection_options: How to connect.
            jdbc_execution_options: The size of batches and the number of retries; Flink's defaults without them.
            jdbc_exactly_once_options: How commits are made.

        """
        return JdbcSink(
            StatementTarget(sql, len(type_info.get_field_names())),
            jdbc_connection_options,
            jdbc_execution_options or JdbcExecutionOptions(),
            jdbc_exactly_once_options or JdbcExactlyOnceOptions(),
        )

    @staticmethod
    def builder() -> JdbcSink.JdbcSinkBuilder:
        """Return a builder, also for sinks that write to a table by its name."""
        return JdbcSink.JdbcSinkBuilder()

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create the writer of the delivery guarantee."""
        dialect = find_dialect(self.connection)
        if dialect is not None:
            if self.exactly_once is not None and isinstance(self.target, TableTarget):
                return StagedDialectWriter(dialect, self.target, context)
            return DialectWriter(dialect, self.target, self.execution)
        conninfo = self.connection.conninfo()
        if self.exactly_once is None:
            return AtLeastOnceWriter(conninfo, self.target, self.execution)
        if self.staged and isinstance(self.target, TableTarget):
            return StagedWriter(conninfo, self.target, context)
        return PreparedWriter(conninfo, self.target, self.execution, self.exactly_once, context)

    def create_committer(self) -> Committer | None:
        """Create the committer of exactly-once output; None for at-least-once output."""
        if self.exactly_once is None:
            return None
        dialect = find_dialect(self.connection)
        if dialect is not None:
            assert isinstance(self.target, TableTarget)
            return StagedDialectCommitter(dialect, self.target, self.exactly_once)
        conninfo = self.connection.conninfo()
        if self.staged and isinstance(self.target, TableTarget):
            return StagedCommitter(conninfo, self.target, self.exactly_once)
        return PreparedCommitter(conninfo, self.exactly_once)

    def check(self) -> None:
        """Check that the database answers, has the table, and supports the delivery guarantee."""
        dialect = find_dialect(self.connection)
        if dialect is not None:
            other_session = dialect.session()
            try:
                other_session.run("the sink cannot write to the database", lambda c: self._check_table(dialect, c))
            finally:
                other_session.close()
            return
        session = Session(self.connection.conninfo())
        try:
            session.run("the sink cannot write to the database", self._check)
        finally:
            session.close()

    def _check_table(self, dialect: Dialect, connection: object) -> None:
        if not isinstance(self.target, TableTarget):
            return
        dialect.check(connection, self.target.table, self.target.keys)
        choose_columns(dialect.columns(connection, self.target.table), self.target.table, self.target.columns)
        if self.exactly_once is not None:
            ensure_staging(dialect, connection, self.target)

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
        """Builds a JdbcSink."""

        def __init__(self) -> None:
            self._target: Target | None = None
            self._execution = JdbcExecutionOptions()
            self._staged: bool | None = None

        def with_query_statement(self, sql: str, type_info: RowTypeInfo | None = None) -> JdbcSink.JdbcSinkBuilder:
            """Run a statement for every record.

            Args:
                sql: The statement, with a question mark for each field.
                type_info: The row type of the records.

            """
            self._target = StatementTarget(sql, None if type_info is None else len(type_info.get_field_names()))
            return self

        def with_table(
            self, table: str, columns: RowTypeInfo | Sequence[str], key_fields: Sequence[str] = ()
        ) -> JdbcSink.JdbcSinkBuilder:
            """Write to a table; with key fields, rows are inserted, updated and deleted by their row kind.

            Args:
                table: The name of the table, as `table` or `schema.table`.
                columns: The names of the columns in the order of the fields, or the row type of the records.
                key_fields: The columns of the primary key or of a unique index; without them, rows are only inserted.

            """
            names = columns.get_field_names() if isinstance(columns, RowTypeInfo) else columns
            self._target = TableTarget(table, tuple(names), tuple(key_fields))
            return self

        def with_execution_options(self, options: JdbcExecutionOptions) -> JdbcSink.JdbcSinkBuilder:
            """Set the size of batches and the number of retries.

            Args:
                options: The options.

            """
            self._execution = options
            return self

        def with_staging(self, staged: bool = True) -> JdbcSink.JdbcSinkBuilder:
            """Set whether exactly-once output is staged in a table rather than in prepared transactions.

            By default, output for tables with key fields is staged, and everything else is prepared.

            Args:
                staged: Whether output is staged.

            """
            self._staged = staged
            return self

        def build_at_least_once(self, connection_options: JdbcConnectionOptions) -> JdbcSink:
            """Build a sink whose rows are visible at once.

            Args:
                connection_options: How to connect.

            """
            return JdbcSink(self._require_target(), connection_options, self._execution)

        def build_exactly_once(
            self, connection_options: JdbcConnectionOptions, exactly_once_options: JdbcExactlyOnceOptions | None = None
        ) -> JdbcSink:
            """Build a sink whose rows are visible once, after their checkpoint.

            Args:
                connection_options: How to connect.
                exactly_once_options: How commits are made.

            """
            target = self._require_target()
            has_keys = isinstance(target, TableTarget) and bool(target.keys)
            staged = has_keys if self._staged is None else self._staged
            if staged and not isinstance(target, TableTarget):
                message = "only rows for a table can be staged"
                raise InvalidJdbcOption(message, hint="call with_table(...) instead of with_query_statement(...)")
            if has_keys and not staged:
                message = "a table with key fields cannot be written to by prepared transactions"
                hint = "omit with_staging, or write the upsert as a statement: INSERT ... ON CONFLICT ..."
                raise InvalidJdbcOption(message, hint=hint)
            options = exactly_once_options or JdbcExactlyOnceOptions()
            return JdbcSink(target, connection_options, self._execution, options, staged)

        def _require_target(self) -> Target:
            if self._target is None:
                message = "a JDBC sink needs a statement or a table"
                raise InvalidJdbcOption(message, hint="call with_query_statement(...) or with_table(...)")
            return self._target
