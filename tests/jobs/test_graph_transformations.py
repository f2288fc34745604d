"""Transformations of graphs, inputs and results, against plain Python, with self loops and parallel edges."""

import math
import random
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import MillstreamError, UserError
from millstream.gelly import EdgeDirection, Graph
from millstream.table import StreamTableEnvironment

CHANCE = random.Random(7)
VERTICES = [*range(-3, 12), 5_000_000_000]
EDGES = [(CHANCE.choice(VERTICES[:14]), CHANCE.choice(VERTICES[:14]), float(CHANCE.randint(-2, 9))) for _ in range(25)]
EDGES += [EDGES[0], (4, 4, 1.0)]
VALUES = {vertex: float(2 * vertex + 1) for vertex in VERTICES}


def edges(graph):
    return Counter(tuple(row) for row in graph.get_edges().execute_and_collect())


def vertices(graph):
    return pairs(graph.get_vertices())


def pairs(stream):
    rows = [tuple(row) for row in stream.execute_and_collect()]
    assert len(dict(rows)) == len(rows)
    return dict(rows)


@pytest.fixture(params=[1, 2, 3])
def graph(request):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(request.param)
    return Graph.from_collection(env, EDGES, VALUES.items())


def test_vertices_and_edges_are_counted(graph):
    assert [row[0] for row in graph.number_of_vertices().execute_and_collect()] == [len(VERTICES)]
    assert [row[0] for row in graph.number_of_edges().execute_and_collect()] == [len(EDGES)]
    assert sorted(graph.get_vertex_ids().execute_and_collect()) == sorted(VERTICES)
    assert sorted(graph.get_edge_ids().execute_and_collect()) == sorted(edge[:2] for edge in EDGES)
    outgoing = {vertex: sum(edge[0] == vertex for edge in EDGES) for vertex in VERTICES}
    incoming = {vertex: sum(edge[1] == vertex for edge in EDGES) for vertex in VERTICES}
    assert pairs(graph.out_degrees()) == outgoing
    assert pairs(graph.in_degrees()) == incoming
    assert pairs(graph.get_degrees()) == {vertex: outgoing[vertex] + incoming[vertex] for vertex in VERTICES}


def test_map_and_filter(graph):
    assert vertices(graph.map_vertices(lambda row: row.vertex + row.value)) == {v: 3.0 * v + 1 for v in VERTICES}
    assert edges(graph.map_edges(lambda row: row.weight * 2)) == Counter((s, t, 2 * w) for s, t, w in EDGES)
    light = graph.filter_on_edges(lambda row: row.weight < 3)
    assert edges(light) == Counter(edge for edge in EDGES if edge[2] < 3)
    assert vertices(light) == VALUES
    small = graph.subgraph(lambda row: row.vertex < 6, lambda row: row.weight > 0)
    assert edges(small) == Counter(edge for edge in EDGES if max(edge[:2]) < 6 and edge[2] > 0)
    assert vertices(small) == {vertex: value for vertex, value in VALUES.items() if vertex < 6}


def test_joins(graph):
    env = graph.get_edges().get_execution_environment()
    data = env.from_collection([(vertex, 100.0 * vertex) for vertex in (1, 2, 77)])
    joined = vertices(graph.join_with_vertices(data, lambda values, numbers: values + numbers))
    assert joined == VALUES | {1: VALUES[1] + 100, 2: VALUES[2] + 200}
    expected = Counter((s, t, w - 100 * s if s in (1, 2) else w) for s, t, w in EDGES)
    assert edges(graph.join_with_edges_on_source(data, np.subtract)) == expected
    expected = Counter((s, t, w - 100 * t if t in (1, 2) else w) for s, t, w in EDGES)
    assert edges(graph.join_with_edges_on_target(data, np.subtract)) == expected
    some = {(*edge[:2], 0.5) for edge in EDGES[:9]}
    expected = Counter((s, t, w * 0.5 if (s, t, 0.5) in some else w) for s, t, w in EDGES)
    assert edges(graph.join_with_edges(env.from_collection([*sorted(some), (70, 71, 9.0)]), np.multiply)) == expected


