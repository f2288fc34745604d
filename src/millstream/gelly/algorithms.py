"""Components, distances and labels: algorithms that spread values along edges.

Promises: a round costs time for the vertices whose values change.
Does not know: how rounds are run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from millstream.errors import UserError
from millstream.gelly.models import GatherSumApply, UntilStable


class NegativeCycle(UserError):
    """Distances have no limit, because a cycle of edges has a negative weight in total."""

    hint = "remove an edge of the cycle, or give it a larger weight"

    def __init__(self, vertex: int, source: int) -> None:
        self.vertex = vertex
        super().__init__(f"a path from vertex {source} to vertex {vertex} contains a negative cycle")


@dataclass(frozen=True)
class ConnectedComponents(GatherSumApply):
    """The weakly connected components: the value of a vertex is the least id in its component.

    Example:
        >>> ConnectedComponents()
        ConnectedComponents()

    """

    combiner: ClassVar[str] = "min"
    dtype: ClassVar[str] = "int64"
    undirected: ClassVar[bool] = True
    is_monotone: ClassVar[bool] = True

    def initialize(self, block: Any) -> np.ndarray:
        """Begin with the own id of each vertex."""
        return block.ids  # type: ignore[no-any-return]

    def gather(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Gather the ids."""
        return values

    def apply(self, values: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Take a smaller id."""
        return np.minimum(values, sums)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SingleSourceShortestPaths(GatherSumApply):
    """The distance of each vertex from a source along directed edges, by their weights; infinite if there is no path.

    Weights may be negative. With a negative cycle the distances have no limit: the iteration fails after as many rounds
    as there are vertices, because a path without a cycle has fewer edges.

    Attributes:
        source: The id of the source vertex.

    Example:
        >>> SingleSourceShortestPaths(source=1)
        SingleSourceShortestPaths(source=1)

    """

    source: int
    combiner: ClassVar[str] = "min"
    is_monotone: ClassVar[bool] = True

    def initialize(self, block: Any) -> np.ndarray:
        """Begin with a distance of zero at the source."""
        return np.where(block.ids == self.source, 0.0, np.inf)

    def begin_with(self, block: Any) -> np.ndarray:
        """Begin at the source."""
        return np.flatnonzero(block.ids == self.source)

    def gather(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Add the weight to the distance."""
        return values + weights  # type: ignore[no-any-return]

    def apply(self, values: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Take a shorter distance."""
        return np.minimum(values, sums)  # type: ignore[no-any-return]

    def update(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Apply; raise if a distance improves in a round in which only a negative cycle can improve it."""
        rounds = int(aggregates.get("rounds", 0)) + 1
        block.notes["rounds"] = rounds
        changed, values, senders = super().update(block, vertices, messages, aggregates)
        if len(changed) and rounds >= aggregates.get("vertices", np.inf):
            raise NegativeCycle(int(block.ids[changed[0]]), self.source)
        return changed, values, senders

    def aggregate(self, block: Any) -> Mapping[str, tuple[str, float]]:
        """Report the number of rounds, and that of the vertices."""
        return {"rounds": ("max", block.notes.get("rounds", 0)), "vertices": ("sum", len(block))}


@dataclass(frozen=True)
class BreadthFirstSearch(SingleSourceShortestPaths):
    """The number of edges on the shortest directed path from a source; infinite if there is no path.

    Example:
        >>> BreadthFirstSearch(source=1)
        BreadthFirstSearch(source=1)

    """

    def gather(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Add one to the level."""
        return values + 1.0


@dataclass(frozen=True)
class LabelPropagation(UntilStable):
    """Communities by labels: in each round, a vertex takes the most frequent label of its neighbors.

    Directions are ignored, and parallel edges count as often as they occur. The first labels are the ids. Of labels
    that are equally frequent, a vertex takes the largest. The rounds are synchronous, so labels may alternate for ever,
    as they do on a single edge: set a limit of rounds.

    Example:
        >>> LabelPropagation().combiner is None
        True

    """

    combiner: ClassVar[str | None] = None
    dtype: ClassVar[str] = "int64"
    undirected: ClassVar[bool] = True

    def initialize(self, block: Any) -> np.ndarray:
        """Begin with the own id of each vertex."""
        return block.ids  # type: ignore[no-any-return]

    def scatter(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Send the label."""
        return block.values[block.sources[edges]]  # type: ignore[no-any-return]

    def gather(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take the most frequent label."""
        if not len(vertices):
            return vertices, messages
        firsts = np.flatnonzero(
            np.concatenate(([True], (vertices[1:] != vertices[:-1]) | (messages[1:] != messages[:-1])))
        )
        receivers, labels = vertices[firsts], messages[firsts]
        counts = np.diff(np.append(firsts, len(vertices)))
        order = np.lexsort((labels, counts, receivers))
        receivers, labels = receivers[order], labels[order]
        best = np.flatnonzero(np.append(receivers[1:] != receivers[:-1], True))
        return receivers[best], labels[best]
