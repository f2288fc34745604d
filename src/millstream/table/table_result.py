"""TableResult: what a statement answered, or the rows of a running query.

Promises: PyFlink's methods; rows come as the job makes them, text tables look as Flink's clients print them.
Does not know: plans."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from millstream.client.job_client import JobClient
from millstream.datastream.collecting import CloseableIterator as _Results
from millstream.sql import tableau
from millstream.sql.columns import converter
from millstream.sql.functions.text import to_text
from millstream.sql.types import data_types as t
from millstream.table.catalog import ResolvedSchema
from millstream.table.result_kind import ResultKind
from millstream.table.table_schema import TableSchema
from millstream.types.row import Row


class CloseableIterator:
    """Rows as they come; also a context manager."""

    def __init__(self, rows: Iterator[Row], close: Any = None) -> None:
        self._rows, self._close = rows, close

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Row:
        return next(self._rows)

    def next(self) -> Row:
        """The next row."""
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
    """The result of one statement."""

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

    def get_job_client(self) -> JobClient | None:
        """The client of the job, if there is one."""
        return self._client

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait until the job has ended. The rows of a query are kept in memory until then."""
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
        """The columns."""
        return ResolvedSchema._of(self._row_type())

    def get_table_schema(self) -> TableSchema:
        """The columns, in PyFlink's older form."""
        return TableSchema(self._row_type().names, self._row_type().types)

    def get_result_kind(self) -> ResultKind:
        """Whether there are rows to read."""
        return ResultKind.SUCCESS if self._schema is None else ResultKind.SUCCESS_WITH_CONTENT

    def _row_type(self) -> t.RowType:
        return self._schema if self._schema is not None else t.row_of(["result"], [t.STRING], null=False)

    def collect(self) -> CloseableIterator:
        """The rows, one by one."""
        if self._results is not None:
            return CloseableIterator(iter(self._results), self._results.close)
        if self._schema is None:
            return CloseableIterator(iter([Row("OK")]))
        return CloseableIterator(iter(self._rows))

    def print(self) -> None:
        """Print the rows as a table, while they come."""
        for line in self.lines():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    def lines(self) -> Iterator[str]:
        """The lines that `print` prints."""
        if self._schema is None:
            yield "OK"
            return
        names, kinds = self._schema.names, self._schema.types
        cells = self._cells()
        if self._streaming:
            with self.collect() as rows:
                yield from tableau.streamed(names, kinds, ((row.get_row_kind().value, cells(row)) for row in rows))
            return
        answer = self._results is None
        if self._raw:
            yield from str(self._rows[0][0]).split("\n")
            return
        with self.collect() as rows:
            listed = [cells(row) for row in rows]
        if answer:
            listed = [["" if cell == tableau.NULL else cell for cell in row] for row in listed]
        yield from tableau.bounded(names, listed, None if answer else tableau.MAX_WIDTH)

    def _cells(self) -> Any:
        kinds = self._row_type().types
        converters = [converter(kind) for kind in kinds]
        zone = self._zone

        def cells(row: Row) -> list[str]:
            return [
                tableau.NULL if value is None else _text(convert(value), kind, zone)
                for value, kind, convert in zip(row, kinds, converters, strict=True)
            ]

        return cells


def _text(value: Any, kind: t.DataType, zone: str) -> str:
    return f"x'{value.hex()}'" if t.is_bytes(kind) else to_text(value, kind, zone)