def test_other_graphs(graph):
    env = graph.get_edges().get_execution_environment()
    assert edges(graph.reverse()) == Counter((t, s, w) for s, t, w in EDGES)
    assert edges(graph.get_undirected()) == Counter(EDGES) + Counter((t, s, w) for s, t, w in EDGES)
    other = Graph.from_collection(env, [(1, 2, 7.0), (99, 1)])
    both = graph.union(other)
    assert edges(both) == Counter([*EDGES, (1, 2, 7.0), (99, 1, 1.0)])
    assert vertices(both).keys() == {*VERTICES, 99}
    rest = graph.difference(other)
    assert edges(rest) == Counter(edge for edge in EDGES if not {1, 2, 99} & {*edge[:2]})
    assert vertices(rest) == {vertex: value for vertex, value in VALUES.items() if vertex not in (1, 2)}
    assert edges(graph.remove_vertices([1, 2])) == edges(rest)
    changed = graph.add_vertices([(50, 1.5)]).add_edges([(50, 1)]).remove_edges([EDGES[0][:2]])
    assert edges(changed) == Counter([edge for edge in EDGES if edge[:2] != EDGES[0][:2]] + [(50, 1, 1.0)])
    assert vertices(changed) == VALUES | {50: 1.5}


def test_neighborhoods(graph):
    weights, neighbors = defaultdict(list), defaultdict(list)
    for source, target, weight in EDGES:
        for end, other, direction in ((source, target, EdgeDirection.OUT), (target, source, EdgeDirection.IN)):
            for name in (direction, EdgeDirection.ALL):
                weights[name, end].append(weight)
                neighbors[name, end].append(VALUES[other])
    for direction in EdgeDirection:
        for groups, reduce, group in (
            (weights, graph.reduce_on_edges, graph.group_reduce_on_edges),
            (neighbors, graph.reduce_on_neighbors, graph.group_reduce_on_neighbors),
        ):
            expected = {end: values for (name, end), values in groups.items() if name is direction}
            assert pairs(reduce("min", direction)) == {end: min(values) for end, values in expected.items()}
            summed = reduce(lambda one, other: one + other, direction, check=True)
            assert pairs(summed) == {end: sum(values) for end, values in expected.items()}
            assert pairs(group(lambda _, values: len(values), direction)) == {e: len(v) for e, v in expected.items()}
    triplets = Counter(tuple(row) for row in graph.get_triplets().execute_and_collect())
    assert triplets == Counter((s, t, w, VALUES[s], VALUES[t]) for s, t, w in EDGES)


def test_frames_and_tables_are_read_and_returned(env):
    frame = pd.DataFrame(EDGES, columns=["a", "b", "c"])
    values = pd.DataFrame({"vertex": list(VALUES), "value": list(VALUES.values())})
    columns = StreamTableEnvironment.create(env)
    graphs = [
        Graph.from_pandas(env, frame, values),
        Graph.from_arrow(env, pa.Table.from_pandas(frame), pa.Table.from_pandas(values)),
        Graph.from_table(columns.from_pandas(frame), columns.from_pandas(values)),
        Graph.from_data_stream(env.from_collection(EDGES), env.from_collection(list(VALUES.items()))),
    ]
    for graph in graphs:
        assert edges(graph) == Counter(EDGES)
        assert vertices(graph) == VALUES
    least = graphs[0].connected_components()
    result = least.to_pandas()
    assert list(result.columns) == ["vertex", "value"]
    assert least.to_arrow().num_rows == len(VERTICES)
    table = least.to_table(columns)
    columns.create_temporary_view("components", table)
    sizes = columns.sql_query("SELECT `value`, COUNT(*) AS members FROM components GROUP BY `value`").to_pandas()
    assert dict(zip(sizes["value"], sizes["members"], strict=True)) == dict(Counter(result["value"]))


