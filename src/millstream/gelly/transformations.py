"""Transformations of graphs, with Gelly's names.

Promises: a transformation describes streams; nothing runs until results are collected.
Does not know: algorithms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgument
from millstream.gelly.dataflow import COUNT, EDGE, VERTEX, ResultStream, map_all, map_partition
from millstream.gelly.relations import (
    AllVertices,
    ApplyGroups,
    CountEdges,
    CountRecords,
    EdgeDirection,
    JoinEdges,
    JoinValues,
    Reduce,
    ReduceGroups,
    Select,
    Sums,
    Validate,
)
from millstream.types.factory import Types
from millstream.types.row import Row

if TYPE_CHECKING:
    from millstream.gelly.graph import Graph

_COUNTED = Types.ROW_NAMED(["count"], [Types.LONG()])
_SOURCE_VALUE = Types.ROW_NAMED(
    ["source", "target", "weight", "source_value"], [Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.DOUBLE()]
)
TRIPLET = Types.ROW_NAMED(
    ["source", "target", "weight", "source_value", "target_value"],
    [Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.DOUBLE(), Types.DOUBLE()],
)


class GraphTransformations:
    """The part of a graph that returns other graphs, and streams of its vertices and edges."""

    _edges: DataStream[Any]
    _vertices: DataStream[Any]

    def __init__(self, edges: DataStream[Any], vertices: DataStream[Any]) -> None:
        """`edges` has rows of source, target and weight, and `vertices` rows of ids and values."""
        self._edges, self._vertices = edges, vertices

    def _with(self, edges: DataStream[Any], vertices: DataStream[Any]) -> Self:
        return type(self)(edges, vertices)

    def _incident(self) -> list[tuple[DataStream[Any], str]]:
        """Return the edges by both of their ends, and the vertices."""
        return [(self._edges, "source"), (self._edges, "target"), (self._vertices, "vertex")]

    # ------------------------------------------------------------------------------------------- vertices and edges

    def get_edges(self) -> DataStream[Any]:
        """Return the stream of edges: rows of source, target and weight."""
        return self._edges

    def get_vertices(self) -> ResultStream:
        """Return (vertex, value) for each vertex; the value is NaN where none is given."""
        return map_partition("Vertices", AllVertices(), self._incident(), VERTEX)

    def get_vertex_ids(self) -> DataStream[int]:
        """Return the ids of all vertices."""
        return self.get_vertices().map(lambda vertex: vertex[0], Types.LONG())

    def get_edge_ids(self) -> DataStream[tuple[int, int]]:
        """Return (source, target) of all edges."""
        return self._edges.map(lambda edge: (edge[0], edge[1]), Types.TUPLE([Types.LONG(), Types.LONG()]))

    def get_triplets(self) -> ResultStream:
        """Return (source, target, weight, source_value, target_value) for each edge."""
        vertices = self.get_vertices()
        join = JoinValues("source", "source_value")
        rows = map_partition("Source Values", join, [(self._edges, "source"), (vertices, "vertex")], _SOURCE_VALUE)
        join = JoinValues("target", "target_value")
        return map_partition("Target Values", join, [(rows, "target"), (vertices, "vertex")], TRIPLET)

    def number_of_vertices(self) -> ResultStream:
        """Return one row with the number of vertices."""
        return count_records(self.get_vertices(), "vertex")

    def number_of_edges(self) -> ResultStream:
        """Return one row with the number of edges."""
        return count_records(self._edges, "source")

    # ------------------------------------------------------------------------------------------------ map and filter

    def map_vertices(self, function: Callable[[Any], float]) -> Self:
        """Return the graph with new values of vertices.

        Args:
            function: Gets a row (vertex, value), and returns the new value.

        """
        return self._with(self._edges, self.get_vertices().map(lambda row: Row(row[0], float(function(row))), VERTEX))

    def map_edges(self, function: Callable[[Any], float]) -> Self:
        """Return the graph with new weights of edges.

        Args:
            function: Gets a row (source, target, weight), and returns the new weight.

        """
        edges = self._edges.map(lambda row: Row(row[0], row[1], float(function(row))), EDGE)
        return self._with(edges, self._vertices)

    def filter_on_vertices(self, condition: Callable[[Any], bool]) -> Self:
        """Return the graph with the vertices for which the condition is true, and the edges between them.

        Args:
            condition: Gets a row (vertex, value).

        """
        return self.subgraph(condition, None)

    def filter_on_edges(self, condition: Callable[[Any], bool]) -> Self:
        """Return the graph with the edges for which the condition is true, and all vertices.

        Args:
            condition: Gets a row (source, target, weight).

        """
        return self._with(self._edges.filter(condition), self.get_vertices())

    def subgraph(self, vertex_filter: Callable[[Any], bool], edge_filter: Callable[[Any], bool] | None = None) -> Self:
        """Return the graph with the vertices and edges for which conditions are true; edges need both of their ends.

        Args:
            vertex_filter: Gets a row (vertex, value).
            edge_filter: Gets a row (source, target, weight).

        """
        edges = self._edges if edge_filter is None else self._edges.filter(edge_filter)
        return self._induced(edges, self.get_vertices().filter(vertex_filter))

    def _induced(self, edges: DataStream[Any], vertices: DataStream[Any]) -> Self:
        for end in ("source", "target"):
            edges = map_partition(f"Edges By {end.title()}", Select(end), [(edges, end), (vertices, "vertex")], EDGE)
        return self._with(edges, vertices)

    # ---------------------------------------------------------------------------------------------------------- join

    def join_with_vertices(self, data: DataStream[Any], function: Callable[[Any, Any], Any]) -> Self:
        """Return the graph with new values of the vertices that are in the data.

        Args:
            data: Tuples or rows (vertex, number), one for each vertex at most.
            function: Gets the values of vertices and the numbers, as arrays, and returns the new values.

        """
        inputs = [(self.get_vertices(), "vertex"), (_to_vertices(data), "vertex")]
        vertices = map_partition("Join With Vertices", JoinValues("vertex", "value", function), inputs, VERTEX)
        return self._with(self._edges, vertices)

    def join_with_edges(self, data: DataStream[Any], function: Callable[[Any, Any], Any]) -> Self:
        """Return the graph with new weights of the edges that are in the data.

        Args:
            data: Tuples or rows (source, target, number), one for each pair of vertices at most.
            function: Gets the weights of edges and the numbers, as arrays, and returns the new weights.

        """
        inputs = [(self._edges, "source"), (data.map(to_edge, EDGE), "source")]
        return self._with(map_partition("Join With Edges", JoinEdges(function), inputs, EDGE), self._vertices)

    def join_with_edges_on_source(self, data: DataStream[Any], function: Callable[[Any, Any], Any]) -> Self:
        """Return the graph with new weights of the edges whose sources are in the data.

        Args:
            data: Tuples or rows (vertex, number), one for each vertex at most.
            function: Gets the weights of edges and the numbers, as arrays, and returns the new weights.

        """
        return self._join_edges_on("source", data, function)

    def join_with_edges_on_target(self, data: DataStream[Any], function: Callable[[Any, Any], Any]) -> Self:
        """Return the graph with new weights of the edges whose targets are in the data.

        Args:
            data: Tuples or rows (vertex, number), one for each vertex at most.
            function: Gets the weights of edges and the numbers, as arrays, and returns the new weights.

        """
        return self._join_edges_on("target", data, function)

    def _join_edges_on(self, end: str, data: DataStream[Any], function: Callable[[Any, Any], Any]) -> Self:
        inputs = [(self._edges, end), (_to_vertices(data), "vertex")]
        edges = map_partition(f"Join With {end.title()}", JoinValues(end, "weight", function), inputs, EDGE)
        return self._with(edges, self._vertices)

    # ------------------------------------------------------------------------------------------------- other graphs

    def reverse(self) -> Self:
        """Return the graph with all edges reversed."""
        return self._with(self._edges.map(lambda edge: Row(edge[1], edge[0], edge[2]), EDGE), self._vertices)

    def get_undirected(self) -> Self:
        """Return the graph with the reverse of every edge added."""
        edges = self._edges.flat_map(lambda edge: (edge, Row(edge[1], edge[0], edge[2])), EDGE)
        return self._with(edges, self._vertices)

    def union(self, other: Graph) -> Self:
        """Return the graph with the edges and vertices of both; edges that are in both occur twice."""
        return self._with(self._edges.union(other._edges), self._vertices.union(other._vertices))

    def difference(self, other: Graph) -> Self:
        """Return the graph without the vertices of another one, and without their edges."""
        return self._without(other.get_vertices())

    def _without(self, removed: DataStream[Any]) -> Self:
        inputs = [(self.get_vertices(), "vertex"), (removed, "vertex")]
        vertices = map_partition("Difference", Select("vertex", present=False), inputs, VERTEX)
        return self._induced(self._edges, vertices)

    def add_vertices(self, vertices: Iterable[Any]) -> Self:
        """Return the graph with more vertices: ids, or tuples (vertex, value)."""
        return self._with(self._edges, self._vertices.union(self._collection(map(to_vertex, vertices), VERTEX)))

    def add_edges(self, edges: Iterable[Any]) -> Self:
        """Return the graph with more edges: tuples (source, target) or (source, target, weight)."""
        return self._with(self._edges.union(self._collection(map(to_edge, edges), EDGE)), self._vertices)

    def remove_vertices(self, vertices: Iterable[int]) -> Self:
        """Return the graph without some vertices and their edges."""
        return self._without(self._collection(map(to_vertex, vertices), VERTEX))

    def remove_edges(self, edges: Iterable[tuple[int, int]]) -> Self:
        """Return the graph without all edges between some pairs (source, target)."""
        removed = {(edge[0], edge[1]) for edge in edges}
        return self.filter_on_edges(lambda edge: (edge[0], edge[1]) not in removed)

    def _collection(self, rows: Iterable[Row], record_type: Any) -> DataStream[Any]:
        return self._edges.get_execution_environment().from_collection(rows, record_type)

    def validate(self) -> Self:
        """Return the same graph, whose job fails if an edge has a vertex that was not given as a vertex."""
        edges = self._edges
        for end in ("source", "target"):
            inputs = [(edges, end), (self._vertices, "vertex")]
            edges = map_partition(f"Validate {end.title()}", Validate(end), inputs, EDGE)
        return self._with(edges, self._vertices)

    # ------------------------------------------------------------------------------------------------ neighborhoods

    def out_degrees(self) -> ResultStream:
        """Return (vertex, number of outgoing edges)."""
        return self._degrees(EdgeDirection.OUT)

    def in_degrees(self) -> ResultStream:
        """Return (vertex, number of incoming edges)."""
        return self._degrees(EdgeDirection.IN)

    def get_degrees(self) -> ResultStream:
        """Return (vertex, number of incoming and outgoing edges); a self loop counts twice."""
        return self._degrees(EdgeDirection.ALL)

    def _degrees(self, direction: EdgeDirection) -> ResultStream:
        return map_partition("Degrees", CountEdges(direction), self._incident(), COUNT)

    def reduce_on_edges(
        self, function: Reduce, direction: EdgeDirection = EdgeDirection.ALL, *, check: bool = False
    ) -> ResultStream:
        """Return (vertex, reduced weights of its edges) for all vertices with such edges.

        Args:
            function: `sum`, `min`, `max`, or a commutative and associative function of two numbers.
            direction: Which edges of a vertex are reduced.
            check: Whether the job fails if the function is not commutative and associative for some of the weights.

        """
        return self._reduce(self._edges, ("weight", "weight"), _reducer(function, check=check), direction)

    def reduce_on_neighbors(
        self, function: Reduce, direction: EdgeDirection = EdgeDirection.ALL, *, check: bool = False
    ) -> ResultStream:
        """Return (vertex, reduced values of its neighbors) for all vertices with such edges.

        Args:
            function: `sum`, `min`, `max`, or a commutative and associative function of two numbers.
            direction: OUT reduces over the targets of outgoing edges, IN over the sources of incoming ones.
            check: Whether the job fails if the function is not commutative and associative for some of the values.

        """
        columns = ("target_value", "source_value")
        return self._reduce(self.get_triplets(), columns, _reducer(function, check=check), direction)

    def group_reduce_on_edges(
        self, function: Callable[[int, Any], float], direction: EdgeDirection = EdgeDirection.ALL
    ) -> ResultStream:
        """Return (vertex, number) for all vertices with such edges.

        Args:
            function: Gets a vertex and the sorted array of the weights of its edges, and returns a number.
            direction: Which edges of a vertex are meant.

        """
        return self._reduce(self._edges, ("weight", "weight"), ApplyGroups(function), direction)

    def group_reduce_on_neighbors(
        self, function: Callable[[int, Any], float], direction: EdgeDirection = EdgeDirection.ALL
    ) -> ResultStream:
        """Return (vertex, number) for all vertices with such edges.

        Args:
            function: Gets a vertex and the sorted array of the values of its neighbors, and returns a number.
            direction: Which neighbors of a vertex are meant.

        """
        return self._reduce(self.get_triplets(), ("target_value", "source_value"), ApplyGroups(function), direction)

    def _reduce(
        self, rows: DataStream[Any], columns: tuple[str, str], function: Any, direction: EdgeDirection
    ) -> ResultStream:
        """`columns` are what an edge contributes to its source, and to its target."""
        ends = {EdgeDirection.OUT: ("source",), EdgeDirection.IN: ("target",), EdgeDirection.ALL: ("source", "target")}
        of_end = dict(zip(("source", "target"), columns, strict=True))
        fields = [(end, of_end[end]) for end in ends[direction]]
        pairs = rows.flat_map(lambda row: [Row(row[end], row[value]) for end, value in fields], VERTEX)
        return map_partition("Reduce", function, [(pairs, "vertex")], VERTEX)


def count_records(stream: DataStream[Any], key: str) -> ResultStream:
    """Return one row with the number of records of a stream."""
    counts = map_partition("Count", CountRecords(), [(stream, key)], _COUNTED)
    return map_all("Sum", Sums(), counts, _COUNTED)


def _reducer(function: Reduce, *, check: bool) -> ReduceGroups:
    if not callable(function) and function not in ("sum", "min", "max"):
        msg = f"{function!r} is not a reduce function"
        raise InvalidArgument(msg, hint="use sum, min, max or a function of two numbers")
    return ReduceGroups(function, check)


def _to_vertices(data: DataStream[Any]) -> DataStream[Any]:
    return data if data.get_type() == VERTEX else data.map(lambda row: Row(row[0], float(row[1])), VERTEX)


def to_labels(data: DataStream[Any]) -> DataStream[Any]:
    """Return rows of vertices and integer labels."""
    return data if data.get_type() == COUNT else data.map(_to_label, COUNT)


def _to_label(row: Any) -> Row:
    if row[1] != int(row[1]):
        msg = f"vertex {row[0]} has the label {row[1]!r}"
        raise InvalidArgument(msg, hint="use integers as labels")
    return Row(row[0], int(row[1]))


def to_edge(edge: Any) -> Row:
    """Return the row of an edge; the weight is 1.0 if there is none."""
    if len(edge) < 3:
        return Row(edge[0], edge[1], 1.0)
    return Row(edge[0], edge[1], float("nan") if edge[2] is None else float(edge[2]))


def to_vertex(vertex: Any) -> Row:
    """Return the row of a vertex: an id, or a pair of an id and a value."""
    if not isinstance(vertex, tuple | list | Row):
        return Row(vertex, float("nan"))
    return Row(vertex[0], float(vertex[1]) if len(vertex) > 1 and vertex[1] is not None else float("nan"))
