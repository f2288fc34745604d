"""Selection of the parts of a query that Catalyst plans.

Promises: in batch mode, the largest parts of a plan that can be lowered and benefit from it become sources; other parts
are computed by our operators. These operators do not lose event time: a part with a watermark is lowered only if it is
the whole query.
Does not know: how plans are lowered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millstream.sql.catalyst.lowering import lower_plan
from millstream.sql.logical import nodes as l
from millstream.sql.physical.nodes import Operation
from millstream.sql.physical.planning.contract import Settings

_STATELESS = (l.Scan, l.Values, l.Project, l.Filter, l.WatermarkAssigner, l.Correlate)


class BatchLowering:
    """Replaces parts of `plans` by sources, if possible. With `single`, one reader reads the rows."""

    def __init__(
        self, scan: Callable[[l.Scan], Operation], settings: Settings, plans: Sequence[l.Plan], *, single: bool
    ) -> None:
        self._scan, self._settings, self._single = scan, settings, single
        self._roots = [plan.input if isinstance(plan, l.Sink) else plan for plan in plans]

    def __call__(self, plan: l.Plan) -> Operation | None:
        """Return a plan as a source; None if our operators are to compute it."""
        if not (self._settings.batch and self._settings.catalyst) or isinstance(plan, l.Sink):
            return None
        is_root = any(plan is root_plan for root_plan in self._roots)
        nodes = _list_nodes(plan)
        if all(isinstance(node, _STATELESS) for node in nodes):
            return None
        if not is_root and any(isinstance(node, l.WatermarkAssigner) for node in nodes):
            return None
        source = lower_plan(plan, self._scan, self._settings.zone, single=self._single and is_root)
        if source is None:
            return None
        return Operation("Catalyst", f"fields=[{', '.join(plan.schema.names)}]", plan.schema, source=source)


def _list_nodes(plan: l.Plan) -> list[l.Plan]:
    visited: dict[int, l.Plan] = {}

    def visit(node: l.Plan) -> None:
        if id(node) not in visited:
            visited[id(node)] = node
            for input_plan in node.inputs():
                visit(input_plan)

    visit(plan)
    return list(visited.values())
