"""Tables that wait for their aggregates: grouped tables, windowed tables, tables with over windows.

Promises: PyFlink's classes and methods. Each select builds the syntax tree of the equivalent SQL.
Does not know: how groups are computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.errors import InvalidArgumentType
from millstream.sql.errors import SqlValidationError
from millstream.sql.functions.user_functions import AGGREGATE, TABLE_AGGREGATE, UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.column_names import Item
from millstream.table.expression import Expression
from millstream.table.expression.terms import to_node
from millstream.table.window import GroupWindow, OverWindow

if TYPE_CHECKING:
    from millstream.table.table import Table

_RESULT = "$agg"
PROPERTY_PREFIX = "$w_"
"""The names of columns that hold properties of a window, such as its start, begin with this."""


def _create_key_expression(field: Any) -> s.Expr:
    return to_node(Expression(field) if isinstance(field, str) else field)


def list_items(fields: Sequence[Any]) -> list[Item]:
    """Return the expressions of fields with their aliases."""
    return [
        (_create_key_expression(field), field._aliases[0] if isinstance(field, Expression) and field._aliases else None)
        for field in fields
    ]


def rewrite(expr: s.Expr, change: Callable[[s.Expr], s.Expr | None]) -> s.Expr:
    """Replace each expression for which `change` returns another one, from the root down."""
    replacement = change(expr)
    if replacement is not None:
        return replacement
    changed_fields = {}
    for field in dataclasses.fields(expr):
        before = getattr(expr, field.name)
        after = _rewrite_value(before, change)
        if after is not before:
            changed_fields[field.name] = after
    return replace(expr, **changed_fields) if changed_fields else expr


def _rewrite_value(value: Any, change: Callable[[s.Expr], s.Expr | None]) -> Any:
    if isinstance(value, s.Expr):
        return rewrite(value, change)
    if isinstance(value, tuple):
        changed = tuple(_rewrite_value(item, change) for item in value)
        return value if all(after is before for after, before in zip(changed, value, strict=True)) else changed
    return value


class GroupedTable:
    """A table whose rows are grouped by keys: the result of `Table.group_by`.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> from millstream.table.expressions import col
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> orders = t_env.from_elements([("ann", 3), ("ann", 4)], ["name", "amount"])
        >>> totals = orders.group_by(col("name")).select(col("name"), col("amount").sum.alias("total"))

    """

    def __init__(self, table: Table, fields: Sequence[Any]) -> None:
        self._table, self._fields = table, fields

    def _group(self, items: tuple[Item, ...]) -> Table:
        """Return a table with one row for each group: keys and aggregates."""
        keys_by_alias = {
            field._aliases[0]: to_node(field)
            for field in self._fields
            if isinstance(field, Expression) and field._aliases
        }
        group = tuple(s.GroupItem(0, "PLAIN", ((_create_key_expression(field),),)) for field in self._fields)
        selected = tuple(
            (keys_by_alias[e.parts[0]], n or e.parts[0])
            if isinstance(e, s.Name) and e.parts[0] in keys_by_alias
            else (e, n)
            for e, n in items
        )
        return self._table._bind(s.Select(0, selected, self._table._source(), group=group))

    def _keys(self) -> list[Item]:
        """Return the grouping keys, with the names of their columns in the result."""
        return list_items(self._fields)

    def _replace_window_properties(self, fields: tuple[Item, ...]) -> tuple[list[Item], tuple[Item, ...]]:
        """Replace the window properties in the fields by references to columns; return these columns and the fields."""
        return [], fields

    def select(self, *fields: Any) -> Table:
        """Compute one row for each group, like SELECT with GROUP BY.

        Args:
            *fields: Grouping keys and aggregates, as in `col("amount").sum`.

        Returns:
            A table with one column for each expression.

        """
        return self._group(self._table._select_items(fields, self._is_aggregate))

    def _is_aggregate(self, expr: s.Expr) -> bool:
        """Return whether an expression is an aggregate, or a property of the window."""
        return self._table._is_aggregate(expr)

    def aggregate(self, func: Any) -> AggregatedTable:
        """Aggregate each group with an aggregate function.

        Args:
            func: A function of `udaf`, or a call of it with columns.

        Returns:
            The aggregated table; `select` returns its result.

        """
        return AggregatedTable(self, func)

    def flat_aggregate(self, func: Any) -> FlatAggregateTable:
        """Aggregate each group with a table aggregate function, which returns any number of rows.

        Args:
            func: A function of `udtaf`, or a call of it with columns.

        Returns:
            The aggregated table; `select` returns its result.

        """
        return FlatAggregateTable(self, func)


class GroupWindowedTable:
    """A table whose rows are assigned to group windows: the result of `Table.window`.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> from millstream.table.expressions import col, lit
        >>> from millstream.table.window import Tumble
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> orders = t_env.sql_query("SELECT 1 AS amount, TIMESTAMP '2024-05-01 10:00:00' AS ts")
        >>> windowed = orders.window(Tumble.over(lit(10).minutes).on(col("ts")).alias("w"))
        >>> totals = windowed.group_by(col("w")).select(col("w").start, col("amount").sum.alias("total"))

    """

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table, self._window = table, window

    def group_by(self, *fields: Any) -> WindowGroupedTable:
        """Group the rows by the window, and by further keys.

        Args:
            *fields: The alias of the window, and columns or expressions.

        Returns:
            The groups, for `select`, `aggregate` or `flat_aggregate`.

        Raises:
            SqlValidationError: If the alias of the window is missing.

        """
        return WindowGroupedTable(self._table, self._window, fields)


class WindowGroupedTable(GroupedTable):
    """A table whose rows are grouped by a window and by keys.

    In `select`, `col("w").start`, `col("w").end` and `col("w").rowtime` are properties of the window with alias `w`.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> from millstream.table.expressions import col, lit
        >>> from millstream.table.window import Tumble
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> orders = t_env.sql_query("SELECT 1 AS amount, TIMESTAMP '2024-05-01 10:00:00' AS ts")
        >>> windowed = orders.window(Tumble.over(lit(10).minutes).on(col("ts")).alias("w"))
        >>> totals = windowed.group_by(col("w")).select(col("w").end, col("amount").max.alias("largest"))

    """

    def __init__(self, table: Table, window: GroupWindow, fields: Sequence[Any]) -> None:
        keys = [field for field in fields if _create_key_expression(field) != s.Name(0, (window.name,))]
        if len(keys) == len(fields):
            message = f"group_by must name the window '{window.name}'"
            raise SqlValidationError(message, hint=f"write group_by(col('{window.name}'), ...)")
        super().__init__(table, keys)
        self._window = window

    def _group(self, items: tuple[Item, ...]) -> Table:
        keys_by_alias = {field._aliases[0]: to_node(field) for field in self._fields if getattr(field, "_aliases", ())}
        group = (
            s.GroupItem(0, "PLAIN", ((self._window.call(),),)),
            *(s.GroupItem(0, "PLAIN", ((_create_key_expression(field),),)) for field in self._fields),
        )

        def change(expr: s.Expr) -> s.Expr | None:
            window_property = self._window_property(expr)
            if window_property is not None:
                return s.Call(0, f"{self._window.function_name}_{window_property}", ())
            return keys_by_alias.get(expr.parts[0]) if isinstance(expr, s.Name) and len(expr.parts) == 1 else None

        selected = tuple(
            (rewrite(e, change), n or (e.parts[0] if isinstance(e, s.Name) and e.parts[0] in keys_by_alias else None))
            for e, n in items
        )
        return self._table._bind(s.Select(0, selected, self._table._source(), group=group))

    def _is_aggregate(self, expr: s.Expr) -> bool:
        return super()._is_aggregate(expr) or self._window_property(expr) is not None

    def _window_property(self, expr: s.Expr) -> str | None:
        """Return START, END, ROWTIME or PROCTIME if the expression is this property of the window."""
        match expr:
            case s.FieldAccess(operand=s.Name(parts=(owner,)), name=str(name)) if owner == self._window.name:
                return name.upper()
            case s.Name(parts=(owner, name)) if owner == self._window.name:
                return name.upper()
        return None

    def _replace_window_properties(self, fields: tuple[Item, ...]) -> tuple[list[Item], tuple[Item, ...]]:
        property_columns: dict[str, Item] = {}

        def change(expr: s.Expr) -> s.Expr | None:
            window_property = self._window_property(expr)
            if window_property is None:
                return None
            property_columns[window_property] = (expr, f"{PROPERTY_PREFIX}{window_property}")
            return s.Name(0, (f"{PROPERTY_PREFIX}{window_property}",))

        rewritten_fields = tuple((rewrite(e, change), n) for e, n in fields)
        return list(property_columns.values()), rewritten_fields


class AggregatedTable:
    """A grouped table with an aggregate function: the result of `aggregate`.

    Example:
        >>> from millstream.table import DataTypes, EnvironmentSettings, TableEnvironment
        >>> from millstream.table.expressions import col
        >>> from millstream.table.udf import udaf
        >>> @udaf(result_type=DataTypes.BIGINT(), func_type="pandas")
        ... def total(amounts):
        ...     return amounts.sum()
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> orders = t_env.from_elements([("ann", 3), ("ann", 4)], ["name", "amount"])
        >>> aggregated = orders.group_by(col("name")).aggregate(total(col("amount")).alias("total"))
        >>> totals = aggregated.select(col("name"), col("total"))

    """

    def __init__(self, groups: GroupedTable, func: Any) -> None:
        self._groups, self._func = groups, func

    _function_kind = AGGREGATE

    def _call(self) -> tuple[s.Call, tuple[str, ...]]:
        """Return the call of the function with columns or with the whole row, and the names of its result columns."""
        table = self._groups._table
        call, aliases = table._call_of(self._func)
        user = call.user or table._t_env._session().catalogs.function(call.path or (call.name,))
        if isinstance(user, UserFunction) and user.kind != self._function_kind:
            message = f"'{user.name}' is a {user.kind} function, not a {self._function_kind} one"
            raise InvalidArgumentType(message)
        if user is None and self._function_kind == TABLE_AGGREGATE:
            message = f"'{call.name}' is not a table aggregate function"
            raise InvalidArgumentType(message, hint="wrap a TableAggregateFunction with udtaf()")
        return table._pass_row_as_argument(
            replace(call, user=user) if isinstance(user, UserFunction) else call
        ), aliases

    def _rows(self, fields: tuple[Item, ...]) -> tuple[Table, tuple[Item, ...], tuple[str, ...]]:
        """Return a table of keys and one result for each group, the fields over it, and the names of the results."""
        call, aliases = self._call()
        property_columns, fields = self._groups._replace_window_properties(fields)
        grouped = self._groups._group((*self._groups._keys(), *property_columns, (call, _RESULT)))
        return grouped, fields, aliases

    def select(self, *fields: Any) -> Table:
        """Return keys and results of the aggregate function.

        Args:
            *fields: Grouping keys and result columns. Result columns have the alias of the call, or the field names of
                the result type.

        Returns:
            A table with one row for each group.

        """
        grouped, items, aliases = self._rows(tuple(list_items(fields)))
        *key_names, _ = grouped._plan.schema.names
        result_type = grouped._plan.schema.types[-1]
        result: tuple[Item, ...]
        if isinstance(result_type, t.RowType):
            names = _find_result_names(aliases, result_type.names)
            result = tuple(
                (s.FieldAccess(0, s.Name(0, (_RESULT,)), n), a) for n, a in zip(result_type.names, names, strict=True)
            )
        else:
            result = ((s.Name(0, (_RESULT,)), aliases[0] if aliases else "_c0"),)
        keys = tuple((s.Name(0, (n,)), n) for n in key_names)
        flat = grouped._bind(s.Select(0, (*keys, *result), grouped._source()))
        return flat._bind(s.Select(0, flat._expand_items(items), flat._source()))


def _find_result_names(aliases: tuple[str, ...], names: Sequence[str]) -> Sequence[str]:
    if aliases and len(aliases) != len(names):
        message = f"the function has {len(names)} results ({', '.join(names)}), but alias() has {len(aliases)} names"
        raise SqlValidationError(message)
    return aliases or names


class FlatAggregateTable(AggregatedTable):
    """A grouped table with a table aggregate function: the result of `flat_aggregate`.

    Example:
        >>> from millstream.table import DataTypes, EnvironmentSettings, TableAggregateFunction, TableEnvironment
        >>> from millstream.table.expressions import col
        >>> from millstream.table.udf import udtaf
        >>> class TopTwo(TableAggregateFunction):
        ...     def create_accumulator(self):
        ...         return []
        ...     def accumulate(self, accumulator, amount):
        ...         accumulator[:] = sorted([*accumulator, amount], reverse=True)[:2]
        ...     def emit_value(self, accumulator):
        ...         yield from accumulator
        >>> top_two = udtaf(TopTwo(), result_type=DataTypes.ROW([DataTypes.FIELD("amount", DataTypes.BIGINT())]))
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> orders = t_env.from_elements([("ann", 3), ("ann", 4)], ["name", "amount"])
        >>> largest = orders.group_by(col("name")).flat_aggregate(top_two(col("amount")).alias("largest"))
        >>> result = largest.select(col("name"), col("largest"))

    """

    _function_kind = TABLE_AGGREGATE

    def select(self, *fields: Any) -> Table:
        """Return keys and results of the table aggregate function.

        Args:
            *fields: Grouping keys and result columns. Result columns have the aliases of the call, or the field names
                of the result type.

        Returns:
            A table with one row for each row that the function emits.

        """
        grouped, items, aliases = self._rows(tuple(list_items(fields)))
        key_count = len(grouped._plan.schema) - 1
        call = s.Call(0, "UNNEST", (s.Name(0, (_RESULT,)),))
        joined = s.Join(0, "CROSS", grouped._source(), s.TableFunctionCall(0, call, "$t"))
        unnested = grouped._bind(s.Select(0, ((s.Star(0), None),), joined))._plan
        result_type = grouped._plan.schema.types[-1]
        assert isinstance(result_type, t.ArrayType)
        assert isinstance(result_type.element, t.RowType)
        names = _find_result_names(aliases, result_type.element.names)
        column_indexes = [*range(key_count), *range(key_count + 1, len(unnested.schema))]
        refs = unnested.refs()
        plan = l.project(unnested, [refs[i] for i in column_indexes], [*grouped._plan.schema.names[:-1], *names])
        flat = type(grouped)(plan, grouped._t_env)
        return flat._bind(s.Select(0, flat._expand_items(items), flat._source()))


class OverWindowedTable:
    """A table with over windows: the result of `Table.over_window`.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> from millstream.table.expressions import col
        >>> from millstream.table.window import Over
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> orders = t_env.sql_query("SELECT 1 AS amount, TIMESTAMP '2024-05-01 10:00:00' AS ts")
        >>> windowed = orders.over_window(Over.order_by(col("ts")).alias("w"))
        >>> totals = windowed.select(col("amount").sum.over(col("w")).alias("total"))

    """

    def __init__(self, table: Table, over_windows: Sequence[OverWindow]) -> None:
        self._table, self._windows = table, over_windows

    def select(self, *fields: Any) -> Table:
        """Compute expressions for each row, among them aggregates over windows.

        Args:
            *fields: Columns and aggregates, as in `col("amount").sum.over(col("w"))`.

        Returns:
            A table with one column for each expression.

        """
        windows = tuple((window.name, window.spec()) for window in self._windows)
        return self._table._bind(s.Select(0, self._table._select_items(fields), self._table._source(), windows=windows))
