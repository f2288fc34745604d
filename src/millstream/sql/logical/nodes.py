"""Logical plans: what a query computes.

Promises: nodes are frozen; each has a row type with unique field names; expressions refer to columns of the input by
column index.
Does not know: how anything is computed, or the order of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.formats.format_types import FieldSelection
from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import AggregateCall, Expression, Ref
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class Plan:
    """A relational operator with its output schema."""

    schema: t.RowType

    def inputs(self) -> tuple[Plan, ...]:
        """Return the plans that this one reads."""
        return ()

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """Return the same node with other inputs."""
        return self

    def refs(self) -> tuple[Ref, ...]:
        """Return a reference to each column."""
        return tuple(Ref(data_type, i) for i, data_type in enumerate(self.schema.types))


@dataclass(frozen=True)
class Scan(Plan):
    """A table of a catalog, or another source of rows.

    `wanted` are the columns and fields that are read, None for all; other columns may be NULL."""

    table: Any = field(compare=False)
    name: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    wanted: FieldSelection | None = None


@dataclass(frozen=True)
class Values(Plan):
    """Constant rows."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class _SingleInput(Plan):
    input: Plan

    def inputs(self) -> tuple[Plan, ...]:
        """Return the input."""
        return (self.input,)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """Return the same node with another input."""
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class Project(_SingleInput):
    """Expressions over the columns of the input."""

    exprs: tuple[Expression, ...]


@dataclass(frozen=True)
class Filter(_SingleInput):
    """The rows for which a condition is true."""

    condition: Expression


@dataclass(frozen=True)
class WatermarkAssigner(_SingleInput):
    """Assigns watermarks and makes `column` a rowtime attribute; `expr` computes the watermark of a row."""

    column: int
    expr: Expression
    idle_timeout: int | None = None


@dataclass(frozen=True)
class Join(Plan):
    """A join of two inputs. `kind` is the join type: inner, left, right, full, semi or anti."""

    left: Plan
    right: Plan
    kind: str
    condition: Expression | None
    null_aware: bool = False
    ttl: tuple[int | None, int | None] = (None, None)

    def inputs(self) -> tuple[Plan, ...]:
        """Return both sides."""
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """Return the same join of other sides."""
        return replace(self, left=inputs[0], right=inputs[1])


@dataclass(frozen=True)
class TemporalJoin(Plan):
    """Each row of the left side with the version of the right side that was valid at its time.

    `time` is the left side's time attribute. The keys pair columns of the left side with primary key columns of the
    right side. `hint` holds the options of a LOOKUP hint."""

    left: Plan
    right: Plan
    kind: str
    time: int
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    condition: Expression | None
    hint: tuple[tuple[str, str], ...] = ()

    def inputs(self) -> tuple[Plan, ...]:
        """Return both sides."""
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """Return the same join of other sides."""
        return replace(self, left=inputs[0], right=inputs[1])


@dataclass(frozen=True)
class Correlate(_SingleInput):
    """Each row with the rows that a table function returns for it: UNNEST, or a user-defined table function."""

    function: Any = field(compare=False)
    args: tuple[Expression, ...] = ()
    outer: bool = False


