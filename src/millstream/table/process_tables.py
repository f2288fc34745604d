"""Calls of process table functions in the Table API.

Promises: the same call as in SQL, with the same checks.
Does not know: how functions are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from millstream.sql.syntax import tree as s
from millstream.table.expression import Expression
from millstream.table.expression.terms import to_node
from millstream.table.udf import to_user_function

if TYPE_CHECKING:
    from millstream.table.table import Table


class PartitionedTable:
    """A table whose rows are partitioned for a process table function; created by `Table.partition_by`."""

    def __init__(self, table: Table, partition: tuple[s.Expr, ...]) -> None:
        self._table, self._partition = table, partition

    def process(self, function: Any, *arguments: Any) -> Table:
        """Call a process table function with this table as its first argument.

        Args:
            function: The result of `ptf`, or the name of a registered function.
            *arguments: Further arguments, as in `descriptor("ts").as_argument("on_time")`.

        Returns:
            The rows that the function emits, after the columns of PARTITION BY.

        """
        return self._table._bind_query(create_call(function, (self.as_argument(), *arguments)))

    def as_argument(self, name: str | None = None) -> Expression:
        """Pass the table to `TableEnvironment.from_call`, by name or by position."""
        argument = s.TableArgument(0, self._table._source(), self._partition)
        return Expression(argument if name is None else s.NamedArgument(0, name, argument))


def create_call(function: Any, arguments: Sequence[Any]) -> s.Query:
    """Return the query that calls a process table function, given as the result of `ptf` or by name."""
    nodes = tuple(s.Symbol(0, "DEFAULT") if argument is None else to_node(argument) for argument in arguments)
    if isinstance(function, str):
        call = s.Call(0, function, nodes)
    else:
        user = to_user_function(getattr(function, "__name__", "function"), function)
        call = s.Call(0, user.name, nodes, user=user)
    return s.Query(0, s.Select(0, ((s.Star(0), None),), s.TableFunctionCall(0, call)))
