"""Table: a query written in Python.

Promises: PyFlink's methods; each builds the same tree that SQL would, so it means the same.
Does not know: how queries are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.errors import UserError
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.catalog import ResolvedSchema
from millstream.table.explain_detail import ExplainDetail
from millstream.table.expression import Expression
from millstream.table.expression.terms import node
from millstream.table.grouped_tables import (
    AggregatedTable,
    FlatAggregateTable,
    GroupedTable,
    GroupWindowedTable,
    Item,
    OverWindowedTable,
    WindowGroupedTable,
)
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


class Table:
    """Rows that can be computed."""

    def __init__(self, plan: l.Plan, t_env: TableEnvironment) -> None:
        self._plan, self._t_env = plan, t_env

    def __str__(self) -> str:
        return f"Table{self._plan.schema.text()}"

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("_"):
            raise AttributeError(name)
        names = self._plan.schema.names
        if name not in names:
            message = f"the table has no column '{name}'"
            raise AttributeError(message, nearest(name, names))
        return Expression(s.Name(0, (name,)))

    # --------------------------------------------------------------------------------------------------- the language

    def _bound(self, select: s.Select, **more: Any) -> Table:
        return Table(QueryBinder(self._t_env._session()).query(s.Query(0, select, **more)), self._t_env)

    def _source(self) -> s.PlanSource:
        return s.PlanSource(0, self._plan)

    def _items(self, fields: Sequence[Any]) -> tuple[Item, ...]:
        return tuple(item for given in fields for item in self._expanded(given))

    def _expanded(self, given: Any) -> list[Item]:
        expr = node(Expression(given) if isinstance(given, str) else given)
        aliases = given._aliases if isinstance(given, Expression) else ()
        names = self._plan.schema.names
        match expr:
            case s.Call(name="$WITH_COLUMNS", args=args):
                return [(s.Name(0, (name,)), None) for name in self._columns(args)]
            case s.Call(name="$WITHOUT_COLUMNS", args=args):
                gone = self._columns(args)
                return [(s.Name(0, (name,)), None) for name in names if name not in gone]
            case s.Call(name="$FLATTEN", args=(operand,)):
                return [(s.FieldAccess(0, operand, name), name) for name in self._fields_of(operand)]
        return [(expr, aliases[0] if aliases else None)]

    def _columns(self, args: Sequence[s.Expr]) -> list[str]:
        names = self._plan.schema.names
        found: list[str] = []
        for arg in args:
            match arg:
                case s.Name(parts=(name,)):
                    found.append(name)
                case s.Literal(value=int(place)):
                    found.append(names[place - 1])
                case s.Call(name="$RANGE", args=(s.Literal(value=one), s.Literal(value=other))):
                    first = names.index(one) if isinstance(one, str) else one - 1
                    last = names.index(other) if isinstance(other, str) else other - 1
                    found.extend(names[first : last + 1])
                case _:
                    message = "columns are named by col('a'), by number, or by range_()"
                    raise UserError(message)
        return found

    def _fields_of(self, operand: s.Expr) -> list[str]:
        made = self._bound(s.Select(0, ((operand, "f"),), self._source()))
        kind = made._plan.schema.types[0]
        if not isinstance(kind, t.RowType):
            message = f"only a row can be flattened, this is {kind}"
            raise SqlValidationError(message)
        return kind.names

    def select(self, *fields: Any) -> Table:
        """Columns computed from this table's."""
        return self._bound(s.Select(0, self._items(fields), self._source()))

    def alias(self, field: str, *fields: str) -> Table:
        """Other names for the columns."""
        names = [field, *fields]
        kept = [*names, *self._plan.schema.names[len(names) :]]
        return Table(l.project(self._plan, self._plan.refs(), kept), self._t_env)

    def filter(self, predicate: Any) -> Table:
        """The rows for which a condition is true."""
        return self._bound(s.Select(0, ((s.Star(0), None),), self._source(), node(predicate)))

    def where(self, predicate: Any) -> Table:
        """The rows for which a condition is true."""
        return self.filter(predicate)

    def group_by(self, *fields: Any) -> GroupedTable:
        """Groups of rows."""
        return GroupedTable(self, fields)

    def distinct(self) -> Table:
        """Each row once."""
        return self._bound(s.Select(0, ((s.Star(0), None),), self._source(), distinct=True))

    def _joined(self, right: Table, kind: str, condition: Any) -> Table:
        shared = set(self._plan.schema.names) & set(right._plan.schema.names)
        if shared:
            message = f"both tables have columns named {', '.join(sorted(shared))}"
            raise SqlValidationError(message, hint="rename them with alias() or rename_columns()")
        joined = s.Join(
            0, kind, self._source(), s.PlanSource(0, right._plan), None if condition is None else node(condition)
        )
        return self._bound(s.Select(0, ((s.Star(0), None),), joined))

    def join(self, right: Table, join_predicate: Any = None) -> Table:
        """Pairs of rows."""
        return self._joined(right, "INNER", join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Any = None) -> Table:
        """Pairs of rows, and rows of the left without partner."""
        return self._joined(right, "LEFT", True if join_predicate is None else join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Any) -> Table:
        """Pairs of rows, and rows of the right without partner."""
        return self._joined(right, "RIGHT", join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Any) -> Table:
        """Pairs of rows, and rows of both sides without partner."""
        return self._joined(right, "FULL", join_predicate)

    def join_lateral(self, table_function_call: Any, join_predicate: Any = None) -> Table:
        """Each row with the rows a table function makes of it."""
        return self._lateral(table_function_call, "INNER", join_predicate)

    def left_outer_join_lateral(self, table_function_call: Any, join_predicate: Any = None) -> Table:
        """Each row with the rows a table function makes of it, or with NULLs."""
        return self._lateral(table_function_call, "LEFT", True if join_predicate is None else join_predicate)

    def _lateral(self, given: Any, kind: str, condition: Any) -> Table:
        call = node(given)
        if not isinstance(call, s.Call):
            message = "a lateral join needs the call of a table function"
            raise UserError(message)
        aliases = given._aliases if isinstance(given, Expression) else ()
        right = s.TableFunctionCall(0, call, "$t" if aliases else None, aliases)
        joined = s.Join(0, kind, self._source(), right, None if condition is None else node(condition))
        return self._bound(s.Select(0, ((s.Star(0), None),), joined))

    def _combined(self, right: Table, operator: str, every: bool) -> Table:
        queries = [s.Query(0, s.Select(0, ((s.Star(0), None),), s.PlanSource(0, each._plan))) for each in (self, right)]
        body = s.SetOperation(0, operator, every, *queries)
        return Table(QueryBinder(self._t_env._session()).query(s.Query(0, body)), self._t_env)

    def minus(self, right: Table) -> Table:
        """Rows that are not in the other table, once each."""
        return self._combined(right, "EXCEPT", False)

    def minus_all(self, right: Table) -> Table:
        """Rows that are not in the other table, as often as they are more."""
        return self._combined(right, "EXCEPT", True)

    def union(self, right: Table) -> Table:
        """Rows of both tables, once each."""
        return self._combined(right, "UNION", False)

    def union_all(self, right: Table) -> Table:
        """Rows of both tables."""
        return self._combined(right, "UNION", True)

    def intersect(self, right: Table) -> Table:
        """Rows that are in both tables, once each."""
        return self._combined(right, "INTERSECT", False)

    def intersect_all(self, right: Table) -> Table:
        """Rows that are in both tables, as often as in both."""
        return self._combined(right, "INTERSECT", True)

    def order_by(self, *fields: Any) -> Table:
        """Rows in order."""
        items = []
        for given in fields:
            ascending = given._order if isinstance(given, Expression) and given._order is not None else True
            items.append(s.OrderItem(0, node(given), ascending))
        return self._bound(s.Select(0, ((s.Star(0), None),), self._source()), order=tuple(items))

    def offset(self, offset: int) -> Table:
        """Without the first rows."""
        return self._limited(None, offset)

    def fetch(self, fetch: int) -> Table:
        """The first rows."""
        return self._limited(fetch, None)

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Some of the first rows."""
        return self._limited(fetch, offset)

    def _limited(self, fetch: int | None, offset: int | None) -> Table:
        plan = self._plan
        if isinstance(plan, l.Sort):
            limit = plan.limit if fetch is None else fetch
            return Table(replace(plan, limit=limit, offset=plan.offset + (offset or 0)), self._t_env)
        return Table(l.Sort(plan.schema, plan, (), fetch, offset or 0), self._t_env)

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Rows in windows of time."""
        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Frames of rows, by name."""
        return OverWindowedTable(self, over_windows)

    def add_columns(self, *fields: Any) -> Table:
        """More columns."""
        items = self._items(fields)
        made = self._bound(s.Select(0, ((s.Star(0), None), *items), self._source()))
        names = made._plan.schema.names[len(self._plan.schema) :]
        taken = [name for _, name in items if name in self._plan.schema.names]
        if taken:
            message = f"there are columns {', '.join(map(str, taken))} already"
            raise SqlValidationError(message, hint="use add_or_replace_columns")
        assert names is not None
        return made

    def add_or_replace_columns(self, *fields: Any) -> Table:
        """More columns, or others in place of those of equal names."""
        items = self._items(fields)
        named = {name: expr for expr, name in items if name is not None}
        kept: list[Item] = [(named.get(n, s.Name(0, (n,))), n) for n in self._plan.schema.names]
        new = [item for item in items if item[1] is None or item[1] not in self._plan.schema.names]
        return self._bound(s.Select(0, (*kept, *new), self._source()))

    def rename_columns(self, *fields: Any) -> Table:
        """Other names for some columns."""
        renamed = {node(each).parts[-1]: each._aliases[0] for each in fields}  # type: ignore[attr-defined]
        names = [renamed.get(name, name) for name in self._plan.schema.names]
        return Table(l.project(self._plan, self._plan.refs(), names), self._t_env)

    def drop_columns(self, *fields: Any) -> Table:
        """Without some columns."""
        gone = self._columns([node(Expression(each) if isinstance(each, str) else each) for each in fields])
        for name in gone:
            if name not in self._plan.schema.names:
                message = f"there is no column '{name}'"
                raise SqlValidationError(message, hint=nearest(name, self._plan.schema.names))
        return self._bound(
            s.Select(
                0, tuple((s.Name(0, (n,)), None) for n in self._plan.schema.names if n not in gone), self._source()
            )
        )

    def _called(self, func: Any) -> tuple[s.Call, tuple[str, ...]]:
        """A function given as it is, or called with columns."""
        if isinstance(func, Expression):
            call = func._node
            assert isinstance(call, s.Call)
            return call, func._aliases
        user = getattr(func, "_user", None)
        if user is None:
            message = f"{func!r} is not a function of udf() and its kin"
            raise UserError(message)
        args: tuple[s.Expr, ...] = tuple(s.Name(0, (name,)) for name in self._plan.schema.names)
        if user.input_types is None or len(user.input_types) != len(args):
            args = (s.Call(0, "$ROW", args),)
        return s.Call(0, user.name, args, user=user), getattr(func, "_aliases", ())

    def _with_row(self, call: s.Call) -> s.Call:
        """A call whose argument is the whole row gets it as one value with the columns' names."""
        if len(call.args) == 1 and isinstance(call.args[0], s.Call) and call.args[0].name == "$ROW":
            return replace(call, args=(s.Cast(0, replace(call.args[0], name="ROW"), self._plan.schema),))
        return call

    def map(self, func: Any) -> Table:
        """Each row becomes another."""
        call, aliases = self._called(func)
        made = self._bound(s.Select(0, ((self._with_row(call), "$row"),), self._source()))
        kind = made._plan.schema.types[0]
        if not isinstance(kind, t.RowType):
            return made.alias(aliases[0] if aliases else "_c0")
        fields: tuple[Item, ...] = tuple((s.FieldAccess(0, s.Name(0, ("$row",)), n), n) for n in kind.names)
        flat = made._bound(s.Select(0, fields, made._source()))
        return flat.alias(*aliases) if aliases else flat

    def flat_map(self, func: Any) -> Table:
        """Each row becomes any number of others."""
        call, aliases = self._called(func)
        width = len(self._plan.schema)
        right = s.TableFunctionCall(0, self._with_row(call), "$t" if aliases else None, aliases)
        joined = s.Join(0, "CROSS", self._source(), right)
        made = self._bound(s.Select(0, ((s.Star(0), None),), joined))
        kept = made._plan.refs()[width:]
        return Table(l.project(made._plan, kept, made._plan.schema.names[width:]), self._t_env)

    def aggregate(self, func: Any) -> AggregatedTable:
        """All rows become one."""
        return AggregatedTable(GroupedTable(self, ()), func)

    def flat_aggregate(self, func: Any) -> FlatAggregateTable:
        """All rows become several."""
        return FlatAggregateTable(GroupedTable(self, ()), func)

    def to_changelog(self, *arguments: Any) -> Table:
        """Each change of the table as a row that is inserted, with a column that tells the change."""
        return self._turned("TO_CHANGELOG", arguments)

    def from_changelog(self, *arguments: Any) -> Table:
        """Each row as the change that one of its columns tells."""
        return self._turned("FROM_CHANGELOG", arguments)

    def _turned(self, name: str, arguments: Sequence[Any]) -> Table:
        data = s.NamedArgument(0, "input", s.TableArgument(0, self._source()))
        right = s.TableFunctionCall(0, s.Call(0, name, (data, *map(node, arguments))))
        return self._bound(s.Select(0, ((s.Star(0), None),), right))

    # ------------------------------------------------------------------------------------------------------- the ends

    def execute(self) -> TableResult:
        """Run the query; its rows can be read while it runs."""
        return self._t_env._collect(self._plan)

    def to_pandas(self) -> Any:
        """The final rows as a pandas DataFrame."""
        return self._t_env._to_pandas(self._plan)

    def execute_insert(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TableResult:
        """Write the rows into a table."""
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def insert_into(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TablePipeline:
        """The query that goes into a table, not yet run."""
        return self._t_env._pipeline(self._plan, table_path_or_descriptor, overwrite)

    def get_schema(self) -> TableSchema:
        """The columns, in PyFlink's older form."""
        return TableSchema(self._plan.schema.names, self._plan.schema.types)

    def get_resolved_schema(self) -> ResolvedSchema:
        """The columns."""
        return ResolvedSchema._of(self._plan.schema)

    def print_schema(self) -> None:
        """Print the columns."""
        print(self.get_resolved_schema())

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as text."""
        return self._t_env._explain([self._plan], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plan."""
        print(self.explain(*extra_details))
