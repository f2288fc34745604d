"""Triangles, clustering coefficients and similarities: what follows from the neighbors of neighbors.

Directions, self loops and parallel edges are ignored. A pair of neighbors is sent to one of them, and only from the
vertex with the fewest neighbors where triangles are concerned, so there are few pairs even if some vertices have very
many neighbors.

Promises: results do not depend on the order of edges.
Does not know: streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from millstream.functions.partition import Columns, PartitionFunction

Array = np.ndarray

_BATCH = 1 << 20  # pairs in one batch of the output


@dataclass(frozen=True)
class Neighbors(PartitionFunction):
    """(vertex, neighbor, degree) for each pair of neighbors, keyed by one of them: the degree is that of the other."""

    def process(self, leaving: Columns, arriving: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield the distinct neighbors of each vertex."""
        own = np.concatenate((leaving["source"], arriving["target"]))
        others = np.concatenate((leaving["target"], arriving["source"]))
        order = np.lexsort((others, own))
        own, others = own[order], others[order]
        kept = own != others
        kept[1:] &= (own[1:] != own[:-1]) | (others[1:] != others[:-1])
        own, others = own[kept], others[kept]
        _, inverse, counts = np.unique(own, return_inverse=True, return_counts=True)
        yield {"vertex": others, "neighbor": own, "degree": counts[inverse]}


@dataclass(frozen=True)
class OpenTriangles(PartitionFunction):
    """(vertex, other, apex) for each pair of neighbors of an apex, which has the least degree of the three."""

    def process(self, neighbors: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield pairs; the edge between them is looked for next."""
        vertices, others, degrees = neighbors["vertex"], neighbors["neighbor"], neighbors["degree"]
        _, inverse, counts = np.unique(vertices, return_inverse=True, return_counts=True)
        own = counts[inverse]
        later = (degrees > own) | ((degrees == own) & (others > vertices))
        vertices, others = vertices[later], others[later]
        order = np.lexsort((others, degrees[later], vertices))
        vertices, others = vertices[order], others[order]
        for first, second in _pairs(vertices):
            yield {"vertex": others[first], "other": others[second], "apex": vertices[first]}


@dataclass(frozen=True)
class CloseTriangles(PartitionFunction):
    """The triangles: pairs that are neighbors themselves, with their apex."""

    def process(self, neighbors: Columns, pairs: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield triangles, each as three vertices in ascending order."""
        others = np.unique(np.concatenate((neighbors["neighbor"], pairs["other"])))
        vertices = np.unique(np.concatenate((neighbors["vertex"], pairs["vertex"])))

        def number(vertex: Array, other: Array) -> Array:
            return np.asarray(np.searchsorted(vertices, vertex) * len(others) + np.searchsorted(others, other))

        closed = np.isin(number(pairs["vertex"], pairs["other"]), number(neighbors["vertex"], neighbors["neighbor"]))
        corners = np.stack([pairs[name][closed] for name in ("apex", "vertex", "other")])
        corners.sort(axis=0)
        yield {"first": corners[0], "second": corners[1], "third": corners[2]}


@dataclass(frozen=True)
class ClusteringCoefficients(PartitionFunction):
    """(vertex, share of its pairs of neighbors that are neighbors), for all vertices."""

    def process(  # type: ignore[override]
        self, first: Columns, second: Columns, third: Columns, neighbors: Columns, vertices: Columns
    ) -> Iterator[Columns]:
        """Yield vertices and shares; the share is zero for vertices with fewer than two neighbors."""
        ids = np.unique(vertices["vertex"])
        corners = np.concatenate((first["first"], second["second"], third["third"]))
        triangles = np.bincount(np.searchsorted(ids, corners), minlength=len(ids))
        degrees = np.bincount(np.searchsorted(ids, neighbors["vertex"]), minlength=len(ids))
        pairs = degrees * (degrees - 1) / 2
        yield {"vertex": ids, "value": triangles / np.maximum(pairs, 1)}


@dataclass(frozen=True)
class NeighborPairs(PartitionFunction):
    """(vertex, other, share, degrees) for each pair of neighbors of a vertex: what the vertex adds to their similarity,
    and how many neighbors both have together, common ones counted twice."""

    adamic_adar: bool

    def process(self, neighbors: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield pairs."""
        order = np.lexsort((neighbors["neighbor"], neighbors["vertex"]))
        vertices, others, degrees = (neighbors[name][order] for name in ("vertex", "neighbor", "degree"))
        _, inverse, counts = np.unique(vertices, return_inverse=True, return_counts=True)
        own = counts[inverse]
        for first, second in _pairs(vertices):
            share = 1 / np.log(own[first]) if self.adamic_adar else np.ones(len(first))
            yield {
                "vertex": others[first],
                "other": others[second],
                "share": share,
                "degrees": degrees[first] + degrees[second],
            }


@dataclass(frozen=True)
class Similarities(PartitionFunction):
    """(first, second, value) for each pair of vertices with a common neighbor."""

    adamic_adar: bool

    def process(self, pairs: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield pairs and their similarity."""
        order = np.lexsort((pairs["share"], pairs["other"], pairs["vertex"]))
        vertices, others, shares, degrees = (pairs[name][order] for name in ("vertex", "other", "share", "degrees"))
        if not len(vertices):
            return
        changes = (vertices[1:] != vertices[:-1]) | (others[1:] != others[:-1])
        firsts = np.flatnonzero(np.concatenate(([True], changes)))
        sums = np.add.reduceat(shares, firsts)
        values = sums if self.adamic_adar else sums / (degrees[firsts] - sums)
        yield {"first": vertices[firsts], "second": others[firsts], "value": values}


@dataclass(frozen=True)
class Measures(PartitionFunction):
    """Sums and largest values of the simple graph, of the vertices of a subtask."""

    def process(self, neighbors: Columns, vertices: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield one record."""
        _, degrees = np.unique(neighbors["vertex"], return_counts=True)
        yield {
            "vertices": np.array([len(np.unique(vertices["vertex"]))]),
            "edges": np.array([degrees.sum()]),  # each edge is counted at both of its ends
            "triplets": np.array([(degrees * (degrees - 1) // 2).sum()]),
            "maximum_degree": np.array([degrees.max(initial=0)]),
        }


@dataclass(frozen=True)
class MergeMeasures(PartitionFunction):
    """The measures of all vertices."""

    def process(self, parts: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield one record."""
        vertices, edges = int(parts["vertices"].sum()), int(parts["edges"].sum()) // 2
        pairs = vertices * (vertices - 1) // 2
        yield {
            "vertices": np.array([vertices]),
            "edges": np.array([edges]),
            "average_degree": np.array([2 * edges / max(vertices, 1)]),
            "density": np.array([edges / max(pairs, 1)]),
            "triplets": np.array([parts["triplets"].sum()]),
            "maximum_degree": np.array([parts["maximum_degree"].max(initial=0)]),
        }


def _pairs(groups: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the indexes of all pairs of records of one group, in batches; `groups` is sorted."""
    if not len(groups):
        return
    ends = np.searchsorted(groups, groups, side="right")
    following = ends - np.arange(len(groups)) - 1
    before = np.cumsum(following)
    start = 0
    while start < len(groups):
        limit = (before[start - 1] if start else 0) + _BATCH
        stop = max(int(np.searchsorted(before, limit, side="right")), start + 1)
        counts = following[start:stop]
        first = np.repeat(np.arange(start, stop), counts)
        if len(first):
            yield first, first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        start = stop
