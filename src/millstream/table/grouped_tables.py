"""Tables on their way to an aggregate: grouped, in windows of time, in frames of rows.

Promises: PyFlink's classes and methods; each ends in the same tree that SQL would.
Does not know: how groups are computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.errors import UserError
from millstream.sql.errors import SqlValidationError
from millstream.sql.functions.user_functions import AGGREGATE, TABLE_AGGREGATE, UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression import Expression
from millstream.table.expression.terms import node
from millstream.table.window import GroupWindow, OverWindow

if TYPE_CHECKING:
    from millstream.table.table import Table

Item = tuple[s.Expr, str | None]
_RESULT = "$agg"


def _key(given: Any) -> s.Expr:
    return node(Expression(given) if isinstance(given, str) else given)


def rewritten(expr: s.Expr, change: Callable[[s.Expr], s.Expr | None]) -> s.Expr:
    """The expression with everything replaced for which `change` has an answer, from the top down."""
    found = change(expr)
    if found is not None:
        return found
    more = {}
    for field in dataclasses.fields(expr):
        before = getattr(expr, field.name)
        after = _part(before, change)
        if after is not before:
            more[field.name] = after
    return replace(expr, **more) if more else expr


def _part(value: Any, change: Callable[[s.Expr], s.Expr | None]) -> Any:
    if isinstance(value, s.Expr):
        return rewritten(value, change)
    if isinstance(value, tuple):
        made = tuple(_part(each, change) for each in value)
        return value if all(one is other for one, other in zip(made, value, strict=True)) else made
    return value


class GroupedTable:
    """Groups of rows."""

    def __init__(self, table: Table, fields: Sequence[Any]) -> None:
        self._table, self._fields = table, fields

    def _grouped(self, items: tuple[Item, ...]) -> Table:
        """Groups as rows of keys and aggregates."""
        named = {
            given._aliases[0]: node(given) for given in self._fields if isinstance(given, Expression) and given._aliases
        }
        group = tuple(s.GroupItem(0, "PLAIN", ((_key(given),),)) for given in self._fields)
        shown = tuple(
            (named[e.parts[0]], n or e.parts[0]) if isinstance(e, s.Name) and e.parts[0] in named else (e, n)
            for e, n in items
        )
        return self._table._bound(s.Select(0, shown, self._table._source(), group=group))

    def _keys(self) -> list[Item]:
        """The columns that groups are made by, with the names they go on under."""
        return [
            (_key(given), given._aliases[0] if isinstance(given, Expression) and given._aliases else None)
            for given in self._fields
        ]

    def _from_rows(self, fields: tuple[Item, ...]) -> tuple[list[Item], tuple[Item, ...]]:
        """What else of the groups the fields need as columns, and the fields over those."""
        return [], fields

    def select(self, *fields: Any) -> Table:
        """Keys and aggregates."""
        return self._grouped(self._table._items(fields))

    def aggregate(self, func: Any) -> AggregatedTable:
        """Each group becomes one row."""
        return AggregatedTable(self, func)

    def flat_aggregate(self, func: Any) -> FlatAggregateTable:
        """Each group becomes several rows."""
        return FlatAggregateTable(self, func)


class GroupWindowedTable:
    """Rows in windows of time."""

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table, self._window = table, window

    def group_by(self, *fields: Any) -> WindowGroupedTable:
        """Group by the window and perhaps by columns."""
        return WindowGroupedTable(self._table, self._window, fields)


class WindowGroupedTable(GroupedTable):
    """Groups of rows in windows of time."""

    def __init__(self, table: Table, window: GroupWindow, fields: Sequence[Any]) -> None:
        keys = [given for given in fields if _key(given) != s.Name(0, (window.name,))]
        if len(keys) == len(fields):
            message = f"group_by must name the window '{window.name}'"
            raise SqlValidationError(message)
        super().__init__(table, keys)
        self._window = window

    def _grouped(self, items: tuple[Item, ...]) -> Table:
        named = {given._aliases[0]: node(given) for given in self._fields if getattr(given, "_aliases", ())}
        group = (
            s.GroupItem(0, "PLAIN", ((self._window.call(),),)),
            *(s.GroupItem(0, "PLAIN", ((_key(given),),)) for given in self._fields),
        )

        def change(expr: s.Expr) -> s.Expr | None:
            part = self._part_of(expr)
            if part is not None:
                return s.Call(0, f"{self._window.kind}_{part}", ())
            return named.get(expr.parts[0]) if isinstance(expr, s.Name) and len(expr.parts) == 1 else None

        shown = tuple(
            (rewritten(e, change), n or (e.parts[0] if isinstance(e, s.Name) and e.parts[0] in named else None))
            for e, n in items
        )
        return self._table._bound(s.Select(0, shown, self._table._source(), group=group))

    def _part_of(self, expr: s.Expr) -> str | None:
        """START, END, ROWTIME or PROCTIME where an expression is that part of the window."""
        match expr:
            case s.FieldAccess(operand=s.Name(parts=(owner,)), name=part) if owner == self._window.name:
                return part.upper()
            case s.Name(parts=(owner, part)) if owner == self._window.name:
                return part.upper()
        return None

    def _from_rows(self, fields: tuple[Item, ...]) -> tuple[list[Item], tuple[Item, ...]]:
        parts: dict[str, Item] = {}

        def change(expr: s.Expr) -> s.Expr | None:
            part = self._part_of(expr)
            if part is None:
                return None
            parts[part] = (expr, f"$w_{part}")
            return s.Name(0, (f"$w_{part}",))

        made = tuple((rewritten(e, change), n) for e, n in fields)
        return list(parts.values()), made


class AggregatedTable:
    """Groups that became rows."""

    def __init__(self, groups: GroupedTable, func: Any) -> None:
        self._groups, self._func = groups, func

    _kind = AGGREGATE

    def _call(self) -> tuple[s.Call, tuple[str, ...]]:
        """The call of the aggregate over the columns or the whole row, and the names of its results."""
        table = self._groups._table
        call, aliases = table._called(self._func)
        user = call.user or table._t_env._session().catalogs.function(call.path or (call.name,))
        if isinstance(user, UserFunction) and user.kind != self._kind:
            message = f"'{user.name}' is a {user.kind} function, not a {self._kind} one"
            raise UserError(message)
        if user is None and self._kind == TABLE_AGGREGATE:
            message = f"'{call.name}' is no table aggregate function"
            raise UserError(message, hint="make one of a TableAggregateFunction with udtaf()")
        return table._with_row(replace(call, user=user) if isinstance(user, UserFunction) else call), aliases

    def _rows(self, fields: tuple[Item, ...]) -> tuple[Table, tuple[Item, ...], tuple[str, ...]]:
        """Groups as rows of keys and one result, the fields over those, and the names of the results."""
        call, aliases = self._call()
        more, fields = self._groups._from_rows(fields)
        made = self._groups._grouped((*self._groups._keys(), *more, (call, _RESULT)))
        return made, fields, aliases

    def select(self, *fields: Any) -> Table:
        """Keys and results."""
        made, items, aliases = self._rows(self._groups._table._items(fields))
        *heads, _ = made._plan.schema.names
        kind = made._plan.schema.types[-1]
        result: tuple[Item, ...]
        if isinstance(kind, t.RowType):
            names = _named(aliases, kind.names)
            result = tuple(
                (s.FieldAccess(0, s.Name(0, (_RESULT,)), n), a) for n, a in zip(kind.names, names, strict=True)
            )
        else:
            result = ((s.Name(0, (_RESULT,)), aliases[0] if aliases else "_c0"),)
        kept = tuple((s.Name(0, (n,)), n) for n in heads)
        flat = made._bound(s.Select(0, (*kept, *result), made._source()))
        return flat._bound(s.Select(0, items, flat._source()))


def _named(aliases: tuple[str, ...], names: Sequence[str]) -> Sequence[str]:
    if aliases and len(aliases) != len(names):
        message = f"{len(aliases)} names for {len(names)} results ({', '.join(names)})"
        raise SqlValidationError(message)
    return aliases or names


class FlatAggregateTable(AggregatedTable):
    """Groups that became several rows."""

    _kind = TABLE_AGGREGATE

    def select(self, *fields: Any) -> Table:
        """Keys and results."""
        made, items, aliases = self._rows(self._groups._table._items(fields))
        width = len(made._plan.schema) - 1
        call = s.Call(0, "UNNEST", (s.Name(0, (_RESULT,)),))
        joined = s.Join(0, "CROSS", made._source(), s.TableFunctionCall(0, call, "$t"))
        both = made._bound(s.Select(0, ((s.Star(0), None),), joined))._plan
        element = made._plan.schema.types[-1]
        assert isinstance(element, t.ArrayType)
        assert isinstance(element.element, t.RowType)
        names = _named(aliases, element.element.names)
        places = [*range(width), *range(width + 1, len(both.schema))]
        refs = both.refs()
        plan = l.project(both, [refs[i] for i in places], [*made._plan.schema.names[:-1], *names])
        flat = type(made)(plan, made._t_env)
        return flat._bound(s.Select(0, items, flat._source()))


class OverWindowedTable:
    """Frames of rows, by name."""

    def __init__(self, table: Table, over_windows: Sequence[OverWindow]) -> None:
        self._table, self._windows = table, over_windows

    def select(self, *fields: Any) -> Table:
        """Columns and aggregates over frames."""
        windows = tuple((each.name, each.spec()) for each in self._windows)
        return self._table._bound(s.Select(0, self._table._items(fields), self._table._source(), windows=windows))
