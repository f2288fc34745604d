"""Max parallelism of a job that starts from a checkpoint or savepoint, and its layout at another parallelism.

Promises: Flink's rule holds: the max parallelism of state is inherited by operators whose max parallelism the program
does not set. A program that sets another one, or has more subtasks than the state allows, is refused.
Does not know: state files, engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.cluster.rescale import RequestedParallelism, rescale_graph
from millstream.errors import UserError
from millstream.graph.execution_plan import ExecutionPlan, execution_plan
from millstream.graph.job_graph import JobVertex, job_graph
from millstream.graph.loops import find_loops
from millstream.graph.stream_graph import StreamGraph, stream_graph


class MoreSubtasksThanState(UserError):
    """An operator has more subtasks than its state has key groups."""

    def __init__(self, name: str, parallelism: int, max_parallelism: int) -> None:
        self.name, self.parallelism, self.max_parallelism = name, parallelism, max_parallelism
        super().__init__(
            f"'{name}' was checkpointed with max parallelism {max_parallelism}, so it cannot run with parallelism "
            f"{parallelism}",
            hint=f"set its parallelism to {max_parallelism} or less",
        )


def has_other_max_parallelism(plan: ExecutionPlan, operators: Sequence[OperatorSnapshot]) -> bool:
    """Whether any operator with state has another max parallelism in the plan."""
    planned = {node.id: vertex.task.max_parallelism for vertex in plan.vertices for node in vertex.task.operators}
    return any(
        snapshot.has_state and planned.get(snapshot.operator, snapshot.max_parallelism) != snapshot.max_parallelism
        for snapshot in operators
    )


def inherit_max_parallelism(graph: StreamGraph, name: str, operators: Sequence[OperatorSnapshot]) -> StreamGraph:
    """Return the program with the max parallelism of the snapshot's state, wherever the program sets none."""
    not_set = {step.id for step in graph.program if step.max_parallelism is None and graph.max_parallelism is None}
    inherited: dict[int, int] = {}
    for vertex, max_parallelism in _restored_vertices(graph, name, operators):
        if vertex.nodes[0].id not in not_set:
            continue
        if vertex.parallelism > max_parallelism:
            raise MoreSubtasksThanState(vertex.name, vertex.parallelism, max_parallelism)
        inherited |= {node.id: max_parallelism for node in vertex.nodes if node.id in not_set}
    if graph.batch or all(graph.node(node).max_parallelism == most for node, most in inherited.items()):
        return graph  # a batch job starts without state
    steps = [
        replace(step, max_parallelism=inherited.get(step.id, graph.node(step.id).max_parallelism))
        for step in graph.program
    ]
    changed = stream_graph(
        steps,
        parallelism=graph.parallelism,
        chaining=graph.chaining,
        chain_mixed_max_parallelism=graph.chains_mixed_max_parallelism,
    )
    return replace(changed, program=graph.program, max_parallelism=graph.max_parallelism)


def _restored_vertices(
    graph: StreamGraph, name: str, operators: Sequence[OperatorSnapshot]
) -> list[tuple[JobVertex, int]]:
    """Return the chains that have state in the snapshot, with its max parallelism if there is only one.

    The chains of the head and the tail of an iteration have the same, even if only one of them has state."""
    restored = {snapshot.operator: snapshot.max_parallelism for snapshot in operators if snapshot.has_state}
    vertices = job_graph(graph, name).vertices
    by_index: dict[int, int] = {}
    for index, vertex in enumerate(vertices):
        of_state = {restored[node.operator] for node in vertex.nodes if node.operator in restored}
        if len(of_state) == 1:
            by_index[index] = of_state.pop()
    index_of = {node.operator: index for index, vertex in enumerate(vertices) for node in vertex.nodes}
    for head, tail in (pair for loop in find_loops(graph.nodes, graph.edges) for pair in loop.pairs):
        for one, other in ((head, tail), (tail, head)):
            if index_of[one] in by_index:
                by_index.setdefault(index_of[other], by_index[index_of[one]])
    return [(vertices[index], max_parallelism) for index, max_parallelism in by_index.items()]


class JobLayout:
    """The program of a running job at its present parallelism and max parallelism. Changes accumulate."""

    def __init__(self, graph: StreamGraph, name: str) -> None:
        self._graph, self._name = graph, name

    def rescale(self, parallelism: RequestedParallelism) -> ExecutionPlan:
        """Change the parallelism and return the new plan; what cannot run is refused and changes nothing."""
        return self._change(rescale_graph(self._graph, parallelism))

    def slots_at(self, parallelism: RequestedParallelism) -> int:
        """Return how many slots the job needs at another parallelism; changes nothing."""
        return execution_plan(job_graph(rescale_graph(self._graph, parallelism), self._name)).slots

    def inherit_max_parallelism(self, operators: Sequence[OperatorSnapshot]) -> ExecutionPlan:
        """Take the max parallelism of a snapshot where the program sets none, and return the new plan."""
        return self._change(inherit_max_parallelism(self._graph, self._name, operators))

    def _change(self, graph: StreamGraph) -> ExecutionPlan:
        plan = execution_plan(job_graph(graph, self._name))
        self._graph = graph
        return plan
