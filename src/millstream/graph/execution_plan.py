"""The execution plan, fourth of the four graphs: subtasks, levels and key-group ranges, as an engine runs them.

Promises: a vertex is on the level of its longest path, in exchanges, from a source; every exchange goes to a higher
level.
Does not know: Spark, epochs."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.errors import UserError
from millstream.graph.job_graph import JobGraph, JobVertex
from millstream.runtime.task import ChainedEdge, InEdge, OperatorNode, OutEdge, TaskSpec
from millstream.state.key_groups import KeyGroupRange, range_of


@dataclass(frozen=True)
class PlannedVertex:
    """A vertex with its level and what its tasks need."""

    level: int
    vertex: JobVertex
    task: TaskSpec

    def key_groups(self, subtask: int) -> KeyGroupRange:
        """Return the key groups of a subtask."""
        return range_of(subtask, self.task.parallelism, self.task.max_parallelism)


@dataclass(frozen=True)
class ExecutionPlan:
    """Vertices by level. `edge_levels[edge]` is the level an exchange goes to."""

    job: JobGraph
    vertices: tuple[PlannedVertex, ...]
    edge_levels: tuple[int, ...]
    slots: int

    @property
    def levels(self) -> int:
        """How many stages an epoch has."""
        return 1 + max(planned.level for planned in self.vertices)

    @property
    def batch(self) -> bool:
        """Whether this is a batch job: all input is processed at once, sorted by key."""
        return self.job.batch

    @property
    def edge_ranks(self) -> tuple[int, ...]:
        """For each exchange, the rank of the vertex that it goes to: its index among the vertices, counted from 1."""
        ranks = {vertex.id: rank for rank, vertex in enumerate(self.job.vertices, start=1)}
        return tuple(ranks[edge.downstream] for edge in self.job.edges)

    def at_level(self, level: int) -> list[PlannedVertex]:
        """Return the vertices of a level."""
        return [planned for planned in self.vertices if planned.level == level]


def execution_plan(job: JobGraph) -> ExecutionPlan:
    """Assign the vertices of a job graph to levels."""
    levels: dict[str, int] = {}
    for vertex in job.vertices:
        upstream_levels = [levels[edge.upstream] for edge in job.edges if edge.downstream == vertex.id]
        levels[vertex.id] = 1 + max(upstream_levels, default=-1)
    slots = max(vertex.parallelism for vertex in job.vertices)
    if slots > 0xFFFF or len(job.edges) >= 0xFFFF:
        msg = f"the job has a parallelism of {slots} and {len(job.edges)} exchanges; the limit of both is 65535"
        raise UserError(msg)
    vertices = tuple(PlannedVertex(levels[vertex.id], vertex, _task(job, vertex)) for vertex in job.vertices)
    return ExecutionPlan(job, vertices, tuple(levels[edge.downstream] for edge in job.edges), slots)


def _task(job: JobGraph, vertex: JobVertex) -> TaskSpec:
    chain_index = {node.id: index for index, node in enumerate(vertex.nodes)}
    by_id = {node.id: node for job_vertex in job.vertices for node in job_vertex.nodes}
    inputs, outputs = [], []
    for edge in job.edges:
        stream_edge = edge.stream_edge
        upstream = job.vertex(edge.upstream).parallelism
        if edge.downstream == vertex.id:
            sender = by_id[stream_edge.upstream]
            record_type = sender.output_type if stream_edge.tag is None else sender.side_types[stream_edge.tag]
            inputs.append(InEdge(edge.index, stream_edge.side, record_type, upstream, stream_edge.partitioner))
        if edge.upstream == vertex.id:
            targets = job.vertex(edge.downstream).parallelism
            outputs.append(
                OutEdge(
                    edge.index, chain_index[stream_edge.upstream], stream_edge.partitioner, targets, stream_edge.tag
                )
            )
    return TaskSpec(
        vertex=vertex.id,
        name=vertex.name,
        parallelism=vertex.parallelism,
        max_parallelism=vertex.max_parallelism,
        operators=tuple(
            OperatorNode(n.operator, n.name, n.spec, n.output_type, n.key_type, n.side_types) for n in vertex.nodes
        ),
        chained=tuple(ChainedEdge(chain_index[e.upstream], chain_index[e.downstream], e.tag) for e in vertex.inner),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )
