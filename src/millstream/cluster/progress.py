"""Where a job is: the state files and the memory of its operators, as of the last accepted epoch.

Promises: progress after an epoch is made of progress before it and the reports, and of nothing else; what must be
written as one file is decided from the files alone.
Does not know: who runs epochs, and where files are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.graph.execution_plan import ExecutionPlan
from millstream.state.handles import Handle, Lineage

_MERGE_AFTER = 64  # own files before small ones are merged


@dataclass
class Progress:
    """Where the job is: everything a checkpoint holds, as of the last accepted epoch."""

    epoch: int = 0
    generation: int = 0
    now: int = 0
    lineages: dict[str, tuple[Lineage, ...]] = field(default_factory=dict)
    memory: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    next_timer: int | None = None

    @property
    def restored(self) -> bool:
        """Whether state is still that of a restore, which the next epoch writes as its own."""
        return any(part.restored for parts in self.lineages.values() for part in parts)

    def handles(self) -> list[Handle]:
        """Every state file that is needed."""
        return [handle for parts in self.lineages.values() for part in parts for handle in part.handles]

    def after(self, epoch: int, now: int, reports: Sequence[Mapping[str, Any]]) -> Progress:
        """Where the job is when all subtasks have reported an epoch."""
        lineages = {name: list(parts) for name, parts in self.lineages.items()}
        memory = {name: list(parts) for name, parts in self.memory.items()}
        for report in reports:
            subtask = report["subtask"]
            for operator, handle in report["states"].items():
                lineages[operator][subtask] = lineages[operator][subtask].extended(handle)
            for operator, remembered in report["memory"].items():
                memory[operator][subtask] = remembered
        return Progress(
            epoch,
            self.generation,
            now,
            {name: tuple(parts) for name, parts in lineages.items()},
            {name: tuple(parts) for name, parts in memory.items()},
            min((report["timer"] for report in reports if report["timer"] is not None), default=None),
        )

    def operators(self, plan: ExecutionPlan) -> tuple[OperatorSnapshot, ...]:
        """The operators as a checkpoint names them."""
        return tuple(
            OperatorSnapshot(
                node.operator,
                node.name,
                node.uid,
                planned.task.parallelism,
                planned.task.max_parallelism,
                self.lineages[node.operator],
                self.memory[node.operator],
            )
            for planned in plan.vertices
            for node in planned.vertex.nodes
        )


def compactions(lineages: Mapping[str, tuple[Lineage, ...]]) -> dict[str, dict[int, int]]:
    """Which subtasks write one file for many: {operator: {subtask: first own file that is replaced}}.

    Everything becomes a new base after a change of parallelism, and when the changes outweigh the base."""
    wanted: dict[str, dict[int, int]] = {}
    for operator, parts in lineages.items():
        for subtask, lineage in enumerate(parts):
            own = lineage.own
            base = own[0].size if own and own[0].base else 0
            changes = sum(handle.size for handle in own) - base
            if lineage.restored or (len(own) >= 8 and changes > max(2 * base, 1 << 20)):
                wanted.setdefault(operator, {})[subtask] = 0
                continue
            small = [index for index, handle in enumerate(own) if not handle.base and not handle.covers]
            if len(small) >= _MERGE_AFTER:
                wanted.setdefault(operator, {})[subtask] = max(small[0], 1 if base else 0)
    return wanted
