"""Communities: the Louvain method, and the modularity of labels.

Subtasks combine the edges between the same two vertices, and one subtask then computes the communities: it needs memory
for the combined edges. Modularity is computed by all subtasks.

Promises: directions are ignored; communities do not depend on the parallelism.
Does not know: streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from millstream.errors import UserError
from millstream.functions.partition import Columns, PartitionFunction
from millstream.runtime.vertex_blocks import check_weights

Array = np.ndarray

_LEAST_GAIN = 1e-7  # of modularity, in one round
_ROUNDING = 1e-12


class UnusableEdge(UserError):
    """An edge has a weight with which modularity is not defined."""

    hint = "filter such edges, or give them a weight of zero or more with map_edges"

    def __init__(self, source: int, target: int, weight: float) -> None:
        super().__init__(f"the edge from vertex {source} to vertex {target} has a weight of {weight}")


class UnlabeledVertex(UserError):
    """A vertex has no label, or several."""

    hint = "give every vertex that has edges one label"

    def __init__(self, vertex: int, problem: str) -> None:
        super().__init__(f"vertex {vertex} has {problem}")


def _check(edges: Columns) -> None:
    """Raise if a weight is NaN, negative or infinite."""
    check_weights(edges["source"], edges["target"], edges["weight"])
    refused = np.flatnonzero((edges["weight"] < 0) | np.isinf(edges["weight"]))
    if len(refused):
        index = refused[np.lexsort((edges["target"][refused], edges["source"][refused]))[0]]
        raise UnusableEdge(*(edges[name][index].item() for name in ("source", "target", "weight")))


def _sum_pairs(sources: Array, targets: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return sorted pairs, each once, and the sum of its weights, which are added in ascending order."""
    order = np.lexsort((weights, targets, sources))
    sources, targets, weights = sources[order], targets[order], weights[order]
    firsts = np.flatnonzero((np.diff(sources) != 0) | (np.diff(targets) != 0)) + 1
    firsts = np.append(0, firsts) if len(sources) else firsts
    return sources[firsts], targets[firsts], np.add.reduceat(weights, firsts) if len(firsts) else weights


# ------------------------------------------------------------------------------------------------------------ Louvain


