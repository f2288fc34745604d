"""Between tables and the rest: Python values, pandas, streams.

Promises: types are found where none are given; a row keeps its kind of change both ways.
Does not know: environments."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.connectors.collection import CollectionSource
from millstream.datastream.data_stream import DataStream
from millstream.datastream.program import Program
from millstream.errors import UserError
from millstream.graph.transformations import Input, Transformation
from millstream.sql.catalog.catalog import ColumnDefinition, StreamTable, TableDefinition
from millstream.sql.columns import SqlTypeInfo, internal_values, row_type_info
from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import Expression as Bound
from millstream.sql.expressions.nodes import Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session, coerced
from millstream.sql.logical.bind.tables import scope_of, watermarked
from millstream.sql.operators.enter import EnterSpec
from millstream.sql.operators.pattern.stamp import StampSpec
from millstream.sql.physical.nodes import FORWARD, Operation
from millstream.sql.syntax import parse_expression
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.common_types import common_type
from millstream.sql.types.variants import Variant
from millstream.table.expression import Expression
from millstream.table.expression.terms import node
from millstream.table.schema import Schema
from millstream.types import basic_types as basic
from millstream.types.collection_types import ListTypeInfo, MapTypeInfo
from millstream.types.composite_types import StructTypeInfo
from millstream.types.factory import RowTypeInfo, TypeInformation, Types
from millstream.types.row import Row, RowKind

# -------------------------------------------------------------------------------------------------------- Python values


def inferred(value: Any) -> t.DataType:
    """The type of a Python value."""
    match value:
        case None:
            return t.NULL
        case bool():
            return t.BOOLEAN
        case int():
            return t.BIGINT
        case float():
            return t.DOUBLE
        case str():
            return t.STRING
        case bytes() | bytearray():
            return t.BYTES
        case Decimal():
            return t.DecimalType(38, 18)
        case datetime.datetime():
            return t.TimestampType(6) if value.tzinfo is None else t.LocalZonedTimestampType(6)
        case datetime.date():
            return t.DATE
        case datetime.time():
            return t.TIME
        case datetime.timedelta():
            return t.DayTimeIntervalType()
        case Row():
            names = getattr(value, "_fields", None) or [f"f{i}" for i in range(len(value))]
            return t.row_of(names, [inferred(each) for each in value])
        case list() | np.ndarray():
            return t.ArrayType(_merged([inferred(each) for each in value]))
        case tuple():
            return t.row_of([f"_{i + 1}" for i in range(len(value))], [inferred(each) for each in value])
        case dict():
            return t.MapType(_merged([inferred(k) for k in value]), _merged([inferred(v) for v in value.values()]))
    msg = f"no SQL type is known for {value!r} ({type(value).__name__})"
    raise UserError(msg, hint="give a schema")


def _merged(kinds: list[t.DataType]) -> t.DataType:
    found = common_type(kinds) if kinds else t.NULL
    if found is None:
        msg = f"values of different types: {', '.join(map(str, kinds))}"
        raise UserError(msg, hint="give a schema")
    return found


def row_type(rows: Sequence[Any], schema: Any) -> t.RowType:
    """The row type of elements, as the schema says or as they are."""
    if isinstance(schema, t.RowType):
        return replace(schema, null=False)
    if isinstance(schema, t.DataType):
        return t.row_of(["f0"], [schema], null=False)
    if not rows:
        msg = "an empty collection has no types"
        raise UserError(msg, hint="give a schema")
    tuples = [_fields(each) for each in rows]
    width = len(tuples[0])
    kinds = [_merged([inferred(row[i]) for row in tuples]) for i in range(width)]
    kinds = [t.STRING if isinstance(kind, t.NullType) else kind for kind in kinds]
    names = list(schema) if schema is not None else _names(rows[0], width)
    if len(names) != width:
        msg = f"{len(names)} names for {width} columns"
        raise UserError(msg)
    return t.row_of(names, kinds, null=False)


def _fields(row: Any) -> Sequence[Any]:
    if isinstance(row, dict):
        return list(row.values())
    return list(row) if isinstance(row, Row | tuple | list) else [row]


def _names(row: Any, width: int) -> list[str]:
    if isinstance(row, dict):
        return list(row)
    named = getattr(row, "_fields", None)
    return list(named) if named else [f"_{i + 1}" for i in range(width)]


def rows_source(kind: RowTypeInfo, rows: Sequence[Any]) -> CollectionSource:
    """The rows as a source."""
    ready = [row if isinstance(row, Row | tuple | list | dict) else (row,) for row in rows]
    return CollectionSource(kind.conform(list(ready)), kind)


# --------------------------------------------------------------------------------------------------------------- pandas


def from_pandas(pdf: Any, schema: Any) -> tuple[t.RowType, list[Any]]:
    """A DataFrame as rows with their type."""
    table = pa.Table.from_pandas(pdf, preserve_index=False)
    kinds = [_of_arrow(field.type) for field in table.schema]
    names = [str(name) for name in pdf.columns]
    if isinstance(schema, t.RowType):
        names, kinds = list(schema.names), list(schema.types)
    elif schema is not None:
        given = list(schema)
        if given and isinstance(given[0], t.DataType):
            kinds = given
        else:
            names = [str(each) for each in given]
    columns = [
        SqlTypeInfo(kind).from_arrow(_cast(column, kind)) for column, kind in zip(table.columns, kinds, strict=True)
    ]
    return t.row_of(names, kinds, null=False), list(zip(*columns, strict=True))


def _cast(column: pa.ChunkedArray, kind: t.DataType) -> pa.ChunkedArray:
    wanted = SqlTypeInfo(kind).arrow_type
    return column if column.type == wanted else column.cast(wanted, safe=False)


def _of_arrow(kind: pa.DataType) -> t.DataType:
    found = {
        pa.bool_(): t.BOOLEAN, pa.int8(): t.TINYINT, pa.int16(): t.SMALLINT, pa.int32(): t.INT, pa.int64(): t.BIGINT,
        pa.float32(): t.FLOAT, pa.float64(): t.DOUBLE, pa.string(): t.STRING, pa.large_string(): t.STRING,
        pa.binary(): t.BYTES, pa.date32(): t.DATE,
    }.get(kind)  # fmt: skip
    if found is not None:
        return found
    if pa.types.is_timestamp(kind):
        return t.TimestampType(3) if kind.tz is None else t.LocalZonedTimestampType(3)
    if pa.types.is_decimal(kind):
        return t.DecimalType(kind.precision, kind.scale)
    if pa.types.is_time(kind):
        return t.TIME
    if pa.types.is_list(kind):
        return t.ArrayType(_of_arrow(kind.value_type))
    msg = f"no SQL type is known for Arrow's {kind}"
    raise UserError(msg, hint="give a schema")


def to_pandas(row: t.RowType, rows: Iterable[Row]) -> Any:
    """What is left of a changelog, as a DataFrame."""
    import pandas as pd

    kind = row_type_info(row)
    left: list[Row] = []
    for each in rows:
        if each.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            left.append(each)
            continue
        gone = next((i for i, kept in enumerate(left) if kept._values == each._values), None)
        if gone is not None:
            left.pop(gone)
    if not left:
        return pd.DataFrame({name: [] for name in row.names})
    array = kind.to_arrow(left)
    arrays = [_shown(array.field(i), each) for i, each in enumerate(row.types)]
    return pa.table(arrays, names=row.names).to_pandas()


def _shown(array: pa.Array, kind: t.DataType) -> pa.Array:
    """Variants as their JSON, all others as they are."""
    if not isinstance(kind, t.VariantType):
        return array
    found = internal_values(array, kind)
    return pa.array([None if each is None else Variant(each).to_json() for each in found], pa.string())


# -------------------------------------------------------------------------------------------------------------- schemas


def definition(
    session: Session, schema: Schema, options: Mapping[str, str], partitions: tuple[str, ...], comment: str | None
) -> TableDefinition:
    """A table as a schema says it; computed columns are checked."""
    read = [(name, kind) for name, kind, expr, _, _ in schema._columns if expr is None and kind is not None]
    scope = scope_of(l.Scan(t.row_of([n for n, _ in read], [k for _, k in read], null=False), None))
    binder = ExpressionBinder(session, scope, clause="in a computed column")
    columns = []
    for name, kind, expr, key, virtual in schema._columns:
        made = kind if expr is None else binder.bind(parse_expression(expr)).type
        assert made is not None
        columns.append(ColumnDefinition(name, made, expr, key, virtual))
    names = [each.name for each in columns]
    for each in (*schema._key, *(() if schema._watermark is None else (schema._watermark[0],))):
        if each not in names:
            message = f"there is no column '{each}'"
            raise SqlValidationError(message)
    return TableDefinition(
        tuple(columns), dict(options), schema._watermark, schema._key, schema._constraint, partitions, comment
    )


# -------------------------------------------------------------------------------------------------------------- streams


def sql_type(kind: TypeInformation) -> t.DataType:
    """The SQL type of a stream's type."""
    if isinstance(kind, SqlTypeInfo):
        return kind.kind
    if isinstance(kind, StructTypeInfo):
        return t.row_of(kind.field_names, [sql_type(each) for each in kind.field_types])
    if isinstance(kind, ListTypeInfo):
        return t.ArrayType(sql_type(kind.elem_type))
    if isinstance(kind, MapTypeInfo):
        return t.MapType(sql_type(kind.key_type), sql_type(kind.value_type))
    found = _BASIC.get(repr(kind))
    if found is not None:
        return found
    if isinstance(kind, basic.PickledBytesTypeInfo):
        return t.RawType()
    found_arrow = {pa.date32(): t.DATE}.get(kind.arrow_type)
    return found_arrow or _of_arrow(kind.arrow_type)


