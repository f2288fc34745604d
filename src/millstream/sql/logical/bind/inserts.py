"""Binding of INSERT: the columns of the query get the types and the order of the table's columns.

Promises: a column that is missing, repeated or of an incompatible type is refused with the name of the table.
Does not know: connectors."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Convert, Expression, Lit
from millstream.sql.functions.casts import can_cast
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session, coerce
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


def append_partition_values(
    session: Session,
    table: TableDefinition,
    query: l.Plan,
    columns: Sequence[str],
    partition: Sequence[tuple[str, s.Expr | None]],
) -> tuple[l.Plan, Sequence[str]]:
    """Append the constants of INSERT ... PARTITION (a = 1, b) to a query.

    Returns:
       The query with the constants as further columns, and the columns of the table that it provides.

    """
    constants = {name: expr for name, expr in partition if expr is not None}
    for name, _ in partition:
        if name not in table.partitions:
            message = f"PARTITION names '{name}', which the table is not partitioned by"
            raise SqlValidationError(message, hint=nearest(name, table.partitions))
    if not constants:
        return query, columns
    binder = ExpressionBinder(session, Scope(), clause="in PARTITION")
    column_types = {column.name: column.type for column in table.columns}
    values = [_cast(binder.bind(expr), column_types[name].nullable()) for name, expr in constants.items()]
    chosen = list(columns) or [c.name for c in table.columns if c.is_persisted and c.name not in constants]
    extended = l.project(query, [*query.refs(), *values], [*query.schema.names, *constants])
    return extended, [*chosen, *constants]


def bind_insert(
    name: tuple[str, str, str],
    table: TableDefinition,
    query: l.Plan,
    columns: Sequence[str],
    hints: tuple[tuple[str, str], ...] = (),
    *,
    overwrite: bool = False,
    conflict: str | None = None,
) -> l.Plan:
    """Bind an INSERT to a sink whose input has the columns and types of the table."""
    target = [column for column in table.columns if column.is_persisted]
    chosen = list(columns) or [column.name for column in target]
    if len(chosen) != len(query.schema):
        actual = ", ".join(f"{f.name} {f.data_type}" for f in query.schema.fields)
        expected = ", ".join(f"{column.name} {column.type}" for column in target)
        target_text = f"table '{'.'.join(name)}' has {len(chosen)} ({expected})"
        message = f"the query has {len(query.schema)} columns ({actual}), but {target_text}"
        raise SqlValidationError(message)
    _check_columns(chosen, [column.name for column in target], name)
    exprs: list[Expression] = []
    for column in target:
        if column.name not in chosen:
            if not column.type.null or column.name in table.primary_key:
                message = f"column '{column.name}' of '{'.'.join(name)}' is NOT NULL, and has no value in the INSERT"
                raise SqlValidationError(message)
            exprs.append(Lit(column.type.nullable(), None))
            continue
        index = chosen.index(column.name)
        exprs.append(convert_assigned(query.refs()[index], f"column '{query.schema.names[index]}'", column, name))
    projected = l.project(query, exprs, [column.name for column in target])
    return l.Sink(projected.schema, projected, table, name, hints, overwrite, conflict)


def convert_assigned(
    value: Expression, what: str, column: ColumnDefinition, table: tuple[str, ...], at: int | None = None
) -> Expression:
    """Convert a value to the type of the column that it is written to; refuse types that need a CAST.

    `what` names the value in the error."""
    if not is_assignable(value.type, column.type):
        message = f"{what} is {value.type}, but '{column.name}' of '{'.'.join(table)}' is {column.type}"
        raise SqlValidationError(message, at=at, hint=f"CAST it to {column.type.nullable()}")
    return _convert(value, column.type.with_null(value.type.null))


def _check_columns(chosen: Sequence[str], target: Sequence[str], table: tuple[str, ...]) -> None:
    """Refuse an INSERT into unknown or repeated columns."""
    for index, column in enumerate(chosen):
        if column not in target:
            message = f"'{'.'.join(table)}' has no column '{column}' that can be written to"
            raise SqlValidationError(message, hint=nearest(column, target))
        if column in chosen[:index]:
            message = f"column '{column}' is written to twice"
            raise SqlValidationError(message)


def _cast(value: Expression, data_type: t.DataType) -> Expression:
    """Cast the value of a partition to the type of its column."""
    return Convert(data_type, value) if not value.type.same(data_type) and can_cast(value.type, data_type) else value


def _convert(ref: Expression, data_type: t.DataType) -> Expression:
    """Convert a column to the type of the table's column. Longer text is truncated, as by CAST."""
    if isinstance(data_type, t.VarCharType) and isinstance(ref.type, t.CharType | t.VarCharType):
        return Convert(data_type, ref) if ref.type.length > data_type.length else ref
    return coerce(ref, data_type)


def is_assignable(source: t.DataType, target: t.DataType) -> bool:
    """Return whether INSERT converts a type to another one without CAST: Flink's implicit casts.

    The NOT NULL constraint of a column is checked when the job runs."""
    if source.same(target) or isinstance(source, t.NullType):
        return True
    match source, target:
        case t.IntegerType(), t.IntegerType():
            return source.bits <= target.bits
        case t.DoubleType(), t.FloatType():
            return False
        case t.NumericType(), (t.FloatType() | t.DoubleType() | t.DecimalType()):
            return True
        case (t.CharType(), t.CharType()) | ((t.CharType() | t.VarCharType()), t.VarCharType()):
            return True
        case (t.BinaryType(), t.BinaryType()) | ((t.BinaryType() | t.VarBinaryType()), t.VarBinaryType()):
            return True
        case ((t.TimestampType() | t.LocalZonedTimestampType()), (t.TimestampType() | t.LocalZonedTimestampType())):
            return True
        case t.TimestampType(), (t.DateType() | t.TimeType()):
            return True
        case t.TimeType(), t.TimeType():
            return True
        case t.YearMonthIntervalType(), t.YearMonthIntervalType():
            return True
        case t.DayTimeIntervalType(), t.DayTimeIntervalType():
            return True
        case t.ArrayType(), t.ArrayType():
            return is_assignable(source.element, target.element)
        case t.MultisetType(), t.MultisetType():
            return is_assignable(source.element, target.element)
        case t.MapType(), t.MapType():
            return is_assignable(source.key, target.key) and is_assignable(source.value, target.value)
        case t.RowType(), t.RowType():
            return len(source) == len(target) and all(map(is_assignable, source.types, target.types))
    return False
