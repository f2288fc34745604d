"""Core numbers, and strongly connected components: vertex programs that peel a graph.

Promises: results do not depend on the parallelism.
Does not know: how rounds are run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from millstream.functions.vertex import VertexProgram
from millstream.gelly.models import UntilStable


@dataclass(frozen=True)
class CoreNumbers(UntilStable):
    """The core number of each vertex: the largest k for which it is in the k-core, where all have k neighbors or more.

    Directions, self loops and parallel edges are ignored. The numbers begin as degrees. In each round, a vertex takes
    the largest k for which k of its neighbors have a number of at least k.

    Example:
        >>> CoreNumbers().simple
        True

    """

    combiner: ClassVar[str | None] = None
    dtype: ClassVar[str] = "int64"
    undirected: ClassVar[bool] = True
    simple: ClassVar[bool] = True

    def initialize(self, block: Any) -> np.ndarray:
        """Begin with degrees."""
        return block.degrees  # type: ignore[no-any-return]

    def scatter(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Send the number."""
        return block.values[block.sources[edges]]  # type: ignore[no-any-return]

    def gather(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take the largest k for which k neighbors have a number of at least k; messages are sorted."""
        if not len(vertices):
            return vertices, messages
        firsts = np.flatnonzero(np.append(True, vertices[1:] != vertices[:-1]))
        ends = np.append(firsts[1:], len(vertices))
        at_least = np.repeat(ends, ends - firsts) - np.arange(len(vertices))  # how many messages are not smaller
        numbers = np.maximum.reduceat(np.minimum(messages, at_least), firsts)
        changed = numbers < block.values[vertices[firsts]]
        return vertices[firsts][changed], numbers[changed]


_TRIM, _FORWARD, _BACKWARD = range(3)
_COLOR, _COMPONENT, _DONE = range(3)


@dataclass(frozen=True)
class StronglyConnectedComponents(VertexProgram):
    """The strongly connected components: the value of a vertex is the largest id in its component.

    Three phases take turns until every vertex has a component. Vertices without incoming or without outgoing edges are
    components of their own (trim). The largest ids spread along edges (forward); a vertex that keeps its own id then
    spreads it against the edges, to those that have the same id (backward). The number of rounds grows with the length
    of paths.

    Example:
        >>> StronglyConnectedComponents().undirected
        True

    """

    combiner: ClassVar[str] = "max"
    dtype: ClassVar[str] = "int64"
    width: ClassVar[int] = 3
    undirected: ClassVar[bool] = True

    def start(self, block: Any) -> tuple[np.ndarray, np.ndarray]:
        """Begin to trim."""
        block.notes.update(phase=_TRIM, active=len(block))
        return np.stack((block.ids, block.ids, np.zeros(len(block), dtype=np.int64)), axis=1), np.arange(len(block))

    def update(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Continue the phase of the last round if it changed anything; begin the next phase otherwise."""
        values = block.values.copy()
        phase = int(aggregates.get("phase", _TRIM))
        if aggregates.get("active", 0):
            active, senders = self._continue(phase, block.ids, values, vertices, messages)
        elif aggregates.get("left", 0):
            phase = (phase + 1) % 3
            active = senders = self._begin(phase, block.ids, values)
        else:
            active = senders = np.zeros(0, dtype=np.int64)
        block.notes.update(phase=phase, active=len(active))
        changed = np.flatnonzero((values != block.values).any(axis=1))
        return changed, values[changed], senders

    def _begin(self, phase: int, ids: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the vertices that send first."""
        left = values[:, _DONE] == 0
        if phase == _FORWARD:
            values[left, _COLOR] = ids[left]
        if phase == _BACKWARD:
            left &= values[:, _COLOR] == ids
            values[left, _COMPONENT] = ids[left]
            values[left, _DONE] = 1
        return np.flatnonzero(left)

    def _continue(
        self, phase: int, ids: np.ndarray, values: np.ndarray, vertices: np.ndarray, messages: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the vertices that changed, and those that send."""
        left = values[:, _DONE] == 0
        if phase == _TRIM:
            kept = np.zeros(len(ids), dtype=bool)
            kept[vertices] = (messages[:, 0] > 0) & (messages[:, 1] > 0)
            trimmed = left & ~kept
            values[trimmed, _COMPONENT] = ids[trimmed]
            values[trimmed, _DONE] = 1
            return np.flatnonzero(trimmed), np.flatnonzero(left & kept)
        received = messages[:, 0]
        if phase == _FORWARD:
            larger = left[vertices] & (received > values[vertices, _COLOR])
            values[vertices[larger], _COLOR] = received[larger]
            return vertices[larger], vertices[larger]
        joins = vertices[left[vertices] & (-received == values[vertices, _COLOR])]
        values[joins, _COMPONENT] = values[joins, _COLOR]
        values[joins, _DONE] = 1
        return joins, joins

    def select(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Send along all edges but self loops, along edges, or against them."""
        phase, forward = block.notes["phase"], block.forward[edges]
        if phase == _TRIM:
            return edges[block.targets[edges] != block.ids[block.sources[edges]]]  # type: ignore[no-any-return]
        return edges[forward == (phase == _FORWARD)]  # type: ignore[no-any-return]

    def message(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Send the direction of the edge, or the color.

        Against edges, the color is negative: a vertex has the smallest color of all that it can receive, and combined
        messages are the largest.
        """
        result = np.zeros((len(edges), 3), dtype=np.int64)
        forward, color = block.forward[edges], block.values[block.sources[edges], _COLOR]
        if block.notes["phase"] == _TRIM:
            result[:, 0], result[:, 1] = forward, ~forward
        else:
            result[:, 0] = color if block.notes["phase"] == _FORWARD else -color
        return result

    def continues(self, block: Any) -> bool:
        """Continue while vertices of this block have no component."""
        return bool((block.values[:, _DONE] == 0).any())

    def aggregate(self, block: Any) -> Mapping[str, tuple[str, float]]:
        """Report the phase, how many vertices changed, and how many are left."""
        left = (block.values[:, _DONE] == 0).sum()
        active = block.notes["active"]
        return {"phase": ("max", block.notes["phase"]), "active": ("sum", active), "left": ("sum", float(left))}

    def finish(self, block: Any, aggregates: Mapping[str, float]) -> np.ndarray:
        """Return the components."""
        return block.values[:, _COMPONENT]  # type: ignore[no-any-return]
