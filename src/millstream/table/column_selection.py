"""Selection of columns in the Table API: the base class of `Table` that expands and names the selected fields.

Promises: `*`, `with_columns`, `without_columns` and `flatten` are replaced by columns, and each column has a name.
Does not know: relational operations, how queries are planned and executed."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.errors import InvalidArgumentType
from millstream.sql.errors import SqlValidationError
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import is_aggregate
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.column_names import IsAggregate, Item, name_items
from millstream.table.grouped_tables import PROPERTY_PREFIX, list_items, rewrite

if TYPE_CHECKING:
    from millstream.table.table import Table
    from millstream.table.table_environment import TableEnvironment


class ColumnSelection(ABC):
    """A table whose columns can be selected. `Table` is the only concrete subclass."""

    _plan: l.Plan
    _t_env: TableEnvironment

    @abstractmethod
    def _bind(self, select: s.Select, **clauses: Any) -> Table: ...

    @abstractmethod
    def _source(self) -> s.PlanSource: ...

    def _select_items(
        self, fields: Sequence[Any], is_aggregate: IsAggregate | None = None, first_position: int = 0
    ) -> tuple[Item, ...]:
        """Return the expressions of fields with the names of their columns."""
        return self._expand_items(list_items(fields), is_aggregate, first_position)

    def _expand_items(
        self, items: Sequence[Item], is_aggregate: IsAggregate | None = None, first_position: int = 0
    ) -> tuple[Item, ...]:
        expanded = [column for item in items for column in self._expand_item(*item)]
        return tuple(name_items(expanded, is_aggregate, first_position))

    def _is_aggregate(self, expr: s.Expr) -> bool:
        catalogs = self._t_env._session().catalogs
        return isinstance(expr, s.Call) and expr.over is None and is_aggregate(expr, catalogs)

    def _expand_star_arguments(self, expr: s.Expr) -> s.Expr | None:
        """Replace the argument * of a call by all columns; return None if the expression is not such a call."""
        if not isinstance(expr, s.Call) or s.Name(0, ("*",)) not in expr.args:
            return None
        columns = tuple(s.Name(0, (name,)) for name in self._plan.schema.names)
        args = [columns if arg == s.Name(0, ("*",)) else (arg,) for arg in expr.args]
        return replace(expr, args=tuple(itertools.chain.from_iterable(args)))

    def _expand_item(self, item: s.Expr, alias: str | None) -> list[Item]:
        """Replace *, with_columns, without_columns and flatten by the columns that they select."""
        expr = rewrite(item, self._expand_star_arguments)
        names = self._plan.schema.names
        match expr:
            case s.Name(parts=("*",)):
                return [(s.Name(0, (name,)), None) for name in names if not name.startswith(PROPERTY_PREFIX)]
            case s.Call(name="$WITH_COLUMNS", args=args):
                return [(s.Name(0, (name,)), None) for name in self._resolve_column_names(args)]
            case s.Call(name="$WITHOUT_COLUMNS", args=args):
                excluded = self._resolve_column_names(args)
                return [(s.Name(0, (name,)), None) for name in names if name not in excluded]
            case s.Call(name="$FLATTEN", args=(operand,)):
                return [(s.FieldAccess(0, operand, name), None) for name in self._list_field_names(operand)]
        return [(expr, alias)]

    def _resolve_column_names(self, args: Sequence[s.Expr]) -> list[str]:
        names = self._plan.schema.names
        resolved: list[str] = []
        for arg in args:
            match arg:
                case s.Name(parts=(name,)):
                    resolved.append(name)
                case s.Literal(value=int(position)):
                    resolved.append(names[position - 1])
                case s.Call(name="$RANGE", args=(s.Literal(value=start), s.Literal(value=end))):
                    first = names.index(start) if isinstance(start, str) else start - 1
                    last = names.index(end) if isinstance(end, str) else end - 1
                    resolved.extend(names[first : last + 1])
                case _:
                    message = "a column is selected by col('a'), by its number from 1, or by range_()"
                    raise InvalidArgumentType(message)
        return resolved

    def _list_field_names(self, operand: s.Expr) -> list[str]:
        projected = self._bind(s.Select(0, ((operand, "f"),), self._source()))
        data_type = projected._plan.schema.types[0]
        if not isinstance(data_type, t.RowType):
            message = f"flatten needs a value of type ROW, not {data_type}"
            raise SqlValidationError(message)
        return data_type.names
