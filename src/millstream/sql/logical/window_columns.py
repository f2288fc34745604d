"""Which columns of a plan are starts, ends and times of windows.

Promises: they are followed through projections, filters, joins, ranks and aggregates by windows.
Does not know: how windows are computed."""

from __future__ import annotations

from millstream.sql.expressions.nodes import Ref
from millstream.sql.logical import nodes as l
from millstream.sql.types import data_types as t


def window_edges(plan: l.Plan) -> dict[int, tuple[str, l.WindowSpec, bool]]:
    """The columns of a plan that are starts, ends or times of windows."""
    match plan:
        case l.WindowTable(input=inner, window=window):
            width = len(inner.schema)
            zoned = isinstance(inner.schema.types[window.time], t.LocalZonedTimestampType)
            edges = dict(window_edges(inner))
            edges.update({width + i: (part, window, zoned) for i, part in enumerate(("start", "end", "time"))})
            return {i: edges[i] for i in edges if i >= width}
        case l.Project(input=inner, exprs=exprs):
            below = window_edges(inner)
            return {i: below[e.index] for i, e in enumerate(exprs) if isinstance(e, Ref) and e.index in below}
        case l.Filter(input=inner) | l.Expand(input=inner) | l.Correlate(input=inner) | l.Rank(input=inner):
            return window_edges(inner)
        case l.Aggregate(input=inner, keys=keys):
            below = window_edges(inner)
            parts = {below[k][0] for k in keys if k in below}
            if not {"start", "end"} <= parts:
                return {}
            return {i: below[k] for i, k in enumerate(keys) if k in below}
        case l.Join(left=left, right=right, kind=kind):
            found = dict(window_edges(left))
            if kind not in ("semi", "anti"):
                width = len(left.schema)
                found.update({i + width: part for i, part in window_edges(right).items()})
            return found
    return {}
