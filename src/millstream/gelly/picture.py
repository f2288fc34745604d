"""Draws a small graph as an SVG document.

Promises: the same graph gives the same drawing; vertices with an edge between them are near each other.
Does not know: streams."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from millstream.client import html

Array = np.ndarray

_ROUNDS = 300
_RADIUS, _MARGIN, _DISTANCE = 13, 40, 75
_COLORS = ("#cfe0fb", "#fbd9bd", "#c5ead7", "#e2d2f3", "#f8cfe0", "#f4e7a8", "#c8e8ee", "#dcdfe4")
_STYLE = (
    "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;font-size:11px;fill:#1d2733;text-anchor:middle}"
    "circle{stroke:#66717f}.edge{fill:none;stroke:#7c8794;stroke-width:1.4}"
)


@dataclass(frozen=True)
class GraphPicture:
    """A drawing of a graph, which notebooks show.

    Attributes:
        svg: The SVG document.

    Example:
        >>> GraphPicture("<svg/>").save("/tmp/graph.svg")

    """

    svg: str

    def save(self, path: str) -> None:
        """Write the SVG document to a file.

        Args:
            path: The path of the file.

        """
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        return html.picture(self.svg, "a graph")

    def __repr__(self) -> str:
        return f"GraphPicture({len(self.svg)} characters)"


def draw(
    vertices: Mapping[int, float], edges: Sequence[tuple[int, int, float]], labels: Mapping[int, int]
) -> GraphPicture:
    """Return a drawing of a graph: two edges in opposite directions are one line with two heads.

    Args:
        vertices: The value of each vertex.
        edges: Edges (source, target, weight).
        labels: The label of each vertex that has one; vertices with the same label have the same color.

    """
    ids = sorted(vertices)
    index_of = {vertex: index for index, vertex in enumerate(ids)}
    weights: dict[tuple[int, int], list[float]] = {}
    for source, target, weight in sorted(edges):
        weights.setdefault((index_of[source], index_of[target]), []).append(weight)
    lines = [pair for pair in weights if pair[0] <= pair[1] or pair[::-1] not in weights]
    ends = [pair for pair in lines if pair[0] != pair[1]]
    positions = _layout(len(ids), np.array(ends, dtype=np.int64).reshape(-1, 2))
    width, height = (2 * _MARGIN + positions.max(axis=0, initial=0)).tolist()
    colors = {label: _COLORS[index % len(_COLORS)] for index, label in enumerate(sorted(set(labels.values())))}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{len(ids)} vertices, {len(edges)} edges</title><style>{_STYLE}</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0,0L8,4L0,8z" fill="#7c8794"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
    ]
    places = (positions + _MARGIN).tolist()
    for source, target in lines:
        text = [_describe(ids[source], ids[target], weights[source, target])]
        if source != target and (target, source) in weights:
            text.append(_describe(ids[target], ids[source], weights[target, source]))
        both = ' marker-start="url(#arrow)"' if len(text) > 1 else ""
        parts.append(
            f"<g><title>{'; '.join(text)}</title>"
            f'<path class="edge" d="{_path(places[source], places[target])}" marker-end="url(#arrow)"{both}/></g>'
        )
    for vertex, (x, y) in zip(ids, places, strict=True):
        text = [str(vertex)] if math.isnan(vertices[vertex]) else [str(vertex), f"value {vertices[vertex]:g}"]
        text += [f"label {labels[vertex]}"] if vertex in labels else []
        color = colors[labels[vertex]] if vertex in labels else "#fff"
        parts.append(
            f"<g><title>{', '.join(text)}</title>"
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" fill="{color}"/>'
            f'<text x="{x:.1f}" y="{y + 4:.1f}">{vertex}</text></g>'
        )
    return GraphPicture("\n".join([*parts, "</svg>"]) + "\n")


def _describe(source: int, target: int, weights: Sequence[float]) -> str:
    return f"{source} to {target}: {', '.join(f'{weight:g}' for weight in weights)}"


def _path(source: Sequence[float], target: Sequence[float]) -> str:
    """Return the line from the border of one vertex to that of another, or a loop above a vertex."""
    (x, y), (to_x, to_y) = source, target
    if source == target:
        return f"M{x - 7:.1f},{y - 11:.1f}C{x - 24:.1f},{y - 40:.1f} {x + 24:.1f},{y - 40:.1f} {x + 7:.1f},{y - 11:.1f}"
    length = math.hypot(to_x - x, to_y - y)
    dx, dy = _RADIUS * (to_x - x) / length, _RADIUS * (to_y - y) / length
    return f"M{x + dx:.1f},{y + dy:.1f}L{to_x - dx:.1f},{to_y - dy:.1f}"


def _layout(count: int, ends: Array) -> Array:
    """Return positions in a plane: all vertices repel each other, edges pull, and all are pulled to the middle.

    This is the method of Fruchterman and Reingold, from a spiral.
    """
    turns = np.arange(count)
    positions = np.sqrt(turns + 1)[:, None] * np.stack((np.cos(2.4 * turns), np.sin(2.4 * turns)), axis=1)
    for heat in np.linspace(max(math.sqrt(count) / 5, 0.2), 0.01, _ROUNDS):
        between = positions[:, None] - positions[None]
        squares = (between**2).sum(axis=2) + 1e-4
        moves = (between / squares[..., None]).sum(axis=1) - 0.3 * positions
        pulls = between[ends[:, 0], ends[:, 1]]
        pulls *= np.sqrt((pulls**2).sum(axis=1))[:, None]
        np.subtract.at(moves, ends[:, 0], pulls)
        np.add.at(moves, ends[:, 1], pulls)
        lengths = np.sqrt((moves**2).sum(axis=1))[:, None] + 1e-9
        positions = positions + moves / lengths * np.minimum(lengths, heat)
    return _DISTANCE * (positions - positions.min(axis=0, initial=np.inf if count else 0))  # type: ignore[no-any-return]
