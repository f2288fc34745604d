"""Arrow tables of files as records of a type: similar types are cast, other values are bad records.

Promises: a column is converted at once if all values fit; otherwise only the records that do not fit are bad records.
Does not know: file formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from millstream.formats.contract import BadFormat, BadRecord, Decoded, reason_of
from millstream.formats.format_types import FormatType, TypeRoot
from millstream.formats.texts import to_decimal_type
from millstream.times import to_instant
from millstream.types.arrow_types import to_python_values
from millstream.types.factory import TypeMismatch
from millstream.types.row import Row

_MAX_BUFFERED = 1 << 16


def _unit(data_type: FormatType) -> str:
    """Return the unit of timestamps in files: nanoseconds only for SQL types that have them. Instants of streams have
    microseconds, because a column of nanoseconds ends in the year 2262."""
    precision = data_type.precision or 0
    if precision <= 3:
        return "ms"
    return "ns" if precision > 6 and data_type.declared is None else "us"


_TARGETS: dict[TypeRoot, Callable[[FormatType], pa.DataType]] = {
    TypeRoot.STRING: lambda _: pa.string(),
    TypeRoot.BOOLEAN: lambda _: pa.bool_(),
    TypeRoot.TINYINT: lambda _: pa.int8(),
    TypeRoot.SMALLINT: lambda _: pa.int16(),
    TypeRoot.INT: lambda _: pa.int32(),
    TypeRoot.BIGINT: lambda _: pa.int64(),
    TypeRoot.FLOAT: lambda _: pa.float32(),
    TypeRoot.DOUBLE: lambda _: pa.float64(),
    TypeRoot.BYTES: lambda _: pa.binary(),
    TypeRoot.DATE: lambda _: pa.date32(),
    TypeRoot.TIME: lambda data_type: pa.time32("ms") if (data_type.precision or 0) <= 3 else pa.time64("us"),
    TypeRoot.TIMESTAMP: lambda data_type: pa.timestamp(_unit(data_type)),
    TypeRoot.TIMESTAMP_LTZ: lambda data_type: pa.timestamp(_unit(data_type), "UTC"),
    TypeRoot.DECIMAL: lambda data_type: pa.decimal128(
        data_type.precision or 38, 18 if data_type.scale is None else data_type.scale
    ),
}


def file_type(data_type: FormatType) -> pa.DataType:
    """Return the Arrow type of a type in a file."""
    if data_type.root is TypeRoot.ARRAY:
        return pa.list_(file_type(data_type.children[0]))
    if data_type.root is TypeRoot.MAP:
        return pa.map_(file_type(data_type.children[0]), file_type(data_type.children[1]))
    if data_type.root is TypeRoot.ROW:
        return pa.struct([pa.field(name, file_type(child), child.nullable) for name, child in data_type.fields()])
    if data_type.root not in _TARGETS:
        message = f"columnar files cannot contain {data_type.root.value}"
        raise BadFormat(message, hint="declare the types of the fields")
    return _TARGETS[data_type.root](data_type)


def file_schema(data_type: FormatType) -> pa.Schema:
    """Return the Arrow schema of rows in a file."""
    return pa.schema([pa.field(name, file_type(child), child.nullable) for name, child in data_type.fields()])


def table_of(data_type: FormatType, values: Sequence[Any]) -> pa.Table:
    """Convert records to a table; raises TypeMismatch for a record that does not fit."""
    schema = file_schema(data_type)
    arrays = data_type.type_info().to_arrow(_with_names(data_type, values)).flatten()
    columns = []
    for field, child, column in zip(schema, data_type.children, arrays[: len(schema)], strict=True):
        columns.append(column if column.type == field.type else _to_file_column(child, field, column))
    return pa.Table.from_arrays(columns, schema=schema)


class RecordBuffer:
    """Collects the records of a file and writes them as tables: one for about 65,536 records, the rest in `flush`."""

    def __init__(self, data_type: FormatType, write: Callable[[pa.Table], None]) -> None:
        self._data_type, self._write = data_type, write
        self._records: list[Any] = []

    def add(self, records: Sequence[Any]) -> None:
        """Append records."""
        self._records += records
        if len(self._records) >= _MAX_BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Write the records that are left, if any."""
        records, self._records = self._records, []
        if records:
            self._write(table_of(self._data_type, records))


def _with_names(data_type: FormatType, values: Sequence[Any]) -> Sequence[Any]:
    """Return rows by position if the first one has other field names; all rows of a stream have the same names."""
    own_names = getattr(values[0], "_fields", None) if values and isinstance(values[0], Row) else None
    if own_names is None or set(data_type.names) <= set(own_names):
        return values
    return [Row(*value) if isinstance(value, Row) else value for value in values]