_BASIC: dict[str, t.DataType] = {
    repr(Types.STRING()): t.STRING,
    repr(Types.BOOLEAN()): t.BOOLEAN,
    repr(Types.BYTE()): t.TINYINT,
    repr(Types.SHORT()): t.SMALLINT,
    repr(Types.INT()): t.INT,
    repr(Types.LONG()): t.BIGINT,
    repr(Types.FLOAT()): t.FLOAT,
    repr(Types.DOUBLE()): t.DOUBLE,
    repr(Types.BIG_DEC()): t.DecimalType(38, 18),
    repr(Types.SQL_DATE()): t.DATE,
    repr(Types.SQL_TIME()): t.TIME,
    repr(Types.SQL_TIMESTAMP()): t.TimestampType(3),
    repr(Types.INSTANT()): t.LocalZonedTimestampType(9),
}


def _lineage(program: Program, inputs: Sequence[Input]) -> dict[int, Transformation]:
    """The steps a stream is made of, and no others."""
    found: dict[int, Transformation] = {}
    waiting = [given.upstream for given in inputs]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found[number] = program.transformations[number]
            waiting.extend(given.upstream for given in found[number].inputs)
    return dict(sorted(found.items()))


def stream_plan(session: Session, stream: DataStream, given: Sequence[Any], mode: ChangelogMode, name: str) -> l.Plan:
    """A stream as a table: its fields are columns, renamed or computed as a schema says."""
    kind = stream.get_type()
    found = sql_type(kind)
    wrapped = not isinstance(found, t.RowType)
    row = replace(found, null=False) if isinstance(found, t.RowType) else t.row_of(["f0"], [found], null=False)
    schema = given[0] if given and isinstance(given[0], Schema) else None
    timed = schema is not None and any(key == "rowtime" for _, _, _, key, _ in schema._columns)
    whole = (
        row if not timed else t.row_of([*row.names, "rowtime"], [*row.types, t.LocalZonedTimestampType(3)], null=False)
    )
    inputs = stream._inputs

    def added(program: Program) -> tuple[Input, ...]:
        spec = EnterSpec(whole, wrapped, timed)
        return (Input(program.add("DataStreamToTable", spec, row_type_info(whole), inputs, follows_input=True)),)

    lineage = _lineage(stream._env._program, inputs)

    def origin(shown: str, scanned: t.RowType, how: ChangelogMode, keys: Any) -> Operation:
        def with_lineage(program: Program) -> tuple[Input, ...]:
            for number, each in lineage.items():
                program.transformations.setdefault(number, each)
            return added(program)

        return Operation("DataStreamScan", shown, scanned, mode=how, upsert_keys=keys, stream=with_lineage)

    key = () if schema is None else schema._key
    table = StreamTable(whole, origin, tuple(key), mode.insert_only, bounded=False)
    plan: l.Plan = l.Scan(whole, table, (name,))
    if schema is not None:
        return _by_schema(session, plan, schema)
    if given:
        return _by_names(plan, given)
    return plan


