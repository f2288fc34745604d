"""A bounded scan of a table or query, in parallel.

Promises: every row that does not change while the job reads is read once. Epochs read at different times and there is
no snapshot that outlives them: rows that change meanwhile may be read before or after the change, and a row that moves
may be read twice or not at all. For a table that must be read as of one moment and followed from there, use the CDC
source.
Does not know: changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from millstream.connector.source import ReaderContext, Records, Source, SourceReader, SplitEnumerator, SplitRange
from millstream.connectors.jdbc.columns import copy_out
from millstream.connectors.jdbc.driver import Session, translate_errors
from millstream.connectors.jdbc.options import InvalidJdbcOption, JdbcConnectionOptions
from millstream.connectors.jdbc.splits import Layout, ScanEnumerator
from millstream.connectors.jdbc.statements import quote_name, quote_names, quote_table, statement
from millstream.connectors.jdbc.types import SESSION, PgType, pg_type
from millstream.types.factory import RowTypeInfo, TypeInformation

_INTEGER_TYPES = ("smallint", "integer", "bigint", "oid", "numeric")
_ROWS_IN_A_BLOCK = 60  # estimate for a table that was never analysed


@dataclass(frozen=True)
class Scan:
    """A table or a query, and how it is partitioned."""

    table: str | None = None
    sql: str | None = None
    columns: tuple[str, ...] = ()
    partition_column: str | None = None
    partitions: int | None = None
    lower: int | None = None
    upper: int | None = None
    parameters: tuple[tuple[Any, ...], ...] = ()

    def query(self) -> str:
        """Return the query of the whole result."""
        column_list = quote_names(self.columns) if self.columns else "*"
        if self.table is not None:
            return f"SELECT {column_list} FROM {quote_table(self.table)}"
        return f"SELECT {column_list} FROM ({statement(self.sql or '').sql}) AS scanned"

    def part(self, layout: Layout, split: int, start: int, end: int) -> tuple[str, Sequence[Any]]:
        """Return the query of one range, with its parameters."""
        if layout.unit == "parameters":
            return self.query(), self.parameters[split]
        if layout.unit == "block":
            return f"{self.query()} WHERE ctid >= '({start},0)'::tid AND ctid < '({end},0)'::tid", ()
        if layout.unit == "column":
            column = quote_name(self.partition_column or "")
            condition = f"{column} >= {int(start)} AND {column} < {int(end)}"
            if layout.nulls and start == layout.lower:
                condition = f"({condition} OR {column} IS NULL)"
            return f"{self.query()} WHERE {condition}", ()
        return self.query(), ()


@dataclass(frozen=True)
class JdbcSource(Source):
    """Reads a table or query. `type_oids` are the OIDs of the columns' types in the database.

    Example:
        >>> builder = JdbcSource.builder().set_db_url("jdbc:postgresql://localhost/shop").set_username("reader")
        >>> builder = builder.set_table("orders", ["id", "total"])  # .build() connects

    """

    connection: JdbcConnectionOptions
    scan: Scan
    type_oids: tuple[int, ...]
    row_type: RowTypeInfo

    @staticmethod
    def builder() -> JdbcSource.JdbcSourceBuilder:
        """Return a new builder."""
        return JdbcSource.JdbcSourceBuilder()

    def type_info(self) -> TypeInformation:
        """Return a row type with the columns of the result."""
        return self.row_type

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator; it partitions the table when the job starts, and keeps that after a restart."""
        return ScanEnumerator(lambda: self._layout(parallelism), state)

    def _layout(self, parallelism: int) -> Layout:
        session, scan = Session(self.connection.conninfo()), self.scan
        try:
            if scan.parameters:
                return Layout("parameters", 0, len(scan.parameters), len(scan.parameters), 0)
            if scan.partition_column is not None:
                return self._by_column(session, scan.partitions or parallelism)
            if scan.table is not None:
                blocks, rows = session.query(
                    "cannot read the size of the table",
                    "SELECT CASE WHEN relkind IN ('r', 'm') THEN pg_relation_size(oid) "
                    "/ current_setting('block_size')::int END, reltuples FROM pg_class WHERE oid = %s::regclass",
                    (quote_table(scan.table),),
                )[0]
                if blocks is not None:
                    row_estimate = int(rows) if rows > 0 else int(blocks) * _ROWS_IN_A_BLOCK
                    return Layout("block", 0, int(blocks), scan.partitions or parallelism, row_estimate)
            return Layout("whole", 0, 1, 1, 0)
        finally:
            session.close()

    def _by_column(self, session: Session, partitions: int) -> Layout:
        scan = self.scan
        column = quote_name(scan.partition_column or "")
        lower, upper, rows = session.query(
            "cannot read the partition column",
            f"SELECT min({column}), max({column}), count(*) FROM ({scan.query()}) AS whole",
        )[0]
        bounded = scan.lower is not None or scan.upper is not None
        first = scan.lower if scan.lower is not None else int(lower or 0)
        last = scan.upper if scan.upper is not None else int(upper if upper is not None else -1)
        # there are rows, but no values: all are null
        last = max(last, first) if rows and not bounded else last
        return Layout("column", first, max(last + 1, first), partitions, int(rows), nulls=not bounded)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader that reads ranges by COPY."""
        return _ScanReader(self, context.block_records)

    class JdbcSourceBuilder:
        """Builds a JdbcSource; `build` reads the columns from the database.

        Example:
            >>> builder = JdbcSource.builder().set_db_url("jdbc:postgresql://localhost/shop").set_username("reader")
            >>> builder = builder.set_sql("SELECT id, total FROM orders WHERE total > 10").set_partition("id", 8)

        """

        def __init__(self) -> None:
            self._url: str | None = None
            self._user: str | None = None
            self._password: str | None = None
            self._options: JdbcConnectionOptions | None = None
            self._scan = Scan()

        def set_db_url(self, url: str) -> JdbcSource.JdbcSourceBuilder:
            """Set the URL of the database.

            Args:
                url: The URL, such as `jdbc:postgresql://localhost:5432/shop`.

            """
            self._url = url
            return self

        def set_username(self, user_name: str) -> JdbcSource.JdbcSourceBuilder:
            """Set the user name.

            Args:
                user_name: The user name.

            """
            self._user = user_name
            return self

        def set_password(self, password: str) -> JdbcSource.JdbcSourceBuilder:
            """Set the password.

            Args:
                password: The password.

            """
            self._password = password
            return self

        def set_connection_options(self, options: JdbcConnectionOptions) -> JdbcSource.JdbcSourceBuilder:
            """Set URL, user name and password at once.

            Args:
                options: The options; they take precedence over the other methods.

            """
            self._options = options
            return self

        def set_sql(self, sql: str) -> JdbcSource.JdbcSourceBuilder:
            """Read the result of a query.

            Args:
                sql: The query.

            """
            self._scan = replace(self._scan, sql=sql, table=None)
            return self

        def set_table(self, table: str, columns: Sequence[str] = ()) -> JdbcSource.JdbcSourceBuilder:
            """Read a table, or some of its columns; without a partition column it is partitioned by its blocks on
            disk.

            Args:
                table: The name of the table, as `table` or `schema.table`.
                columns: The names of the columns; all columns by default.

            """
            self._scan = replace(self._scan, table=table, sql=None, columns=tuple(columns))
            return self

        def set_partition(
            self, column: str, num: int | None = None, lower_bound: int | None = None, upper_bound: int | None = None
        ) -> JdbcSource.JdbcSourceBuilder:
            """Partition by an integer column. As in Flink, if bounds are given only rows within them are read.

            Args:
                column: The name of the column.
                num: The number of partitions; by default the parallelism of the source.
                lower_bound: The lowest value that is read; by default the lowest value of the column.
                upper_bound: The highest value that is read; by default the highest value of the column.

            """
            scan = replace(self._scan, partition_column=column, partitions=num)
            self._scan = replace(scan, lower=lower_bound, upper=upper_bound)
            return self

        def set_jdbc_parameter_values_provider(self, values: Sequence[Sequence[Any]]) -> JdbcSource.JdbcSourceBuilder:
            """Run the query once for each of these tuples of parameters.

            Args:
                values: The parameters of each run of the query, in the order of its question marks.

            """
            self._scan = replace(self._scan, parameters=tuple(tuple(parameters) for parameters in values))
            return self

        def build(self) -> JdbcSource:
            """Build the source."""
            scan = self._scan
            if self._options is None and self._url is None:
                message = "a JDBC source needs the URL of a database"
                raise InvalidJdbcOption(message, hint="call set_db_url(...) or set_connection_options(...)")
            if scan.table is None and scan.sql is None:
                message = "a JDBC source needs a table or a query"
                raise InvalidJdbcOption(message, hint="call set_table(...) or set_sql(...)")
            options = self._options or JdbcConnectionOptions(self._url or "", None, self._user, self._password)
            names, type_oids = _columns(options, scan)
            if scan.partition_column is not None:
                _check_partition(scan, names, type_oids)
            row_type = RowTypeInfo([pg_type(oid).type_info for oid in type_oids], list(names))
            return JdbcSource(options, scan, tuple(type_oids), row_type)


def _columns(options: JdbcConnectionOptions, scan: Scan) -> tuple[list[str], list[int]]:
    session = Session(options.conninfo())

    def describe(connection: Any) -> list[tuple[str, int]]:
        parameters = scan.parameters[0] if scan.parameters else None
        cursor = connection.execute(f"SELECT * FROM ({scan.query()}) AS described LIMIT 0", parameters)
        return [(column.name, column.type_code) for column in cursor.description]

    try:
        columns = session.run("the source cannot read from the database", describe)
    finally:
        session.close()
    return [name for name, _ in columns], [oid for _, oid in columns]


def _check_partition(scan: Scan, names: Sequence[str], type_oids: Sequence[int]) -> None:
    oid = dict(zip(names, type_oids, strict=True)).get(scan.partition_column or "")
    if oid is None or pg_type(oid).name not in _INTEGER_TYPES:
        problem = "is not in the result" if oid is None else f"has the type {pg_type(oid).name}"
        message = f"the partition column {scan.partition_column} {problem}, it must be an integer column"
        raise InvalidJdbcOption(message, hint=f"the result has {', '.join(names)}")
    if scan.partitions is not None and scan.partitions < 1:
        message = f"{scan.partitions} partitions, there must be at least one"
        raise InvalidJdbcOption(message)


class _ScanReader(SourceReader):
    def __init__(self, source: JdbcSource, block_records: int) -> None:
        self._source = source
        self._block = max(block_records, 1)
        self._session = Session(source.connection.conninfo(), SESSION)

    def read(self, part: SplitRange) -> Iterator[Records]:
        source = self._source
        end, layout = part.end[0], Layout.from_json(part.end[1])
        query, parameters = source.scan.part(layout, int(part.split), part.start, end)
        columns: list[PgType] = [pg_type(oid) for oid in source.type_oids]
        with translate_errors("cannot read from the database"):
            for array in copy_out(self._session.connection(), query, parameters, columns, source.row_type):
                for first in range(0, len(array), self._block):
                    yield Records(array.slice(first, self._block))

    def close(self) -> None:
        self._session.close()
