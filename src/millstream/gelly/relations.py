"""Partition functions of transformations: vertices, degrees, joins and neighborhood reductions.

Promises: results do not depend on the order of records.
Does not know: streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any

import numpy as np

from millstream.errors import UserError
from millstream.functions.partition import Columns, PartitionFunction
from millstream.runtime.vertex_blocks import combine_messages, sort_messages, values_of_vertices

Array = np.ndarray


class EdgeDirection(Enum):
    """Which edges of a vertex are meant: those that lead to it, those that leave it, or both.

    Example:
        >>> EdgeDirection.IN.value
        'in'

    """

    IN = "in"
    OUT = "out"
    ALL = "all"


class MissingVertex(UserError):
    """An edge has a vertex that is not given."""

    hint = "add the vertex, or remove the edge"

    def __init__(self, source: int, target: int, missing: int) -> None:
        super().__init__(f"the edge from vertex {source} to vertex {target} has no vertex {missing}")


class OrderDependent(UserError):
    """A function that reduces numbers is not commutative and associative."""

    hint = "the order of edges is not defined: use a function that is commutative and associative"

    def __init__(self, law: str, left: float, right: float) -> None:
        super().__init__(f"the reduce function depends on the order of numbers: {law}, but {left} is not {right}")


@dataclass(frozen=True)
class AllVertices(PartitionFunction):
    """All vertices with their values; those that only edges name have the value NaN."""

    def process(self, leaving: Columns, arriving: Columns, vertices: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield vertices."""
        ids = np.unique(np.concatenate((leaving["source"], arriving["target"], vertices["vertex"])))
        yield {"vertex": ids, "value": values_of_vertices(ids, vertices["vertex"], vertices["value"])}