def _by_names(plan: l.Plan, given: Sequence[Any]) -> l.Plan:
    names = []
    for each in given:
        if isinstance(each, Expression):
            expr = node(each)
            names.append(each._aliases[0] if each._aliases else expr.parts[-1])  # type: ignore[attr-defined]
        else:
            names.append(str(each))
    if len(names) > len(plan.schema):
        message = f"{len(names)} names for {len(plan.schema)} fields"
        raise SqlValidationError(message)
    return l.project(plan, plan.refs()[: len(names)], names)


def _by_schema(session: Session, plan: l.Plan, schema: Schema) -> l.Plan:
    if not schema._columns:
        made = plan
    else:
        binder = ExpressionBinder(session, scope_of(plan), clause="in a computed column")
        exprs: list[Bound] = []
        for name, kind, expr, key, _ in schema._columns:
            if expr is not None:
                exprs.append(binder.bind(parse_expression(expr)))
                continue
            source = "rowtime" if key == "rowtime" else name
            if source not in plan.schema.names:
                message = f"the stream has no field '{source}'"
                raise SqlValidationError(message, hint=f"it has {', '.join(plan.schema.names)}")
            index = plan.schema.names.index(source)
            reference: Bound = Ref(plan.schema.types[index], index)
            if kind is not None and not reference.type.same(kind):
                reference = coerced(reference, kind)
            exprs.append(reference)
        made = l.project(plan, exprs, [name for name, *_ in schema._columns])
    if schema._watermark is None:
        return made
    column, text = schema._watermark
    if text.startswith("SOURCE_WATERMARK"):
        index = made.schema.names.index(column)
        kinds = list(made.schema.types)
        kinds[index] = replace(kinds[index], attribute=t.ROWTIME)  # type: ignore[call-arg]
        refs = [Ref(kind, i) for i, kind in enumerate(kinds)]
        return l.Project(t.row_of(made.schema.names, kinds, null=False), made, tuple(refs))
    return watermarked(session, made, column, text)


def timed(operation: Operation, schema: t.RowType) -> Operation:
    """The operation with its rowtime column as the timestamps of its records."""
    times = [i for i, kind in enumerate(schema.types) if t.attribute_of(kind) == t.ROWTIME]
    if len(times) != 1:
        return operation
    return Operation(
        "TableToDataStream", "", operation.schema, (operation,), (FORWARD,), StampSpec(times[0]), mode=operation.mode
    )


def row_converter(kind: TypeInformation) -> Callable[[Row], Any]:
    """A row as a value of a stream's type."""
    if isinstance(kind, RowTypeInfo):
        return lambda row: row
    if isinstance(kind, StructTypeInfo):
        return tuple
    return lambda row: row[0]


def retract_converter(kind: TypeInformation) -> tuple[Callable[[Row], Any], TypeInformation]:
    """A row as (added, value), and the type of that."""
    convert = row_converter(kind)

    def pair(row: Row) -> Any:
        added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        row.set_row_kind(RowKind.INSERT)
        return added, convert(row)

    return pair, Types.TUPLE([Types.BOOLEAN(), kind])
