"""The three models of Gelly with functions that are called for single vertices and edges.

They are vertex programs, whose methods call the functions one vertex after the other: easier to write than functions on
arrays, and much slower.

Promises: as in Gelly, the vertices with messages are active in a round, and all of them in the first.
Does not know: how rounds are run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from millstream.functions.vertex import VertexProgram
from millstream.gelly.relations import check_laws

_Update = tuple[np.ndarray, np.ndarray, np.ndarray]


class Vertex:
    """A vertex in a round: its id, its value, and its outgoing edges; functions set the value and send messages.

    Attributes:
        id: The id.
        value: The value; it can be set.
        superstep_number: The number of the round; the first is 1.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.gelly import Graph
        >>> def smallest(vertex, messages):
        ...     if vertex.superstep_number == 1 or min(messages) < vertex.value:
        ...         vertex.value = min([vertex.id, *messages])
        ...         vertex.send_message_to_all_neighbors(vertex.value)
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> graph = Graph.from_collection(env, [(1, 2), (2, 3)])
        >>> result = graph.run_vertex_centric_iteration(smallest)
        >>> sorted(tuple(row) for row in result.execute_and_collect())
        [(1, 1.0), (2, 1.0), (3, 1.0)]

    """

    def __init__(self, block: Any, index: int, superstep_number: int) -> None:
        self._edges = range(int(block.starts[index]), int(block.starts[index + 1]))
        self._block = block
        self.id, self.value = int(block.ids[index]), float(block.values[index])
        self.superstep_number = superstep_number
        self._sent: list[tuple[int, float]] = []

    def get_edges(self) -> list[tuple[int, float]]:
        """Return (target, weight) of the outgoing edges."""
        part = slice(self._edges.start, self._edges.stop)
        return list(zip(self._block.targets[part].tolist(), self._block.weights[part].tolist(), strict=True))

    def send_message_to_all_neighbors(self, message: float) -> None:
        """Send a number along all outgoing edges.

        Args:
            message: The number.

        """
        self._sent += [(edge, message) for edge in self._edges]

    def send_message_to(self, target: int, message: float) -> None:
        """Send a number to one neighbor; if several edges lead to it, along the first.

        Args:
            target: The id of the neighbor.
            message: The number.

        """
        targets = self._block.targets[self._edges.start : self._edges.stop]
        position = int(np.searchsorted(targets, target))
        if position == len(targets) or targets[position] != target:
            msg = f"vertex {self.id} has no edge to vertex {target}"
            raise ValueError(msg)
        self._sent.append((self._edges.start + position, message))


class _PerVertex(VertexProgram, ABC):
    """Calls a function for each active vertex, and keeps what it sends."""

    combiner: ClassVar[str | None] = None

    @abstractmethod
    def call(self, vertex: Vertex, messages: Sequence[float]) -> None:
        """Call the function of a round."""

    @abstractmethod
    def send(self, vertex: Vertex) -> None:
        """Let a vertex send whose value changed."""

    def start(self, block: Any) -> tuple[np.ndarray, np.ndarray]:
        """Begin with the values of the graph."""
        block.values = block.initial.copy()
        groups: Iterator[tuple[int, list[float]]] = ((index, []) for index in range(len(block)))
        changed, values, senders = self._run(block, groups, 1)
        result = block.initial.copy()
        result[changed] = values
        return result, senders

    def update(
        self, block: Any, vertices: np.ndarray, messages: np.ndarray, aggregates: Mapping[str, float]
    ) -> _Update:
        """Call the function for the vertices with messages."""
        firsts = np.flatnonzero(np.append(True, vertices[1:] != vertices[:-1])) if len(vertices) else vertices
        parts = [part.tolist() for part in np.split(messages, firsts[1:])]
        groups = zip(vertices[firsts].tolist(), parts, strict=False)
        return self._run(block, groups, int(aggregates.get("superstep", 0)) + 1)

    def _run(self, block: Any, groups: Any, superstep: int) -> _Update:
        block.notes["superstep"] = superstep
        indexes: list[int] = []
        values: list[float] = []
        sent: list[tuple[int, float]] = []
        for index, messages in groups:
            vertex = Vertex(block, index, superstep)
            try:
                self.call(vertex, messages)
                if superstep == 1 or not np.array_equal(vertex.value, block.values[index], equal_nan=True):
                    self.send(vertex)
            except Exception as problem:
                problem.add_note(f"at vertex {vertex.id} with the messages {messages[:10]}")
                raise
            sent += vertex._sent
            indexes.append(index)
            values.append(vertex.value)
        sent.sort()
        edges, numbers = zip(*sent, strict=True) if sent else ((), ())
        block.notes["sent"] = np.array(edges, dtype=np.int64), np.array(numbers, dtype=float)
        changed = np.array(indexes, dtype=np.int64)
        return changed, np.array(values, dtype=float), changed

    def select(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Return the edges along which functions have sent."""
        return block.notes["sent"][0]  # type: ignore[no-any-return]

    def message(self, block: Any, edges: np.ndarray) -> np.ndarray:
        """Return what functions have sent."""
        return block.notes["sent"][1]  # type: ignore[no-any-return]

    def aggregate(self, block: Any) -> Mapping[str, tuple[str, float]]:
        """Report the round."""
        return {"superstep": ("max", block.notes["superstep"])}


@dataclass(frozen=True)
class VertexCentric(_PerVertex):
    """A vertex-centric iteration: `compute` gets a vertex and its messages."""

    compute: Callable[[Vertex, Sequence[float]], Any]

    def call(self, vertex: Vertex, messages: Sequence[float]) -> None:
        """Compute."""
        self.compute(vertex, messages)

    def send(self, vertex: Vertex) -> None:
        """Do nothing: `compute` sends."""


@dataclass(frozen=True)
class ScatterGatherFunctions(_PerVertex):
    """A scatter-gather iteration: `gather` gets a vertex and its messages, `scatter` a vertex that changed."""

    scatter: Callable[[Vertex], Any]
    gather: Callable[[Vertex, Sequence[float]], Any]

    def call(self, vertex: Vertex, messages: Sequence[float]) -> None:
        """Gather; there is nothing to gather in the first round."""
        if vertex.superstep_number > 1:
            self.gather(vertex, messages)

    def send(self, vertex: Vertex) -> None:
        """Scatter."""
        self.scatter(vertex)


@dataclass(frozen=True)
class GatherSumApplyFunctions(_PerVertex):
    """A gather-sum-apply iteration: numbers of neighbors are gathered, summed up, and applied to the value."""

    gather: Callable[[float, float], float]
    sum: Callable[[float, float], float]
    apply: Callable[[float, float], float]
    check: bool = False

    def call(self, vertex: Vertex, messages: Sequence[float]) -> None:
        """Sum up, and apply."""
        if messages:
            if self.check:
                check_laws(self.sum, np.array(messages))
            total = messages[0]
            for message in messages[1:]:
                total = self.sum(total, message)
            vertex.value = float(self.apply(vertex.value, total))

    def send(self, vertex: Vertex) -> None:
        """Gather along the edges of a vertex that changed."""
        first = vertex._edges.start
        for position, (_, weight) in enumerate(vertex.get_edges()):
            vertex._sent.append((first + position, float(self.gather(vertex.value, weight))))
