"""Which parts of a query Catalyst plans.

Promises: in batch mode, the largest parts of a plan that can be lowered and are worth it become sources of their rows;
what only our operators compute stays with them. Below such an operator no event time is lost: a part with a watermark
is lowered as the whole query or not at all.
Does not know: how plans are lowered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millstream.sql.catalyst.lowering import lowered
from millstream.sql.logical import nodes as l
from millstream.sql.physical.nodes import Operation
from millstream.sql.physical.planning.contract import Settings

_STATELESS = (l.Scan, l.Values, l.Project, l.Filter, l.WatermarkAssigner, l.Correlate)


class BatchLowering:
    """Offers a source in place of a part of `plans`, where it can. With `single` their rows are read by one reader."""

    def __init__(
        self, scan: Callable[[l.Scan], Operation], settings: Settings, plans: Sequence[l.Plan], *, single: bool
    ) -> None:
        self._scan, self._settings, self._single = scan, settings, single
        self._roots = [plan.input if isinstance(plan, l.Sink) else plan for plan in plans]

    def __call__(self, plan: l.Plan) -> Operation | None:
        """The plan as a source; None where our operators are to compute it."""
        if not (self._settings.batch and self._settings.catalyst) or isinstance(plan, l.Sink):
            return None
        root = any(plan is each for each in self._roots)
        nodes = _nodes(plan)
        if all(isinstance(node, _STATELESS) for node in nodes):
            return None
        if not root and any(isinstance(node, l.WatermarkAssigner) for node in nodes):
            return None
        source = lowered(plan, self._scan, self._settings.zone, single=self._single and root)
        if source is None:
            return None
        return Operation("Catalyst", f"fields=[{', '.join(plan.schema.names)}]", plan.schema, source=source)


def _nodes(plan: l.Plan) -> list[l.Plan]:
    found: dict[int, l.Plan] = {}

    def visit(node: l.Plan) -> None:
        if id(node) not in found:
            found[id(node)] = node
            for each in node.inputs():
                visit(each)

    visit(plan)
    return list(found.values())
