"""Joins and set operations of tables: the methods of `Table` that combine it with another table or a table function.

Promises: PyFlink's methods, with the semantics of the equivalent SQL.
Does not know: operations of a single table, how queries are planned and executed."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from millstream.errors import InvalidArgumentType
from millstream.sql.errors import SqlValidationError
from millstream.sql.syntax import tree as s
from millstream.table.column_selection import ColumnSelection
from millstream.table.expression import Expression
from millstream.table.expression.terms import to_node

if TYPE_CHECKING:
    from millstream.table.table import Table


class TableCombinations(ColumnSelection):
    """A table that can be combined with another one. `Table` is the only subclass."""

    @abstractmethod
    def _bind_query(self, query: s.Query) -> Table: ...

    @abstractmethod
    def _call_of(self, func: Any) -> tuple[s.Call, tuple[str, ...]]: ...

    @abstractmethod
    def _pass_row_as_argument(self, call: s.Call) -> s.Call: ...

    def _join(self, right: Table, join_type: str, condition: Any) -> Table:
        shared = set(self._plan.schema.names) & set(right._plan.schema.names)
        if shared:
            message = f"both tables have columns named {', '.join(sorted(shared))}"
            raise SqlValidationError(message, hint="rename them with alias() or rename_columns()")
        joined = s.Join(
            0,
            join_type,
            self._source(),
            s.PlanSource(0, right._plan),
            None if condition is None else to_node(condition),
        )
        return self._bind(s.Select(0, ((s.Star(0), None),), joined))

    def join(self, right: Table, join_predicate: Any = None) -> Table:
        """Join two tables, like INNER JOIN.

        The tables must not have column names in common; rename them with `alias` or `rename_columns`.

        Args:
            right: The other table.
            join_predicate: The join condition. Without one, the result is the cross product, which a later `where` can
                restrict.

        Returns:
            A table with the columns of both sides.

        Raises:
            SqlValidationError: If both tables have a column of the same name.

        Example:
            >>> from millstream.table import EnvironmentSettings, TableEnvironment
            >>> from millstream.table.expressions import col
            >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
            >>> orders = t_env.from_elements([(1, "ann")], ["id", "name"])
            >>> payments = t_env.from_elements([(1, 9.5)], ["order_id", "amount"])
            >>> orders.join(payments, col("id") == col("order_id")).get_schema().get_field_names()
            ['id', 'name', 'order_id', 'amount']

        """
        return self._join(right, "INNER", join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Any = None) -> Table:
        """Join two tables and keep left rows without a match, like LEFT OUTER JOIN.

        Args:
            right: The other table.
            join_predicate: The join condition; without one, each pair of rows matches.

        Returns:
            A table with the columns of both sides; right columns are NULL for left rows without a match.

        Raises:
            SqlValidationError: If both tables have a column of the same name.

        """
        return self._join(right, "LEFT", True if join_predicate is None else join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Any) -> Table:
        """Join two tables and keep right rows without a match, like RIGHT OUTER JOIN.

        Args:
            right: The other table.
            join_predicate: The join condition.

        Returns:
            A table with the columns of both sides; left columns are NULL for right rows without a match.

        Raises:
            SqlValidationError: If both tables have a column of the same name.

        """
        return self._join(right, "RIGHT", join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Any) -> Table:
        """Join two tables and keep the rows of both sides without a match, like FULL OUTER JOIN.

        Args:
            right: The other table.
            join_predicate: The join condition.

        Returns:
            A table with the columns of both sides; the columns of the side without a match are NULL.

        Raises:
            SqlValidationError: If both tables have a column of the same name.

        """
        return self._join(right, "FULL", join_predicate)

    def join_lateral(self, table_function_call: Any, join_predicate: Any = None) -> Table:
        """Join each row with the rows that a table function returns for it; drop rows without any.

        Args:
            table_function_call: The call of a table function, as `split(col("text")).alias("word")`, or a table
                function itself, which is called with the row.
            join_predicate: A condition on the pairs of rows.

        Returns:
            A table with the columns of this table and those of the function.

        """
        return self._join_lateral(table_function_call, "INNER", join_predicate)

    def left_outer_join_lateral(self, table_function_call: Any, join_predicate: Any = None) -> Table:
        """Join each row with the rows that a table function returns for it; keep rows without any.

        Args:
            table_function_call: The call of a table function, as `split(col("text")).alias("word")`, or a table
                function itself, which is called with the row.
            join_predicate: A condition on the pairs of rows.

        Returns:
            A table with the columns of this table and those of the function, which are NULL where it returned no row.

        """
        return self._join_lateral(table_function_call, "LEFT", True if join_predicate is None else join_predicate)

    def _join_lateral(self, table_function_call: Any, join_type: str, condition: Any) -> Table:
        if isinstance(table_function_call, Expression) and not isinstance(table_function_call._node, s.Call):
            message = f"a lateral join needs the call of a table function, not {table_function_call!r}"
            raise InvalidArgumentType(message)
        call, aliases = self._call_of(table_function_call)
        call = self._pass_row_as_argument(call)
        right = s.TableFunctionCall(0, call, "$t" if aliases else None, aliases)
        joined = s.Join(0, join_type, self._source(), right, None if condition is None else to_node(condition))
        return self._bind(s.Select(0, ((s.Star(0), None),), joined))

    def _apply_set_operation(self, right: Table, operator: str, keep_duplicates: bool) -> Table:
        queries = [
            s.Query(0, s.Select(0, ((s.Star(0), None),), s.PlanSource(0, table._plan))) for table in (self, right)
        ]
        body = s.SetOperation(0, operator, keep_duplicates, *queries)
        return self._bind_query(s.Query(0, body))

    def minus(self, right: Table) -> Table:
        """Return the distinct rows of this table that are not in another, like EXCEPT.

        Args:
            right: A table with the same number of columns and compatible types.

        Returns:
            A table without duplicates.

        """
        return self._apply_set_operation(right, "EXCEPT", False)

    def minus_all(self, right: Table) -> Table:
        """Return the rows of this table that are not in another, like EXCEPT ALL.

        A row that is m times in this table and n times in the other is max(m - n, 0) times in the result.

        Args:
            right: A table with the same number of columns and compatible types.

        Returns:
            A table that can hold duplicates.

        """
        return self._apply_set_operation(right, "EXCEPT", True)

    def union(self, right: Table) -> Table:
        """Return the distinct rows of both tables, like UNION.

        Args:
            right: A table with the same number of columns and compatible types.

        Returns:
            A table without duplicates.

        """
        return self._apply_set_operation(right, "UNION", False)

    def union_all(self, right: Table) -> Table:
        """Return all rows of both tables, like UNION ALL.

        Args:
            right: A table with the same number of columns and compatible types.

        Returns:
            A table that can hold duplicates.

        """
        return self._apply_set_operation(right, "UNION", True)

    def intersect(self, right: Table) -> Table:
        """Return the distinct rows that are in both tables, like INTERSECT.

        Args:
            right: A table with the same number of columns and compatible types.

        Returns:
            A table without duplicates.

        """
        return self._apply_set_operation(right, "INTERSECT", False)

    def intersect_all(self, right: Table) -> Table:
        """Return the rows that are in both tables, like INTERSECT ALL.

        A row that is m times in this table and n times in the other is min(m, n) times in the result.

        Args:
            right: A table with the same number of columns and compatible types.

        Returns:
            A table that can hold duplicates.

        """
        return self._apply_set_operation(right, "INTERSECT", True)
