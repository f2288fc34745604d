"""The max parallelism of a checkpoint or savepoint, taken over by a program that leaves its own open.

Promises: Flink's rule: state fixes the max parallelism of its operators unless the program sets one; a program that
sets another, or wants more subtasks than the state allows, is refused, not changed.
Does not know: state files, engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.cluster.rescale import Wanted, rescaled
from millstream.errors import UserError
from millstream.graph.execution_plan import ExecutionPlan, execution_plan
from millstream.graph.job_graph import job_graph
from millstream.graph.stream_graph import StreamGraph, stream_graph


class MoreSubtasksThanState(UserError):
    """The state of an operator cannot be shared out among so many subtasks."""

    def __init__(self, name: str, parallelism: int, max_parallelism: int) -> None:
        self.name, self.parallelism, self.max_parallelism = name, parallelism, max_parallelism
        super().__init__(
            f"'{name}' was checkpointed with max parallelism {max_parallelism}, so it cannot run with parallelism "
            f"{parallelism}",
            hint=f"give it a parallelism of at most {max_parallelism}",
        )


def differs(plan: ExecutionPlan, operators: Sequence[OperatorSnapshot]) -> bool:
    """Whether any operator with state has another max parallelism in the plan."""
    planned = {node.id: each.task.max_parallelism for each in plan.vertices for node in each.task.operators}
    return any(
        each.has_state and planned.get(each.operator, each.max_parallelism) != each.max_parallelism
        for each in operators
    )


def adopted(graph: StreamGraph, name: str, operators: Sequence[OperatorSnapshot]) -> StreamGraph:
    """The program with the max parallelism of the snapshot's state, wherever it has left its own open.

    Operators of one chain have one max parallelism: a chain takes over that of its state, if there is only one."""
    kept = {each.operator: each.max_parallelism for each in operators if each.has_state}
    left_open = {step.id for step in graph.program if step.max_parallelism is None and graph.max_parallelism is None}
    taken: dict[int, int] = {}
    for vertex in job_graph(graph, name).vertices:
        found = {kept[node.operator] for node in vertex.nodes if node.operator in kept}
        if len(found) != 1 or vertex.nodes[0].id not in left_open:
            continue
        (most,) = found
        if vertex.parallelism > most:
            raise MoreSubtasksThanState(vertex.name, vertex.parallelism, most)
        taken |= {node.id: most for node in vertex.nodes if node.id in left_open}
    if graph.batch or all(graph.node(number).max_parallelism == most for number, most in taken.items()):
        return graph  # a batch begins without state
    steps = [
        replace(step, max_parallelism=taken.get(step.id, graph.node(step.id).max_parallelism)) for step in graph.program
    ]
    made = stream_graph(
        steps,
        parallelism=graph.parallelism,
        chaining=graph.chaining,
        chain_mixed_max_parallelism=graph.chains_mixed_max_parallelism,
    )
    return replace(made, program=graph.program, max_parallelism=graph.max_parallelism)


class Layout:
    """The program of a running job as it is laid out now: one change adds to those before it."""

    def __init__(self, graph: StreamGraph, name: str) -> None:
        self._graph, self._name = graph, name

    def rescaled(self, wanted: Wanted) -> ExecutionPlan:
        """The program at another parallelism; refuses what cannot run, and is then as before."""
        return self._become(rescaled(self._graph, wanted))

    def adopted(self, operators: Sequence[OperatorSnapshot]) -> ExecutionPlan:
        """The program with the max parallelism of a snapshot, where it left its own open."""
        return self._become(adopted(self._graph, self._name, operators))

    def _become(self, graph: StreamGraph) -> ExecutionPlan:
        plan = execution_plan(job_graph(graph, self._name))
        self._graph = graph
        return plan
