"""Arguments of functions that take a table and return one: window functions and changelog functions.

Promises: unknown parameters, and arguments that are not tables, are refused with the position in the statement.
Does not know: what the functions do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.syntax import tree as s

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder

BindSource = Callable[["QueryBinder", s.Source, tuple[s.Hint, ...]], tuple[l.Plan, Scope]]


def read_arguments(call: s.Call, parameters: Sequence[str]) -> dict[str, s.Expr]:
    """Return the arguments of a call by the upper-case names of its parameters."""
    names = [parameter.upper() for parameter in parameters]
    arguments: dict[str, s.Expr] = {}
    for index, arg in enumerate(call.args):
        if isinstance(arg, s.NamedArgument):
            if arg.name.upper() not in names:
                message = f"{call.name} has no parameter '{arg.name}'"
                raise SqlValidationError(message, at=arg.at, hint=nearest(arg.name, parameters))
            arguments[arg.name.upper()] = arg.value
        elif index < len(names):
            arguments[names[index]] = arg
        else:
            message = f"{call.name} takes {len(names)} arguments at most"
            raise SqlValidationError(message, at=arg.at)
    return arguments


def bind_table_argument(
    queries: QueryBinder, call: s.Call, argument: s.Expr | None, bind: BindSource, usage: str
) -> tuple[l.Plan, tuple[int, ...]]:
    """Bind the table argument of a call and its PARTITION BY columns; `usage` is part of the hint."""
    if isinstance(argument, s.Subquery):
        argument = s.TableArgument(argument.at, s.DerivedTable(argument.at, argument.query))
    if not isinstance(argument, s.TableArgument):
        message = f"the first argument of {call.name} must be a table"
        raise SqlValidationError(message, at=call.at, hint=f"write {call.name}({usage})")
    plan, scope = bind(queries, argument.table, ())
    columns = ExpressionBinder(queries.session, scope, clause="in PARTITION BY")
    partition = [columns.bind(column) for column in argument.partition]
    return plan, tuple(column.index for column in partition if isinstance(column, Ref))
