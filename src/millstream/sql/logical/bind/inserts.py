"""Binding of INSERT: a query whose columns get the types and the order of the table's.

Promises: a column that is missing, named twice or of another type is refused with the name of the table.
Does not know: connectors."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Convert, Expression, Lit
from millstream.sql.functions.casts import can_cast
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session, coerced
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
        The query with the constants as further columns, and the columns of the table that it is for.

    """
    given = {name: expr for name, expr in partition if expr is not None}
    for name, _ in partition:
        if name not in table.partitions:
            message = f"PARTITION names '{name}', which the table is not partitioned by"
            raise SqlValidationError(message, hint=nearest(name, table.partitions))
    if not given:
        return query, columns
    binder = ExpressionBinder(session, Scope(), clause="in PARTITION")
    kinds = {each.name: each.type for each in table.columns}
    values = [_cast(binder.bind(expr), kinds[name].nullable()) for name, expr in given.items()]
    chosen = list(columns) or [c.name for c in table.columns if c.is_persisted and c.name not in given]
    made = l.project(query, [*query.refs(), *values], [*query.schema.names, *given])
    return made, [*chosen, *given]


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
    """Bind an INSERT: a sink whose input has the columns of the table, in their types."""
    target = [each for each in table.columns if each.is_persisted]
    chosen = list(columns) or [each.name for each in target]
    if len(chosen) != len(query.schema):
        have = ", ".join(f"{f.name} {f.data_type}" for f in query.schema.fields)
        want = ", ".join(f"{each.name} {each.type}" for each in target)
        target_text = f"table '{'.'.join(name)}' wants {len(chosen)} ({want})"
        message = f"the query has {len(query.schema)} columns ({have}), {target_text}"
        raise SqlValidationError(message)
    _check_columns(chosen, [each.name for each in target], name)
    exprs: list[Expression] = []
    for each in target:
        if each.name not in chosen:
            if not each.type.null or each.name in table.primary_key:
                message = f"column '{each.name}' of '{'.'.join(name)}' is NOT NULL, and has no value in the INSERT"
                raise SqlValidationError(message)
            exprs.append(Lit(each.type.nullable(), None))
            continue
        place = chosen.index(each.name)
        ref = query.refs()[place]
        if not _assignable(ref.type, each.type):
            source = f"column '{query.schema.names[place]}' is {ref.type}"
            message = f"{source}, but '{each.name}' of '{'.'.join(name)}' is {each.type}"
            raise SqlValidationError(message, hint=f"CAST it to {each.type.nullable()}")
        exprs.append(_brought(ref, each.type.with_null(ref.type.null)))
    made = l.project(query, exprs, [each.name for each in target])
    return l.Sink(made.schema, made, table, name, hints, overwrite, conflict)


def _check_columns(chosen: Sequence[str], target: Sequence[str], table: tuple[str, ...]) -> None:
    """Refuse an INSERT into columns that are not there, or into one twice."""
    for place, column in enumerate(chosen):
        if column not in target:
            message = f"'{'.'.join(table)}' has no column '{column}' that can be written to"
            raise SqlValidationError(message, hint=nearest(column, target))
        if column in chosen[:place]:
            message = f"column '{column}' is written to twice"
            raise SqlValidationError(message)


def _cast(value: Expression, kind: t.DataType) -> Expression:
    """The value of a partition in the type of its column, as CAST would bring it there."""
    return Convert(kind, value) if not value.type.same(kind) and can_cast(value.type, kind) else value


def _brought(ref: Expression, kind: t.DataType) -> Expression:
    """A column in the type of the table's; text that may be longer than that is cut, as a cast does."""
    if isinstance(kind, t.VarCharType) and isinstance(ref.type, t.CharType | t.VarCharType):
        return Convert(kind, ref) if ref.type.length > kind.length else ref
    return coerced(ref, kind)


def _assignable(source: t.DataType, target: t.DataType) -> bool:
    """Whether INSERT may bring one type to the other without being told."""
    if source.same(target) or isinstance(source, t.NullType):
        return True
    match source, target:
        case t.NumericType(), t.NumericType():
            return True
        case (t.CharType(), t.CharType()) | ((t.CharType() | t.VarCharType()), t.VarCharType()):
            return True
        case (t.BinaryType(), t.BinaryType()) | ((t.BinaryType() | t.VarBinaryType()), t.VarBinaryType()):
            return True
        case ((t.TimestampType() | t.LocalZonedTimestampType()), (t.TimestampType() | t.LocalZonedTimestampType())):
            return True
        case t.DateType(), t.TimestampType():
            return True
        case t.TimeType(), t.TimeType():
            return True
        case t.YearMonthIntervalType(), t.YearMonthIntervalType():
            return True
        case t.DayTimeIntervalType(), t.DayTimeIntervalType():
            return True
        case t.ArrayType(), t.ArrayType():
            return _assignable(source.element, target.element)
        case t.MultisetType(), t.MultisetType():
            return _assignable(source.element, target.element)
        case t.MapType(), t.MapType():
            return _assignable(source.key, target.key) and _assignable(source.value, target.value)
        case t.RowType(), t.RowType():
            return len(source) == len(target) and all(map(_assignable, source.types, target.types))
    return False
