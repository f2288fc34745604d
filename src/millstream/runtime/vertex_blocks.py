"""The vertices of one subtask with their values and outgoing edges, as sorted arrays.

Promises: the same block follows from the same chunks, in whatever order edges came; a chunk can be restricted to the
vertices of some key groups.
Does not know: rounds, messages, what the values mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.errors import UserError

Array = np.ndarray
_REDUCE: dict[str, np.ufunc] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


class UnusableWeight(UserError):
    """An edge has a weight that is not a number."""

    hint = "filter such edges, or give them a weight"

    def __init__(self, source: int, target: int) -> None:
        super().__init__(f"the edge from vertex {source} to vertex {target} has a weight of NaN")


class MissingId(UserError):
    """A vertex or an edge has NULL in place of an id."""

    hint = "remove such rows before the graph is created"

    def __init__(self, field: str) -> None:
        super().__init__(f"the field {field} of a row of the graph is NULL")


class DuplicateVertex(UserError):
    """A vertex has two values."""

    hint = "remove one of them, or combine them before the graph uses them"

    def __init__(self, vertex: int, values: list[float]) -> None:
        super().__init__(f"vertex {vertex} has two values, {values[0]} and {values[1]}")


class VertexBlock:
    """Sorted vertex ids, their values, and their edges: those of vertex `i` are `starts[i]` to before `starts[i + 1]`.

    Attributes:
        ids: The vertex ids.
        initial: The values that the vertices have in the graph, NaN for vertices without one.
        values: The values that the program computes: one number of each vertex, or an array of several.
        sources: The index of the vertex of each edge.
        targets: The vertex id at the other end of each edge.
        weights: The weight of each edge.
        forward: Whether an edge has the direction that it has in the graph; programs that are undirected also have
            the reverse of each edge.
        notes: Anything that `update` leaves for `message` and `aggregate` of the same round.

    """

    def __init__(
        self, vertices: tuple[Array, Array], values: Array, edges: tuple[Array, ...], *, simple: bool = False
    ) -> None:
        """`vertices` are ids and initial values, `edges` are sources (ids), targets, weights and directions. `simple`
        drops self loops, and all parallel edges but the one with the least weight."""
        self.ids, self.initial = vertices
        self.values = values
        self.notes: dict[str, Any] = {}
        sources, targets, weights, forward = edges
        order = np.lexsort((forward, weights, targets, sources))
        sources, targets = sources[order], targets[order]
        if simple and len(order):
            repeated = np.concatenate(([False], (sources[1:] == sources[:-1]) & (targets[1:] == targets[:-1])))
            kept = ~repeated & (sources != targets)
            order, sources, targets = order[kept], sources[kept], targets[kept]
        self.sources = np.searchsorted(self.ids, sources)
        self.targets, self.weights, self.forward = targets, weights[order], forward[order].astype(bool)
        self.starts = np.searchsorted(self.sources, np.arange(len(self.ids) + 1))
        self._all_edges = np.arange(len(self.targets))
        self._by_target: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def degrees(self) -> Array:
        """The number of outgoing edges of each vertex."""
        return np.diff(self.starts)

    def combine(self, kind: str | None, edges: Array, messages: Array) -> tuple[Array, Array]:
        """Return the messages along some edges, combined by receiver, in an order that follows from the block.

        The order of all edges by receiver is kept: most programs use it in every round."""
        if kind is None:
            return self.targets[edges], messages
        if edges is not self._all_edges:
            order, firsts = _group(self.targets[edges])
            return self.targets[edges[order[firsts]]], _REDUCE[kind].reduceat(messages[order], firsts, axis=0)
        if self._by_target is None:
            self._by_target = _group(self.targets)
        order, firsts = self._by_target
        return self.targets[order[firsts]], _REDUCE[kind].reduceat(messages[order], firsts, axis=0)

    def indexes(self, ids: Array) -> Array:
        """Return the index of each vertex id; all must be there."""
        return np.searchsorted(self.ids, ids)

    def has(self, ids: Array) -> Array:
        """Return for each id whether it is that of a vertex of this block."""
        indexes = np.searchsorted(self.ids, ids)
        if not len(self.ids):
            return np.zeros(len(ids), dtype=bool)
        return np.asarray(self.ids[np.minimum(indexes, len(self.ids) - 1)] == ids)

    def edges_of(self, vertices: Array) -> Array:
        """Return the indexes of the edges of some vertices, given by index."""
        if len(vertices) == len(self.ids):
            return self._all_edges
        counts = self.starts[vertices + 1] - self.starts[vertices]
        total = int(counts.sum())
        offsets = np.repeat(self.starts[vertices] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        return np.arange(total) + offsets if total else np.zeros(0, dtype=np.int64)


def concat_columns(chunks: Iterable[pa.RecordBatch], *names: str) -> tuple[Array, ...]:
    """Return columns of all chunks, each as one array."""
    batches = list(chunks)
    return tuple(
        np.concatenate([batch.column(name).to_numpy(zero_copy_only=False) for batch in batches])
        if batches
        else np.zeros(0, dtype=np.int64)
        for name in names
    )


def to_numbers(array: pa.Array, field: str) -> Array:
    """Return a column of numbers; a missing number is NaN. Raise if an integer is missing."""
    if array.null_count and pa.types.is_integer(array.type):
        raise MissingId(field)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def sort_messages(vertices: Array, messages: Array) -> tuple[Array, Array]:
    """Return messages by vertex, and those of one vertex by value: in an order that does not depend on arrival."""
    columns = messages.T[::-1] if messages.ndim == 2 else (messages,)
    order = np.lexsort((*columns, vertices))
    return vertices[order], messages[order]


def combine_messages(kind: str | None, vertices: Array, messages: Array) -> tuple[Array, Array]:
    """Return each vertex once, with its combined message: the `sum`, `min` or `max`; with None, all messages."""
    if not len(vertices):
        return vertices, messages
    vertices, messages = sort_messages(vertices, messages)
    if kind is None:
        return vertices, messages
    firsts = _firsts(vertices)
    return vertices[firsts], _REDUCE[kind].reduceat(messages, firsts, axis=0)


def _group(keys: Array) -> tuple[Array, Array]:
    """Return the order of keys, and where each different one begins in it; equal keys keep their order."""
    order = np.argsort(keys, kind="stable")
    return order, _firsts(keys[order])


def _firsts(keys: Array) -> Array:
    """Return where each different key begins; keys are sorted, and there is at least one."""
    return np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))


def check_weights(sources: Array, targets: Array, weights: Array) -> None:
    """Raise if the weight of an edge is NaN."""
    missing = np.isnan(weights)
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise UnusableWeight(int(sources[first]), int(targets[first]))


def values_of_vertices(ids: Array, vertices: Array, values: Array) -> Array:
    """Return the value of each vertex, of pairs of ids and values; NaN for vertices without one. Raise if a vertex has
    two of them."""
    known = ~np.isnan(values)
    vertices, values = vertices[known], values[known]
    result, indexes = np.full(len(ids), np.nan), np.searchsorted(ids, vertices)
    result[indexes] = values
    differs = result[indexes] != values
    if differs.any():
        vertex = int(vertices[differs].min())
        raise DuplicateVertex(vertex, np.unique(values[vertices == vertex]).tolist())
    return result
