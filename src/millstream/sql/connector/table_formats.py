"""Formats of tables: 'format', 'key.format' and 'value.format' with their options.

Promises: a format that is missing, unknown or wrongly set is refused with its table; options stand behind the format's
name, as in 'value.json.ignore-parse-errors'.
Does not know: connectors, how formats read and write."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from millstream.errors import UserError
from millstream.formats import Decoded, Format, format_named, format_names
from millstream.sql.columns import arrow_type
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.errors import SqlError, nearest
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.times import Instant
from millstream.types.row import Row, RowKind

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
GONE = (RowKind.DELETE, RowKind.UPDATE_BEFORE)
CHANGELOGS = ("debezium-json", "canal-json", "maxwell-json")

T = TypeVar("T")


@dataclass(frozen=True)
class TableFormat:
    """A format that a table names: its options are without their prefix."""

    name: str
    prefix: str
    options: tuple[tuple[str, str], ...]

    @property
    def mode(self) -> ChangelogMode:
        """What changes records of the format can tell."""
        return ChangelogMode.RETRACT if self.name in CHANGELOGS else ChangelogMode.INSERT_ONLY


def table_format(context: TableContext, *keys: str) -> TableFormat | None:
    """The format that the first of these options names; None where there is none of them."""
    for key in keys:
        if key in context.options:
            name = context.options[key]
            if name not in format_names():
                message = f"there is no format '{name}'"
                raise context.fail(message, nearest(name, format_names()))
            prefix = f"{key.removesuffix('format')}{name}."
            found = {k.removeprefix(prefix): v for k, v in context.options.items() if k.startswith(prefix)}
            return TableFormat(name, prefix, tuple(sorted(found.items())))
    return None


def named_arrow_type(kind: t.DataType) -> pa.DataType:
    """The Arrow type of a logical type, with the names of nested fields."""
    match kind:
        case t.RowType():
            return pa.struct([(f.name, named_arrow_type(f.data_type)) for f in kind.fields])
        case t.ArrayType():
            return pa.list_(named_arrow_type(kind.element))
        case t.MapType():
            return pa.map_(named_arrow_type(kind.key), named_arrow_type(kind.value))
        case t.VariantType():
            message = "VARIANT lives inside queries: no connector reads or writes it"
            raise UserError(message, hint="declare the column as STRING, and use PARSE_JSON and JSON_STRING")
        case t.BitmapType():
            message = "BITMAP lives inside queries: no connector reads or writes it"
            raise UserError(message, hint="declare the column as BYTES, and use BITMAP_FROM_BYTES and BITMAP_TO_BYTES")
    return arrow_type(kind)


def arrow_schema(row: t.RowType) -> pa.Schema:
    """The columns of a row type as formats take them."""
    return pa.schema([pa.field(f.name, named_arrow_type(f.data_type), f.data_type.null) for f in row.fields])


def check_columns(context: TableContext) -> None:
    """Refuse columns of a table that only live inside queries."""
    told(context, lambda: arrow_schema(context.schema))


def message_format(context: TableContext, chosen: TableFormat, row: t.RowType, metadata: Sequence[str] = ()) -> Format:
    """The format for messages that hold these columns."""
    return told(context, lambda: format_named(chosen.name, arrow_schema(row), dict(chosen.options), metadata))


def told(context: TableContext, make: Callable[[], T]) -> T:
    """What `make` gives; what it refuses is told with the table."""
    try:
        return make()
    except SqlError:
        raise
    except UserError as problem:
        raise context.fail(problem.message, problem.hint) from None


def leaving(kind: t.DataType) -> Callable[[Any], Any] | None:
    """How a value of a table becomes one that formats take; None where it already is."""
    match kind:
        case t.LocalZonedTimestampType():
            return _instant
        case t.ArrayType():
            inner = leaving(kind.element)
            return None if inner is None else lambda value: [None if v is None else inner(v) for v in value]
        case t.MapType():
            item = leaving(kind.value)
            return None if item is None else lambda value: {k: None if v is None else item(v) for k, v in value.items()}
        case t.RowType():
            makers = [leaving(each) for each in kind.types]
            if all(each is None for each in makers):
                return None
            return lambda value: Row._from(
                list(kind.names), [v if m is None or v is None else m(v) for m, v in zip(makers, value, strict=True)]
            )
    return None


def _instant(value: datetime.datetime) -> Instant:
    gone = value - _EPOCH
    return Instant(gone.days * 86_400 + gone.seconds, gone.microseconds * 1000)


class Columns:
    """Some columns of a table's rows, as formats take them. `kinds` says whether they keep their kind of change."""

    def __init__(
        self, row: t.RowType, names: Sequence[str], *, called: Sequence[str] = (), kinds: bool = False
    ) -> None:
        self._given = (row, tuple(names), tuple(called), kinds)
        self._names = list(called or names)
        self._places = [row.names.index(name) for name in names]
        self._makers = [leaving(row.types[place]) for place in self._places]
        self._kinds = kinds

    def __reduce__(self) -> tuple[Any, ...]:
        row, names, called, kinds = self._given
        return _columns, (row, names, called, kinds)

    def arrays_of(self, rows: pa.Array) -> list[pa.Array]:
        """The columns of rows in an Arrow array, as tables have them."""
        return [rows.field(place) for place in self._places]

    def of(self, rows: Sequence[Row]) -> list[Row]:
        """The columns of each row."""
        chosen = list(zip(self._places, self._makers, strict=True))
        made = []
        for row in rows:
            values = row._values
            picked = [
                values[place] if maker is None or values[place] is None else maker(values[place])
                for place, maker in chosen
            ]
            made.append(Row._from(self._names, picked, row._row_kind if self._kinds else RowKind.INSERT))
        return made


def _columns(row: t.RowType, names: tuple[str, ...], called: tuple[str, ...], kinds: bool) -> Columns:
    return Columns(row, names, called=called, kinds=kinds)


class ColumnsFormat(Format):
    """A format that is given some columns of a table's rows; `tombstones` are written for rows that are taken away."""

    def __init__(self, inner: Format, columns: Columns, *, tombstones: bool = False) -> None:
        super().__init__(inner.data_type, inner.on_error)
        self.name = inner.name
        self._inner, self._chosen, self._tombstones = inner, columns, tombstones

    def __reduce__(self) -> tuple[Any, ...]:
        return _columns_format, (self._inner, self._chosen, self._tombstones)

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """As the format itself."""
        return self._inner.decode(records)

    def encode(self, values: Sequence[Any]) -> list[Any]:
        """The bytes of each row; None for one that is taken away, where that is a tombstone."""
        if not self._tombstones:
            return list(self._inner.encode(self._chosen.of(values)))
        there = [row for row in values if row._row_kind not in GONE]
        encoded = iter(self._inner.encode(self._chosen.of(there)))
        return [None if row._row_kind in GONE else next(encoded) for row in values]


def _columns_format(inner: Format, columns: Columns, tombstones: bool) -> ColumnsFormat:
    return ColumnsFormat(inner, columns, tombstones=tombstones)