@dataclass(frozen=True)
class CombineEdges(PartitionFunction):
    """Each pair of vertices with edges, smaller vertex first, and the sum of their weights; a vertex is a self loop of
    weight zero."""

    def process(self, leaving: Columns, arriving: Columns, vertices: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield the combined edges of the vertices that are the smaller ones."""
        _check(leaving)
        up, down, ids = (
            leaving["source"] <= leaving["target"],
            arriving["target"] < arriving["source"],
            vertices["vertex"],
        )
        sources, targets, weights = _sum_pairs(
            np.concatenate((leaving["source"][up], arriving["target"][down], ids)),
            np.concatenate((leaving["target"][up], arriving["source"][down], ids)),
            np.concatenate((leaving["weight"][up], arriving["weight"][down], np.zeros(len(ids)))),
        )
        yield {"source": sources, "target": targets, "weight": weights}


@dataclass(frozen=True)
class Louvain(PartitionFunction):
    """The community of each vertex, which is its least vertex, from combined edges."""

    resolution: float

    def process(self, edges: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield vertices and communities."""
        sources, targets, weights = _sum_pairs(edges["source"], edges["target"], edges["weight"])
        ids, ends = np.unique(np.concatenate((sources, targets)), return_inverse=True)
        ones, others = ends[: len(sources)], ends[len(sources) :]
        loops = np.bincount(ones, np.where(ones == others, weights, 0), len(ids))
        apart = np.flatnonzero((ones != others) & (weights > 0))
        ones, others, weights = ones[apart], others[apart], weights[apart]
        level = _Level(np.append(ones, others), np.append(others, ones), np.append(weights, weights), loops)
        membership = _find_communities(level, self.resolution) if level.total else np.arange(len(ids))
        least: Array = np.full(len(ids), len(ids))
        np.minimum.at(least, membership, np.arange(len(ids)))
        yield {"vertex": ids, "value": ids[least[membership]]}


class _Level:
    """A graph whose vertices are communities of the level below; each edge occurs in both directions.

    Attributes:
        sources: The source of each edge.
        targets: Its target, which is another vertex.
        weights: Its weight.
        loops: The weight of the self loop of each vertex.
        degrees: The weight of the edges of each vertex; a self loop counts twice.
        total: The sum of all degrees.

    """

    def __init__(self, sources: Array, targets: Array, weights: Array, loops: Array) -> None:
        self.sources, self.targets, self.weights, self.loops = sources, targets, weights, loops
        self.degrees: Array = np.bincount(sources, weights, len(loops)) + 2 * loops
        self.total = float(self.degrees.sum())

    def merge(self, community: Array) -> _Level:
        """Return the graph of communities, which are numbered from zero."""
        ones, others = community[self.sources], community[self.targets]
        inside, apart = np.flatnonzero(ones == others), np.flatnonzero(ones != others)
        count = int(community.max()) + 1
        loops = np.bincount(community, self.loops, count) + np.bincount(ones[inside], self.weights[inside], count) / 2
        return _Level(*_sum_pairs(ones[apart], others[apart], self.weights[apart]), loops)

    def modularity(self, community: Array, resolution: float) -> float:
        """Return the modularity of communities."""
        same = community[self.sources] == community[self.targets]
        shares = np.bincount(community, self.degrees) / self.total
        inside = self.weights[same].sum() + 2 * self.loops.sum()
        return float(inside / self.total - resolution * (shares**2).sum())

    def best_moves(self, community: Array, resolution: float) -> tuple[Array, Array, Array]:
        """Return vertices that should move, to which community, and how much modularity grows by it alone."""
        vertices, to, links = _sum_pairs(self.sources, community[self.targets], self.weights)
        stays = to == community[vertices]
        own_links = np.zeros(len(community))
        own_links[vertices[stays]] = links[stays]
        degrees, sums = self.degrees[vertices], np.bincount(community, self.degrees, len(community))
        expected = degrees * (sums[to] - sums[community[vertices]] + degrees) / self.total
        gains = 2 * (links - own_links[vertices] - resolution * expected) / self.total
        better = np.flatnonzero(~stays & (gains > _ROUNDING))
        order = better[np.lexsort((to[better], -gains[better], vertices[better]))]
        best = order[np.unique(vertices[order], return_index=True)[1]]
        return vertices[best], to[best], gains[best]


def _find_communities(vertices: _Level, resolution: float) -> Array:
    """Return communities, numbered from zero: move vertices, then communities of them, and begin again with the result
    while modularity grows."""
    quality, membership = -np.inf, np.arange(len(vertices.loops))
    while True:
        found = _move_vertices(vertices, membership, resolution)
        level = vertices.merge(found)
        while (community := _move_vertices(level, np.arange(len(level.loops)), resolution)).max() + 1 < len(
            level.loops
        ):
            found, level = community[found], level.merge(community)
        if (reached := vertices.modularity(found, resolution)) <= quality + _LEAST_GAIN:
            return membership
        quality, membership = reached, found


def _move_vertices(level: _Level, community: Array, resolution: float) -> Array:
    """Return communities, numbered from zero, after vertices have moved to other ones while modularity grew.

    A round computes the best move of every vertex at once. Moves disturb each other, so it tries three sets of them
    and keeps the best: those to smaller communities, those to larger ones, and those that have no community in common.
    Gains of the third set add up, so modularity grows in every round.
    """
    ties = np.random.default_rng(0).permutation(len(community))
    quality = level.modularity(community, resolution)
    while True:
        vertices, to, gains = level.best_moves(community, resolution)
        origins = community[vertices]
        trials = []
        for moves in (to < origins, to > origins, _disjoint(origins, to, np.lexsort((ties[vertices], -gains)))):
            trial = community.copy()
            trial[vertices[moves]] = to[moves]
            trials.append((level.modularity(trial, resolution), trial))
        best, trial = max(trials, key=lambda pair: pair[0])
        if best <= quality + _LEAST_GAIN:
            return np.unique(community, return_inverse=True)[1]
        quality, community = best, trial


def _disjoint(origins: Array, to: Array, order: Array) -> Array:
    """Return which moves come first, in an order, of all that leave or enter one of their two communities."""
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    first = np.full(max(origins.max(initial=0), to.max(initial=0)) + 1, len(order))
    np.minimum.at(first, origins, ranks)
    np.minimum.at(first, to, ranks)
    return (first[origins] == ranks) & (first[to] == ranks)  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------------------------- modularity


def _labels_of(vertices: Array, labels: Columns) -> Array:
    """Return the label of each vertex, or raise."""
    ids, firsts, indexes = np.unique(labels["vertex"], return_index=True, return_inverse=True)
    values = labels["value"][firsts]
    several = np.flatnonzero(values[indexes] != labels["value"])
    if len(several):
        raise UnlabeledVertex(int(labels["vertex"][several].min()), "two labels")
    missing = vertices[~np.isin(vertices, ids)]
    if len(missing):
        raise UnlabeledVertex(int(missing.min()), "no label")
    return values[np.searchsorted(ids, vertices)]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SourceLabels(PartitionFunction):
    """The target, the weight and the label of the source of each edge."""

    def process(self, edges: Columns, labels: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield one record for each edge."""
        _check(edges)
        label = _labels_of(edges["source"], labels)
        yield {"target": edges["target"], "label": label, "weight": edges["weight"]}


@dataclass(frozen=True)
class LabelWeights(PartitionFunction):
    """What edges add to the weight inside a label, and to the degrees of its vertices."""

    def process(self, edges: Columns, labels: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield two records for each edge: one for each end."""
        ones, others, weights = edges["label"], _labels_of(edges["target"], labels), edges["weight"]
        inside = np.where(ones == others, weights, 0.0)
        yield {"label": ones, "inside": inside, "degree": weights}
        yield {"label": others, "inside": np.zeros(len(weights)), "degree": weights}


@dataclass(frozen=True)
class LabelSums(PartitionFunction):
    """Sums over the labels of a subtask: of inner weights, degrees, and squares of the degrees of labels."""

    def process(self, rows: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield one record."""
        _, indexes = np.unique(rows["label"], return_inverse=True)
        degrees = np.bincount(indexes, rows["degree"])
        sums = {"inside": rows["inside"].sum(), "degree": degrees.sum(), "squares": (degrees**2).sum()}
        yield {name: np.array([value], dtype=float) for name, value in sums.items()}


@dataclass(frozen=True)
class Modularity(PartitionFunction):
    """The modularity, from the sums of all subtasks; NaN if the weights of all edges together are zero."""

    resolution: float

    def process(self, rows: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield one number."""
        inside, degree, squares = (float(rows[name].sum()) for name in ("inside", "degree", "squares"))
        value = 2 * inside / degree - self.resolution * squares / degree**2 if degree else float("nan")
        yield {"modularity": np.array([value])}