def _to_file_column(data_type: FormatType, field: pa.Field, column: pa.Array) -> pa.Array:
    """Convert a column that files represent in another way: decimals, instants, and nested types with them."""
    convert = _to_file(data_type)
    values = data_type.type_info().from_arrow(column)
    try:
        return pa.array([convert(value) for value in values], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        at = next((i for i, value in enumerate(values) if not _fits(convert, value, field.type)), 0)
        raise TypeMismatch(at, values[at], str(field.type), (field.name,)) from problem


def _fits(convert: Callable[[Any], Any], value: Any, arrow_type: pa.DataType) -> bool:
    try:
        pa.array([convert(value)], arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        return False
    return True


def _to_file(data_type: FormatType) -> Callable[[Any], Any]:
    """Return the conversion of our values to those that Arrow takes."""
    if data_type.root is TypeRoot.TIMESTAMP_LTZ:
        per_second = {"ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[_unit(data_type)]
        nanos_per_unit = 1_000_000_000 // per_second
        return lambda value: None if value is None else value.seconds * per_second + value.nanos // nanos_per_unit
    if data_type.root is TypeRoot.DECIMAL:
        decimal_type = FormatType(
            TypeRoot.DECIMAL, data_type.precision or 38, 18 if data_type.scale is None else data_type.scale
        )
        return lambda value: None if value is None else to_decimal_type(value, decimal_type)
    if data_type.root is TypeRoot.ROW:
        split, members = data_type.splitter(), [(name, _to_file(child)) for name, child in data_type.fields()]
        return lambda value: (
            None
            if value is None
            else {name: convert(item) for (name, convert), item in zip(members, split(value), strict=True)}
        )
    if data_type.root is TypeRoot.ARRAY:
        element = _to_file(data_type.children[0])
        return lambda value: None if value is None else [element(item) for item in value]
    if data_type.root is TypeRoot.MAP:
        entry = _to_file(data_type.children[1])
        return lambda value: None if value is None else [(key, entry(item)) for key, item in value.items()]
    return lambda value: value


def _from_file(data_type: FormatType) -> Callable[[Any], Any]:
    """Return the conversion of values that Arrow returns to ours."""
    if data_type.root is TypeRoot.TIMESTAMP_LTZ:
        return lambda value: None if value is None else to_instant(value)
    if data_type.root is TypeRoot.ROW:
        make, members = data_type.maker(), [(name, _from_file(child)) for name, child in data_type.fields()]
        return lambda value: None if value is None else make([convert(value[name]) for name, convert in members])
    if data_type.root is TypeRoot.ARRAY:
        element = _from_file(data_type.children[0])
        return lambda value: None if value is None else [element(item) for item in value]
    if data_type.root is TypeRoot.MAP:
        entry = _from_file(data_type.children[1])
        return lambda value: None if value is None else {key: entry(item) for key, item in value}
    return lambda value: value


def records_of(data_type: FormatType, table: pa.Table) -> Decoded:
    """Return the records of a table; a column that is missing is null."""
    count = table.num_rows
    columns: list[pa.Array] = []
    bad: dict[int, str] = {}
    for name, child in data_type.fields():
        if name not in table.column_names:
            columns.append(pa.nulls(count, child.type_info().arrow_type))
            continue
        column, problems = _read_column(child, table.column(name))
        columns.append(column)
        bad.update((index, f"field {name}: {reason}") for index, reason in problems.items() if index not in bad)
    array = data_type.array_of(columns, count)
    if not bad:
        return Decoded(array)
    good = [index for index in range(count) if index not in bad]
    errors = tuple(
        BadRecord(index, repr(_row_values(table, index)).encode(), reason) for index, reason in sorted(bad.items())
    )
    return Decoded(array.take(pa.array(good, pa.int64())), good, errors)


def _row_values(table: pa.Table, index: int) -> dict[str, Any]:
    part = table.slice(index, 1)
    return {name: to_python_values(part.column(name).combine_chunks())[0] for name in table.column_names}


def _read_column(data_type: FormatType, column: pa.ChunkedArray) -> tuple[pa.Array, dict[int, str]]:
    """Convert a column to the type; return it, with null for values that do not fit, and why they do not."""
    array = column.combine_chunks()
    record_type = data_type.type_info().arrow_type
    target = file_type(data_type)
    try:
        cast = array.cast(target)
        if target == record_type:
            return cast, {}
        return _from_file_values(data_type, cast), {}
    except (pa.ArrowException, TypeMismatch):
        pass
    values: list[Any] = []
    problems: dict[int, str] = {}
    for index in range(len(array)):
        value = array.slice(index, 1)
        try:
            cast = value.cast(target)
            values.append(cast if target == record_type else _from_file_values(data_type, cast))
        except (pa.ArrowException, TypeMismatch) as problem:
            problems[index] = reason_of(problem)
            values.append(pa.nulls(1, record_type))
    return pa.concat_arrays(values), problems


def _from_file_values(data_type: FormatType, array: pa.Array) -> pa.Array:
    convert = _from_file(data_type)
    return data_type.type_info().to_arrow([convert(value) for value in to_python_values(array)])
