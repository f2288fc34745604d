"""Streaming graphs: the final results equal those of the edges that remain."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from millstream.common import Row, Types
from millstream.common.types import RowKind
from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import InvalidArgument, UserError
from millstream.gelly import EdgeStream

ROW = Types.ROW_NAMED(["source", "target"], [Types.LONG(), Types.LONG()])


def draw(seed, count=60, vertices=20):
    chance = np.random.default_rng(seed)
    return [tuple(int(vertex) for vertex in chance.integers(-3, vertices, 2)) for _ in range(count)]


def removal(edge):
    row = Row(*edge)
    row.set_row_kind(RowKind.DELETE)
    return row


def triangles(edges):
    neighbors = {frozenset(edge) for edge in edges}
    ids = sorted({vertex for edge in edges for vertex in edge})
    return sum(all(frozenset(pair) in neighbors for pair in combinations(three, 2)) for three in combinations(ids, 3))


def last_rows(stream):
    return dict(tuple(row) for row in stream.execute_and_collect())


@pytest.fixture(params=[1, 2, 3])
def env(request):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(request.param)


@pytest.mark.parametrize("seed", [1, 2])
def test_components_grow_as_edges_arrive(env, seed):
    edges = draw(seed, 22, 40)
    least = {vertex: vertex for edge in edges for vertex in edge}
    for _ in least:
        for source, target in edges:
            least[source] = least[target] = min(least[source], least[target])
    updates = [
        tuple(row)
        for row in EdgeStream.from_data_stream(env.from_collection(edges)).connected_components().execute_and_collect()
    ]
    smallest = {}
    for vertex, label in updates:
        assert label < smallest.get(vertex, 1000)  # every update is an improvement
        smallest[vertex] = label
    assert smallest == least


def test_degrees_follow_added_and_removed_edges(env):
    edges = draw(3)
    stream = env.from_collection([*(Row(*edge) for edge in edges), *map(removal, edges[10:20])], ROW)
    expected = Counter(vertex for edge in edges[:10] + edges[20:] for vertex in edge)
    degrees = last_rows(EdgeStream.from_data_stream(stream).get_degrees())
    assert {vertex: degree for vertex, degree in degrees.items() if degree} == expected


def test_triangles_are_exact_with_one_color(env):
    edges = draw(4)
    rows = EdgeStream.from_data_stream(env.from_collection(edges)).triangle_estimates().execute_and_collect()
    assert [row.triangles for row in rows][-1] == triangles(edges) > 20


def test_triangles_of_removed_edges_do_not_count(env):
    edges = sorted({tuple(sorted(edge)) for edge in draw(4)})
    stream = env.from_collection([*(Row(*edge) for edge in edges), *map(removal, edges[::2])], ROW)
    rows = EdgeStream.from_data_stream(stream).triangle_estimates().execute_and_collect()
    assert [row.triangles for row in rows][-1] == triangles(edges[1::2])


def test_an_estimate_of_triangles_is_correct_on_average():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    edges = list(combinations(range(30), 2))
    estimates = []
    for seed in range(20):
        stream = EdgeStream.from_data_stream(env.from_collection(edges)).triangle_estimates(3, seed)
        estimates.append(max((row.triangles for row in stream.execute_and_collect()), default=0.0))
    assert np.mean(estimates) == pytest.approx(triangles(edges), rel=0.15)
    assert len(set(estimates)) > 5


def test_components_refuse_a_removed_edge(env):
    stream = env.from_collection([Row(1, 2), removal((1, 2))], ROW)
    with pytest.raises(UserError, match="the edge from vertex 1 to vertex 2 was removed"):
        last_rows(EdgeStream.from_data_stream(stream).connected_components())
    with pytest.raises(InvalidArgument, match="the number of colors is 0"):
        EdgeStream.from_data_stream(stream).triangle_estimates(0)
