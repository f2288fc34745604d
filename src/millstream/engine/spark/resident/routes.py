"""Which slots send blocks to which, as an execution plan says it.

Promises: a slot waits for those slots and levels only whose channels reach its own subtasks, so a level begins as soon
as its input is complete, and slots without a common channel are not connected.
Does not know: sockets, epochs."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.graph.execution_plan import ExecutionPlan
from millstream.runtime.partitioners import Router


@dataclass(frozen=True)
class Routes:
    """The channels of one slot. `senders[level]`: the levels and slots that this slot's subtasks on a level read from;
    `targets[level]`: the slots that read from this slot's subtasks on a level."""

    senders: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    targets: dict[int, set[int]] = field(default_factory=dict)

    def peers(self, slot: int) -> set[int]:
        """Return the slots that this slot needs connections to."""
        reading = {other for senders in self.senders.values() for _, other in senders}
        return (reading | {other for targets in self.targets.values() for other in targets}) - {slot}


def read_routes(plan: ExecutionPlan, slot: int) -> Routes:
    """Return the channels of a slot."""
    routes = Routes()
    senders_of_edge = {edge.index: edge.upstream for edge in plan.job.edges}
    planned_of = {planned.task.vertex: planned for planned in plan.vertices}
    for reader in plan.vertices:
        parallelism = reader.task.parallelism
        for edge in reader.task.inputs:
            sender = planned_of[senders_of_edge[edge.edge]]
            if slot < parallelism:
                senders = routes.senders.setdefault(reader.level, set())
                senders.update((sender.level, up) for up in edge.channels(slot, parallelism))
            if slot < sender.task.parallelism:
                targets = routes.targets.setdefault(sender.level, set())
                router = Router(edge.partitioner, "", slot, edge.upstream, parallelism)
                targets.update(router.reachable())
    return routes
