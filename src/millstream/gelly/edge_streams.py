"""Streaming graphs: numbers and components that are kept up to date while edges arrive.

Promises: after the last edge, the last result of each key does not depend on the order of edges or on the parallelism.
Does not know: bounded graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgument, UserError
from millstream.functions import KeyedCoProcessFunction, KeyedProcessFunction
from millstream.gelly.dataflow import COUNT
from millstream.iteration.flink_ml import IterationBodyResult, Iterations
from millstream.iteration.stream_lists import DataStreamList
from millstream.state_descriptors.descriptors import MapStateDescriptor, ValueStateDescriptor
from millstream.types.factory import Types
from millstream.types.row import Row, RowKind

_PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
_CHANGE = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
_COLORED = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])
_ESTIMATE = Types.ROW_NAMED(["triangles"], [Types.DOUBLE()])


class RemovedEdge(UserError):
    """An edge was removed, and the result cannot follow."""

    hint = "components can only grow; for streams with removals, compute components of bounded graphs again and again"

    def __init__(self, source: int, target: int) -> None:
        super().__init__(f"the edge from vertex {source} to vertex {target} was removed: its component may fall apart")


class EdgeStream:
    """An unbounded graph: a stream of edges that arrive, and of edges that are removed.

    Every method returns a stream of updates; the last one of a vertex counts.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> edges = EdgeStream.from_data_stream(env.from_collection([(1, 2), (2, 3)]))
        >>> labels = dict(tuple(row) for row in edges.connected_components().execute_and_collect())
        >>> sorted(labels.items())
        [(1, 1), (2, 1), (3, 1)]

    """

    def __init__(self, changes: DataStream[Any]) -> None:
        """`changes` has tuples of source, target, and 1 or -1; use the other constructor."""
        self._changes = changes

    @classmethod
    def from_data_stream(cls, edges: DataStream[Any]) -> EdgeStream:
        """Create a streaming graph.

        Args:
            edges: Tuples or rows (source, target, ...); a row with the row kind DELETE removes an edge. An edge that is
                removed must be in the same subtask as when it arrived, so that both stay in their order.

        """
        return cls(_keep_order(edges.map(_to_change, _CHANGE)))

    def get_degrees(self) -> DataStream[Any]:
        """Return (vertex, number of its edges), whenever it changes; a self loop counts twice."""
        ends = self._changes.flat_map(_to_ends, _PAIR)
        totals = ends.key_by(0).sum(1)
        return totals.map(lambda pair: Row(pair[0], pair[1]), COUNT)

    def connected_components(self) -> DataStream[Any]:
        """Return (vertex, least vertex of its component), whenever it changes.

        Directions are ignored. Labels spread from vertex to vertex as feedback of an unbounded iteration, so the stream
        has intermediate results until they have arrived. The job fails if an edge is removed.
        """
        edges = self._changes.flat_map(_to_labels, _PAIR)

        def body(labels: DataStreamList, data: DataStreamList) -> IterationBodyResult:
            keyed = labels.get(0).key_by(0), data.get(0).key_by(0)
            spread = keyed[1].connect(keyed[0]).process(_SpreadLabels(), _COLORED)
            messages = spread.filter(lambda row: row[0] == 0).map(lambda row: (row[1], row[2]), _PAIR)
            results = spread.filter(lambda row: row[0] == 1).map(lambda row: Row(row[1], row[2]), COUNT)
            return IterationBodyResult(DataStreamList.of(messages), DataStreamList.of(results))

        empty = self._changes.get_execution_environment().from_collection([], _PAIR)
        inputs = DataStreamList.of(empty), DataStreamList.of(edges)
        return Iterations.iterate_unbounded_streams(*inputs, body).get(0)

    def triangle_estimates(self, colors: int = 1, seed: int = 0) -> DataStream[Any]:
        """Return one row with the estimated number of triangles, whenever it changes.

        Each vertex gets one of some colors, and only edges within a color are kept: about one in `colors` of them. The
        triangles of these edges are counted, and the estimate is their number times the square of the number of colors.
        It is right on average, and exact with one color; the more triangles the graph has, the smaller is its error.
        Directions, self loops and parallel edges are ignored; an edge is removed when it is removed once.

        Args:
            colors: The number of colors; edges of one color are in the state of one subtask.
            seed: Another seed gives other colors.

        """
        if colors < 1:
            msg = f"the number of colors is {colors!r}"
            raise InvalidArgument(msg, hint="use an int of at least 1")

        def color(change: Any) -> list[Any]:
            source, target, sign = change
            of_source, of_target = _color(source, colors, seed), _color(target, colors, seed)
            return [(of_source, source, target, sign)] if of_source == of_target and source != target else []

        colored = _keep_order(self._changes.flat_map(color, _COLORED))
        counted = colored.key_by(0).process(_CountTriangles(), _PAIR)
        totals = counted.key_by(0).sum(1)
        factor = float(colors) ** 2
        return totals.map(lambda pair: Row(pair[1] * factor), _ESTIMATE)


class _SpreadLabels(KeyedCoProcessFunction[int, Any, Any, Any]):
    """Keeps the neighbors and the label of a vertex; emits (0, vertex, label, 0) for messages, (1, ...) for results."""

    def open(self, runtime_context: Any) -> None:
        self._neighbors = runtime_context.get_map_state(MapStateDescriptor("neighbors", Types.LONG(), Types.LONG()))
        self._label = runtime_context.get_state(ValueStateDescriptor("label", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        """Add a neighbor, and send it the label."""
        vertex, neighbor = value
        label = self._label.value()
        if label is None:
            label = vertex
            self._label.update(label)
            yield 1, vertex, label, 0
        if neighbor != vertex and not self._neighbors.contains(neighbor):
            self._neighbors.put(neighbor, 0)
            yield 0, neighbor, label, 0

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        """Take a smaller label, and send it on."""
        vertex, label = value
        current = self._label.value()
        if current is None or label < current:
            self._label.update(min(label, vertex))
            yield 1, vertex, min(label, vertex), 0
            for neighbor in self._neighbors.keys():  # noqa: SIM118 a state is not a dictionary
                yield 0, neighbor, min(label, vertex), 0


class _CountTriangles(KeyedProcessFunction[int, Any, Any]):
    """Keeps the edges of a color; emits (0, triangles that a change adds)."""

    def open(self, runtime_context: Any) -> None:
        neighbors = MapStateDescriptor("neighbors", Types.LONG(), Types.PICKLED_BYTE_ARRAY())
        self._neighbors = runtime_context.get_map_state(neighbors)

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        """Add or remove an edge."""
        _, one, other, sign = value
        of_one, of_other = (set(self._neighbors.get(vertex) or ()) for vertex in (one, other))
        if (other in of_one) == (sign > 0):
            return
        if sign > 0:
            of_one.add(other)
            of_other.add(one)
        else:
            of_one.remove(other)
            of_other.remove(one)
        self._neighbors.put(one, of_one)
        self._neighbors.put(other, of_other)
        triangles = len(of_one & of_other)
        if triangles:
            yield 0, sign * triangles


def _keep_order(stream: DataStream[Any]) -> DataStream[Any]:
    """Run an operator with the parallelism of its input: records stay on their subtask."""
    for edge in stream._inputs:
        stream.get_execution_environment()._program.change(edge.upstream, follows_input=True)
    return stream


def _to_change(edge: Any) -> tuple[int, int, int]:
    is_removed = isinstance(edge, Row) and edge.get_row_kind() in (RowKind.DELETE, RowKind.UPDATE_BEFORE)
    return edge[0], edge[1], -1 if is_removed else 1


def _to_ends(change: Any) -> Iterator[tuple[int, int]]:
    yield change[0], change[2]
    yield change[1], change[2]


def _to_labels(change: Any) -> Iterator[tuple[int, int]]:
    source, target, sign = change
    if sign < 0:
        raise RemovedEdge(source, target)
    yield source, target
    yield target, source


def _color(vertex: int, colors: int, seed: int) -> int:
    """Return the color of a vertex: a hash (SplitMix64) of its id and the seed."""
    mask = (1 << 64) - 1
    number = (vertex + (seed + 1) * 0x9E3779B97F4A7C15) & mask
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & mask
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & mask
    return (number ^ (number >> 31)) % colors
