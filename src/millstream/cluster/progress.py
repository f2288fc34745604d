"""Where a job is: the state files and the memory of its operators, as of the last accepted epoch.

Promises: progress after an epoch is made of progress before it and the reports, and of nothing else; what must be
written as one file is decided from the files alone.
Does not know: who runs epochs, and where files are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.cluster.sources import EpochPlan
from millstream.engine.contract import EpochRequest
from millstream.graph.execution_plan import ExecutionPlan
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.report import TaskReport
from millstream.state.compaction import PART_BYTES, PART_ROWS, Compaction, Rewrite
from millstream.state.handles import Chain, Handle, Lineage

_FEWEST_CHANGES = 7  # files, before the base is written anew because of them
_MERGE_AFTER = 64  # files of changes before they are merged
_WORTH_MERGING = 8


@dataclass
class Progress:
    """Where the job is: everything a checkpoint holds, as of the last accepted epoch.

    `generation` rises with every deployment, so that no two attempts have one name. `recovered` is the generation of
    the last recovery: what earlier generations staged is committed or dead. A rescale raises the first alone."""

    epoch: int = 0
    generation: int = 0
    now: int = 0
    lineages: dict[str, tuple[Lineage, ...]] = field(default_factory=dict)
    memory: dict[str, tuple[SubtaskMemory, ...]] = field(default_factory=dict)
    next_timer: int | None = None
    recovered: int = 0
    attempts: dict[str, tuple[bytes, ...]] = field(default_factory=dict)  # the accepted ones, by vertex and subtask

    @property
    def restored(self) -> bool:
        """Whether state is still that of a restore, which the next epoch writes as its own."""
        return any(part.restored for parts in self.lineages.values() for part in parts)

    def handles(self) -> list[Handle]:
        """Every state file that is needed."""
        return [handle for parts in self.lineages.values() for part in parts for handle in part.handles]

    def after(self, epoch: int, now: int, reports: Sequence[TaskReport]) -> Progress:
        """Where the job is when all subtasks have reported an epoch."""
        lineages = {name: list(parts) for name, parts in self.lineages.items()}
        memory = {name: list(parts) for name, parts in self.memory.items()}
        for report in reports:
            subtask = report.subtask
            for operator, written in report.states.items():
                lineages[operator][subtask] = lineages[operator][subtask].extend(*written)
            for operator, remembered in report.memory.items():
                memory[operator][subtask] = remembered
        return Progress(
            epoch,
            self.generation,
            now,
            {name: tuple(parts) for name, parts in lineages.items()},
            {name: tuple(parts) for name, parts in memory.items()},
            min((report.timer for report in reports if report.timer is not None), default=None),
            self.recovered,
            attempts_of(reports),
        )

    def request(self, plan: EpochPlan, restarts: int, work: Mapping[str, tuple[Any, ...]]) -> EpochRequest:
        """What the engine is asked to do for the next epoch."""
        return EpochRequest(
            epoch=plan.epoch,
            now=plan.now,
            generation=self.generation,
            recovered=self.recovered,
            restarts=restarts,
            attempts=self.attempts,
            lineages=self.lineages,
            memory=self.memory,
            work=work,
            compact=compactions(self.lineages),
            last=plan.ends or plan.stop,
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
                node.traits,
            )
            for planned in plan.vertices
            for node in planned.vertex.nodes
        )


def attempts_of(reports: Sequence[TaskReport]) -> dict[str, tuple[bytes, ...]]:
    """The attempts that have reported, by vertex and subtask."""
    found: dict[str, tuple[bytes, ...]] = {}
    for report in sorted(reports, key=lambda report: report.subtask):
        found[report.vertex] = (*found.get(report.vertex, ()), report.attempt)
    return found


def compactions(lineages: Mapping[str, tuple[Lineage, ...]]) -> dict[str, dict[int, Compaction]]:
    """Which subtasks write more than their changes: {operator: {subtask: what}}.

    Everything becomes a new base after a change of parallelism. When the changes outweigh the base, parts of it are
    written anew, about as much an epoch as the epoch before it changed, and one part at least."""
    wanted: dict[str, dict[int, Compaction]] = {}
    for operator, subtasks in lineages.items():
        for subtask, lineage in enumerate(subtasks):
            what = _compaction(lineage)
            if what is not None:
                wanted.setdefault(operator, {})[subtask] = what
    return wanted


def _compaction(lineage: Lineage) -> Compaction | None:
    if lineage.restored:
        return 0
    changes, bases = lineage.deltas, lineage.bases
    base = sum(handle.weight for handle in bases)
    if len(changes) >= _FEWEST_CHANGES and sum(handle.size for handle in changes) > max(2 * base, 1 << 20):
        part = min(PART_BYTES, max(1, base // len(bases))) if bases else PART_BYTES
        return Rewrite(max(1, changes[-1].size // part))
    fresh = sum(1 for handle in changes if not handle.covers)
    if fresh >= _MERGE_AFTER:
        return _mergeable(lineage.own, merged_too=False)
    return _mergeable(lineage.own, merged_too=True) if len(changes) - fresh >= _MERGE_AFTER else None


def _mergeable(own: Chain, *, merged_too: bool) -> int | None:
    """From which file on they become one that is no larger than a part; None when those would be few."""
    rows = size = 0
    since = len(own)
    for handle in reversed(own):
        rows, size = rows + handle.rows, size + handle.size
        if handle.base or (handle.covers and not merged_too) or rows > PART_ROWS or size > PART_BYTES:
            break
        since -= 1
    return since if len(own) - since >= _WORTH_MERGING else None
