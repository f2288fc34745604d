"""Arrow tables from files as records of a shape: types that are close are brought together, others are bad records.

Promises: a column whose values all fit is converted at once; where some do not, those records and no others are errors.
Does not know: file formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from millstream.formats.contract import BadFormat, BadRecord, Decoded, reason_of
from millstream.formats.shapes import Kind, Shape
from millstream.formats.texts import fitted
from millstream.times import Instant
from millstream.types.arrow_types import python_values
from millstream.types.factory import TypeMismatch

_TARGETS: dict[Kind, Callable[[Shape], pa.DataType]] = {
    Kind.STRING: lambda _: pa.string(),
    Kind.BOOLEAN: lambda _: pa.bool_(),
    Kind.TINYINT: lambda _: pa.int8(),
    Kind.SMALLINT: lambda _: pa.int16(),
    Kind.INT: lambda _: pa.int32(),
    Kind.BIGINT: lambda _: pa.int64(),
    Kind.FLOAT: lambda _: pa.float32(),
    Kind.DOUBLE: lambda _: pa.float64(),
    Kind.BYTES: lambda _: pa.binary(),
    Kind.DATE: lambda _: pa.date32(),
    Kind.TIME: lambda shape: pa.time32("ms") if (shape.precision or 0) <= 3 else pa.time64("us"),
    Kind.TIMESTAMP: lambda shape: pa.timestamp("ms" if (shape.precision or 0) <= 3 else "us"),
    Kind.TIMESTAMP_LTZ: lambda shape: pa.timestamp("ms" if (shape.precision or 0) <= 3 else "us", "UTC"),
    Kind.DECIMAL: lambda shape: pa.decimal128(shape.precision or 38, 18 if shape.scale is None else shape.scale),
}


def file_type(shape: Shape) -> pa.DataType:
    """The Arrow type of a shape in a file."""
    if shape.kind is Kind.ARRAY:
        return pa.list_(file_type(shape.children[0]))
    if shape.kind is Kind.MAP:
        return pa.map_(file_type(shape.children[0]), file_type(shape.children[1]))
    if shape.kind is Kind.ROW:
        return pa.struct([pa.field(name, file_type(child), child.nullable) for name, child in shape.fields()])
    if shape.kind not in _TARGETS:
        message = f"no file of columns holds {shape.kind.value}"
        raise BadFormat(message, hint="declare the fields with types of their own")
    return _TARGETS[shape.kind](shape)


def file_schema(shape: Shape) -> pa.Schema:
    """The Arrow schema of rows in a file."""
    return pa.schema([pa.field(name, file_type(child), child.nullable) for name, child in shape.fields()])


def table_of(shape: Shape, values: Sequence[Any]) -> pa.Table:
    """Records as a table; TypeMismatch for one that does not fit."""
    schema = file_schema(shape)
    found = shape.type_info().to_arrow(values).flatten()
    columns = []
    for field, child, column in zip(schema, shape.children, found[: len(schema)], strict=True):
        columns.append(column if column.type == field.type else _as_in_file(child, field, column))
    return pa.Table.from_arrays(columns, schema=schema)


def _as_in_file(shape: Shape, field: pa.Field, column: pa.Array) -> pa.Array:
    """A column that a file holds in another way: decimals, instants, and what holds such."""
    convert = _to_file(shape)
    values = shape.type_info().from_arrow(column)
    try:
        return pa.array([convert(value) for value in values], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        at = next((i for i, value in enumerate(values) if not _fits(convert, value, field.type)), 0)
        raise TypeMismatch(at, values[at], str(field.type), (field.name,)) from problem


def _fits(convert: Callable[[Any], Any], value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([convert(value)], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        return False
    return True


def _to_file(shape: Shape) -> Callable[[Any], Any]:
    """What makes the value that Arrow takes of ours."""
    if shape.kind is Kind.TIMESTAMP_LTZ:
        millis = (shape.precision or 0) <= 3
        return lambda value: (
            None
            if value is None
            else value.to_epoch_milli()
            if millis
            else value.seconds * 1_000_000 + value.nanos // 1000
        )
    if shape.kind is Kind.DECIMAL:
        wanted = Shape(Kind.DECIMAL, shape.precision or 38, 18 if shape.scale is None else shape.scale)
        return lambda value: None if value is None else fitted(value, wanted)
    if shape.kind is Kind.ROW:
        split, members = shape.splitter(), [(name, _to_file(child)) for name, child in shape.fields()]
        return lambda value: (
            None
            if value is None
            else {name: convert(item) for (name, convert), item in zip(members, split(value), strict=True)}
        )
    if shape.kind is Kind.ARRAY:
        element = _to_file(shape.children[0])
        return lambda value: None if value is None else [element(item) for item in value]
    if shape.kind is Kind.MAP:
        entry = _to_file(shape.children[1])
        return lambda value: None if value is None else [(key, entry(item)) for key, item in value.items()]
    return lambda value: value


def _from_file(shape: Shape) -> Callable[[Any], Any]:
    """What makes our value of what Arrow gives."""
    if shape.kind is Kind.TIMESTAMP_LTZ:
        return lambda value: None if value is None else _instant(value)
    if shape.kind is Kind.ROW:
        make, members = shape.maker(), [(name, _from_file(child)) for name, child in shape.fields()]
        return lambda value: None if value is None else make([convert(value[name]) for name, convert in members])
    if shape.kind is Kind.ARRAY:
        element = _from_file(shape.children[0])
        return lambda value: None if value is None else [element(item) for item in value]
    if shape.kind is Kind.MAP:
        entry = _from_file(shape.children[1])
        return lambda value: None if value is None else {key: entry(item) for key, item in value}
    return lambda value: value


def _instant(value: Any) -> Instant:
    micros = round(value.timestamp() * 1_000_000)
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)


def records_of(shape: Shape, table: pa.Table) -> Decoded:
    """The records of a table with (at least) the columns of the shape; a column that is not there is null."""
    count = table.num_rows
    columns: list[pa.Array] = []
    bad: dict[int, str] = {}
    for name, child in shape.fields():
        if name not in table.column_names:
            columns.append(pa.nulls(count, child.type_info().arrow_type))
            continue
        found, problems = _column(child, table.column(name))
        columns.append(found)
        bad.update((index, f"field {name}: {reason}") for index, reason in problems.items() if index not in bad)
    array = shape.array_of(columns, count)
    if not bad:
        return Decoded(array)
    good = [index for index in range(count) if index not in bad]
    errors = tuple(
        BadRecord(index, repr(_plain_row(table, index)).encode(), reason) for index, reason in sorted(bad.items())
    )
    return Decoded(array.take(pa.array(good, pa.int64())), good, errors)


def _plain_row(table: pa.Table, index: int) -> dict[str, Any]:
    part = table.slice(index, 1)
    return {name: python_values(part.column(name).combine_chunks())[0] for name in table.column_names}


def _column(shape: Shape, column: pa.ChunkedArray) -> tuple[pa.Array, dict[int, str]]:
    """The column as the shape has it, null where a value does not fit, and why it does not."""
    array = column.combine_chunks()
    wanted = shape.type_info().arrow_type
    target = file_type(shape)
    try:
        cast = array.cast(target)
        if target == wanted:
            return cast, {}
        return _converted(shape, cast), {}
    except (pa.ArrowException, TypeMismatch):
        pass
    kept: list[Any] = []
    problems: dict[int, str] = {}
    for index in range(len(array)):
        one = array.slice(index, 1)
        try:
            cast = one.cast(target)
            kept.append(cast if target == wanted else _converted(shape, cast))
        except (pa.ArrowException, TypeMismatch) as problem:
            problems[index] = reason_of(problem)
            kept.append(pa.nulls(1, wanted))
    return pa.concat_arrays(kept), problems


def _converted(shape: Shape, array: pa.Array) -> pa.Array:
    convert = _from_file(shape)
    return shape.type_info().to_arrow([convert(value) for value in python_values(array)])
