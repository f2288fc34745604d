"""Graph algorithms against plain oracles, on random graphs with self loops, parallel edges, isolated vertices, weights
of zero and below, several components, and without edges.

`MILLSTREAM_ALL_POINTS=1` runs many more graphs."""

import math
import os
from dataclasses import dataclass

import numpy as np
import pytest

from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import InvalidArgument, UserError
from millstream.gelly import Graph, VertexProgram
from millstream.gelly.algorithms import ConnectedComponents, SingleSourceShortestPaths
from millstream.gelly.ranking import PageRank

SEED = int(os.environ.get("MILLSTREAM_SEED", "0"))
GRAPHS = 500 if os.environ.get("MILLSTREAM_ALL_POINTS") else 6


def draw(seed):
    """Return edges and all vertices of a random graph; edges of negative weight lead to larger ids only."""
    chance = np.random.default_rng(seed)
    count = int(chance.integers(1, 30))
    ids = chance.choice(10_000, count, replace=False) - 5_000
    edges = []
    for _ in range(int(chance.integers(0, 3 * count)) if seed % 5 else 0):
        source, target = (int(vertex) for vertex in chance.choice(ids, 2))
        weight = float(chance.choice([0, 1, 2.5, 7]))
        edges.append((source, target, -1.0 if source < target and chance.random() < 0.2 and seed % 2 else weight))
    if seed % 2:  # without cycles, so that there are no negative ones
        edges = [edge for edge in edges if edge[0] < edge[1]]
    return edges, [int(vertex) for vertex in ids]


def components(edges, vertices):
    least = {vertex: vertex for vertex in vertices}
    for _ in vertices:
        for source, target, _ in edges:
            least[source] = least[target] = min(least[source], least[target])
    return least


def distances(edges, vertices, source, weight=lambda edge: edge[2]):
    distance = {vertex: np.inf for vertex in vertices} | {source: 0.0}
    for _ in vertices:
        for edge in edges:
            distance[edge[1]] = min(distance[edge[1]], distance[edge[0]] + weight(edge))
    return distance


def ranks(edges, vertices, rounds, sources=None):
    degree = {vertex: sum(source == vertex for source, _, _ in edges) for vertex in vertices}
    begin = {v: (v in (sources or vertices)) / len(sources or vertices) for v in vertices}
    rank = begin
    for _ in range(rounds):
        dangling = sum(rank[vertex] for vertex in vertices if not degree[vertex])
        received = {vertex: dangling * begin[vertex] for vertex in vertices}
        for source, target, _ in edges:
            received[target] += rank[source] / degree[source]
        rank = {vertex: 0.15 * begin[vertex] + 0.85 * received[vertex] for vertex in vertices}
    return rank


def hubs_and_authorities(edges, vertices, rounds):
    matrix = np.zeros((len(vertices), len(vertices)))
    for source, target, _ in edges:
        matrix[vertices.index(source), vertices.index(target)] += 1
    hub = np.ones(len(vertices))
    for _ in range(rounds):
        authority = matrix.T @ hub
        hub = matrix @ authority
        authority, hub = (v / (np.linalg.norm(v) or 1.0) for v in (authority, hub))
    return {vertex: (hub[i], authority[i]) for i, vertex in enumerate(vertices)}


def labels(edges, vertices, rounds):
    label = {vertex: vertex for vertex in vertices}
    for _ in range(rounds):
        seen = {vertex: [] for vertex in vertices}
        for source, target, _ in edges:
            seen[target].append(label[source])
            seen[source].append(label[target])
        label = {v: max(seen[v], key=lambda one: (seen[v].count(one), one), default=label[v]) for v in vertices}
    return label


def environment(parallelism):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def collect(rows):
    pairs = [(row[0], row[1]) for row in rows.execute_and_collect()]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@pytest.mark.parametrize("number", range(GRAPHS))
def test_algorithms_give_the_results_of_their_oracles(number):
    edges, vertices = draw(SEED + number)
    parallelism = 1 + number % 3

    def graph():
        return Graph.from_collection(environment(parallelism), edges, vertices)

    source = vertices[0]
    assert collect(graph().connected_components()) == components(edges, vertices)
    assert collect(graph().single_source_shortest_paths(source)) == distances(edges, vertices, source)
    assert collect(graph().breadth_first_search(source)) == distances(edges, vertices, source, lambda _: 1.0)
    assert collect(graph().in_degrees()) == {v: sum(target == v for _, target, _ in edges) for v in vertices}


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("number", [2, 3, 5])  # 5 has no edges
def test_programs_that_update_all_vertices_give_the_results_of_their_oracles(number, parallelism):
    edges, vertices = draw(SEED + number)

    def graph():
        return Graph.from_collection(environment(parallelism), edges, vertices)

    assert collect(graph().page_rank(12)) == pytest.approx(ranks(edges, vertices, 12), abs=1e-12)
    sources = vertices[:2]
    expected = ranks(edges, vertices, 9, sources)
    assert collect(graph().page_rank(9, sources=sources)) == pytest.approx(expected, abs=1e-12)
    assert collect(graph().label_propagation(5)) == labels(edges, vertices, 5)
    rows = {row[0]: (row[1], row[2]) for row in graph().hits(4).execute_and_collect()}
    expected = hubs_and_authorities(edges, vertices, 4)
    assert rows.keys() == expected.keys()
    assert all(rows[vertex] == pytest.approx(expected[vertex], abs=1e-12) for vertex in vertices)


