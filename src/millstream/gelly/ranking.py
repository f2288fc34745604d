"""PageRank and HITS: the importance of vertices.

Promises: ranks of all vertices are updated in every round, from all ranks of the round before.
Does not know: how rounds are run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from millstream.errors import InvalidArgument, UserError
from millstream.functions.vertex import VertexProgram
from millstream.gelly.models import ScatterGather


class UnknownVertices(UserError):
    """None of the sources is a vertex of the graph."""

    hint = "use ids of vertices"

    def __init__(self, sources: tuple[int, ...]) -> None:
        super().__init__(f"the graph has none of the vertices {', '.join(map(str, sources))}")


@dataclass(frozen=True)
class PageRank(ScatterGather):
    """The PageRank of each vertex. Parallel edges count as often as they occur; weights are ignored. Vertices without
    outgoing edges give their rank to the vertices at which a walk begins.

    Attributes:
        damping: The probability to follow an edge.
        sources: The vertices at which a walk begins again (personalised PageRank); by default all vertices.

    Example:
        >>> PageRank(damping=0.9)
        PageRank(damping=0.9, sources=None)

    """

    damping: float = 0.85
    sources: tuple[int, ...] | None = None
    combiner: ClassVar[str] = "sum"

    def __post_init__(self) -> None:
        if not 0 <= self.damping <= 1:
            msg = f"a damping factor of {self.damping!r} is not possible"
            raise InvalidArgument(msg, hint="use a number from 0 to 1; 0.85 is usual")
        if self.sources is not None and not self.sources:
            msg = "a personalised PageRank needs at least one source"
            raise InvalidArgument(msg, hint="pass the ids of vertices, or no sources at all")

    def _begins(self, block: Any) -> np.ndarray:
        if self.sources is None:
            return np.ones(len(block))
        return np.isin(block.ids, self.sources).astype(float)

    def initialize(self, block: Any) -> np.ndarray:
        """Begin with a rank of one where a walk begins; the result is divided by their number."""
        return self._begins(block)

    def scatter(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Send equal shares of the rank."""
        sources = block.sources[edges]
        return block.values[sources] / block.degrees[sources]  # type: ignore[no-any-return]

    def gather(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the next ranks of all vertices."""
        dangling = aggregates.get("dangling", 0.0) / max(aggregates.get("beginnings", 0.0), 1.0)
        received = np.zeros(len(block))
        received[vertices] = messages
        begins = self._begins(block)
        ranks = (1 - self.damping) * begins + self.damping * (received + dangling * begins)
        return np.arange(len(block)), ranks

    def continues(self, block: Any) -> bool:
        """Continue even if no vertex with a rank has edges."""
        return True

    def aggregate(self, block: Any) -> Mapping[str, tuple[str, float]]:
        """Report the number of vertices at which a walk begins, and the rank of those without edges."""
        return {
            "beginnings": ("count", float(self._begins(block).sum())),
            "dangling": ("sum", float(block.values[block.degrees == 0].sum())),
        }

    def finish(self, block: Any, aggregates: Mapping[str, float]) -> np.ndarray:
        """Return ranks whose sum over all vertices is one."""
        beginnings = aggregates.get("beginnings", 0.0)
        if not beginnings and self.sources is not None:
            raise UnknownVertices(self.sources)
        return block.values / max(beginnings, 1.0)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class HITS(VertexProgram):
    """Hubs and authorities: a good hub has edges to good authorities, and a good authority has edges from good hubs.

    Parallel edges count as often as they occur. A round updates the authorities or the hubs, in turn. The result are
    two numbers of each vertex; the squares of all hubs, and those of all authorities, add up to one.

    Example:
        >>> HITS().fields
        ('hub', 'authority')

    """

    combiner: ClassVar[str] = "sum"
    width: ClassVar[int] = 2
    fields: ClassVar[tuple[str, ...]] = ("hub", "authority")
    undirected: ClassVar[bool] = True

    def start(self, block: Any) -> tuple[np.ndarray, np.ndarray]:
        """Begin with hubs of one."""
        block.notes["round"] = 0
        return np.ones((len(block), 2)), np.arange(len(block))

    def update(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Update authorities in odd rounds, and hubs in even ones."""
        last_round = int(aggregates.get("round", 0))
        block.notes["round"] = last_round + 1
        column = 1 if last_round % 2 == 0 else 0
        squares = aggregates.get("hub" if column else "authority", 0.0)
        values = block.values.copy()
        values[:, column] = 0.0
        values[vertices, column] = messages[:, 0] / (np.sqrt(squares) or 1.0)
        everyone = np.arange(len(block))
        return everyone, values, everyone

    def select(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Send hubs along edges, and authorities against them."""
        return edges[block.forward[edges] == (block.notes["round"] % 2 == 0)]  # type: ignore[no-any-return]

    def message(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Send what the last round computed."""
        values = block.values[block.sources[edges], block.notes["round"] % 2]
        return np.stack((values, np.zeros(len(edges))), axis=1)

    def continues(self, block: Any) -> bool:
        """Continue even without edges."""
        return True

    def aggregate(self, block: Any) -> Mapping[str, tuple[str, float]]:
        """Report the round and the squares of hubs and authorities."""
        hub, authority = (float(value) for value in (block.values**2).sum(axis=0))
        return {"round": ("max", block.notes["round"]), "hub": ("sum", hub), "authority": ("sum", authority)}

    def finish(self, block: Any, aggregates: Mapping[str, float]) -> np.ndarray:
        """Return hubs and authorities of length one."""
        squares = [aggregates.get(name, 0.0) or 1.0 for name in self.fields]
        return block.values / np.sqrt(squares)  # type: ignore[no-any-return]
