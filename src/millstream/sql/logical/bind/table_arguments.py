"""Arguments of functions that take a table and give one: windows, changelogs.

Promises: an argument that a function does not have, and a table that is none, are refused where they stand.
Does not know: what any of the functions does."""

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


def arguments_of(call: s.Call, parameters: Sequence[str]) -> dict[str, s.Expr]:
    """What a call gives for its parameters, by their names in capitals."""
    names = [each.upper() for each in parameters]
    found: dict[str, s.Expr] = {}
    for place, arg in enumerate(call.args):
        if isinstance(arg, s.NamedArgument):
            if arg.name.upper() not in names:
                message = f"{call.name} has no parameter '{arg.name}'"
                raise SqlValidationError(message, at=arg.at, hint=nearest(arg.name, parameters))
            found[arg.name.upper()] = arg.value
        elif place < len(names):
            found[names[place]] = arg
        else:
            message = f"{call.name} takes {len(names)} arguments at most"
            raise SqlValidationError(message, at=arg.at)
    return found


def table_of(
    queries: QueryBinder, call: s.Call, given: s.Expr | None, bind: BindSource, usage: str
) -> tuple[l.Plan, tuple[int, ...]]:
    """The table that a call is given, and its columns of PARTITION BY; `usage` is how it should be written."""
    if isinstance(given, s.Subquery):
        given = s.TableArgument(given.at, s.DerivedTable(given.at, given.query))
    if not isinstance(given, s.TableArgument):
        message = f"the first argument of {call.name} must be a table"
        raise SqlValidationError(message, at=call.at, hint=f"write {call.name}({usage})")
    plan, scope = bind(queries, given.table, ())
    columns = ExpressionBinder(queries.session, scope, clause="in PARTITION BY")
    found = [columns.bind(each) for each in given.partition]
    return plan, tuple(each.index for each in found if isinstance(each, Ref))
