"""Progress of a job: the state files and the memory of its operators, as of the last accepted epoch.

Promises: the progress after an epoch is a function of the progress before it and the reports; compactions are a
function of the state files.
Does not know: who runs epochs, and where files are stored."""

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

_FEWEST_CHANGES = 7  # the number of deltas after which the base is rewritten
_MERGE_AFTER = 64  # the number of deltas after which they are merged
_FEWEST_MERGED = 8  # fewer deltas than this are not merged


@dataclass
class Progress:
    """What a checkpoint contains, as of the last accepted epoch.

    `generation` grows with every deployment, so that no two attempts have the same name. `recovered` is the generation
    of the last recovery: output that earlier generations staged is committed or aborted. A rescale increases only
    `generation`."""

    epoch: int = 0
    generation: int = 0
    now: int = 0
    lineages: dict[str, tuple[Lineage, ...]] = field(default_factory=dict)
    memory: dict[str, tuple[SubtaskMemory, ...]] = field(default_factory=dict)
    next_timer: int | None = None
    recovered: int = 0
    attempts: dict[str, tuple[bytes, ...]] = field(default_factory=dict)  # the accepted attempts, by vertex and subtask

    @property
    def is_restored(self) -> bool:
        """Whether state is still in the files of a restore; the next epoch writes it as its own."""
        return any(part.restored for parts in self.lineages.values() for part in parts)

    def handles(self) -> list[Handle]:
        """Return every state file that the job needs."""
        return [handle for parts in self.lineages.values() for part in parts for handle in part.handles]

    def after(self, epoch: int, now: int, reports: Sequence[TaskReport]) -> Progress:
        """Return the progress after all subtasks have reported an epoch."""
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
            collect_attempts(reports),
        )

    def request(self, plan: EpochPlan, restarts: int, work: Mapping[str, tuple[Any, ...]]) -> EpochRequest:
        """Return the request of the next epoch to the engine."""
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
            compact=plan_compactions(self.lineages),
            last=plan.ends or plan.stop,
        )

    def operators(self, plan: ExecutionPlan) -> tuple[OperatorSnapshot, ...]:
        """Return the operators as a checkpoint contains them."""
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


def collect_attempts(reports: Sequence[TaskReport]) -> dict[str, tuple[bytes, ...]]:
    """Return the attempts that have reported, by vertex and subtask."""
    attempts: dict[str, list[bytes]] = {}
    for report in sorted(reports, key=lambda report: report.subtask):
        attempts.setdefault(report.vertex, []).append(report.attempt)
    return {vertex: tuple(names) for vertex, names in attempts.items()}


def plan_compactions(lineages: Mapping[str, tuple[Lineage, ...]]) -> dict[str, dict[int, Compaction]]:
    """Return the compactions of the next epoch, by operator and subtask.

    After a change of parallelism, all state is written as a new base. When the deltas are larger than the base, parts
    of it are rewritten: in each epoch about as much as the epoch before changed, and at least one part."""
    compactions: dict[str, dict[int, Compaction]] = {}
    for operator, subtasks in lineages.items():
        for subtask, lineage in enumerate(subtasks):
            compaction = _compaction(lineage)
            if compaction is not None:
                compactions.setdefault(operator, {})[subtask] = compaction
    return compactions


def _compaction(lineage: Lineage) -> Compaction | None:
    if lineage.restored:
        return 0
    if len(lineage.own) < min(_FEWEST_CHANGES, _MERGE_AFTER):
        return None
    changes, bases = lineage.deltas, lineage.bases
    base = sum(handle.weight for handle in bases)
    if len(changes) >= _FEWEST_CHANGES and sum(handle.size for handle in changes) > max(2 * base, 1 << 20):
        part = min(PART_BYTES, max(1, base // len(bases))) if bases else PART_BYTES
        return Rewrite(max(1, changes[-1].size // part))
    unmerged = sum(1 for handle in changes if not handle.covers)
    if unmerged >= _MERGE_AFTER:
        return _first_mergeable(lineage.own, merged_too=False)
    return _first_mergeable(lineage.own, merged_too=True) if len(changes) - unmerged >= _MERGE_AFTER else None


def _first_mergeable(chain: Chain, *, merged_too: bool) -> int | None:
    """Return the index of the first of the newest files that are merged into one file of at most the size of a part;
    None if there are too few."""
    rows = size = 0
    since = len(chain)
    for handle in reversed(chain):
        rows, size = rows + handle.rows, size + handle.size
        if handle.base or (handle.covers and not merged_too) or rows > PART_ROWS or size > PART_BYTES:
            break
        since -= 1
    return since if len(chain) - since >= _FEWEST_MERGED else None