def test_a_personalised_page_rank_needs_a_source_in_the_graph(env):
    with pytest.raises(UserError, match="the graph has none of the vertices 7, 8"):
        collect(Graph.from_collection(env, [(1, 2)]).page_rank(3, sources=[7, 8]))


@dataclass(frozen=True)
class Spread(VertexProgram):
    """All values that reach a vertex, in one round: their number and their sum."""

    combiner = None
    width = 2
    fields = ("count", "sum")
    simple = True

    def start(self, block):
        return np.stack((np.zeros(len(block)), block.initial), axis=1), np.arange(len(block))

    def update(self, block, vertices, messages, aggregates):
        values = np.zeros((len(block), 2))
        np.add.at(values, vertices, np.stack((np.ones(len(vertices)), messages[:, 1]), axis=1))
        return np.arange(len(block)), values, np.zeros(0, dtype=int)

    def message(self, block, edges):
        return block.values[block.sources[edges]]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_program_can_have_all_messages_several_numbers_and_values_of_vertices(parallelism):
    edges = [(1, 3), (1, 3), (2, 3), (3, 3), (3, 1)]
    graph = Graph.from_collection(environment(parallelism), edges, [(1, 0.5), (2, 7.0), (3, 10.0)])
    rows = sorted(tuple(row) for row in graph.run(Spread()).execute_and_collect())
    assert rows == [(1, 1.0, 10.0), (2, 0.0, 0.0), (3, 2.0, 7.5)]


def test_an_error_of_a_program_names_its_round(env):
    class Broken(Spread):
        def update(self, block, vertices, messages, aggregates):
            raise ValueError(len(vertices))

    with pytest.raises(UserError, match=r"ValueError: [0-9](.|\n)*round 1 of iteration 'iteration-1'"):
        collect(Graph.from_collection(env, [(1, 2)]).run(Broken()))
    Broken.combiner = "mean"
    with pytest.raises(UserError, match="the combiner of Broken is 'mean'"):
        Graph.from_collection(env, [(1, 2)]).run(Broken())


def test_a_graph_without_anything_has_no_components(env):
    assert collect(Graph.from_collection(env, []).connected_components()) == {}


def test_a_negative_cycle_is_found_and_its_limit_of_rounds_is_kept(env):
    edges = [(1, 2, 1.0), (2, 3, 1.0), (3, 2, -2.0), (3, 4, 1.0)]
    graph = Graph.from_collection(env, edges)
    with pytest.raises(UserError, match=r"a path from vertex 1 to vertex [234] contains a negative cycle"):
        collect(graph.single_source_shortest_paths(1))
    with pytest.raises(UserError, match="has not converged in 3 rounds"):
        collect(graph.single_source_shortest_paths(1, max_iterations=3))
    assert collect(graph.single_source_shortest_paths(4)) == {1: math.inf, 2: math.inf, 3: math.inf, 4: 0.0}


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_bounded_staleness_saves_exchanges_and_gives_the_same_result(parallelism):
    edges = [(n, n + 1, float(n % 3)) for n in range(40)] + [(60, 61, -1.0), (61, 62, 1.0)]
    expected = components(edges, [*range(41), 60, 61, 62])
    rounds = []
    for staleness in (0, 3):
        env = environment(parallelism)
        graph = Graph.from_collection(env, edges)
        epochs = []
        env.register_listener(lambda event, seen=epochs: seen.append(getattr(event, "iterations", {})))
        assert collect(graph.run(ConnectedComponents(), staleness=staleness)) == expected
        rounds.append(sum(bool(loops) for loops in epochs))
        assert collect(graph.run(SingleSourceShortestPaths(0), staleness=staleness)) == collect(
            graph.single_source_shortest_paths(0)
        )
    assert rounds[1] < rounds[0]


def test_a_program_that_needs_all_messages_of_a_round_refuses_staleness(env):
    graph = Graph.from_collection(env, [(1, 2)])
    with pytest.raises(InvalidArgument, match="PageRank is not monotone: it needs all messages of a round"):
        graph.run(PageRank(), 5, staleness=1)
    with pytest.raises(InvalidArgument, match="a limit of 5 rounds and a staleness of 1 do not go together"):
        graph.run(ConnectedComponents(), 5, staleness=1)
    with pytest.raises(InvalidArgument, match="staleness is -1"):
        graph.run(ConnectedComponents(), staleness=-1)


def test_a_weight_that_is_not_a_number_is_refused(env):
    with pytest.raises(UserError, match="the edge from vertex 1 to vertex 2 has a weight of NaN"):
        collect(Graph.from_collection(env, [(1, 2, float("nan"))]).single_source_shortest_paths(1))
