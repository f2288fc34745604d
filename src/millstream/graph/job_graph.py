"""The job graph, third of the four graphs: chains of operators and the exchanges between them.

Promises: every operator is in exactly one vertex; an edge between two vertices is an exchange and has a reason.
Does not know: subtasks, levels."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.graph.chaining import ChainBreak, chain_break
from millstream.graph.stream_graph import StreamEdge, StreamGraph, StreamNode


@dataclass(frozen=True)
class JobVertex:
    """A chain of operators, head first; `inner` are the chained edges."""

    id: str
    nodes: tuple[StreamNode, ...]
    inner: tuple[StreamEdge, ...] = ()

    @property
    def name(self) -> str:
        """The names of the operators, joined as Flink does."""
        return " -> ".join(node.name for node in self.nodes)

    @property
    def parallelism(self) -> int:
        """The parallelism of every operator in the chain."""
        return self.nodes[0].parallelism

    @property
    def max_parallelism(self) -> int:
        """The max parallelism of the head; in a keyed chain the head is the keyed operator."""
        return self.nodes[0].max_parallelism


@dataclass(frozen=True)
class JobEdge:
    """An exchange between two vertices."""

    index: int
    upstream: str
    downstream: str
    stream_edge: StreamEdge
    reason: ChainBreak


@dataclass(frozen=True)
class JobGraph:
    """The vertices in topological order, and the exchanges."""

    name: str
    vertices: tuple[JobVertex, ...]
    edges: tuple[JobEdge, ...]
    batch: bool = False

    def vertex(self, vertex_id: str) -> JobVertex:
        """Return the vertex with an id."""
        return next(vertex for vertex in self.vertices if vertex.id == vertex_id)


def job_graph(graph: StreamGraph, name: str) -> JobGraph:
    """Chain the operators of a stream graph."""
    reasons = [(edge, chain_break(graph, edge)) for edge in graph.edges]  # a list: equal edges emit records twice
    chained_to = {edge.downstream: edge for edge, reason in reasons if reason is None}
    head_of: dict[int, int] = {}
    members: dict[int, list[StreamNode]] = {}
    inner: dict[int, list[StreamEdge]] = {}
    for node in graph.nodes:  # inputs come before their consumers
        chained = chained_to.get(node.id)
        head = head_of[chained.upstream] if chained is not None else node.id
        head_of[node.id] = head
        members.setdefault(head, []).append(node)
        inner.setdefault(head, []).extend(() if chained is None else (chained,))
    vertices = tuple(
        JobVertex(graph.node(head).operator, tuple(nodes), tuple(inner[head])) for head, nodes in members.items()
    )
    exchanges = [(edge, reason) for edge, reason in reasons if reason is not None]
    edges = tuple(
        JobEdge(
            index,
            graph.node(head_of[edge.upstream]).operator,
            graph.node(head_of[edge.downstream]).operator,
            edge,
            reason,
        )
        for index, (edge, reason) in enumerate(exchanges)
    )
    return JobGraph(name, vertices, edges, graph.batch)
