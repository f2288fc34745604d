"""Minimum spanning forests.

Every subtask reduces its edges to a forest. What such a forest leaves out is the heaviest edge of a cycle, so it is not
in the result. One subtask then computes the forest of these edges: it needs memory for as many edges as there are
vertices, times the parallelism.

Promises: edges of equal weight are ordered by their vertices, so the result is unique.
Does not know: streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from millstream.functions.partition import Columns, PartitionFunction
from millstream.runtime.vertex_blocks import check_weights

Array = np.ndarray


@dataclass(frozen=True)
class MinimumSpanningForest(PartitionFunction):
    """The edges of a minimum spanning forest of edges without directions; each has its smaller vertex as the source."""

    def process(self, edges: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield the edges of the forest."""
        check_weights(edges["source"], edges["target"], edges["weight"])
        sources: Array = np.minimum(edges["source"], edges["target"])
        targets: Array = np.maximum(edges["source"], edges["target"])
        order = np.lexsort((targets, sources, edges["weight"]))
        order = order[sources[order] != targets[order]]
        sources, targets = sources[order], targets[order]
        ids = np.unique(np.concatenate((sources, targets)))
        chosen = _boruvka(np.searchsorted(ids, sources), np.searchsorted(ids, targets), len(ids))
        yield {"source": sources[chosen], "target": targets[chosen], "weight": edges["weight"][order][chosen]}


def _boruvka(sources: Array, targets: Array, count: int) -> Array:
    """Return the indexes of the edges of the forest; edges are in ascending order of their weights."""
    component = np.arange(count)
    remaining = np.arange(len(sources))
    chosen: list[Array] = []
    while len(remaining):
        ends = component[sources[remaining]], component[targets[remaining]]
        apart = ends[0] != ends[1]
        remaining, ends = remaining[apart], (ends[0][apart], ends[1][apart])
        lightest = np.full(count, len(sources))
        for end in ends:
            np.minimum.at(lightest, end, remaining)
        merging = np.flatnonzero(lightest < len(sources))
        edges = lightest[merging]
        chosen.append(np.unique(edges))
        parent = np.arange(count)
        one, other = component[sources[edges]], component[targets[edges]]
        parent[merging] = np.where(one == merging, other, one)
        mutual = merging[(parent[parent[merging]] == merging) & (merging < parent[merging])]
        parent[mutual] = mutual  # two components that chose the same edge: the smaller one is the root
        while not np.array_equal(parent, parent[parent]):
            parent = parent[parent]
        component = parent[component]
    return np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)
