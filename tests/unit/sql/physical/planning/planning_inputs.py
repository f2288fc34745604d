"""Inputs of planning functions: plans without operators, and a planner for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.sql.expressions.nodes import AggregateCall, Apply, Expression
from millstream.sql.logical import nodes as l
from millstream.sql.physical.nodes import FORWARD, Operation
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

ROWTIME = t.TimestampType(3, attribute=t.ROWTIME)
PROCTIME = t.LocalZonedTimestampType(3, attribute=t.PROCTIME)
COUNT = AggregateCall("COUNT", (), t.BIGINT, ())


@dataclass(frozen=True)
class Table(l.Plan):
    """A table with a changelog mode and upsert keys."""

    mode: ChangelogMode = ChangelogMode.INSERT_ONLY
    keys: frozenset[tuple[int, ...]] = frozenset()


def table(mode: ChangelogMode = ChangelogMode.INSERT_ONLY, *keys: tuple[int, ...], **columns: t.DataType) -> Table:
    return Table(t.row_of(list(columns), list(columns.values()), null=False), mode, frozenset(keys))


class FakePlanner:
    """Plans tables, and nodes above them as operations without a spec."""

    def __init__(
        self,
        lookup: Callable[[l.TemporalJoin, Operation], Operation | None] = lambda node, left: None,
        **settings: object,
    ) -> None:
        self.settings = Settings(**settings)  # type: ignore[arg-type]
        self.versions = False
        self.lookup = lookup
        self.versions_of: dict[l.Plan, bool] = {}

    def plan(self, node: l.Plan, *, before: bool = True) -> Operation:
        self.versions_of[node] = self.versions
        if isinstance(node, Table):
            return Operation("Table", "", node.schema, mode=node.mode, upsert_keys=node.keys)
        inputs = tuple(map(self.plan, node.inputs()))
        is_insert_only = all(operation.mode.insert_only for operation in inputs)
        mode = ChangelogMode.INSERT_ONLY if is_insert_only else ChangelogMode.RETRACT
        return Operation(type(node).__name__, "", node.schema, inputs, (FORWARD,) * len(inputs), mode=mode)


def window_table(rows: l.Plan, window: l.WindowSpec) -> l.WindowTable:
    """Return the rows with window_start, window_end and window_time."""
    names = [*rows.schema.names, "window_start", "window_end", "window_time"]
    types = [*rows.schema.types, t.TimestampType(3), t.TimestampType(3), ROWTIME]
    return l.WindowTable(t.row_of(names, types, null=False), rows, window)


def is_equal(left: Expression, right: Expression) -> Expression:
    return Apply(t.BOOLEAN, "=", (left, right))


def is_greater(left: Expression, right: Expression) -> Expression:
    return Apply(t.BOOLEAN, ">", (left, right))


def both(*conditions: Expression) -> Expression:
    return Apply(t.BOOLEAN, "AND", conditions)
