"""Vertex-centric functions: shortest paths in each of the three models, compared with Bellman-Ford."""

import math

import numpy as np
import pytest

from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.gelly import Graph


def shortest(vertex, messages):
    if vertex.superstep_number == 1:
        vertex.value = 0.0 if vertex.id == 3 else math.inf
    distance = min([vertex.value, *messages])
    if distance < vertex.value or (vertex.superstep_number == 1 and vertex.id == 3):
        vertex.value = distance
        for target, weight in vertex.get_edges():
            vertex.send_message_to(target, distance + weight)


def scatter(vertex):
    for target, weight in vertex.get_edges():
        vertex.send_message_to(target, vertex.value + weight)


def gather(vertex, messages):
    vertex.value = min([vertex.value, *messages])


def draw(seed):
    chance = np.random.default_rng(seed)
    pairs = {
        tuple(int(vertex) for vertex in chance.integers(0, 15, 2)): float(chance.integers(0, 9)) for _ in range(35)
    }
    return [(*pair, weight) for pair, weight in pairs.items()]


def run(graph, model):
    begin = graph.map_vertices(lambda vertex: 0.0 if vertex.vertex == 3 else math.inf)
    match model:
        case "vertex-centric":
            return graph.run_vertex_centric_iteration(shortest)
        case "scatter-gather":
            return begin.run_scatter_gather_iteration(scatter, gather)
        case "gather-sum-apply":
            return begin.run_gather_sum_apply_iteration(lambda value, weight: value + weight, min, min)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("model", ["vertex-centric", "scatter-gather", "gather-sum-apply"])
def test_a_model_gives_the_shortest_paths(model, parallelism):
    edges = draw(parallelism)
    expected = dict.fromkeys(range(16), math.inf) | {3: 0.0}
    for _ in expected:
        for source, target, weight in edges:
            expected[target] = min(expected[target], expected[source] + weight)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    graph = Graph.from_collection(env, edges, range(16))
    assert dict(tuple(row) for row in run(graph, model).execute_and_collect()) == expected


def test_iterations_are_limited(env):
    graph = Graph.from_collection(env, [(n, n + 1) for n in range(6)], [(n, 0.0) for n in range(7)])
    hops = graph.run_gather_sum_apply_iteration(lambda value, _: value + 1, max, max, max_iterations=2)
    assert sorted(row.value for row in hops.execute_and_collect()) == [0, 1, 2, 2, 2, 2, 2]


def test_a_sum_that_depends_on_the_order_is_found(env):
    graph = Graph.from_collection(env, [(1, 3), (2, 3)], [(1, 5.0), (2, 7.0), (3, 0.0)])

    def run(add, **options):
        result = graph.run_gather_sum_apply_iteration(lambda value, _: value, add, lambda _, total: total, 1, **options)
        return dict(tuple(row) for row in result.execute_and_collect())

    def subtract(one, other):
        return one - other

    assert run(lambda one, other: one + other, check=True)[3] == 12.0
    assert run(subtract)[3] == -2.0
    with pytest.raises(UserError, match=r"f\(5.0, 7.0\) = f\(7.0, 5.0\)"):
        run(subtract, check=True)


def test_an_error_names_round_vertex_and_messages(env):
    def fail(vertex, messages):
        if vertex.superstep_number == 2:
            raise ValueError(f"no {vertex.value}")
        vertex.send_message_to_all_neighbors(4.5)

    graph = Graph.from_collection(env, [(1, 2), (3, 2)], [(2, 8.0)])
    pattern = r"no 8.0\nat vertex 2 with the messages \[4.5, 4.5\]\nin operator .* round 1 of iteration"
    with pytest.raises(UserError, match=pattern):
        list(graph.run_vertex_centric_iteration(fail).execute_and_collect())
    with pytest.raises(UserError, match="vertex 1 has no edge to vertex 7"):
        list(graph.run_scatter_gather_iteration(lambda v: v.send_message_to(7, 1), gather).execute_and_collect())
