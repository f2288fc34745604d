"""Conversions between tables and Python values and streams.

Promises: types that are not given are inferred. A row keeps its row kind in both directions.
Does not know: environments."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from millstream.connectors.collection import CollectionSource
from millstream.datastream.data_stream import DataStream
from millstream.datastream.program import Program
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.graph.transformations import Input
from millstream.sql.arrow_exchange import find_sql_type_of_arrow
from millstream.sql.catalog.catalog import ColumnDefinition, StreamTable, TableDefinition
from millstream.sql.columns import SqlTypeInfo, create_row_type_info
from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import Expression as Bound
from millstream.sql.expressions.nodes import Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session, coerce
from millstream.sql.logical.bind.tables import add_watermark, create_scope
from millstream.sql.operators.enter import EnterSpec
from millstream.sql.operators.pattern.stamp import StampSpec
from millstream.sql.physical.nodes import FORWARD, Operation
from millstream.sql.syntax import parse_expression
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.common_types import find_common_type
from millstream.table.schema import Schema
from millstream.table.stream_columns import StreamColumn, choose_columns
from millstream.types import basic_types as basic
from millstream.types.collection_types import ListTypeInfo, MapTypeInfo
from millstream.types.composite_types import StructTypeInfo
from millstream.types.factory import RowTypeInfo, TypeInformation, Types
from millstream.types.row import Row, RowKind

# -------------------------------------------------------------------------------------------------------- Python values


def infer_type(value: Any) -> t.DataType:
    """Return the SQL type of a Python value."""
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
            names = getattr(value, "_fields", None) or [f"_{i + 1}" for i in range(len(value))]
            return t.row_of(names, [infer_type(item) for item in value])
        case list() | np.ndarray():
            return t.ArrayType(_find_common_type([infer_type(item) for item in value]))
        case tuple():
            return t.row_of([f"_{i + 1}" for i in range(len(value))], [infer_type(item) for item in value])
        case dict():
            return t.MapType(
                _find_common_type([infer_type(k) for k in value]).not_null(),
                _find_common_type([infer_type(v) for v in value.values()]),
            )
    msg = f"no SQL type is known for {value!r} ({type(value).__name__})"
    raise InvalidArgumentType(msg, hint="give a schema")


def _find_common_type(data_types: list[t.DataType]) -> t.DataType:
    common = find_common_type(data_types) if data_types else t.NULL
    if common is None:
        msg = f"the values of a column have no common type: {', '.join(map(str, data_types))}"
        raise InvalidArgumentType(msg, hint="give a schema")
    return common


def infer_row_type(rows: Sequence[Any], schema: Any) -> t.RowType:
    """Return the row type of elements: that of the schema, or one inferred from their values."""
    if isinstance(schema, t.RowType):
        return replace(schema, null=False)
    if isinstance(schema, t.DataType):
        return t.row_of(["f0"], [schema], null=False)
    if not rows:
        msg = "the types of an empty collection cannot be inferred"
        raise InvalidArgument(msg, hint="give a schema")
    tuples = [_list_row_values(row) for row in rows]
    width = len(tuples[0])
    for index, values in enumerate(tuples):
        if len(values) != width:
            msg = f"element {index} has {len(values)} columns ({rows[index]!r}), but the first element has {width}"
            raise InvalidArgument(msg, hint="use None for a column without a value")
    data_types = [_find_common_type([infer_type(row[i]) for row in tuples]) for i in range(width)]
    data_types = [t.STRING if isinstance(data_type, t.NullType) else data_type for data_type in data_types]
    names = _create_default_names(rows[0], width)
    if schema is not None and not getattr(rows[0], "_fields", None):  # a row keeps its field names, as in PyFlink
        names = [*schema, *(f"_{i + 1}" for i in range(len(schema), width))][:width]
    return t.row_of(names, data_types, null=False)


def _list_row_values(row: Any) -> Sequence[Any]:
    if isinstance(row, dict):
        return list(row.values())
    return list(row) if isinstance(row, Row | tuple | list) else [row]


def _create_default_names(row: Any, width: int) -> list[str]:
    if isinstance(row, dict):
        return list(row)
    names = getattr(row, "_fields", None)
    return list(names) if names else [f"_{i + 1}" for i in range(width)]


def create_rows_source(type_info: RowTypeInfo, rows: Sequence[Any]) -> CollectionSource:
    """Return a source that emits the rows.

    Raises:
        InvalidArgument: If a text or bytes do not have the length that the type declares.

    """
    records = [row if isinstance(row, Row | tuple | list | dict) else (row,) for row in rows]
    conformed = type_info.conform(records)
    for index, field_type in enumerate(type_info.field_types):
        data_type = field_type.data_type if isinstance(field_type, SqlTypeInfo) else None
        if isinstance(data_type, t.SizedType):
            _check_lengths(data_type, [row[index] for row in conformed])
    return CollectionSource(conformed, type_info)


def _check_lengths(data_type: t.SizedType, values: list[Any]) -> None:
    is_exact = isinstance(data_type, t.CharType | t.BinaryType)
    for value in values:
        length = data_type.length if value is None else len(value)
        if length > data_type.length or (is_exact and length != data_type.length):
            message = f"{value!r} has the length {length}, which {data_type} does not take"
            raise InvalidArgument(message)


# -------------------------------------------------------------------------------------------------------------- schemas


def create_table_definition(
    session: Session, schema: Schema, options: Mapping[str, str], partitions: tuple[str, ...], comment: str | None
) -> TableDefinition:
    """Return the definition of a table with a schema, after checking its computed columns, key and watermark."""
    scanned = [
        (name, data_type) for name, data_type, expr, _, _ in schema._columns if expr is None and data_type is not None
    ]
    scope = create_scope(l.Scan(t.row_of([n for n, _ in scanned], [k for _, k in scanned], null=False), None))
    binder = ExpressionBinder(session, scope, clause="in a computed column")
    columns = []
    for name, data_type, expr, metadata_key, virtual in schema._columns:
        column_type = data_type if expr is None else binder.bind(parse_expression(expr)).type
        assert column_type is not None
        columns.append(ColumnDefinition(name, column_type, expr, metadata_key, virtual))
    names = [column.name for column in columns]
    for name in (*schema._key, *(() if schema._watermark is None else (schema._watermark[0],))):
        if name not in names:
            message = f"there is no column '{name}'"
            raise SqlValidationError(message, hint=f"the columns are {', '.join(names)}")
    return TableDefinition(
        tuple(columns), dict(options), schema._watermark, schema._key, schema._constraint, partitions, comment
    )


# -------------------------------------------------------------------------------------------------------------- streams


def find_sql_type(type_info: TypeInformation) -> t.DataType:
    """Return the SQL type for the type information of a stream."""
    if isinstance(type_info, SqlTypeInfo):
        return type_info.data_type
    if isinstance(type_info, StructTypeInfo):
        return t.row_of(type_info.field_names, [find_sql_type(field_type) for field_type in type_info.field_types])
    if isinstance(type_info, ListTypeInfo):
        return t.ArrayType(find_sql_type(type_info.elem_type))
    if isinstance(type_info, MapTypeInfo):
        return t.MapType(find_sql_type(type_info.key_type), find_sql_type(type_info.value_type))
    basic_type = _BASIC.get(repr(type_info))
    if basic_type is not None:
        return basic_type
    if isinstance(type_info, basic.PickledBytesTypeInfo):
        return t.RawType()
    return find_sql_type_of_arrow(type_info.arrow_type)


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


def create_stream_plan(
    session: Session, stream: DataStream, fields_or_schema: Sequence[Any], mode: ChangelogMode, name: str
) -> l.Plan:
    """Return a plan that scans a stream: its fields are the columns, renamed or computed according to the schema."""
    stream_type = find_sql_type(stream.get_type())
    is_wrapped = not isinstance(stream_type, t.RowType)
    row = (
        replace(stream_type, null=False)
        if isinstance(stream_type, t.RowType)
        else t.row_of(["f0"], [stream_type], null=False)
    )
    schema = fields_or_schema[0] if fields_or_schema and isinstance(fields_or_schema[0], Schema) else None
    chosen = choose_columns(row.names, is_wrapped, fields_or_schema) if schema is None else []
    rowtime_type: t.DataType | None = None
    if schema is not None and any(key == "rowtime" for _, _, _, key, _ in schema._columns):
        rowtime_type = t.LocalZonedTimestampType(3)
    elif any(column.attribute == t.ROWTIME for column in chosen):
        rowtime_type = t.TimestampType(3, t.ROWTIME)
    has_rowtime = rowtime_type is not None
    scanned_row = (
        row if rowtime_type is None else t.row_of([*row.names, "rowtime"], [*row.types, rowtime_type], null=False)
    )
    inputs = stream._inputs
    stream_program = stream._env._program
    transformations = stream_program.required(edge.upstream for edge in inputs)

    def add_to_program(program: Program) -> tuple[Input, ...]:
        for number, transformation in transformations.items():
            # it may have changed since: another side output is read, it has got a uid
            program.transformations.setdefault(number, stream_program.latest(number) or transformation)
        spec = EnterSpec(scanned_row, is_wrapped, has_rowtime)
        type_info = create_row_type_info(scanned_row)
        return (Input(program.add("DataStreamToTable", spec, type_info, inputs, follows_input=True)),)

    def create_scan(detail: str, schema: t.RowType, scan_mode: ChangelogMode, keys: Any) -> Operation:
        return Operation("DataStreamScan", detail, schema, mode=scan_mode, upsert_keys=keys, stream=add_to_program)

    key = () if schema is None else schema._key
    if mode is ChangelogMode.UPSERT and not key:
        message = "a stream of upserts needs a primary key"
        raise SqlValidationError(message, hint="declare it with Schema.new_builder().primary_key(...)")
    table = StreamTable(scanned_row, create_scan, tuple(key), mode, bounded=False)
    plan: l.Plan = l.Scan(scanned_row, table, (name,))
    if schema is not None:
        return _apply_schema(session, plan, schema, row)
    return _project_columns(session, plan, chosen) if chosen else plan


def _project_columns(session: Session, plan: l.Plan, columns: Sequence[StreamColumn]) -> l.Plan:
    """Project a stream to chosen columns; the last column of the plan has the timestamps of the records if needed."""
    binder = ExpressionBinder(session, create_scope(plan), clause="in a column of a stream")
    exprs: list[Bound] = []
    for column in columns:
        if column.attribute == t.PROCTIME:
            processing_time = binder.bind(parse_expression("PROCTIME()"))
            exprs.append(replace(processing_time, type=processing_time.type.nullable()))
        elif column.attribute == t.ROWTIME:
            exprs.append(Ref(t.TimestampType(3, t.ROWTIME), len(plan.schema) - 1))
        else:
            assert column.field is not None
            exprs.append(Ref(plan.schema.types[column.field], column.field))
    return l.project(plan, exprs, [column.name for column in columns])


def _apply_schema(session: Session, plan: l.Plan, schema: Schema, fields: t.RowType) -> l.Plan:
    """Project a stream to the columns of a schema; a schema without physical columns gets all fields of the stream."""
    columns = list(schema._columns)
    if all(expr is not None or metadata_key is not None for _, _, expr, metadata_key, _ in columns):
        columns = [*((name, None, None, None, False) for name in fields.names), *columns]
    if not columns:
        projected = plan
    else:
        binder = ExpressionBinder(session, create_scope(plan), clause="in a computed column")
        exprs: list[Bound] = []
        for name, data_type, expr, metadata_key, _ in columns:
            if expr is not None:
                exprs.append(binder.bind(parse_expression(expr)))
                continue
            field = "rowtime" if metadata_key == "rowtime" else name
            if field not in plan.schema.names:
                message = f"the stream has no field '{field}'"
                raise SqlValidationError(message, hint=f"it has {', '.join(plan.schema.names)}")
            index = plan.schema.names.index(field)
            reference: Bound = Ref(plan.schema.types[index], index)
            if data_type is not None and not reference.type.same(data_type):
                reference = coerce(reference, data_type)
            exprs.append(reference)
        projected = l.project(plan, exprs, [name for name, *_ in columns])
    if schema._watermark is None:
        return projected
    column, watermark_expression = schema._watermark
    if watermark_expression.startswith("SOURCE_WATERMARK"):
        index = projected.schema.names.index(column)
        data_types = list(projected.schema.types)
        data_types[index] = replace(data_types[index], attribute=t.ROWTIME)  # type: ignore[call-arg]
        refs = [Ref(data_type, i) for i, data_type in enumerate(data_types)]
        return l.Project(t.row_of(projected.schema.names, data_types, null=False), projected, tuple(refs))
    return add_watermark(session, projected, column, watermark_expression)


def find_rowtime_column(schema: t.RowType) -> int | None:
    """Return the index of the rowtime attribute, if there is exactly one."""
    rowtime_columns = [i for i, data_type in enumerate(schema.types) if t.get_time_attribute(data_type) == t.ROWTIME]
    return rowtime_columns[0] if len(rowtime_columns) == 1 else None


def set_record_timestamps(operation: Operation, rowtime_column: int | None) -> Operation:
    """Add an operator that sets the timestamps of records to a column, if there is one."""
    if rowtime_column is None:
        return operation
    spec = StampSpec(rowtime_column)
    return Operation("TableToDataStream", "", operation.schema, (operation,), (FORWARD,), spec, mode=operation.mode)


def create_row_converter(type_info: TypeInformation) -> Callable[[Row], Any]:
    """Return a function that converts rows to values of a stream's type."""
    if isinstance(type_info, RowTypeInfo):
        names = type_info.field_names
        return lambda row: Row._from(names, row._values, row._row_kind)
    if isinstance(type_info, StructTypeInfo):
        return tuple
    return lambda row: row[0]


def create_retract_converter(type_info: TypeInformation) -> tuple[Callable[[Row], Any], TypeInformation]:
    """Return a function that converts a row to (is added, value), and the type of this pair."""
    convert = create_row_converter(type_info)

    def convert_to_pair(row: Row) -> Any:
        is_added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        row.set_row_kind(RowKind.INSERT)
        return is_added, convert(row)

    return convert_to_pair, Types.TUPLE([Types.BOOLEAN(), type_info])
