"""TableResult: the result of a statement, or the rows of a running query.

Promises: PyFlink's methods. Rows are available as the job emits them, and printed tables have the form of Flink's
clients.
Does not know: plans."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from millstream.client.job_client import JobClient
from millstream.datastream.collecting import CloseableIterator as _Results
from millstream.sql import tableau
from millstream.sql.columns import create_internal_converter
from millstream.sql.functions.text import to_text
from millstream.sql.types import data_types as t
from millstream.table.catalog import ResolvedSchema
from millstream.table.collected_rows import convert_collected_rows
from millstream.table.notebook_display import show_result
from millstream.table.result_kind import ResultKind
from millstream.table.table_schema import TableSchema
from millstream.types.row import Row


class CloseableIterator:
    """Iterate over the rows of a result as the job emits them; a context manager that closes itself."""

    def __init__(self, rows: Iterator[Row], close: Any = None) -> None:
        self._rows, self._close = rows, close

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Row:
        return next(self._rows)

    def next(self) -> Row:
        """Return the next row; block until there is one.

        Raises:
            StopIteration: If the job has ended and all rows were read.

        """
        return next(self._rows)

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading; a job that still runs is cancelled."""
        if self._close is not None:
            self._close()


class TableResult:
    """The result of one statement: the rows of a query, the job of an insert, or the answer to another statement.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> with t_env.execute_sql("SELECT 1 AS n").collect() as rows:
        ...     list(rows)
        [<Row(1)>]

    """

    def __init__(
        self,
        schema: t.RowType | None,
        rows: Sequence[Row] = (),
        *,
        client: JobClient | None = None,
        results: _Results | None = None,
        zone: str = "UTC",
        streaming: bool = False,
        raw: bool = False,
    ) -> None:
        self._schema = schema
        self._rows = rows
        self._client, self._results = client, results
        self._zone, self._streaming, self._raw = zone, streaming, raw

    def __repr__(self) -> str:
        job = f", {self._client}" if self._client is not None else ""
        return f"TableResult({self._get_row_type()}{job})"

    def _ipython_display_(self) -> None:
        """Show the result in a notebook: the rows of a query while they arrive, or the job of an insert."""
        if self._results is None and self._client is not None:
            self._client._ipython_display_()
        else:
            show_result(self)

    def get_job_client(self) -> JobClient | None:
        """Return the client of the submitted job; None if the statement has no job."""
        return self._client

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait until the job has ended; the rows of a query are kept in memory until they are read.

        Args:
            timeout_ms: How long to wait at most; by default without limit.

        Raises:
            TimeoutError: If the job did not end in time.

        """
        if self._client is None:
            return
        if self._results is not None:
            self._results.hold_all()
        seconds = None if timeout_ms is None else timeout_ms / 1000
        if not self._client.wait(seconds):
            msg = f"the job did not end within {timeout_ms} ms"
            raise TimeoutError(msg)
        self._client.get_job_execution_result().result()

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the columns of the result with their data types."""
        return ResolvedSchema._of(self._get_row_type())

    def get_table_schema(self) -> TableSchema:
        """Return the columns as a `TableSchema`, PyFlink's deprecated form of a schema."""
        return TableSchema(self._get_row_type().names, self._get_row_type().types)

    def get_result_kind(self) -> ResultKind:
        """Return whether the result has rows, or only indicates that the statement succeeded."""
        return ResultKind.SUCCESS if self._schema is None else ResultKind.SUCCESS_WITH_CONTENT

    def _get_row_type(self) -> t.RowType:
        return self._schema if self._schema is not None else t.row_of(["result"], [t.STRING], null=False)

    def collect(self) -> CloseableIterator:
        """Return an iterator over the rows.

        The rows of a query are emitted by the running job and can be read once. Close the iterator, or use it as a
        context manager, to end a job on an unbounded source.

        Returns:
            The iterator. As in PyFlink, rows have no field names: read the values by index, and the names from
            `get_resolved_schema`. A row of a query with updates has its row kind: `Row.get_row_kind`.

        """
        if self._results is not None:
            return CloseableIterator(convert_collected_rows(self._results, self._get_row_type()), self._results.close)
        if self._schema is None:
            return CloseableIterator(iter([Row("OK")]))
        return CloseableIterator(convert_collected_rows(self._rows, self._schema))

    def _convert_to_exact_rows(self) -> CloseableIterator:
        """Return an iterator over the rows, whose timestamps have all their digits."""
        return self.collect() if self._results is None else CloseableIterator(iter(self._results), self._results.close)

    def print(self) -> None:
        """Print the rows as a table, each when the job emits it."""
        for line in self.lines():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    def lines(self) -> Iterator[str]:
        """Yield the lines that `print` prints."""
        if self._schema is None:
            yield "OK"
            return
        names, data_types = self._schema.names, self._schema.types
        format_cells = self._create_cell_formatter()
        if self._streaming:
            with self._convert_to_exact_rows() as rows:
                changes = ((row.get_row_kind().value, format_cells(row)) for row in rows)
                yield from tableau.format_stream(names, data_types, changes)
            return
        is_query = self._results is not None
        if self._raw:
            yield from str(self._rows[0][0]).split("\n")
            return
        with self._convert_to_exact_rows() as rows:
            formatted_rows = [format_cells(row) for row in rows]
        if not is_query:
            formatted_rows = [["" if cell == tableau.NULL else cell for cell in row] for row in formatted_rows]
        yield from tableau.format_table(names, formatted_rows, tableau.MAX_WIDTH if is_query else None)

    def _create_cell_formatter(self) -> Any:
        data_types = self._get_row_type().types
        converters = [create_internal_converter(data_type) for data_type in data_types]
        zone = self._zone

        def format_cells(row: Row) -> list[str]:
            return [
                tableau.NULL if value is None else to_text(convert(value), data_type, zone, hex_bytes=True)
                for value, data_type, convert in zip(row, data_types, converters, strict=True)
            ]

        return format_cells
