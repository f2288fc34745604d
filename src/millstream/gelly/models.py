"""Scatter-gather and gather-sum-apply: two models of Gelly, as vertex programs on arrays.

Promises: a vertex sends in the round after its value changed, and in the first one; in some models all vertices do.
Does not know: how rounds are run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.functions.vertex import VertexProgram


@dataclass(frozen=True)
class ScatterGather(VertexProgram):
    """A scatter-gather iteration: vertices whose values changed scatter messages, and their receivers gather them.

    Example:
        >>> import numpy as np
        >>> class Least(ScatterGather):
        ...     combiner = "min"
        ...     def initialize(self, block):
        ...         return block.ids.astype(float)
        ...     def scatter(self, block, edges):
        ...         return block.values[block.sources[edges]]
        ...     def gather(self, block, vertices, messages, aggregates):
        ...         smaller = messages < block.values[vertices]
        ...         return vertices[smaller], messages[smaller]

    """

    @abstractmethod
    def initialize(self, block: Any) -> np.ndarray:
        """Return the initial values; all vertices send in the first round.

        Args:
            block: The vertices of the subtask.

        """

    @abstractmethod
    def scatter(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Return the message along each of some edges.

        Args:
            block: The vertices of the subtask.
            edges: The indexes of the edges.

        """

    @abstractmethod
    def gather(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the indexes of the vertices whose values change, and their values.

        Args:
            block: The vertices of the subtask.
            vertices: The indexes of vertices with messages; see `VertexProgram.update`.
            messages: The combined message of each.
            aggregates: The aggregates of the round before.

        """

    def start(self, block: Any) -> tuple[np.ndarray, np.ndarray]:
        """Begin with all vertices."""
        return self.initialize(block), np.arange(len(block))

    def update(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gather; the vertices that changed send."""
        changed, values = self.gather(block, vertices, messages, aggregates)
        return changed, values, changed

    def message(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Scatter."""
        return self.scatter(block, edges)


@dataclass(frozen=True)
class UntilStable(ScatterGather):
    """A scatter-gather iteration in which all vertices send, until no value has changed in a round."""

    def update(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gather; all vertices send, until no value has changed in a round."""
        changed, values = self.gather(block, vertices, messages, aggregates)
        if len(vertices):
            block.notes["changed"] = int((values != block.values[changed]).sum())
        return changed, values, np.arange(len(block) if aggregates.get("changed", 1) else 0)

    def aggregate(self, block: Any) -> Mapping[str, tuple[str, float]]:
        """Report how many values have changed."""
        changed = block.notes.get("changed")
        return {} if changed is None else {"changed": ("sum", changed)}


@dataclass(frozen=True)
class GatherSumApply(VertexProgram):
    """A gather-sum-apply iteration: `gather` computes a number for each edge, the combiner sums those of a vertex up,
    and `apply` computes the new value of the vertex.

    Only vertices that have a neighbor whose value changed apply. If they all have to be seen, use `ScatterGather`.

    Example:
        >>> import numpy as np
        >>> class Distances(GatherSumApply):
        ...     combiner = "min"
        ...     def initialize(self, block):
        ...         return np.where(block.ids == 1, 0.0, np.inf)
        ...     def gather(self, values, weights):
        ...         return values + weights
        ...     def apply(self, values, sums):
        ...         return np.minimum(values, sums)

    """

    @abstractmethod
    def initialize(self, block: Any) -> np.ndarray:
        """Return the initial values.

        Args:
            block: The vertices of the subtask.

        """

    @abstractmethod
    def gather(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return a number for each edge.

        Args:
            values: The value of the source of each edge.
            weights: The weight of each edge.

        """

    @abstractmethod
    def apply(self, values: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return the new values of vertices.

        Args:
            values: Their old values.
            sums: The combined numbers of the edges of each.

        """

    def begin_with(self, block: Any) -> np.ndarray:
        """Return the indexes of the vertices that send in the first round; by default all.

        Args:
            block: The vertices of the subtask.

        """
        return np.arange(len(block))

    def start(self, block: Any) -> tuple[np.ndarray, np.ndarray]:
        """Begin with some vertices."""
        return self.initialize(block), self.begin_with(block)

    def update(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Apply; the vertices that changed send."""
        before = block.values[vertices]
        values = np.asarray(self.apply(before, messages))
        changed = values != before
        return vertices[changed], values[changed], vertices[changed]

    def message(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Gather."""
        return self.gather(block.values[block.sources[edges]], block.weights[edges])
