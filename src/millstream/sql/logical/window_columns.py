"""Which columns of a plan are window_start, window_end and window_time of a window.

Promises: these columns are followed through projections, filters, joins, ranks and aggregates by windows.
Does not know: how windows are computed."""

from __future__ import annotations

from millstream.sql.expressions.nodes import Ref
from millstream.sql.logical import nodes as l
from millstream.sql.types import data_types as t


def find_window_edges(plan: l.Plan) -> dict[int, tuple[str, l.WindowSpec, bool]]:
    """Return the columns of a plan that hold the start, end or time of a window, by column index."""
    match plan:
        case l.WindowTable(input=inner, window=window):
            width = len(inner.schema)
            zoned = isinstance(inner.schema.types[window.time], t.LocalZonedTimestampType)
            edges = dict(find_window_edges(inner))
            edges.update({width + i: (part, window, zoned) for i, part in enumerate(("start", "end", "time"))})
            return {i: edges[i] for i in edges if i >= width}
        case l.Project(input=inner, exprs=exprs):
            below = find_window_edges(inner)
            return {i: below[e.index] for i, e in enumerate(exprs) if isinstance(e, Ref) and e.index in below}
        case l.Filter(input=inner) | l.Expand(input=inner) | l.Correlate(input=inner) | l.Rank(input=inner):
            return find_window_edges(inner)
        case l.Aggregate(input=inner, keys=keys):
            below = find_window_edges(inner)
            parts = {below[k][0] for k in keys if k in below}
            if not {"start", "end"} <= parts:
                return {}
            return {i: below[k] for i, k in enumerate(keys) if k in below}
        case l.Join(left=left, right=right, kind=join_type):
            edges = dict(find_window_edges(left))
            if join_type not in ("semi", "anti"):
                width = len(left.schema)
                edges.update({i + width: part for i, part in find_window_edges(right).items()})
            return edges
    return {}
