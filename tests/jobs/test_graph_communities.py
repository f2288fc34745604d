"""Louvain communities and modularity against networkx, and drawings of small graphs."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import InvalidArgument, UserError
from millstream.gelly import Graph, path_graph

networkx = pytest.importorskip("networkx")

BELOW_NETWORKX = 0.02  # how much less modularity than the communities of networkx is accepted


def environment(parallelism=2):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def labels_of(stream):
    return {row[0]: row[1] for row in stream.execute_and_collect()}


def groups(labels):
    result = {}
    for vertex, label in labels.items():
        result.setdefault(label, set()).add(vertex)
    return list(result.values())


def as_multigraph(edges, vertices):
    graph = networkx.MultiGraph()
    graph.add_nodes_from(vertices)
    graph.add_weighted_edges_from(edges)
    return graph


def draw_edges(seed):
    """Return edges in both directions, parallel ones, self loops, weights of zero, and all vertices."""
    chance = np.random.default_rng(seed)
    ids = [int(number) for number in chance.choice(100_000, 60, replace=False) - 50_000]
    edges = []
    for _ in range(240):
        one, other = (int(number) for number in chance.choice(50, 2))  # ten vertices have no edges
        if chance.random() < 0.6:
            other = other - other % 5 + one % 5  # five hidden communities
        edges.append((ids[one], ids[other], float(chance.choice([0, 0.1, 1, 2.5]))))
    return edges, ids


@pytest.mark.parametrize("seed", range(3))
def test_louvain_and_modularity_agree_with_networkx_at_every_parallelism(seed):
    edges, ids = draw_edges(seed)
    expected = as_multigraph(edges, ids)
    oracle = networkx.community.louvain_communities(expected, seed=seed)
    results = []
    for parallelism in (1, 2, 3):
        graph = Graph.from_collection(environment(parallelism), edges, ids)
        communities = graph.louvain()
        labels = labels_of(communities)
        results.append(labels)
        if parallelism != 2:
            continue
        assert set(labels) == set(ids)
        assert all(label == min(group) for group in groups(labels) for label in {labels[vertex] for vertex in group})
        for resolution in (1.0, 0.5):
            wanted = networkx.community.modularity(expected, groups(labels), resolution=resolution)
            assert graph.modularity(communities, resolution).execute_and_collect(limit=1)[0][0] == pytest.approx(wanted)
        reached = networkx.community.modularity(expected, groups(labels))
        assert reached >= networkx.community.modularity(expected, oracle) - BELOW_NETWORKX
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("name", ["karate", "random", "ring", "caveman"])
def test_louvain_is_near_networkx_on_known_graphs(name):
    expected = {
        "karate": networkx.karate_club_graph,
        "random": lambda: networkx.gnm_random_graph(80, 200, seed=4),
        "ring": lambda: networkx.cycle_graph(60),
        "caveman": lambda: networkx.relaxed_caveman_graph(12, 7, 0.15, seed=2),
    }[name]()
    labels = labels_of(Graph.from_networkx(environment(), expected).louvain())
    oracle = networkx.community.louvain_communities(expected, seed=1)
    reached = networkx.community.modularity(expected, groups(labels))
    assert reached >= networkx.community.modularity(expected, oracle) - BELOW_NETWORKX


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_two_cliques_with_an_edge_between_them(parallelism):
    graph = Graph.from_networkx(environment(parallelism), networkx.barbell_graph(5, 0))
    communities = graph.louvain()
    assert labels_of(communities) == {vertex: 0 if vertex < 5 else 5 for vertex in range(10)}
    # 20 of 21 edges are inside; each clique has half of the degrees
    assert graph.modularity(communities).execute_and_collect(limit=1)[0][0] == pytest.approx(20 / 21 - 1 / 2)


def test_directions_self_loops_and_weights_of_parallel_edges():
    for edges, expected in (
        ([(2, 1)], {1: 1, 2: 1}),
        ([(2, 1), (1, 1, 10.0), (2, 2, 10.0)], {1: 1, 2: 2}),  # one community has modularity 0, two have 0.45
        ([(1, 2, 3.0), (2, 3, 2.0), (3, 2, 2.0), (3, 4, 3.0), (4, 1, 4.0)], {1: 1, 2: 2, 3: 2, 4: 1}),
    ):
        assert labels_of(Graph.from_collection(environment(), edges).louvain()) == expected


def test_graphs_without_weight():
    graph = Graph.from_collection(environment(), [(1, 2, 0.0)], [7])
    communities = graph.louvain()
    assert labels_of(communities) == {1: 1, 2: 2, 7: 7}
    assert math.isnan(graph.modularity(communities).execute_and_collect(limit=1)[0][0])
    assert labels_of(Graph.from_collection(environment(), []).louvain()) == {}


def test_bad_input_of_communities():
    graph = Graph.from_collection(environment(), [(1, 2), (2, 3)])
    env = graph.get_edges().get_execution_environment()
    with pytest.raises(InvalidArgument, match="resolution is -1"):
        graph.louvain(resolution=-1)
    for weight, message in ((-1.0, "a weight of -1.0"), (math.inf, "a weight of inf"), (math.nan, "a weight of NaN")):
        with pytest.raises(UserError, match=f"from vertex 2 to vertex 1 has {message}"):
            list(Graph.from_collection(environment(), [(2, 1, weight)]).louvain().execute_and_collect())
    for labels, message in (
        ([(1, 1), (2, 1)], "vertex 3 has no label"),
        ([(1, 1), (2, 1), (3, 1), (3, 2)], "vertex 3 has two labels"),
        ([(1, 1), (2, 1), (3, 1.5)], r"vertex 3 has the label 1\.5"),
    ):
        with pytest.raises(Exception, match=message):
            list(graph.modularity(env.from_collection(labels)).execute_and_collect())


def test_plot(tmp_path):
    graph = Graph.from_collection(environment(), [(1, 2, 2.5), (2, 1), (2, 3), (3, 3)], [(1, 0.5), 9])
    picture = graph.plot(graph.connected_components())
    root = ElementTree.fromstring(picture.svg)
    space = "{http://www.w3.org/2000/svg}"
    titles = {title.text for title in root.iter(f"{space}title")}
    assert titles == {
        "4 vertices, 4 edges",
        "1 to 2: 2.5; 2 to 1: 1",
        "2 to 3: 1",
        "3 to 3: 1",
        "1, value 0.5, label 1",
        "2, label 1",
        "3, label 1",
        "9, label 9",
    }
    circles = {(circle.get("cx"), circle.get("cy")): circle.get("fill") for circle in root.iter(f"{space}circle")}
    assert len(circles) == 4
    assert len(set(circles.values())) == 2
    places = [(float(x), float(y)) for x, y in circles]
    assert min(math.dist(one, other) for one in places for other in places if one != other) > 30
    assert picture.svg == graph.plot(graph.connected_components()).svg
    assert "data:image/svg+xml" in picture._repr_html_()
    picture.save(str(tmp_path / "graph.svg"))
    assert (tmp_path / "graph.svg").read_text() == picture.svg

    assert len(list(ElementTree.fromstring(Graph.from_collection(environment(), []).plot().svg))) == 4
    with pytest.raises(InvalidArgument, match="more than 200 vertices"):
        path_graph(environment(), 201).plot()
