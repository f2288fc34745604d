"""Logical plans: what a query computes.

Promises: frozen nodes with a row type whose field names are unique; expressions refer to columns of the input by
position.
Does not know: how anything is computed, or in which order rows come."""

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
    """A table that can be computed."""

    schema: t.RowType

    def inputs(self) -> tuple[Plan, ...]:
        """What it is computed from."""
        return ()

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """The same from other inputs."""
        return self

    def refs(self) -> tuple[Ref, ...]:
        """A reference to each column."""
        return tuple(Ref(kind, i) for i, kind in enumerate(self.schema.types))


@dataclass(frozen=True)
class Scan(Plan):
    """A table of a catalog, or any other origin of rows. `wanted` are the columns and fields that are read, all for
    None; the others may be NULL."""

    table: Any = field(compare=False)
    name: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    wanted: FieldSelection | None = None


@dataclass(frozen=True)
class Values(Plan):
    """Constant rows."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class _Single(Plan):
    input: Plan

    def inputs(self) -> tuple[Plan, ...]:
        """The one input."""
        return (self.input,)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """As Plan promises."""
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class Project(_Single):
    """Columns computed from columns."""

    exprs: tuple[Expression, ...]


@dataclass(frozen=True)
class Filter(_Single):
    """The rows for which a condition is true."""

    condition: Expression


@dataclass(frozen=True)
class WatermarkAssigner(_Single):
    """Event time begins here: the watermark follows an expression of each row."""

    column: int
    expr: Expression
    idle_timeout: int | None = None


@dataclass(frozen=True)
class Join(Plan):
    """Rows of both sides side by side. Kinds: inner, left, right, full, semi, anti."""

    left: Plan
    right: Plan
    kind: str
    condition: Expression | None
    null_aware: bool = False
    ttl: tuple[int | None, int | None] = (None, None)

    def inputs(self) -> tuple[Plan, ...]:
        """Both sides."""
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """As Plan promises."""
        return replace(self, left=inputs[0], right=inputs[1])


@dataclass(frozen=True)
class TemporalJoin(Plan):
    """Each row of the left with the version of the right that was valid at its time.

    `time` is the left's time attribute; keys pair columns of the left with primary key columns of the right. `hint`
    are the options of a LOOKUP hint."""

    left: Plan
    right: Plan
    kind: str
    time: int
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    condition: Expression | None
    hint: tuple[tuple[str, str], ...] = ()

    def inputs(self) -> tuple[Plan, ...]:
        """Both sides."""
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """As Plan promises."""
        return replace(self, left=inputs[0], right=inputs[1])


@dataclass(frozen=True)
class Correlate(_Single):
    """Each row with the rows that a table function makes of it: UNNEST, or a user's function."""

    function: Any = field(compare=False)
    args: tuple[Expression, ...] = ()
    outer: bool = False


@dataclass(frozen=True)
class Aggregate(_Single):
    """One row for each group."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    ttl: int | None = None


@dataclass(frozen=True)
class Expand(_Single):
    """Each row once for each grouping set, with the other keys NULL and the number of the set behind it."""

    keys: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class WindowSpec:
    """How moments are put into windows; sizes are in milliseconds."""

    kind: str
    time: int
    size: int
    slide: int = 0
    offset: int = 0
    processing: bool = False
    partition: tuple[int, ...] = ()


@dataclass(frozen=True)
class WindowTable(_Single):
    """Each row once for each window it is in, with window_start, window_end and window_time behind it."""

    window: WindowSpec


@dataclass(frozen=True)
class OverCall:
    """A function over a frame of rows: bounds are offsets (None for unbounded), in rows or milliseconds."""

    call: AggregateCall
    partition: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    rows: bool
    lower: int | None
    upper: int | None


@dataclass(frozen=True)
class Over(_Single):
    """The columns of the input, then one for each call."""

    calls: tuple[OverCall, ...]


@dataclass(frozen=True)
class SetOperation(Plan):
    """UNION ALL of many; INTERSECT and EXCEPT of two."""

    operator: str
    all: bool
    parts: tuple[Plan, ...]

    def inputs(self) -> tuple[Plan, ...]:
        """The parts."""
        return self.parts

    def with_inputs(self, inputs: tuple[Plan, ...]) -> Plan:
        """As Plan promises."""
        return replace(self, parts=inputs)


@dataclass(frozen=True)
class Sort(_Single):
    """Rows in order, some of them only: (column, ascending, nulls first)."""

    order: tuple[tuple[int, bool, bool], ...]
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class Rank(_Single):
    """The rows of each partition that come first, with their rank behind them where it is wanted."""

    function: str
    partition: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    first: int
    last: int
    with_rank: bool


@dataclass(frozen=True)
class Match(_Single):
    """MATCH_RECOGNIZE."""

    description: Any = field(compare=False)


CHANGES = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")  # by the number of the kind of change


@dataclass(frozen=True)
class ToChangelog(_Single):
    """Each change of the input as a row that is inserted, with the code of its kind in front of it.

    `codes` are kinds of change with their codes; a change of another kind is left out. `partition` are columns whose
    changes stay together, and come before the code."""

    codes: tuple[tuple[int, str], ...]
    partition: tuple[int, ...] = ()


@dataclass(frozen=True)
class FromChangelog(_Single):
    """Each row as the change that its column `op` tells by one of `codes`; `op` itself is left out."""

    op: int
    codes: tuple[tuple[str, int], ...]
    partition: tuple[int, ...] = ()


@dataclass(frozen=True)
class Sink(_Single):
    """Rows go into a table. `conflict` is what ON CONFLICT DO says about rows that claim one primary key."""

    table: Any = field(compare=False)
    name: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    overwrite: bool = False
    conflict: str | None = None


def project(plan: Plan, exprs: Sequence[Expression], names: Sequence[str]) -> Plan:
    """Columns computed from a plan; nothing when they are the plan's own."""
    schema = t.row_of(unique(names), [each.type for each in exprs], null=False)
    if tuple(exprs) == plan.refs() and schema.names == plan.schema.names:
        return plan
    return Project(schema, plan, tuple(exprs))


def unique(names: Sequence[str]) -> list[str]:
    """The names, with numbers behind those that are taken, as Flink numbers them."""
    made: list[str] = []
    taken: set[str] = set()
    for name in names:
        candidate, number = name, 0
        while candidate in taken:
            candidate, number = f"{name}{number}", number + 1
        taken.add(candidate)
        made.append(candidate)
    return made


def joined_schema(left: t.RowType, right: t.RowType, kind: str) -> t.RowType:
    """The row type of a join."""
    if kind in ("semi", "anti"):
        return left
    lefts = [k.nullable() if kind in ("right", "full") else k for k in left.types]
    rights = [k.nullable() if kind in ("left", "full") else k for k in right.types]
    return t.row_of(unique([*left.names, *right.names]), [*lefts, *rights], null=False)


def renamed(plan: Plan, columns: tuple[str, ...], at: int) -> Plan:
    """The plan with other names for its columns."""
    if not columns:
        return plan
    if len(columns) > len(plan.schema):
        message = f"{len(columns)} names for {len(plan.schema)} columns"
        raise SqlValidationError(message, at=at)
    names = [*columns, *plan.schema.names[len(columns) :]]
    return project(plan, plan.refs(), names)


@dataclass(frozen=True)
class Unnest:
    """UNNEST of an array, a map or a multiset."""

    ordinality: bool = False
    name: str = "UNNEST"
