"""Draws an execution plan as an SVG file.

Unlike a Mermaid chart, the file needs no renderer and no network: every browser shows it, with tooltips for ids, key
groups and the reasons of exchanges.

Promises: levels from left to right; boxes do not overlap, and no arrow crosses a box. The file is well-formed for all
operator names, and the same plan gives the same bytes. Long names are shortened; their tooltips have the whole name.
Does not know: the fonts of the viewer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from xml.sax.saxutils import escape

from millstream.graph.execution_plan import ExecutionPlan, PlannedVertex
from millstream.graph.explain import (
    ChainRow,
    Feedback,
    chain_rows,
    describe_counts,
    exchange_label,
    feedback_edges,
    key_group_ranges,
    number_vertices,
    operator_category,
    printable,
)
from millstream.graph.job_graph import JobEdge

_MARGIN, _TOP = 24, 84
_ROW, _HEAD, _PAD, _INDENT = 22, 30, 12, 14
_PORT = 22  # minimum distance of two arrows at a box; a label is between them
_BETWEEN = 28
_CURVE = 56
_LANE = 14  # the height of a feedback arrow, below the boxes
_WIDEST_NAME, _WIDEST_LABEL = 280, 170
_SWEEPS = 8
_DOTS = {
    "source": "#2f9e6e",
    "keyed": "#3b6fd4",
    "sink": "#d9772b",
    "head": "#8e5bc7",
    "tail": "#c75b9b",
    "": "#8a94a3",
}
_LEGEND = {
    "source": "source",
    "keyed": "keyed state",
    "sink": "sink",
    "head": "head of an iteration",
    "tail": "tail of an iteration",
}
_STYLE = (
    "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;font-size:13px;fill:#1d2733}"
    ".job{font-size:18px;font-weight:bold}.faint{font-size:11px;fill:#66717f}.label{font-size:11px;fill:#44505e}"
    ".number{font-size:11px;font-weight:bold;fill:#66717f}.badge{font-size:11px;font-weight:bold;fill:#fff}"
    ".level{fill:#f4f6f9;rx:8px}.box{fill:#fff;stroke:#b4bdc9;stroke-width:1.2}.times{fill:#44505e}"
    ".arrow{fill:none;stroke:#7c8794;stroke-width:1.4}.feedback{stroke-dasharray:5 4}"
)


@dataclass(eq=False)
class _Box:
    """A vertex with its position or, without a vertex, the space of an arrow that passes a level."""

    level: int
    planned: PlannedVertex | None
    width: float = 0
    height: float = 0
    y: float = 0
    before: list[_Box] = field(default_factory=list)
    after: list[_Box] = field(default_factory=list)

    @property
    def centre(self) -> float:
        return self.y + self.height / 2

    def port(self, neighbours: list[_Box], turn: int) -> float:
        """Return the y coordinate at which the arrow to a neighbour, counted from above, meets this box."""
        return self.y + self.height * (turn + 1) / (len(neighbours) + 1)


def svg(plan: ExecutionPlan) -> str:
    """Return the plan as an SVG document."""
    boxes = {planned.vertex.id: _box(planned) for planned in plan.vertices}
    routes = [_route(boxes, edge) for edge in plan.job.edges]
    columns: list[list[_Box]] = [[] for _ in range(plan.levels)]
    for box in dict.fromkeys([*boxes.values(), *(box for route in routes for box in route)]):
        columns[box.level].append(box)
    for box in boxes.values():
        box.height = max(box.height, _PORT * (1 + max(len(box.before), len(box.after))))
    columns = _order_boxes(columns)
    _set_positions(columns)
    lefts, widths, rooms = _horizontal_layout(plan, columns)
    title = ", ".join(describe_counts(plan))
    name = _shorten(printable(plan.job.name), 600)
    width = max(lefts[-1] + widths[-1] + _MARGIN, _MARGIN * 2 + 1.5 * _width(name), 420)
    lowest = max(box.y + box.height for column in columns for box in column)
    feedback = feedback_edges(plan)
    bottom = lowest + 20 + _LANE * len(feedback)
    numbers = number_vertices(plan)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{bottom + 44:.0f}" '
        f'viewBox="0 0 {width:.0f} {bottom + 44:.0f}" role="img">',
        f"<title>{escape(printable(plan.job.name))}</title><style>{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0L8,4L0,8z" fill="#7c8794"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{bottom + 44:.0f}" fill="#fff"/>',
        f'<text class="job" x="{_MARGIN}" y="32">{escape(name)}</text>',
        f'<text class="faint" x="{_MARGIN}" y="50">{title}</text>',
    ]
    for level, (left, wide) in enumerate(zip(lefts, widths, strict=True)):
        parts.append(
            f'<rect class="level" x="{left - 10:.1f}" y="60" width="{wide + 20:.1f}" height="{bottom - 60:.1f}"/>'
            f'<text class="faint" x="{left:.1f}" y="76">level {level}</text>'
        )
    for edge, route in zip(plan.job.edges, routes, strict=True):
        parts += _arrow(plan, edge, route, lefts, widths, rooms)
    for turn, way in enumerate(feedback):
        ends = boxes[way.from_vertex], boxes[way.to_vertex]
        parts += _draw_feedback(way, *ends, lefts, widths, lowest + _LANE * (turn + 1))
    for vertex_id, box in boxes.items():
        parts += _draw_box(box, lefts[box.level], numbers[vertex_id])
    parts += _legend(plan, bottom + 22)
    return "\n".join([*parts, "</svg>"]) + "\n"


# -------------------------------------------------------------------------------------------------- boxes and routes


def _box(planned: PlannedVertex) -> _Box:
    rows = chain_rows(planned.vertex)
    widest = max(_INDENT * row.depth + _width(_shorten(_row_text(row), _WIDEST_NAME)) for row in rows)
    return _Box(planned.level, planned, max(widest + 2 * _PAD + 16, 130), _HEAD + _ROW * len(rows) + 8)


def _route(boxes: dict[str, _Box], edge: JobEdge) -> list[_Box]:
    """Return the boxes that an arrow passes, one for each level."""
    first, last = boxes[edge.upstream], boxes[edge.downstream]
    route = [first, *(_Box(level, None, height=_PORT) for level in range(first.level + 1, last.level)), last]
    for box, next_box in pairwise(route):
        box.after.append(next_box)
        next_box.before.append(box)
    return route


def _order_boxes(columns: list[list[_Box]]) -> list[list[_Box]]:
    """Order the boxes of each column from top to bottom by repeated sweeps, to reduce crossings."""
    best, fewest = [column[:] for column in columns], _crossings(columns)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            indexes = {id(box): index for column_boxes in columns for index, box in enumerate(column_boxes)}
            mean_index = {
                id(box): _mean(
                    [indexes[id(neighbour)] for neighbour in (box.before if forward else box.after)], indexes[id(box)]
                )
                for box in column
            }
            column.sort(key=lambda box: mean_index[id(box)])
        crossings = _crossings(columns)
        if crossings < fewest:
            best, fewest = [column[:] for column in columns], crossings
    return best


def _crossings(columns: list[list[_Box]]) -> int:
    count = 0
    for column, following in pairwise(columns):
        index_of = {id(box): index for index, box in enumerate(following)}
        ends = [
            index_of[id(neighbour)]
            for box in column
            for neighbour in sorted(box.after, key=lambda neighbour: index_of[id(neighbour)])
        ]
        count += sum(end > later_end for index, end in enumerate(ends) for later_end in ends[index + 1 :])
    return count


def _set_positions(columns: list[list[_Box]]) -> None:
    """Set the y coordinate of each box: near the mean of its neighbours, and below the box above it."""
    for column in columns:
        _stack(column, [0.0] * len(column))
    for _ in range(_SWEEPS):
        for side in ("before", "after"):
            for column in columns if side == "before" else reversed(columns):
                _stack(
                    column,
                    [_mean([neighbour.centre for neighbour in getattr(box, side)], box.centre) for box in column],
                )
    top = min(box.y for column in columns for box in column)
    for column in columns:
        for box in column:
            box.y += _TOP + 6 - top


def _stack(column: list[_Box], centres: Sequence[float]) -> None:
    """Place boxes close to the wanted centres by least squares; their order and a minimum distance are kept."""
    offsets: list[float] = []
    reached = 0.0
    for box in column:
        offsets.append(reached + box.height / 2)
        reached += box.height + _BETWEEN
    pools: list[tuple[float, int]] = []  # sum and count of wanted centres that share one value
    for centre, offset in zip(centres, offsets, strict=True):
        total, count = centre - offset, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    shifts = [total / count for total, count in pools for _ in range(count)]
    for box, offset, shift in zip(column, offsets, shifts, strict=True):
        box.y = offset + shift - box.height / 2


def _horizontal_layout(plan: ExecutionPlan, columns: list[list[_Box]]) -> tuple[list[float], list[float], list[float]]:
    """Return the left side and the width of each level, and the space for labels before it."""
    widths = [max(box.width for box in column) for column in columns]
    rooms = [0.0] * len(columns)
    for edge, level in zip(plan.job.edges, plan.edge_levels, strict=True):
        rooms[level] = max(rooms[level], _width(_shorten(exchange_label(edge), _WIDEST_LABEL), 11) + 24)
    lefts = [float(_MARGIN)]
    for width, room in zip(widths, rooms[1:], strict=False):
        lefts.append(lefts[-1] + width + _CURVE + room)
    return lefts, widths, rooms


# ---------------------------------------------------------------------------------------------------------- drawing


def _arrow(
    plan: ExecutionPlan,
    edge: JobEdge,
    route: list[_Box],
    lefts: list[float],
    widths: list[float],
    rooms: list[float],
) -> Iterable[str]:
    nodes = {node.id: node for vertex in plan.job.vertices for node in vertex.nodes}
    ends = edge.stream_edge
    label = _shorten(exchange_label(edge), _WIDEST_LABEL)
    path = ""
    for box, next_box in pairwise(route):
        x = lefts[box.level] + (box.width if box.planned else widths[box.level])
        y = box.port(box.after, _turn(box, next_box, edge, plan, "after"))
        to_x = lefts[next_box.level]
        to_y = next_box.port(next_box.before, _turn(next_box, box, edge, plan, "before"))
        flat = to_x - rooms[next_box.level]
        start = lefts[box.level] + widths[box.level] + 10
        middle = (start + flat) / 2
        path += f"{'L' if path else 'M'}{x:.1f},{y:.1f}L{start:.1f},{y:.1f}"
        path += f"C{middle:.1f},{y:.1f} {middle:.1f},{to_y:.1f} {flat:.1f},{to_y:.1f}L{to_x:.1f},{to_y:.1f}"
    tooltip = (
        f"{printable(nodes[ends.upstream].name)} to {printable(nodes[ends.downstream].name)}: "
        f"{exchange_label(edge)}, because {edge.reason.value}"
    )
    yield f'<g><title>{escape(tooltip)}</title><path class="arrow" d="{path}" marker-end="url(#head)"/>'
    yield f'<text class="label" text-anchor="end" x="{to_x - 13:.1f}" y="{to_y - 5:.1f}">{escape(label)}</text></g>'


def _draw_feedback(
    way: Feedback, tail: _Box, head: _Box, lefts: list[float], widths: list[float], y: float
) -> Iterable[str]:
    """Draw the arrow from a tail to its head: below all boxes, and up and down between columns."""
    right = lefts[tail.level] + tail.width
    down, left = lefts[tail.level] + widths[tail.level] + 6, lefts[head.level]
    from_y, to_y = tail.y + tail.height - 6, head.y + head.height - 6
    path = f"M{right:.1f},{from_y:.1f}L{down:.1f},{from_y:.1f}L{down:.1f},{y:.1f}L{left - 16:.1f},{y:.1f}"
    path += f"L{left - 16:.1f},{to_y:.1f}L{left:.1f},{to_y:.1f}"
    tooltip = f"{printable(way.tail.name)} to {printable(way.head.name)}: feedback, in the next round"
    yield f"<g><title>{escape(tooltip)}</title>"
    yield f'<path class="arrow feedback" d="{path}" marker-end="url(#head)"/></g>'


def _turn(box: _Box, neighbour: _Box, edge: JobEdge, plan: ExecutionPlan, side: str) -> int:
    """Return the port of a box that an arrow uses: ports are ordered as their neighbours, from top to bottom."""
    neighbours: list[_Box] = getattr(box, side)
    turn = sorted(range(len(neighbours)), key=lambda index: (neighbours[index].centre, index))
    matching_ports = [index for index in turn if neighbours[index] is neighbour]
    if len(matching_ports) == 1:
        return turn.index(matching_ports[0])
    parallel_edges = [
        job_edge.index
        for job_edge in plan.job.edges
        if (job_edge.upstream, job_edge.downstream) == (edge.upstream, edge.downstream)
    ]
    return turn.index(matching_ports[parallel_edges.index(edge.index)])


def _draw_box(box: _Box, left: float, number: int) -> Iterable[str]:
    assert box.planned is not None
    vertex = box.planned.vertex
    groups = key_group_ranges(box.planned)
    tooltip = f"{printable(vertex.name)}\nparallelism {vertex.parallelism} of at most {vertex.max_parallelism}"
    tooltip += f"\nkey groups {groups}" if groups else ""
    badge = f"×{vertex.parallelism}"
    badge_width = _width(badge, 11) + 12
    right = left + box.width
    yield f"<g><title>{escape(tooltip)}</title>"
    yield f'<rect class="box" x="{left:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>'
    yield f'<text class="number" x="{left + _PAD:.1f}" y="{box.y + 20:.1f}">{number}</text>'
    x = right - badge_width - 8
    yield f'<rect class="times" x="{x:.1f}" y="{box.y + 7:.1f}" width="{badge_width:.1f}" height="18" rx="9"/>'
    x += badge_width / 2
    yield f'<text class="badge" text-anchor="middle" x="{x:.1f}" y="{box.y + 20:.1f}">{badge}</text></g>'
    for row_index, row in enumerate(chain_rows(vertex)):
        x, y = left + _PAD + _INDENT * row.depth, box.y + _HEAD + _ROW * row_index + 15
        tooltip = "\n".join([printable(row.node.name), f"id {row.node.operator}"])
        tooltip += f"\nuid {printable(row.node.uid)}" if row.node.uid is not None else ""
        yield f'<g><title>{escape(tooltip)}</title><circle cx="{x + 4:.1f}" cy="{y - 4.5:.1f}" r="4" '
        yield f'fill="{_DOTS[operator_category(row.node)]}"/>'
        yield f'<text x="{x + 15:.1f}" y="{y:.1f}">{escape(_shorten(_row_text(row), _WIDEST_NAME))}</text></g>'


def _legend(plan: ExecutionPlan, y: float) -> Iterable[str]:
    categories = {operator_category(node) for vertex in plan.job.vertices for node in vertex.nodes}
    x = float(_MARGIN)
    for category, label in _LEGEND.items():
        if category in categories:
            yield f'<circle cx="{x + 4:.1f}" cy="{y - 4:.1f}" r="4" fill="{_DOTS[category]}"/>'
            yield f'<text class="faint" x="{x + 14:.1f}" y="{y:.1f}">{label}</text>'
            x += 40 + _width(label, 11)
    yield f'<text class="faint" x="{x:.1f}" y="{y:.1f}">×n parallelism</text>'


# ------------------------------------------------------------------------------------------------------------- text


def _row_text(row: ChainRow) -> str:
    return printable(row.node.name) + ("" if row.tag is None else f" (reads '{printable(row.tag)}')")


def _width(text: str, size: int = 13) -> float:
    """Return an upper estimate of the width of a text, because the viewer's font is not known."""
    return size * sum(_em(character) for character in text)


def _em(character: str) -> float:
    if ord(character) > 0x2000:
        return 1.0
    if character in " ilj.,:;|!'()[]tfrI":
        return 0.4
    return 0.95 if character in "mwMW@%" else 0.72 if character.isupper() else 0.62


def _shorten(text: str, limit: float) -> str:
    if _width(text) <= limit:
        return text
    widths = list(accumulate(map(_width, text)))
    return text[: bisect_right(widths, limit - _width("…"))] + "…"


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise
