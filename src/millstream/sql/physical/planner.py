"""Physical planning: creates physical plans from logical ones.

Promises: each operator knows whether its input can retract rows, and emits -U only if a consumer needs it; what is not
possible on a stream is refused with a reason.
Does not know: programs; translation adds operators to them."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.logical import nodes as l
from millstream.sql.physical.nodes import Operation
from millstream.sql.physical.planning.aggregates import plan_aggregate
from millstream.sql.physical.planning.calcs import (
    plan_calc,
    plan_correlate,
    plan_expand,
    plan_watermark,
    plan_window_table,
)
from millstream.sql.physical.planning.changelogs import plan_from_changelog, plan_to_changelog
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.physical.planning.joins import plan_join, plan_temporal_join
from millstream.sql.physical.planning.match import plan_match
from millstream.sql.physical.planning.order import plan_rank, plan_set_operation, plan_sort
from millstream.sql.physical.planning.over import plan_over
from millstream.sql.physical.planning.process_tables import plan_process_table
from millstream.sql.types.changelog_mode import ChangelogMode


class PhysicalPlanner:
    """Plans one or more queries together; subplans that they share are planned once."""

    def __init__(
        self,
        settings: Settings,
        scan: Callable[[l.Scan], Operation],
        sink: Callable[[l.Sink, Callable[[bool], Operation]], Operation],
        lookup: Callable[[l.TemporalJoin, Operation], Operation | None],
        lower: Callable[[l.Plan], Operation | None] = lambda _plan: None,
    ) -> None:
        self.settings, self.lookup = settings, lookup
        self.versions = False
        self._lower = lower
        self._scan_table, self._sink_table = scan, sink
        self._done: dict[tuple[int, bool, bool], tuple[l.Plan, Operation]] = {}

    def plan(self, node: l.Plan, *, before: bool = True) -> Operation:
        """Create the physical plan of a logical one. `before` is whether -U rows are needed."""
        key = (id(node), before, self.versions)
        planned = self._done.get(key)
        if planned is None:
            planned = self._done[key] = (node, self._lower(node) or self._plan(node, before))
        return planned[1]

    def _plan(self, node: l.Plan, before: bool) -> Operation:
        match node:
            case l.Scan():
                return self._scan_table(node)
            case l.Values():
                return self._plan_values(node)
            case l.Project() | l.Filter():
                return plan_calc(self, node, before)
            case l.WatermarkAssigner():
                return plan_watermark(self, node)
            case l.Aggregate():
                return plan_aggregate(self, node, before)
            case l.Expand():
                return plan_expand(self, node)
            case l.Correlate():
                return plan_correlate(self, node)
            case l.WindowTable():
                return plan_window_table(self, node)
            case l.Over():
                return plan_over(self, node)
            case l.Join():
                return plan_join(self, node)
            case l.TemporalJoin():
                return plan_temporal_join(self, node)
            case l.SetOperation():
                return plan_set_operation(self, node)
            case l.Rank():
                return plan_rank(self, node, before)
            case l.Sort():
                return plan_sort(self, node, before)
            case l.Match():
                return plan_match(self, node)
            case l.ToChangelog():
                return plan_to_changelog(self, node)
            case l.FromChangelog():
                return plan_from_changelog(self, node)
            case l.ProcessTable():
                return plan_process_table(self, node)
            case l.Sink():
                return self._plan_sink(node)
        raise AssertionError(node)

    def _plan_sink(self, node: l.Sink) -> Operation:
        return self._sink_table(node, lambda before: self.plan(node.input, before=before))

    def _plan_values(self, node: l.Values) -> Operation:
        rows = f"{len(node.rows)} rows"
        return Operation("Values", f"tuples=[{rows}]", node.schema, source=node, mode=ChangelogMode.INSERT_ONLY)
