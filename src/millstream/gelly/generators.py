"""Graphs that are computed: paths, grids, random graphs.

The edges are computed as arrays when the program is built. An edge of an undirected graph occurs in both directions, as
in Gelly.

Promises: the same arguments, with the same seed, give the same graph.
Does not know: algorithms."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import InvalidArgument
from millstream.gelly.graph import Graph

Array = np.ndarray


def path_graph(env: StreamExecutionEnvironment, vertices: int) -> Graph:
    """Return the undirected path 0, 1, 2, ...

    Args:
        env: The environment.
        vertices: The number of vertices.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> next(iter(path_graph(env, 5).number_of_edges().execute_and_collect()))
        Row(count=8)

    """
    _check(vertices, "vertices")
    first = np.arange(max(vertices - 1, 0))
    return _undirected(env, first, first + 1, vertices)


def cycle_graph(env: StreamExecutionEnvironment, vertices: int) -> Graph:
    """Return an undirected cycle of at least three vertices.

    Args:
        env: The environment.
        vertices: The number of vertices.

    """
    _check(vertices, "vertices", 3)
    first = np.arange(vertices)
    return _undirected(env, first, (first + 1) % vertices, vertices)


def star_graph(env: StreamExecutionEnvironment, vertices: int) -> Graph:
    """Return an undirected star: vertex 0 is connected with all others.

    Args:
        env: The environment.
        vertices: The number of vertices, with vertex 0.

    """
    _check(vertices, "vertices")
    others = np.arange(1, max(vertices, 1))
    return _undirected(env, np.zeros_like(others), others, vertices)


def complete_graph(env: StreamExecutionEnvironment, vertices: int) -> Graph:
    """Return the undirected graph in which every vertex is connected with every other one.

    Args:
        env: The environment.
        vertices: The number of vertices.

    """
    _check(vertices, "vertices")
    first, second = np.triu_indices(vertices, 1)
    return _undirected(env, first, second, vertices)


def grid_graph(env: StreamExecutionEnvironment, rows: int, columns: int) -> Graph:
    """Return an undirected grid: vertex `r * columns + c` is connected with the next one in its row and its column.

    Args:
        env: The environment.
        rows: The number of rows.
        columns: The number of columns.

    """
    _check(rows, "rows")
    _check(columns, "columns")
    ids = np.arange(rows * columns).reshape(rows, columns)
    first = np.concatenate((ids[:, :-1].ravel(), ids[:-1].ravel()))
    second = np.concatenate((ids[:, 1:].ravel(), ids[1:].ravel()))
    return _undirected(env, first, second, rows * columns)


def erdos_renyi_graph(env: StreamExecutionEnvironment, vertices: int, probability: float, seed: int = 0) -> Graph:
    """Return an undirected random graph in which each pair of vertices is connected with the same probability.

    Args:
        env: The environment.
        vertices: The number of vertices.
        probability: The probability of each edge.
        seed: The seed of the random numbers.

    """
    _check(vertices, "vertices")
    if not 0 <= probability <= 1:
        msg = f"a probability of {probability!r} is not possible"
        raise InvalidArgument(msg, hint="use a number from 0 to 1")
    chance = np.random.default_rng(seed)
    pairs = vertices * (vertices - 1) // 2
    numbers = np.sort(_distinct(chance, pairs, int(chance.binomial(pairs, probability))))
    # Pair number k is (first, second), where first < second and k = second (second - 1) / 2 + first.
    second = ((1 + np.sqrt(1 + 8 * numbers.astype(float))) / 2).astype(np.int64)
    second -= second * (second - 1) // 2 > numbers
    second += second * (second + 1) // 2 <= numbers
    return _undirected(env, numbers - second * (second - 1) // 2, second, vertices)


def rmat_graph(
    env: StreamExecutionEnvironment,
    scale: int,
    edges: int,
    seed: int = 0,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
) -> Graph:
    """Return a directed R-MAT graph: few vertices have very many edges, and parallel edges and self loops occur.

    Args:
        env: The environment.
        scale: The graph has 2 to the power of `scale` vertices.
        edges: The number of edges.
        seed: The seed of the random numbers.
        a: The probability that both ends of an edge are in the first half of the vertices, then of their quarter, ...
        b: The probability that the source is in the first half, and the target in the second.
        c: The probability that the source is in the second half, and the target in the first.

    """
    if not 0 <= scale <= 40:
        msg = f"a scale of {scale!r} is not possible"
        raise InvalidArgument(msg, hint="use an int from 0 to 40")
    _check(edges, "edges")
    if min(a, b, c) < 0 or a + b + c > 1:
        msg = f"the probabilities {a}, {b} and {c} are not possible"
        raise InvalidArgument(msg, hint="use numbers of at least 0 whose sum is at most 1")
    chance = np.random.default_rng(seed)
    sources, targets = np.zeros(edges, dtype=np.int64), np.zeros(edges, dtype=np.int64)
    for _ in range(scale):
        draw = chance.random(edges)
        sources = 2 * sources + (draw >= a + b)
        targets = 2 * targets + (((draw >= a) & (draw < a + b)) | (draw >= a + b + c))
    return _graph(env, sources, targets, 1 << scale)


def social_graph(
    env: StreamExecutionEnvironment, vertices: int, average_degree: float = 10, communities: int = 10, seed: int = 0
) -> Graph:
    """Return an undirected random graph like that of a social network: degrees follow a power law, and most edges
    connect vertices of the same community. Vertex v belongs to community `v % communities`.

    Args:
        env: The environment.
        vertices: The number of vertices.
        average_degree: About how many edges a vertex has; fewer where edges coincide.
        communities: The number of communities.
        seed: The seed of the random numbers.

    """
    _check(vertices, "vertices")
    _check(communities, "communities", 1)
    chance = np.random.default_rng(seed)
    count = int(vertices * average_degree / 2) if vertices > 1 else 0
    popularity = (1 + np.arange(vertices)[chance.permutation(vertices)]) ** -0.6
    limits = np.cumsum(popularity)
    first = np.searchsorted(limits, chance.random(count) * limits[-1]) if count else np.zeros(0, dtype=np.int64)
    second = np.searchsorted(limits, chance.random(count) * limits[-1]) if count else first
    same = chance.random(count) < 0.8
    second = np.where(same, second - second % communities + first % communities, second)
    kept = (first != second) & (second < vertices)
    pairs = np.sort(np.stack((first[kept], second[kept])), axis=0)
    first, second = np.unique(pairs, axis=1)
    return _undirected(env, first, second, vertices)


def _distinct(chance: np.random.Generator, limit: int, count: int) -> Array:
    """Return distinct random numbers below a limit."""
    if count > limit // 3:
        return chance.permutation(limit)[:count]
    numbers = np.unique(chance.integers(0, limit, count)) if count else np.zeros(0, dtype=np.int64)
    while len(numbers) < count:
        numbers = np.unique(np.append(numbers, chance.integers(0, limit, count - len(numbers))))
    return numbers


def _undirected(env: StreamExecutionEnvironment, first: Array, second: Array, vertices: int) -> Graph:
    return _graph(env, np.concatenate((first, second)), np.concatenate((second, first)), vertices)


def _graph(env: StreamExecutionEnvironment, sources: Array, targets: Array, vertices: int) -> Graph:
    edges = pa.table({"source": pa.array(sources, pa.int64()), "target": pa.array(targets, pa.int64())})
    return Graph.from_arrow(env, edges, pa.table({"vertex": pa.array(np.arange(vertices))}))


def _check(number: int, name: str, least: int = 0) -> None:
    if number < least:
        msg = f"{name} is {number!r}"
        raise InvalidArgument(msg, hint=f"use an int of at least {least}")