def test_two_columns_are_edges_of_weight_one(env):
    graph = Graph.from_arrow(env, pa.table({"x": [1, 2], "y": [2, 3]}), pa.table({"vertex": [9]}))
    assert edges(graph) == Counter([(1, 2, 1.0), (2, 3, 1.0)])
    found = vertices(graph)
    assert found.keys() == {1, 2, 3, 9}
    assert all(math.isnan(value) for value in found.values())


def test_a_graph_can_be_used_after_a_job(env):
    graph = Graph.from_collection(env, [(1, 2), (4, 5)])
    components = graph.connected_components()
    assert pairs(components) == {1: 1, 2: 1, 4: 4, 5: 4}
    both = components.union(graph.label_propagation(2))
    assert len(list(both.execute_and_collect())) == 8
    assert components.to_pandas().shape == (4, 2)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda env: Graph.from_collection(env, [(1, 2)], [(1, 0.5), (1, 0.7)]), "vertex 1 has two values, 0.5 and"),
        (
            lambda env: Graph.from_collection(env, [(1, 2), (1, 3)], [1, 2]).validate(),
            "from vertex 1 to .* no vertex 3",
        ),
        (
            lambda env: Graph.from_collection(env, [(1, 2)]).join_with_vertices(
                env.from_collection([(1, 1.0), (1, 2.0)]), np.add
            ),
            "vertex 1 has two values, 1.0 and 2.0",
        ),
        (
            lambda env: Graph.from_collection(env, [(1, 2)]).join_with_edges(
                env.from_collection([(1, 2, 1.0), (1, 2, 2.0)]), np.add
            ),
            "two values for the edge from vertex 1 to vertex 2",
        ),
        (lambda env: Graph.from_collection(env, [("a", 2)]), "expected Long in field source, got 'a'"),
    ],
)
def test_unusable_graphs_are_refused(env, build, message):
    with pytest.raises(UserError, match=message):
        Counter(build(env).get_triplets().execute_and_collect())


def test_a_vertex_with_two_values_is_refused_by_programs(env):
    graph = Graph.from_collection(env, [(1, 2)], [(1, 0.5), (1, 0.7)])
    with pytest.raises(UserError, match="vertex 1 has two values"):
        pairs(graph.connected_components())


def test_a_reduce_function_that_depends_on_the_order_is_found(env):
    graph = Graph.from_collection(env, [(1, 2, 3.0), (1, 3, 5.0)])
    with pytest.raises(UserError, match=r"depends on the order of numbers: f\(3.0, 5.0\) = f\(5.0, 3.0\)"):
        pairs(graph.reduce_on_edges(lambda one, other: one - other, check=True))
    with pytest.raises(MillstreamError, match="'mean' is not a reduce function"):
        graph.reduce_on_edges("mean")


@pytest.mark.parametrize("run", [Graph.connected_components, Graph.get_degrees])
def test_missing_ids_and_weights_are_refused(env, run):
    def frame(**columns):
        return pa.table({name: pa.array(column, pa.float64()) for name, column in columns.items()})

    for edges in (frame(a=[1, None], b=[2, 3]), frame(a=[1, 1], b=[2, None])):
        with pytest.raises(UserError, match=r"NULL|key"):
            pairs(run(Graph.from_arrow(env, edges)))
    with pytest.raises(UserError, match="the edge from vertex 1 to vertex 3 has a weight of NaN"):
        pairs(Graph.from_arrow(env, frame(a=[1, 1], b=[2, 3], c=[1, None])).connected_components())


def test_ids_of_numpy_and_missing_values_are_taken(env):
    graph = Graph.from_collection(env, zip(np.arange(3), np.arange(1, 4), strict=True), np.arange(6))
    assert sorted(graph.get_vertex_ids().execute_and_collect()) == [0, 1, 2, 3, 4, 5]
    assert math.isnan(vertices(Graph.from_collection(env, [], [(1, None)]))[1])


def test_tables_with_one_column_are_refused(env):
    with pytest.raises(UserError, match="the table has the columns a, but 2 are needed"):
        Graph.from_pandas(env, pd.DataFrame({"a": [1]}))
