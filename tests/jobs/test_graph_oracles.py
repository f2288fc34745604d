"""Graph algorithms against networkx and SciPy, on seeded random graphs with self loops, parallel edges, isolated
vertices, weights of zero and below, several components, without edges and without anything.

`MILLSTREAM_GRAPHS=2000` runs 2,000 graphs, and `MILLSTREAM_SEED` begins at another one."""

import math
import os

import numpy as np
import pytest

from millstream.datastream import StreamExecutionEnvironment
from millstream.gelly import Graph

networkx = pytest.importorskip("networkx")
csgraph = pytest.importorskip("scipy.sparse.csgraph")
sparse = pytest.importorskip("scipy.sparse")

SEED = int(os.environ.get("MILLSTREAM_SEED", "0"))
GRAPHS = int(os.environ.get("MILLSTREAM_GRAPHS", "4"))


def draw(seed):
    """Return a directed multigraph; one of three has negative weights, and no cycles so that none is negative."""
    chance = np.random.default_rng(seed)
    graph = networkx.MultiDiGraph()
    count = int(chance.integers(0, 25))
    ids = sorted(int(number) for number in chance.choice(1000, count, replace=False) - 500)
    graph.add_nodes_from(ids)
    dense = float(chance.choice([0, 0.5, 2, 4]))
    for _ in range(int(dense * count)):
        source, target = (int(vertex) for vertex in chance.choice(ids, 2))
        weight = float(chance.choice([0, 0, 1, 2.5, 7]))
        if seed % 3 == 2:
            if source == target:
                continue
            source, target = min(source, target), max(source, target)
            weight -= float(chance.integers(0, 4))
        graph.add_edge(source, target, weight=weight)
    return graph


def simple(graph):
    """The undirected graph without self loops and parallel edges."""
    result = networkx.Graph()
    result.add_nodes_from(graph)
    result.add_edges_from((source, target) for source, target in graph.edges() if source != target)
    return result


def collect(stream):
    rows = [tuple(row) for row in stream.execute_and_collect()]
    result = {row[0] if len(row) == 2 else row[:-1]: row[-1] for row in rows}
    assert len(result) == len(rows)
    return result


def partition(labels):
    groups = {}
    for vertex, label in labels.items():
        groups.setdefault(label, set()).add(vertex)
    return {label: frozenset(group) for label, group in groups.items()}


def distances(graph, ids, source, *, weighted):
    """By SciPy, whose sparse matrices take an explicit zero as an edge; of parallel edges the lightest counts."""
    lightest = {}
    for one, other, weight in graph.edges(data="weight"):
        pair = (ids.index(one), ids.index(other))
        lightest[pair] = min(lightest.get(pair, math.inf), weight if weighted else 1.0)
    lightest = {pair: weight for pair, weight in lightest.items() if pair[0] != pair[1]}
    rows, columns = zip(*lightest, strict=True) if lightest else ((), ())
    matrix = sparse.csr_matrix((list(lightest.values()), (rows, columns)), shape=(len(ids), len(ids)))
    result = csgraph.bellman_ford(matrix, indices=ids.index(source))
    return dict(zip(ids, result.tolist(), strict=True))


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("seed", range(SEED, SEED + GRAPHS))
def test_algorithms_agree_with_networkx_and_scipy(seed, parallelism):
    expected = draw(seed)
    plain, ids = simple(expected), sorted(expected)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    graph = Graph.from_networkx(env, expected)

    for result, oracle, label in (
        (graph.connected_components(), networkx.weakly_connected_components, min),
        (graph.strongly_connected_components(), networkx.strongly_connected_components, max),
    ):
        assert partition(collect(result)) == {label(group): frozenset(group) for group in oracle(expected)}
    assert collect(graph.core_numbers()) == networkx.core_number(plain)
    triangles = {tuple(row) for row in graph.triangle_enumerator().execute_and_collect()}
    assert triangles == {tuple(sorted(clique)) for clique in networkx.enumerate_all_cliques(plain) if len(clique) == 3}
    assert [row[0] for row in graph.triangle_count().execute_and_collect()] == [len(triangles)]
    assert collect(graph.local_clustering_coefficient()) == pytest.approx(networkx.clustering(plain))
    common = [pair for pair in ((a, b) for a in ids for b in ids if a < b) if set(plain[pair[0]]) & set(plain[pair[1]])]
    for result, oracle in (
        (graph.jaccard_index(), networkx.jaccard_coefficient),
        (graph.adamic_adar(), networkx.adamic_adar_index),
    ):
        assert collect(result) == pytest.approx({(one, other): value for one, other, value in oracle(plain, common)})

    weighted = networkx.Graph()
    for source, target, weight in expected.edges(data="weight"):
        if not weighted.has_edge(source, target) or weighted[source][target]["weight"] > weight:
            weighted.add_edge(source, target, weight=weight)
    forest = collect(graph.minimum_spanning_forest())
    tree = networkx.minimum_spanning_tree(weighted)
    assert len(forest) == tree.number_of_edges()
    assert sum(forest.values()) == pytest.approx(tree.size("weight"))
    assert networkx.is_forest(networkx.Graph([*forest])) if forest else True
    assert all(weighted[source][target]["weight"] == weight for (source, target), weight in forest.items())

    (metrics,) = graph.vertex_metrics().execute_and_collect()
    degrees = [degree for _, degree in plain.degree()]
    assert metrics.vertices == len(plain)
    assert metrics.edges == plain.number_of_edges()
    assert metrics.density == pytest.approx(networkx.density(plain) if len(plain) > 1 else 0.0)
    assert metrics.average_degree == pytest.approx(sum(degrees) / max(len(degrees), 1))
    assert metrics.triplets == sum(degree * (degree - 1) // 2 for degree in degrees)
    assert metrics.maximum_degree == max(degrees, default=0)

    if ids:
        source = ids[len(ids) // 2]
        for weighted, result in (
            (True, graph.single_source_shortest_paths(source)),
            (False, graph.breadth_first_search(source)),
        ):
            assert collect(result) == pytest.approx(distances(expected, ids, source, weighted=weighted))
        ranks = networkx.pagerank(expected, weight=None, tol=1e-12, max_iter=500)
        assert collect(graph.page_rank(100)) == pytest.approx(ranks, abs=1e-6)
        begin = {vertex: 1 for vertex in ids[:2]}
        ranks = networkx.pagerank(expected, personalization=begin, weight=None, tol=1e-12, max_iter=500)
        assert collect(graph.page_rank(100, sources=begin)) == pytest.approx(ranks, abs=1e-6)