@dataclass(frozen=True)
class Aggregate(_SingleInput):
    """One row for each group: the keys, then the results of the calls.

    With a `count_window`, one row for each window of a number of rows: (size, slide)."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    ttl: int | None = None
    count_window: tuple[int, int] | None = None


@dataclass(frozen=True)
class Expand(_SingleInput):
    """Each row once for each grouping set, with the index of the set appended; keys outside of the set are NULL."""

    keys: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class WindowSpec:
    """How timestamps are assigned to windows; sizes are in milliseconds.

    `kind` is the window function: TUMBLE, HOP, CUMULATE or SESSION."""

    kind: str
    time: int
    size: int
    slide: int = 0
    offset: int = 0
    processing: bool = False
    partition: tuple[int, ...] = ()


@dataclass(frozen=True)
class WindowTable(_SingleInput):
    """Each row once for each of its windows; window_start, window_end and window_time are appended."""

    window: WindowSpec


@dataclass(frozen=True)
class OverCall:
    """A function over a frame of rows. Bounds are offsets in rows or milliseconds, None for unbounded."""

    call: AggregateCall
    partition: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    rows: bool
    lower: int | None
    upper: int | None


@dataclass(frozen=True)
class Over(_SingleInput):
    """The columns of the input, then one for each call."""

    calls: tuple[OverCall, ...]


@dataclass(frozen=True)
class SetOperation(Plan):
    """UNION ALL of any number of inputs; INTERSECT or EXCEPT of two."""

    operator: str
    all: bool
    parts: tuple[Plan, ...]

    def inputs(self) -> tuple[Plan, ...]:
        """Return the parts."""
        return self.parts

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """Return the same operation on other parts."""
        return replace(self, parts=inputs)


@dataclass(frozen=True)
class Sort(_SingleInput):
    """Rows in order, cut by OFFSET and LIMIT. Each entry of `order` is (column index, ascending, nulls first)."""

    order: tuple[tuple[int, bool, bool], ...]
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class Rank(_SingleInput):
    """Top-N: rows with a rank between `first` and `last` in their partition; the rank is appended if `with_rank`."""

    function: str
    partition: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    first: int
    last: int
    with_rank: bool


@dataclass(frozen=True)
class Match(_SingleInput):
    """MATCH_RECOGNIZE."""

    description: Any = field(compare=False)


ROW_KINDS = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")  # indexed by the number of the row kind


@dataclass(frozen=True)
class ToChangelog(_SingleInput):
    """Each change of the input as an inserted row, with the code of its row kind in the first column.

    `codes` maps row kinds to codes; changes of other row kinds are dropped. `partition` are the columns of PARTITION
    BY."""

    codes: tuple[tuple[int, str], ...]
    partition: tuple[int, ...] = ()


@dataclass(frozen=True)
class FromChangelog(_SingleInput):
    """Each row as a change. The column `op` holds the code of the row kind; it is not part of the output."""

    op: int
    codes: tuple[tuple[str, int], ...]
    partition: tuple[int, ...] = ()


@dataclass(frozen=True)
class ProcessTable(Plan):
    """The result of a process table function of any number of tables.

    `args` are constants, `partitions` the columns of PARTITION BY and `times` the column of `on_time` of each table.
    With `passes_columns`, the columns of the table come first, otherwise the columns of all PARTITION BY clauses."""

    tables: tuple[Plan, ...]
    function: Any = field(compare=False)
    args: tuple[Expression, ...] = ()
    partitions: tuple[tuple[int, ...], ...] = ()
    times: tuple[int | None, ...] = ()
    passes_columns: bool = False
    uid: str | None = None

    def inputs(self) -> tuple[Plan, ...]:
        """Return the tables."""
        return self.tables

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """Return the same call with other tables."""
        return replace(self, tables=inputs)


@dataclass(frozen=True)
class Sink(_SingleInput):
    """Writes the rows into a table. `conflict` is the action of ON CONFLICT DO, for rows with equal primary keys.

    `row_level` is set for UPDATE and DELETE: the rows are the new content of the table (`overwrite`), or changes
    of the row kind `row_kind`."""

    table: Any = field(compare=False)
    name: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    overwrite: bool = False
    conflict: str | None = None
    row_level: bool = False
    row_kind: int = 0


def project(plan: Plan, exprs: Sequence[Expression], names: Sequence[str]) -> Plan:
    """Project a plan to expressions; return the plan itself if they are its own columns."""
    schema = t.row_of(make_names_unique(names), [expr.type for expr in exprs], null=False)
    if tuple(exprs) == plan.refs() and schema.names == plan.schema.names:
        return plan
    return Project(schema, plan, tuple(exprs))


def create_empty_rows(names: Sequence[str], types: Sequence[t.DataType]) -> Plan:
    """Return a plan without rows."""
    return Values(t.row_of(names, types, null=False), ())


def make_names_unique(names: Sequence[str]) -> list[str]:
    """Make names unique by appending numbers to repeated ones, as Flink does."""
    numbered: list[str] = []
    used: set[str] = set()
    for name in names:
        candidate, number = name, 0
        while candidate in used:
            candidate, number = f"{name}{number}", number + 1
        used.add(candidate)
        numbered.append(candidate)
    return numbered


def join_schemas(left: t.RowType, right: t.RowType, join_type: str) -> t.RowType:
    """Return the row type of a join."""
    if join_type in ("semi", "anti"):
        return left
    lefts = [data_type.nullable() if join_type in ("right", "full") else data_type for data_type in left.types]
    rights = [data_type.nullable() if join_type in ("left", "full") else data_type for data_type in right.types]
    return t.row_of(make_names_unique([*left.names, *right.names]), [*lefts, *rights], null=False)


def rename_columns(plan: Plan, columns: tuple[str, ...], at: int) -> Plan:
    """Rename the first columns of a plan."""
    if not columns:
        return plan
    if len(columns) > len(plan.schema):
        message = f"there are {len(columns)} names for {len(plan.schema)} columns"
        raise SqlValidationError(message, at=at)
    names = [*columns, *plan.schema.names[len(columns) :]]
    return project(plan, plan.refs(), names)


@dataclass(frozen=True)
class Unnest:
    """UNNEST of an array, a map or a multiset; `ordinality` for WITH ORDINALITY."""

    ordinality: bool = False
    name: str = "UNNEST"
