"""Binding of calls of process table functions.

Promises: Flink's arguments: tables with PARTITION BY, constants, `on_time` and `uid`, by name or by position; what the
function's signature does not allow is refused with the position in the statement.
Does not know: how the function is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Expression, Lit, find_references
from millstream.sql.functions import process_functions as p
from millstream.sql.functions.casts import can_cast
from millstream.sql.functions.process_functions import ArgumentTrait
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, coerce
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.logical.bind.table_arguments import BindSource, bind_table_argument, read_arguments
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder

ROWTIME_COLUMN = "rowtime"


def find_process_function(queries: QueryBinder, call: s.Call) -> UserFunction | None:
    """Return the process table function that a call names; None if it names something else."""
    user: Any = call.user or queries.session.catalogs.function(call.path or (call.name,))
    return user if isinstance(user, UserFunction) and user.kind == p.PROCESS else None


def bind_process_table(queries: QueryBinder, user: UserFunction, call: s.Call, bind: BindSource) -> l.Plan:
    """Bind f(input => TABLE t PARTITION BY k, scalar => 1, on_time => DESCRIPTOR(ts), uid => 'name')."""
    signature = user.signature
    assert signature is not None
    names = [*(argument.name for argument in signature.arguments), *p.IMPLICIT_ARGUMENTS]
    arguments = {
        name: value
        for name, value in read_arguments(call, names).items()
        if not (isinstance(value, s.Symbol) and value.word == "DEFAULT")
    }
    plans: list[l.Plan] = []
    partitions: list[tuple[int, ...]] = []
    scalars: list[Expression] = []
    for argument in signature.arguments:
        value = arguments.get(argument.name.upper())
        if argument.is_table:
            usage = f"{argument.name} => TABLE t{' PARTITION BY k' if argument.is_set else ''}"
            plan, partition = bind_table_argument(queries, call, value, bind, usage)
            _check_partition(call, argument, partition)
            plans.append(plan)
            partitions.append(partition)
        else:
            scalars.append(_bind_scalar(queries, call, argument, value))
    _check_keys(call, plans, partitions)
    times = _find_times(call, signature, plans, arguments.get("ON_TIME"))
    uid = _read_uid(call, arguments.get("UID"))
    schema, passes = _create_schema(user, signature, plans, partitions, times)
    return l.ProcessTable(schema, tuple(plans), user, tuple(scalars), tuple(partitions), times, passes, uid)


def _check_partition(call: s.Call, argument: p.Argument, partition: tuple[int, ...]) -> None:
    is_needed = argument.is_set and ArgumentTrait.OPTIONAL_PARTITION_BY not in argument.traits
    if is_needed and not partition:
        message = f"the table argument '{argument.name}' of {call.name} needs PARTITION BY"
        raise SqlValidationError(message, at=call.at, hint=f"write {argument.name} => TABLE t PARTITION BY column")
    if partition and not argument.is_set:
        message = f"the table argument '{argument.name}' of {call.name} has row semantics and takes no PARTITION BY"
        raise SqlValidationError(message, at=call.at)


def _check_keys(call: s.Call, plans: list[l.Plan], partitions: list[tuple[int, ...]]) -> None:
    key_types = [
        [_find_key_type(plan.schema.types[i]) for i in partition]
        for plan, partition in zip(plans, partitions, strict=True)
    ]
    for other in key_types[1:]:
        if other != key_types[0]:
            texts = [", ".join(map(str, types)) or "nothing" for types in (key_types[0], other)]
            message = (
                f"the tables of {call.name} must be partitioned by equal types, not by {texts[0]} and by {texts[1]}"
            )
            raise SqlValidationError(message, at=call.at, hint="cast the columns to equal types in a subquery")


def _find_key_type(data_type: t.DataType) -> t.DataType:
    """Return the type that decides about the partition: the length of a text does not matter."""
    is_text = isinstance(data_type, t.CharType | t.VarCharType)
    return t.STRING if is_text else t.strip_time_attribute(data_type).nullable()


def _bind_scalar(queries: QueryBinder, call: s.Call, argument: p.Argument, value: s.Expr | None) -> Expression:
    assert argument.data_type is not None
    if value is None:
        if not argument.is_optional:
            message = f"{call.name} needs the argument '{argument.name}'"
            raise SqlValidationError(message, at=call.at, hint=f"write {argument.name} => value")
        return Lit(argument.data_type, argument.default)
    bound = ExpressionBinder(queries.session, Scope(), clause=f"as argument '{argument.name}'").bind(value)
    if find_references(bound):
        message = f"the argument '{argument.name}' of {call.name} must be a constant"
        raise SqlValidationError(message, at=value.at)
    if not can_cast(bound.type, argument.data_type):
        message = f"the argument '{argument.name}' of {call.name} is {argument.data_type}, not {bound.type}"
        raise SqlValidationError(message, at=value.at)
    return coerce(bound, argument.data_type)


def _find_times(
    call: s.Call, signature: p.Signature, plans: list[l.Plan], value: s.Expr | None
) -> tuple[int | None, ...]:
    """Return the column of `on_time` of each table."""
    required = [table.name for table in signature.tables if ArgumentTrait.REQUIRE_ON_TIME in table.traits]
    if value is None:
        if required:
            message = f"{call.name} needs the argument 'on_time' for its table '{required[0]}'"
            raise SqlValidationError(message, at=call.at, hint="write on_time => DESCRIPTOR(column)")
        return (None,) * len(plans)
    columns = value.columns if isinstance(value, s.Descriptor) else ()
    if not columns:
        message = f"the argument on_time of {call.name} must name columns"
        raise SqlValidationError(message, at=value.at, hint="write on_time => DESCRIPTOR(column)")
    times: list[int | None] = []
    for plan in plans:
        time_columns = [i for i, name in enumerate(plan.schema.names) if name in columns]
        times.append(
            time_columns[0]
            if time_columns and t.get_time_attribute(plan.schema.types[time_columns[0]]) == t.ROWTIME
            else None
        )
    known = {plan.schema.names[i] for plan, i in zip(plans, times, strict=True) if i is not None}
    for column in columns:
        if column not in known:
            candidates = [
                name
                for plan in plans
                for name, data_type in zip(plan.schema.names, plan.schema.types, strict=True)
                if t.get_time_attribute(data_type) == t.ROWTIME
            ]
            message = f"on_time names '{column}', which is not an event-time attribute of a table of {call.name}"
            hint = nearest(column, candidates) or "declare WATERMARK FOR the column"
            raise SqlValidationError(message, at=value.at, hint=hint)
    return tuple(times)


def _read_uid(call: s.Call, value: s.Expr | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, s.Literal) or not isinstance(value.value, str) or not value.value:
        message = f"the argument uid of {call.name} must be a string"
        raise SqlValidationError(message, at=value.at, hint="write uid => 'name'")
    return value.value


def _create_schema(
    user: UserFunction,
    signature: p.Signature,
    plans: list[l.Plan],
    partitions: list[tuple[int, ...]],
    times: tuple[int | None, ...],
) -> tuple[t.RowType, bool]:
    """Return the output columns, and whether all columns of the input come first: keys or input, results, rowtime."""
    passes = any(ArgumentTrait.PASS_COLUMNS_THROUGH in table.traits for table in signature.tables)
    sides = [(0, i) for i in range(len(plans[0].schema))] if passes else []
    if not passes:
        sides = [(side, i) for side, partition in enumerate(partitions) for i in partition]
    names = [plans[side].schema.names[i] for side, i in sides]
    data_types = [t.strip_time_attribute(plans[side].schema.types[i]) for side, i in sides]
    assert isinstance(user.result_type, t.RowType)
    names += user.result_type.names
    data_types += user.result_type.types
    time = next((plan.schema.types[i] for plan, i in zip(plans, times, strict=True) if i is not None), None)
    if time is not None:
        names.append(ROWTIME_COLUMN)
        data_types.append(time)
    return t.row_of(l.make_names_unique(names), data_types, null=False), passes
