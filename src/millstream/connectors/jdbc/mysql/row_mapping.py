"""Maps rows of the binary log to rows of a captured table.

Promises: columns are matched by name if the log has names (binlog_row_metadata = FULL). Otherwise they are matched by
their order, if the number and types of columns are those of the table. New columns are ignored; any other difference
raises `SchemaChanged`.
Does not know: positions, snapshots."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from millstream.connectors.jdbc.cdc.changes import SchemaChanged
from millstream.connectors.jdbc.cdc.widening import widening
from millstream.connectors.jdbc.mysql import wire
from millstream.connectors.jdbc.mysql.binlog import TableMap
from millstream.connectors.jdbc.mysql.tables import MysqlTable
from millstream.connectors.jdbc.mysql.types import MysqlColumn, mysql_type

_log = logging.getLogger("millstream.cdc")

_TEXT = {wire.VARCHAR, wire.BLOB, wire.TINY_BLOB, wire.MEDIUM_BLOB, wire.LONG_BLOB}
_WIRE_TYPES: dict[str, set[int]] = {
    "tinyint": {wire.TINY}, "smallint": {wire.SHORT}, "mediumint": {wire.INT24}, "int": {wire.LONG},
    "bigint": {wire.LONGLONG}, "decimal": {wire.NEWDECIMAL}, "float": {wire.FLOAT}, "double": {wire.DOUBLE},
    "bit": {wire.BIT}, "date": {wire.DATE, wire.NEWDATE}, "time": {wire.TIME, wire.TIME2}, "year": {wire.YEAR},
    "datetime": {wire.DATETIME, wire.DATETIME2}, "timestamp": {wire.TIMESTAMP, wire.TIMESTAMP2},
    "enum": {wire.ENUM}, "set": {wire.SET}, "json": {wire.JSON},
}  # fmt: skip


def _fits(column: MysqlColumn, column_type: int) -> bool:
    if column.data_type in _WIRE_TYPES:
        return column_type in _WIRE_TYPES[column.data_type]
    return column_type in _TEXT or column_type == wire.GEOMETRY


class RowMapping:
    """Converts rows of one table in the log, as long as its columns do not change."""

    def __init__(
        self,
        table: MysqlTable,
        logged: TableMap,
        describe: Callable[[], MysqlTable | None],
        earlier: Sequence[MysqlTable] | None = None,
    ) -> None:
        """`describe` reads the current description from the database; it is called if the columns differ. `earlier` are
        previous descriptions of the table: a row may have any of them. A column that such a row lacks is null, and a
        value of a narrower type is widened. If `earlier` is None, rows must have all columns."""
        self.table = table
        descriptions = [table, *(earlier or ())]
        names = logged.names or self._names(descriptions, logged, describe)
        indexes = {name: index for index, name in enumerate(names)}
        self._reads: list[tuple[int, Callable[[Any], Any]]] = []
        for name, column in table.columns:
            if name not in indexes:
                if earlier is None:
                    raise SchemaChanged(table.id, f"the column {name} was dropped")
                self._reads.append((0, _null))
                continue
            index = indexes[name]
            wire_type = logged.columns[index][0]
            columns = (dict(description.columns).get(name) for description in descriptions)
            read = next((read for c in columns if c and (read := _reader(c, column, wire_type))), None)
            if read is None:
                raise SchemaChanged(table.id, f"the type of {name} is no longer {column.column_type}")
            self._reads.append((index, read))
        new_columns = sorted(indexes.keys() - {name for name, _ in table.columns})
        if new_columns:
            _log.warning(
                "new columns of %s are ignored until the job is started again: %s", table.id, ", ".join(new_columns)
            )
        self._key = [(indexes[key.column.name], key.type.logged) for key in table.key_columns]

    @staticmethod
    def _names(
        descriptions: Sequence[MysqlTable], logged: TableMap, describe: Callable[[], MysqlTable | None]
    ) -> Sequence[str]:
        for description in descriptions:
            if _has_columns(description, logged):
                return [name for name, _ in description.columns]
        table, current = descriptions[0], describe()
        if current is not None and _has_columns(current, logged):
            return [name for name, _ in current.columns]
        raise SchemaChanged(
            table.id,
            f"the binary log has {len(logged.columns)} columns of other types or numbers; their names are in the log "
            "with binlog_row_metadata = FULL",
        )

    def key(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """Return the key of a row."""
        return tuple(read(row[index]) for index, read in self._key)

    def values(self, row: Sequence[Any] | None) -> list[Any] | None:
        """Return the values of a row of the log; None for None."""
        return None if row is None else [read(row[index]) for index, read in self._reads]


def _null(_: Any) -> None:
    return None


def _reader(logged: MysqlColumn, column: MysqlColumn, wire_type: int) -> Callable[[Any], Any] | None:
    """Return the function that converts a logged value of one column to a value of another; None if that is
    impossible."""
    if not _fits(logged, wire_type):
        return None
    read = mysql_type(logged).logged
    convert = widening(mysql_type(logged).type_info, mysql_type(column).type_info)
    if convert is None:
        return None
    return read if logged == column else lambda value: convert(read(value))


def _has_columns(table: MysqlTable, logged: TableMap) -> bool:
    return len(table.columns) == len(logged.columns) and all(
        _fits(column, column_type) for (_, column), (column_type, _) in zip(table.columns, logged.columns, strict=True)
    )
