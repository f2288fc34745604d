"""Generated graphs have the edges that their names describe."""

from itertools import combinations

import numpy as np
import pytest

from millstream.errors import InvalidArgument
from millstream.gelly import (
    complete_graph,
    cycle_graph,
    erdos_renyi_graph,
    grid_graph,
    path_graph,
    rmat_graph,
    social_graph,
    star_graph,
)


def edges(graph):
    return sorted((row[0], row[1]) for row in graph.get_edges().execute_and_collect())


def vertices(graph):
    return sorted(graph.get_vertex_ids().execute_and_collect())


def both_directions(pairs):
    return sorted({*pairs, *((target, source) for source, target in pairs)})


@pytest.mark.parametrize(
    ("build", "count", "pairs"),
    [
        (lambda env: path_graph(env, 5), 5, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        (lambda env: path_graph(env, 0), 0, []),
        (lambda env: cycle_graph(env, 4), 4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
        (lambda env: star_graph(env, 4), 4, [(0, 1), (0, 2), (0, 3)]),
        (lambda env: star_graph(env, 1), 1, []),
        (lambda env: complete_graph(env, 5), 5, list(combinations(range(5), 2))),
        (lambda env: grid_graph(env, 2, 3), 6, [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]),
        (lambda env: erdos_renyi_graph(env, 6, 1.0), 6, list(combinations(range(6), 2))),
        (lambda env: erdos_renyi_graph(env, 6, 0.0), 6, []),
    ],
)
def test_a_regular_graph_has_its_edges(env, build, count, pairs):
    graph = build(env)
    assert edges(graph) == both_directions(pairs)
    assert vertices(graph) == list(range(count))


def test_random_edges_are_drawn_with_their_probability(env):
    graph = erdos_renyi_graph(env, 200, 0.1, seed=3)
    drawn = edges(graph)
    assert drawn == both_directions(drawn) == edges(erdos_renyi_graph(env, 200, 0.1, seed=3))
    assert drawn != edges(erdos_renyi_graph(env, 200, 0.1, seed=4))
    assert all(source != target for source, target in drawn)
    assert len(drawn) / 2 == pytest.approx(1990, abs=200)  # 4.7 standard deviations
    below = sum(max(edge) < 100 for edge in drawn) / 2
    assert below == pytest.approx(495, abs=100)


def test_an_rmat_graph_has_few_vertices_with_many_edges(env):
    drawn = edges(rmat_graph(env, 8, 5000, seed=1))
    assert len(drawn) == 5000
    halves = np.array(drawn) >= 128
    shares = [((halves[:, 0] == s) & (halves[:, 1] == t)).mean() for s in (0, 1) for t in (0, 1)]
    assert shares == pytest.approx([0.57, 0.19, 0.19, 0.05], abs=0.04)
    assert drawn == edges(rmat_graph(env, 8, 5000, seed=1))


def test_a_social_graph_has_communities_and_hubs(env):
    graph = social_graph(env, 1000, 10, 5, seed=2)
    drawn = edges(graph)
    assert drawn == both_directions(drawn)
    assert vertices(graph) == list(range(1000))
    degrees = np.bincount([source for source, _ in drawn], minlength=1000)
    assert 7 < degrees.mean() <= 10
    assert degrees.max() > 5 * degrees.mean()
    assert sum(source % 5 == target % 5 for source, target in drawn) > 0.75 * len(drawn)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda env: path_graph(env, -1), "vertices is -1"),
        (lambda env: cycle_graph(env, 2), "vertices is 2"),
        (lambda env: erdos_renyi_graph(env, 3, 1.5), "a probability of 1.5 is not possible"),
        (lambda env: rmat_graph(env, 3, 5, a=0.9, b=0.2), "the probabilities 0.9, 0.2 and 0.19 are not possible"),
    ],
)
def test_impossible_arguments_are_refused(env, build, message):
    with pytest.raises(InvalidArgument, match=message):
        build(env)
