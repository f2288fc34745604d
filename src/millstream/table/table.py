"""Table: a query of the Table API.

Promises: PyFlink's methods. Each method builds the syntax tree of the equivalent SQL, so both have the same semantics.
Does not know: how queries are planned and executed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from millstream.errors import InvalidArgumentType
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.catalog import ResolvedSchema
from millstream.table.column_names import Item
from millstream.table.explain_detail import ExplainDetail
from millstream.table.expression import Expression
from millstream.table.expression.terms import to_node
from millstream.table.grouped_tables import (
    AggregatedTable,
    FlatAggregateTable,
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    WindowGroupedTable,
)
from millstream.table.notebook_display import format_table_html
from millstream.table.process_tables import PartitionedTable, create_call
from millstream.table.table_combinations import TableCombinations
from millstream.table.table_data import TableData
from millstream.table.table_descriptor import TableDescriptor
from millstream.table.table_pipeline import TablePipeline
from millstream.table.table_result import TableResult
from millstream.table.table_schema import TableSchema
from millstream.table.window import GroupWindow, OverWindow

if TYPE_CHECKING:
    from millstream.table.table_environment import TableEnvironment

__all__ = [
    "AggregatedTable",
    "FlatAggregateTable",
    "GroupWindowedTable",
    "GroupedTable",
    "OverWindowedTable",
    "Table",
    "WindowGroupedTable",
]

_view_numbers = itertools.count()  # unique in the process, as in Flink
_COLLECT, _PRINT = "execute().collect()", "execute().print()"
_INSTEAD = {  # methods that a table has in other libraries
    **dict.fromkeys(("collect", "to_list", "iterrows", "rows"), f"call {_COLLECT}"),
    **dict.fromkeys(("show", "print"), f"call {_PRINT}"),
    "head": f"call limit(5).{_PRINT}",
    "columns": "call get_schema().get_field_names()",
}


class Table(TableCombinations, TableData):
    """Describe a table: the result of a source, a query or a chain of relational operations.

    A table holds no data. It is a logical plan, and each method returns a new table; nothing runs before `execute`,
    `to_pandas` or `execute_insert`. A table on an unbounded source is a dynamic table: its changes are a changelog.

    Columns are accessible as attributes, as in `orders.amount`. A table comes from a `TableEnvironment`, for example
    from `sql_query` or `from_elements`.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> from millstream.table.expressions import col
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> orders = t_env.from_elements([("ann", 3), ("bob", 5), ("ann", 4)], ["name", "amount"])
        >>> totals = orders.group_by(col("name")).select(col("name"), col("amount").sum.alias("total"))
        >>> totals.get_schema().get_field_names()
        ['name', 'total']

    """

    def __init__(self, plan: l.Plan, t_env: TableEnvironment) -> None:
        self._plan, self._t_env = plan, t_env
        self._view_name: str | None = None
        self._declared_schema: ResolvedSchema | None = None  # of a table that is read as it was declared

    def __str__(self) -> str:
        """Return the name of a temporary view of the table, so that SQL can be formatted with a table.

        The view is registered on the first call, as in PyFlink: `t_env.sql_query(f"SELECT name FROM {table}")`.
        """
        if self._view_name is None:
            self._view_name = f"UnnamedTable${next(_view_numbers)}"
            self._t_env.create_temporary_view(self._view_name, self)
        return self._view_name

    def __repr__(self) -> str:
        schema = self._plan.schema
        columns = (f"{name} {data_type}" for name, data_type in zip(schema.names, schema.types, strict=True))
        return f"Table({', '.join(columns)})"

    def _repr_html_(self) -> str:
        """Show the columns and the plan in a notebook; the query is not executed."""
        return format_table_html(self)

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("_"):
            raise AttributeError(name)
        names = self._plan.schema.names
        if name not in names:
            message = f"the table has no column '{name}'"
            hint = _INSTEAD.get(name) or nearest(name, names)
            raise AttributeError(f"{message}; {hint}" if hint else message)
        return Expression(s.Name(0, (name,)))

    def __getitem__(self, key: Any) -> NoReturn:  # Python calls it also to iterate
        if isinstance(key, str):
            message, hint = "a table has no columns in brackets", f"write col('{key}')"
        else:
            message, hint = "the rows of a table exist when it is executed", f"call {_COLLECT}"
        raise InvalidArgumentType(message, hint=hint)

    # --------------------------------------------------------------------------------------------------- syntax trees

    def _bind(self, select: s.Select, **clauses: Any) -> Table:
        return self._bind_query(s.Query(0, select, **clauses))

    def _bind_query(self, query: s.Query) -> Table:
        return Table(QueryBinder(self._t_env._session()).query(query), self._t_env)

    def _source(self) -> s.PlanSource:
        return s.PlanSource(0, self._plan)

    def select(self, *fields: Any) -> Table:
        """Project the table to expressions over its columns, like SELECT.

        Args:
            *fields: Column names or expressions; `Expression.alias` names a result column.

        Returns:
            A table with one column for each expression.

        """
        return self._bind(s.Select(0, self._select_items(fields, self._is_aggregate), self._source()))

    def alias(self, field: str, *fields: str) -> Table:
        """Rename the columns by position, beginning with the first.

        Args:
            field: The new name of the first column.
            *fields: The new names of the columns after it. Further columns keep their names.

        Returns:
            A table with the same rows and the new names.

        Raises:
            SqlValidationError: If there are more names than columns, or two columns of one name.

        """
        names = [field, *fields]
        if len(names) > len(self._plan.schema):
            message = f"alias has {len(names)} names, but the table has {len(self._plan.schema)} columns"
            raise SqlValidationError(message)
        all_names = [*names, *self._plan.schema.names[len(names) :]]
        self._check_names_differ(all_names)
        return Table(l.project(self._plan, self._plan.refs(), all_names), self._t_env)

    def filter(self, predicate: Any) -> Table:
        """Keep the rows for which a predicate is true, like WHERE.

        Args:
            predicate: An expression of type BOOLEAN. Rows for which it is FALSE or NULL are dropped.

        Returns:
            A table with the same columns.

        """
        if isinstance(predicate, str):
            message = f"a condition is an expression, not the text '{predicate}'"
            raise InvalidArgumentType(message, hint="write it as in col('amount') > 1, or use SQL: sql_query(...)")
        filtered = self._bind(s.Select(0, ((s.Star(0), None),), self._source(), to_node(predicate)))
        filtered._declared_schema = self._declared_schema
        return filtered

    def where(self, predicate: Any) -> Table:
        """Keep the rows for which a predicate is true; the same as `filter`.

        Args:
            predicate: An expression of type BOOLEAN.

        Returns:
            A table with the same columns.

        """
        return self.filter(predicate)

    def group_by(self, *fields: Any) -> GroupedTable:
        """Group the rows by keys, like GROUP BY.

        Args:
            *fields: Column names or expressions. Without any, all rows are one group.

        Returns:
            The groups, for `select`, `aggregate` or `flat_aggregate`.

        """
        return GroupedTable(self, fields)

    def distinct(self) -> Table:
        """Remove duplicate rows, like SELECT DISTINCT.

        On an unbounded table this keeps each distinct row in state; `table.exec.state.ttl` limits how long.

        Returns:
            A table in which each row occurs once.

        """
        return self._bind(s.Select(0, ((s.Star(0), None),), self._source(), distinct=True))

    def order_by(self, *fields: Any) -> Table:
        """Sort the rows, like ORDER BY.

        In streaming mode, a sort that is not followed by `fetch` or `limit` needs a time attribute in ascending order
        as its first key.

        Args:
            *fields: Expressions; `col("a").desc` sorts in descending order, the default is ascending.

        Returns:
            A sorted table, for `offset`, `fetch` or `limit`.

        """
        items = []
        for field in fields:
            ascending = field._order if isinstance(field, Expression) and field._order is not None else True
            items.append(s.OrderItem(0, to_node(field), ascending))
        return self._bind(s.Select(0, ((s.Star(0), None),), self._source()), order=tuple(items))

    def offset(self, offset: int) -> Table:
        """Skip the first rows of a sorted table, like OFFSET.

        Args:
            offset: The number of rows to skip.

        Returns:
            A table without these rows.

        Raises:
            SqlValidationError: If a number is negative.

        """
        return self._limit(None, offset)

    def fetch(self, fetch: int) -> Table:
        """Keep the first rows of a sorted table, like FETCH FIRST.

        Args:
            fetch: The number of rows to keep.

        Returns:
            A table with at most so many rows.

        Raises:
            SqlValidationError: If a number is negative.

        """
        return self._limit(fetch, None)

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Keep the first rows after an offset, like LIMIT with OFFSET.

        Args:
            fetch: The number of rows to keep.
            offset: The number of rows to skip before them.

        Returns:
            A table with at most `fetch` rows.

        Raises:
            SqlValidationError: If a number is negative.

        """
        return self._limit(fetch, offset)

    def _limit(self, fetch: int | None, offset: int | None) -> Table:
        plan = self._plan
        for name, number in (("fetch", fetch), ("offset", offset)):
            if number is not None and number < 0:
                message = f"{name} is {number}, but a number of rows is 0 or greater"
                raise SqlValidationError(message)
        if isinstance(plan, l.Sort):
            left = None if plan.limit is None else max(plan.limit - (offset or 0), 0)
            limit = min((number for number in (left, fetch) if number is not None), default=None)
            return Table(replace(plan, limit=limit, offset=plan.offset + (offset or 0)), self._t_env)
        return Table(l.Sort(plan.schema, plan, (), fetch, offset or 0), self._t_env)

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Assign the rows to group windows.

        Args:
            window: A window of `Tumble`, `Slide` or `Session` with a time attribute and an alias.

        Returns:
            The windowed table; its `group_by` must name the alias of the window.

        """
        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Define over windows, like the WINDOW clause of SQL.

        Args:
            *over_windows: Windows of `Over`, each with an alias.

        Returns:
            The table with its windows; in its `select`, `Expression.over` names a window.

        """
        return OverWindowedTable(self, over_windows)

    def add_columns(self, *fields: Any) -> Table:
        """Append columns.

        Args:
            *fields: Expressions over the columns of the table.

        Returns:
            A table with all columns of this one and the new ones.

        Raises:
            SqlValidationError: If a new column has the name of an existing one.

        """
        items = self._select_items(fields, first_position=len(self._plan.schema))
        extended = self._bind(s.Select(0, ((s.Star(0), None), *items), self._source()))
        duplicates = [name for _, name in items if name in self._plan.schema.names]
        if duplicates:
            message = f"the table already has columns named {', '.join(map(str, duplicates))}"
            raise SqlValidationError(message, hint="use add_or_replace_columns")
        return extended

    def add_or_replace_columns(self, *fields: Any) -> Table:
        """Append columns, and replace those whose names the table already has.

        Args:
            *fields: Expressions over the columns of the table.

        Returns:
            A table in which a replaced column keeps its position.

        """
        items = self._select_items(fields, first_position=len(self._plan.schema))
        replacements = {name: expr for expr, name in items if name is not None}
        existing: list[Item] = [(replacements.get(n, s.Name(0, (n,))), n) for n in self._plan.schema.names]
        added = [item for item in items if item[1] is None or item[1] not in self._plan.schema.names]
        return self._bind(s.Select(0, (*existing, *added), self._source()))

    def rename_columns(self, *fields: Any) -> Table:
        """Rename some columns.

        Args:
            *fields: Columns with their new names, as in `col("a").alias("b")`.

        Returns:
            A table with the same rows; columns that are not named keep their names.

        Raises:
            SqlValidationError: If the table has no such column, or has the new name already.

        """
        new_names = {to_node(field).parts[-1]: field._aliases[0] for field in fields}  # type: ignore[attr-defined]
        self._check_columns(new_names)
        names = [new_names.get(name, name) for name in self._plan.schema.names]
        self._check_names_differ(names)
        return Table(l.project(self._plan, self._plan.refs(), names), self._t_env)

    def drop_columns(self, *fields: Any) -> Table:
        """Remove columns.

        Args:
            *fields: Columns by name, expression, or number from 1.

        Returns:
            A table with the other columns.

        Raises:
            SqlValidationError: If the table has no such column.

        """
        dropped = self._resolve_column_names([to_node(Expression(f) if isinstance(f, str) else f) for f in fields])
        self._check_columns(dropped)
        return self._bind(
            s.Select(
                0, tuple((s.Name(0, (n,)), None) for n in self._plan.schema.names if n not in dropped), self._source()
            )
        )

    @staticmethod
    def _check_names_differ(names: Iterable[str]) -> None:
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            message = f"the table would have several columns '{repeated[0]}'"
            raise SqlValidationError(message)

    def _check_columns(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._plan.schema.names:
                message = f"there is no column '{name}'"
                raise SqlValidationError(message, hint=nearest(name, self._plan.schema.names))

    def _call_of(self, func: Any) -> tuple[s.Call, tuple[str, ...]]:
        """Return the call of a function and its aliases; a function without arguments is called with all columns."""
        if isinstance(func, Expression):
            call = func._node
            assert isinstance(call, s.Call)
            return call, func._aliases
        user = getattr(func, "_user", None)
        if user is None:
            message = f"{func!r} is not a user-defined function"
            raise InvalidArgumentType(message, hint="wrap it with udf(), udtf(), udaf() or udtaf()")
        args: tuple[s.Expr, ...] = tuple(s.Name(0, (name,)) for name in self._plan.schema.names)
        if user.input_types is None or len(user.input_types) != len(args):
            args = (s.Call(0, "$ROW", args),)
        return s.Call(0, user.name, args, user=user), getattr(func, "_aliases", ())

    def _pass_row_as_argument(self, call: s.Call) -> s.Call:
        """If a call takes the whole row, pass it as one value of type ROW with the names of the columns.

        The fields of nested rows are columns of their own for pandas functions, as in PyFlink."""
        if len(call.args) != 1 or not isinstance(call.args[0], s.Call) or call.args[0].name != "$ROW":
            return call
        fields: list[tuple[s.Expr, str, t.DataType]] = [
            (s.Name(0, (field.name,)), field.name, field.data_type) for field in self._plan.schema.fields
        ]
        if call.user is not None and call.user.pandas:
            fields = [flat_field for field in fields for flat_field in _flatten_row(*field)]
        row_type = t.row_of([name for _, name, _ in fields], [data_type for *_, data_type in fields], null=False)
        row = replace(call.args[0], name="ROW", args=tuple(expr for expr, _, _ in fields))
        return replace(call, args=(s.Cast(0, row, row_type),))

    def map(self, func: Any) -> Table:
        """Apply a scalar function to each row.

        Args:
            func: A function of `udf`. It is called with the columns as arguments if it has one input type for each
                column, and else with the row. It can also be a call with columns, as in `f(col("a"))`.

        Returns:
            A table with the fields of the result as columns, or one column if the result is not a row.

        Raises:
            UserError: If `func` is not a user-defined function.

        """
        call, aliases = self._call_of(func)
        mapped = self._bind(s.Select(0, ((self._pass_row_as_argument(call), "$row"),), self._source()))
        result_type = mapped._plan.schema.types[0]
        if not isinstance(result_type, t.RowType):
            return mapped.alias(aliases[0] if aliases else "f0")
        fields: tuple[Item, ...] = tuple((s.FieldAccess(0, s.Name(0, ("$row",)), n), n) for n in result_type.names)
        flat = mapped._bind(s.Select(0, fields, mapped._source()))
        return flat.alias(*aliases) if aliases else flat

    def flat_map(self, func: Any) -> Table:
        """Apply a table function to each row; the result holds only its rows.

        Args:
            func: A function of `udtf`, or a call of it with columns.

        Returns:
            A table with the columns of the function.

        Raises:
            UserError: If `func` is not a user-defined function.

        """
        call, aliases = self._call_of(func)
        width = len(self._plan.schema)
        right = s.TableFunctionCall(0, self._pass_row_as_argument(call), "$t" if aliases else None, aliases)
        joined = s.Join(0, "CROSS", self._source(), right)
        plan = self._bind(s.Select(0, ((s.Star(0), None),), joined))._plan
        return Table(l.project(plan, plan.refs()[width:], plan.schema.names[width:]), self._t_env)

    def aggregate(self, func: Any) -> AggregatedTable:
        """Aggregate all rows with an aggregate function.

        Args:
            func: A function of `udaf`, or a call of it with columns.

        Returns:
            The aggregated table; `select` returns its result.

        """
        return AggregatedTable(GroupedTable(self, ()), func)

    def flat_aggregate(self, func: Any) -> FlatAggregateTable:
        """Aggregate all rows with a table aggregate function, which returns any number of rows.

        Args:
            func: A function of `udtaf`, or a call of it with columns.

        Returns:
            The aggregated table; `select` returns its result.

        """
        return FlatAggregateTable(GroupedTable(self, ()), func)

    def to_changelog(self, *arguments: Any) -> Table:
        """Turn the changelog of the table into an append-only table with a column for the row kind.

        This is the function TO_CHANGELOG of SQL.

        Args:
            *arguments: Further arguments of TO_CHANGELOG, as in `lit(...).as_argument("name")`.

        Returns:
            A table to which rows are only appended.

        """
        return self._apply_changelog_function("TO_CHANGELOG", arguments)

    def from_changelog(self, *arguments: Any) -> Table:
        """Turn an append-only table with a column for the row kind into a changelog.

        This is the function FROM_CHANGELOG of SQL, the inverse of `to_changelog`.

        Args:
            *arguments: Further arguments of FROM_CHANGELOG, as in `lit(...).as_argument("name")`.

        Returns:
            A table to which the changes are applied.

        """
        return self._apply_changelog_function("FROM_CHANGELOG", arguments)

    def partition_by(self, *fields: Any) -> PartitionedTable:
        """Partition the rows for a process table function with set semantics.

        Args:
            *fields: Columns; rows with equal values share the state and the timers of the function.

        Returns:
            The partitioned table, which can be processed or passed to `TableEnvironment.from_call`.

        """
        return PartitionedTable(self, tuple(to_node(field) for field in fields))

    def process(self, function: Any, *arguments: Any) -> Table:
        """Call a process table function with this table as its first argument.

        Args:
            function: The result of `ptf`, or the name of a registered function.
            *arguments: Further arguments, as in `lit(3).as_argument("limit")` or
                `descriptor("ts").as_argument("on_time")`.

        Returns:
            The rows that the function emits, after the columns of PARTITION BY.

        """
        return self._bind_query(create_call(function, (self.as_argument(), *arguments)))

    def as_argument(self, name: str | None = None) -> Expression:
        """Pass the table to `TableEnvironment.from_call`, by name or by position.

        Args:
            name: The name of the parameter; None passes the table by position.

        """
        return PartitionedTable(self, ()).as_argument(name)

    def _apply_changelog_function(self, name: str, arguments: Sequence[Any]) -> Table:
        table_argument = s.NamedArgument(0, "input", s.TableArgument(0, self._source()))
        function_call = s.TableFunctionCall(0, s.Call(0, name, (table_argument, *map(to_node, arguments))))
        return self._bind(s.Select(0, ((s.Star(0), None),), function_call))

    # ------------------------------------------------------------------------------------------------------ execution

    def execute(self) -> TableResult:
        """Submit the query as a job.

        Returns:
            The result; its rows can be read while the job runs.

        """
        return self._t_env._collect(self._plan)

    def execute_insert(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TableResult:
        """Submit a job that writes the rows into a table.

        Args:
            table_path_or_descriptor: The path of a registered table, or a description of the sink table.
            overwrite: Whether the rows replace the content of the table, like INSERT OVERWRITE.

        Returns:
            The result; `wait` blocks until the job has ended.

        """
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def insert_into(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TablePipeline:
        """Describe an insert into a table without running it.

        Args:
            table_path_or_descriptor: The path of a registered table, or a description of the sink table.
            overwrite: Whether the rows replace the content of the table, like INSERT OVERWRITE.

        Returns:
            A pipeline to execute, to explain, or to add to a statement set.

        Raises:
            SqlValidationError: If the path names no table that can be written to, or the columns do not fit.

        """
        return self._t_env._create_pipeline(self._plan, table_path_or_descriptor, overwrite)

    def get_schema(self) -> TableSchema:
        """Return the columns as a `TableSchema`, PyFlink's deprecated form of a schema."""
        schema = TableSchema(self._plan.schema.names, self._plan.schema.types)
        schema._declared = self._declared_schema
        return schema

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the columns with their data types; of a declared table with its watermark and primary key too."""
        return self._declared_schema or ResolvedSchema._of(self._plan.schema)

    def print_schema(self) -> None:
        """Print the columns with their data types."""
        print(self.get_resolved_schema())

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the logical, optimized and physical plan of the query as text.

        Args:
            *extra_details: Further details to include, such as the changelog mode of each operator.

        """
        return self._t_env._explain([self._plan], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print what `explain` returns.

        Args:
            *extra_details: Further details to include.

        """
        print(self.explain(*extra_details))


def _flatten_row(column: s.Expr, name: str, data_type: t.DataType) -> list[tuple[s.Expr, str, t.DataType]]:
    """Return the fields of a column of rows as columns; of another column, only itself."""
    if not isinstance(data_type, t.RowType):
        return [(column, name, data_type)]
    return [
        (
            s.FieldAccess(0, column, field.name),
            field.name,
            field.data_type.with_null(data_type.null or field.data_type.null),
        )
        for field in data_type.fields
    ]