@dataclass(frozen=True)
class CountEdges(PartitionFunction):
    """The number of edges of each vertex."""

    direction: EdgeDirection

    def process(self, leaving: Columns, arriving: Columns, vertices: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield vertices and numbers."""
        sources, targets = leaving["source"], arriving["target"]
        ids = np.unique(np.concatenate((sources, targets, vertices["vertex"])))
        counts = np.zeros(len(ids), dtype=np.int64)
        if self.direction is not EdgeDirection.IN:
            counts += np.bincount(np.searchsorted(ids, sources), minlength=len(ids))
        if self.direction is not EdgeDirection.OUT:
            counts += np.bincount(np.searchsorted(ids, targets), minlength=len(ids))
        yield {"vertex": ids, "value": counts}


@dataclass(frozen=True)
class Validate(PartitionFunction):
    """Edges, one of whose ends is checked against the vertices."""

    end: str

    def process(self, edges: Columns, vertices: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield the edges, or raise."""
        missing = np.flatnonzero(~np.isin(edges[self.end], vertices["vertex"]))
        if len(missing):
            index = missing[np.lexsort((edges["target"][missing], edges["source"][missing]))[0]]
            source, target = int(edges["source"][index]), int(edges["target"][index])
            raise MissingVertex(source, target, int(edges[self.end][index]))
        yield edges


@dataclass(frozen=True)
class Select(PartitionFunction):
    """Records whose key is among the vertices, or is not."""

    key: str
    present: bool = True

    def process(self, records: Columns, vertices: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield the records that remain."""
        kept = np.isin(records[self.key], vertices["vertex"], invert=not self.present)
        yield {name: column[kept] for name, column in records.items()}


@dataclass(frozen=True)
class JoinValues(PartitionFunction):
    """Records with a new value where another input has their key; without a function, the other value as a column."""

    key: str
    column: str
    function: Callable[[Array, Array], Any] | None = None

    def process(self, records: Columns, vertices: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield the records."""
        ids = np.unique(vertices["vertex"])
        values = values_of_vertices(ids, vertices["vertex"], vertices["value"])
        keys = np.asarray(records[self.key])
        indexes = np.searchsorted(ids, keys)
        indexes[indexes == len(ids)] = 0
        matched = np.flatnonzero(ids[indexes] == keys) if len(ids) else np.zeros(0, dtype=np.int64)
        result: Array = records[self.column].copy() if self.function else np.full(len(keys), np.nan)
        joined = values[indexes[matched]]
        result[matched] = self.function(result[matched], joined) if self.function else joined
        yield {**records, self.column: result}


@dataclass(frozen=True)
class JoinEdges(PartitionFunction):
    """Edges with a new weight where another input has an edge between the same vertices."""

    function: Callable[[Array, Array], Any]

    def process(self, edges: Columns, data: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield the edges."""
        pairs = np.stack((np.append(edges["source"], data["source"]), np.append(edges["target"], data["target"])))
        indexes: Array = np.unique(pairs, axis=1, return_inverse=True)[1]
        count = len(edges["source"])
        pair_ids, inverse = np.unique(indexes[count:], return_inverse=True)
        firsts = np.full(len(pair_ids), np.nan)
        firsts[inverse] = data["weight"]
        if (firsts[inverse] != data["weight"]).any():
            index = np.flatnonzero(firsts[inverse] != data["weight"])[0]
            raise DuplicateEdge(int(data["source"][index]), int(data["target"][index]))
        matched = np.flatnonzero(np.isin(indexes[:count], pair_ids))
        weights = edges["weight"].copy()
        weights[matched] = self.function(weights[matched], firsts[np.searchsorted(pair_ids, indexes[matched])])
        yield {**edges, "weight": weights}


class DuplicateEdge(UserError):
    """Data that is joined with edges has two values for an edge."""

    hint = "remove one of them, or combine them before the join"

    def __init__(self, source: int, target: int) -> None:
        super().__init__(f"there are two values for the edge from vertex {source} to vertex {target}")


Reduce = str | Callable[[float, float], float]


@dataclass(frozen=True)
class ReduceGroups(PartitionFunction):
    """One number for each vertex that has records: of all its numbers, by `sum`, `min`, `max` or a function of two."""

    function: Reduce
    check: bool = False

    def process(self, records: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield vertices and numbers."""
        if not callable(self.function):
            vertices, values = combine_messages(self.function, records["vertex"], records["value"])
            yield {"vertex": vertices, "value": values}
            return
        vertices, values = sort_messages(records["vertex"], records["value"])
        if self.check:
            check_laws(self.function, values)
        firsts = _firsts(vertices)
        ufunc = np.frompyfunc(self.function, 2, 1)
        groups = np.split(values.astype(object), firsts[1:])
        result = np.array([ufunc.reduce(group) for group in groups] if len(values) else [], dtype=float)
        yield {"vertex": vertices[firsts], "value": result}


@dataclass(frozen=True)
class ApplyGroups(PartitionFunction):
    """One number for each vertex that has records: what a function returns for the vertex and its numbers."""

    function: Callable[[int, Array], float]

    def process(self, records: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield vertices and numbers."""
        vertices, values = sort_messages(records["vertex"], records["value"])
        firsts = _firsts(vertices)
        groups = np.split(values, firsts[1:]) if len(values) else []
        ids = vertices[firsts].tolist()
        yield {"vertex": vertices[firsts], "value": np.array(list(map(self.function, ids, groups)), dtype=float)}


def _firsts(sorted_keys: Array) -> Array:
    """Return the index of the first record of each key."""
    if not len(sorted_keys):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate(([True], sorted_keys[1:] != sorted_keys[:-1])))


def check_laws(function: Callable[[float, float], float], values: Array) -> None:
    """Raise if a function of two numbers depends on their order, for some of the values."""
    sample = np.unique(values)[:8].tolist()
    for a, b in product(sample, repeat=2):
        if not np.isclose(function(a, b), function(b, a)):
            law = f"f({a}, {b}) = f({b}, {a})"
            raise OrderDependent(law, function(a, b), function(b, a))
    for a, b, c in product(sample, repeat=3):
        left, right = function(function(a, b), c), function(a, function(b, c))
        if not np.isclose(left, right):
            law = f"f(f({a}, {b}), {c}) = f({a}, f({b}, {c}))"
            raise OrderDependent(law, left, right)


@dataclass(frozen=True)
class CountRecords(PartitionFunction):
    """The number of all records."""

    def process(self, records: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield one number."""
        yield {"count": np.array([len(next(iter(records.values())))])}


@dataclass(frozen=True)
class Sums(PartitionFunction):
    """The sum of each column."""

    def process(self, records: Columns) -> Iterator[Columns]:  # type: ignore[override]
        """Yield one record."""
        yield {name: np.array([column.sum()]) for name, column in records.items()}
