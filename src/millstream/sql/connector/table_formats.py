"""Formats of tables: the options 'format', 'key.format' and 'value.format'.

Promises: an unknown format or a wrong option of a format raises an error that names the table. Options of a format have
its name as prefix, as in 'value.json.ignore-parse-errors'.
Does not know: connectors, and how formats encode and decode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from millstream.datastream.formats.row_types import format_type_of
from millstream.errors import UserError
from millstream.formats import Decoded, Format, FormatType, format_named, format_names
from millstream.sql.columns import arrow_type
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.errors import SqlError, nearest
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.times import to_instant
from millstream.types.row import Row, RowKind

_RETRACTIONS = (RowKind.DELETE, RowKind.UPDATE_BEFORE)
CHANGELOG_FORMATS = ("debezium-json", "canal-json", "maxwell-json")

T = TypeVar("T")


@dataclass(frozen=True)
class TableFormat:
    """The format of a table; `options` are without `prefix`."""

    name: str
    prefix: str
    options: tuple[tuple[str, str], ...]

    @property
    def mode(self) -> ChangelogMode:
        """The changelog mode of decoded records."""
        return ChangelogMode.RETRACT if self.name in CHANGELOG_FORMATS else ChangelogMode.INSERT_ONLY


def read_format(context: TableContext, *keys: str) -> TableFormat | None:
    """Return the format that the first of these options names; None if none of them is set."""
    for key in keys:
        if key in context.options:
            name = context.options[key]
            if name not in format_names():
                message = f"there is no format '{name}'"
                raise context.fail(message, nearest(name, format_names()))
            prefix = f"{key.removesuffix('format')}{name}."
            options = {k.removeprefix(prefix): v for k, v in context.options.items() if k.startswith(prefix)}
            return TableFormat(name, prefix, tuple(sorted(options.items())))
    return None


def create_named_arrow_type(data_type: t.DataType) -> pa.DataType:
    """Return the Arrow type of a logical type, with the names of nested fields."""
    match data_type:
        case t.RowType():
            return pa.struct([(f.name, create_named_arrow_type(f.data_type)) for f in data_type.fields])
        case t.ArrayType():
            return pa.list_(create_named_arrow_type(data_type.element))
        case t.MapType():
            return pa.map_(create_named_arrow_type(data_type.key), create_named_arrow_type(data_type.value))
        case t.VariantType():
            message = "connectors cannot read or write VARIANT"
            raise UserError(message, hint="declare the column as STRING, and use PARSE_JSON and JSON_STRING")
        case t.BitmapType():
            message = "connectors cannot read or write BITMAP"
            raise UserError(message, hint="declare the column as BYTES, and use BITMAP_FROM_BYTES and BITMAP_TO_BYTES")
    return arrow_type(data_type)


def create_arrow_schema(row: t.RowType) -> pa.Schema:
    """Return the Arrow schema that formats get for a row type."""
    return pa.schema([pa.field(f.name, create_named_arrow_type(f.data_type), f.data_type.null) for f in row.fields])


@format_type_of.register(t.DataType)
def _(declared: t.DataType) -> FormatType:
    return FormatType.of(create_named_arrow_type(declared))


def check_columns(context: TableContext) -> None:
    """Raise if a column has a type that connectors cannot read or write."""
    call_for_table(context, lambda: create_arrow_schema(context.schema))


def create_format(
    context: TableContext, table_format: TableFormat, row: t.RowType, metadata: Sequence[str] = ()
) -> Format:
    """Create the format that encodes and decodes these columns, and decodes these metadata keys of the format."""
    options = dict(table_format.options)
    return call_for_table(context, lambda: format_named(table_format.name, create_arrow_schema(row), options, metadata))


def call_for_table(context: TableContext, function: Callable[[], T]) -> T:
    """Call a function of a connector or a format; its errors are raised as errors that name the table."""
    try:
        return function()
    except SqlError:
        raise
    except UserError as problem:
        raise context.fail(problem.message, problem.hint) from None


def format_converter(data_type: t.DataType) -> Callable[[Any], Any] | None:
    """Return the conversion of a value of a table to one that formats encode; None if no conversion is needed."""
    match data_type:
        case t.LocalZonedTimestampType():
            return to_instant
        case t.ArrayType():
            convert_element = format_converter(data_type.element)
            if convert_element is None:
                return None
            return lambda value: [None if v is None else convert_element(v) for v in value]
        case t.MapType():
            convert_value = format_converter(data_type.value)
            if convert_value is None:
                return None
            return lambda value: {k: None if v is None else convert_value(v) for k, v in value.items()}
        case t.RowType():
            converters = [format_converter(field_type) for field_type in data_type.types]
            if all(converter is None for converter in converters):
                return None
            return lambda value: Row._from(
                list(data_type.names),
                [v if c is None or v is None else c(v) for c, v in zip(converters, value, strict=True)],
            )
    return None


class Columns:
    """A projection of a table's rows to some columns, with values that formats encode.

    `renamed_to` are the names of the columns in the result, if they differ. With `keep_row_kind`, rows keep their row
    kind; otherwise they become inserts."""

    def __init__(
        self, row: t.RowType, names: Sequence[str], *, renamed_to: Sequence[str] = (), keep_row_kind: bool = False
    ) -> None:
        self._arguments = (row, tuple(names), tuple(renamed_to), keep_row_kind)
        self._names = list(renamed_to or names)
        self._indexes = [row.names.index(name) for name in names]
        self._converters = [format_converter(row.types[index]) for index in self._indexes]
        self._keep_row_kind = keep_row_kind

    def __reduce__(self) -> tuple[Any, ...]:
        return _create_columns, self._arguments

    def project_arrays(self, rows: pa.Array) -> list[pa.Array]:
        """Return the columns of rows in an Arrow array; values are not converted."""
        return [rows.field(index) for index in self._indexes]

    def project(self, rows: Sequence[Row]) -> list[Row]:
        """Return the columns of each row."""
        columns = list(zip(self._indexes, self._converters, strict=True))
        projected = []
        for row in rows:
            values = row._values
            selected = [
                values[index] if convert is None or values[index] is None else convert(values[index])
                for index, convert in columns
            ]
            projected.append(Row._from(self._names, selected, row._row_kind if self._keep_row_kind else RowKind.INSERT))
        return projected


def _create_columns(
    row: t.RowType, names: tuple[str, ...], renamed_to: tuple[str, ...], keep_row_kind: bool
) -> Columns:
    return Columns(row, names, renamed_to=renamed_to, keep_row_kind=keep_row_kind)


class ColumnsFormat(Format):
    """A format that encodes some columns of a table's rows; with `tombstones`, retracted rows are encoded as None."""

    def __init__(self, inner: Format, columns: Columns, *, tombstones: bool = False) -> None:
        super().__init__(inner.data_type, inner.on_error)
        self.name = inner.name
        self._inner, self._columns, self._tombstones = inner, columns, tombstones

    def __reduce__(self) -> tuple[Any, ...]:
        return _create_columns_format, (self._inner, self._columns, self._tombstones)

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """Decode with the inner format."""
        return self._inner.decode(records)

    def encode(self, values: Sequence[Any]) -> list[Any]:
        """Return the bytes of each row; None for a tombstone."""
        if not self._tombstones:
            return list(self._inner.encode(self._columns.project(values)))
        upserts = [row for row in values if row._row_kind not in _RETRACTIONS]
        encoded = iter(self._inner.encode(self._columns.project(upserts)))
        return [None if row._row_kind in _RETRACTIONS else next(encoded) for row in values]


def _create_columns_format(inner: Format, columns: Columns, tombstones: bool) -> ColumnsFormat:
    return ColumnsFormat(inner, columns, tombstones=tombstones)
