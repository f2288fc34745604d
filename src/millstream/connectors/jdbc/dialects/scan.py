"""Scans and lookups of a table in MySQL or SQLite.

Promises: as in the scan of PostgreSQL, every row that does not change while the job reads is read once, in ranges of an
integer column if one is named. A lookup finds the rows of many keys with one query.
Does not know: SQL of a database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.source import ReaderContext, Records, Source, SourceReader, SplitEnumerator, SplitRange
from millstream.connectors.jdbc.dialects.dialect import Column, Dialect
from millstream.connectors.jdbc.options import InvalidJdbcOption
from millstream.connectors.jdbc.splits import Layout, ScanEnumerator
from millstream.types.factory import RowTypeInfo, TypeInformation
from millstream.types.row import Row

_KEYS_IN_A_QUERY = 100


@dataclass(frozen=True)
class DialectSource(Source):
    """Reads columns of a table. `partition`: an integer column, the number of ranges, and its bounds."""

    dialect: Dialect
    table: str
    names: tuple[str, ...]
    partition: tuple[str, int, int, int] | None = None

    def type_info(self) -> TypeInformation:
        """Return a row type with the columns, as the database describes them."""
        return RowTypeInfo([column.type_info for column in self.columns()], list(self.names))

    def columns(self) -> list[Column]:
        """Return the columns, in the order of the names."""
        session = self.dialect.session()
        try:
            every: list[Column] = session.run(
                "cannot read the description of the table", lambda c: self.dialect.columns(c, self.table)
            )
        finally:
            session.close()
        return choose_columns(every, self.table, self.names)

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of ranges of the partition column, or of one range without a partition column."""
        return ScanEnumerator(self._layout, state)

    def _layout(self) -> Layout:
        if self.partition is None:
            return Layout("whole", 0, 1, 1, 0)
        _, number, lower, upper = self.partition
        return Layout("column", lower, upper + 1, number, upper + 1 - lower)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader."""
        return _Reader(self, max(context.block_records, 1))


class _Reader(SourceReader):
    def __init__(self, source: DialectSource, block: int) -> None:
        self._source, self._block = source, block
        self._session = source.dialect.session()
        self._columns: list[Column] | None = None

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the rows of a range, one block at a time; errors of the database are translated."""
        source, dialect = self._source, self._source.dialect
        columns = self._columns = self._columns or source.columns()
        sql = f"SELECT {', '.join(column.selected for column in columns)} FROM {dialect.quote_table(source.table)}"
        if source.partition is not None:
            column = dialect.quote(source.partition[0])
            sql += f" WHERE {column} >= {int(part.start)} AND {column} < {int(part.end[0])}"
        rows = self._session.run("cannot read the table", lambda connection: dialect.rows(connection, sql))
        while block := self._session.run("cannot read the table", lambda _: self._take(rows, columns)):
            yield Records(block)

    def _take(self, rows: Iterator[Sequence[Any]], columns: list[Column]) -> list[Row]:
        names = list(self._source.names)
        block: list[Row] = []
        for row in rows:
            block.append(Row._from(names, [column.read(value) for column, value in zip(columns, row, strict=True)]))
            if len(block) >= self._block:
                break
        return block

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


def choose_columns(every: Sequence[Column], table: str, names: Sequence[str]) -> list[Column]:
    """Return the columns with these names."""
    by_name = {column.name: column for column in every}
    for name in names:
        if name not in by_name:
            message = f"the table {table} has no column {name}"
            raise InvalidJdbcOption(message, hint=f"it has {', '.join(by_name)}")
    return [by_name[name] for name in names]


def find_rows(
    dialect: Dialect,
    connection: Any,
    table: str,
    names: Sequence[str],
    key_names: Sequence[str],
    keys: Sequence[tuple[Any, ...]],
) -> Mapping[tuple[Any, ...], list[list[Any]]]:
    """Return the rows of each key for which there are rows; the database compares the keys."""
    columns = choose_columns(dialect.columns(connection, table), table, names)
    selected = "".join(f", {column.selected}" for column in columns)
    rows_by_key: dict[tuple[Any, ...], list[list[Any]]] = {}
    for first in range(0, len(keys), _KEYS_IN_A_QUERY):
        block = keys[first : first + _KEYS_IN_A_QUERY]
        sql = " UNION ALL ".join(
            f"SELECT {number} AS ms_key{selected} FROM {dialect.quote_table(table)} WHERE {dialect.equal(key_names)}"
            for number in range(len(block))
        )
        parameters = [dialect.parameter(value) for key in block for value in key]
        for number, *values in dialect.rows(connection, sql, parameters):
            row = [column.read(value) for column, value in zip(columns, values, strict=True)]
            rows_by_key.setdefault(block[int(number)], []).append(row)
    return rows_by_key
