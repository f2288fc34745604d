"""Restore: assigns the state of a checkpoint to the subtasks of a program.

Promises: keyed state is assigned to the subtask that owns its key group at the new parallelism. State of an operator
that the program does not have is an error unless dropping it is allowed. A changed max parallelism is an error.
Does not know: the content of state files, engines.

After a change of parallelism, every subtask reads the lineages of all old subtasks and keeps its own key groups. Its
first epoch writes a new base, so a checkpoint never names state files that were written at another parallelism."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.errors import UserError
from millstream.runtime.memory import SubtaskMemory, redistribute
from millstream.runtime.watermarks import InputChannels
from millstream.state.handles import Lineage


class StateNotClaimed(UserError):
    """The checkpoint has state or staged output of an operator that the program does not have."""

    def __init__(self, operators: Sequence[str], have: Sequence[str]) -> None:
        self.operators = tuple(operators)
        super().__init__(
            f"the checkpoint has state of {', '.join(operators)}, which the program does not have "
            f"(it has {', '.join(have)})",
            hint="check that the checkpoint belongs to this program, and set the same uids as before; to drop it, "
            "set execution.state-recovery.ignore-unclaimed-state; 'millstream savepoint check' shows what has changed",
        )


_log = logging.getLogger("millstream.restore")


class MaxParallelismChanged(UserError):
    """The max parallelism of an operator with state changed; its key groups depend on it."""

    def __init__(self, name: str, old: int, new: int) -> None:
        super().__init__(
            f"operator '{name}' was checkpointed with max parallelism {old}, the program asks for {new}",
            hint=f"call set_max_parallelism({old}), or do not set it: the value of the checkpoint is then used",
        )


@dataclass(frozen=True)
class OperatorShape:
    """An operator of the program that is restored."""

    operator: str
    name: str
    parallelism: int
    max_parallelism: int


@dataclass(frozen=True)
class Restored:
    """State and memory of the subtasks of each operator, by operator id."""

    lineages: dict[str, tuple[Lineage, ...]]
    memory: dict[str, tuple[SubtaskMemory, ...]]


def start_empty(shapes: Sequence[OperatorShape]) -> Restored:
    """Return empty state and memory, for a job that starts from the beginning."""
    return Restored(
        {shape.operator: (Lineage(),) * shape.parallelism for shape in shapes},
        {shape.operator: (SubtaskMemory(),) * shape.parallelism for shape in shapes},
    )


def assign(
    metadata: CheckpointMetadata,
    shapes: Sequence[OperatorShape],
    *,
    allow_unclaimed: bool = False,
    foreign: bool = False,
) -> Restored:
    """Assign the state of a checkpoint to the subtasks of a program.

    A `foreign` checkpoint belongs to another job, which may delete its files: the state is written again completely."""
    by_id = {snapshot.operator: snapshot for snapshot in metadata.operators}
    claimed = {shape.operator for shape in shapes}
    unclaimed = [
        _describe_unclaimed(snapshot, metadata.pending(snapshot.operator))
        for snapshot in metadata.operators
        if snapshot.operator not in claimed
    ]
    lost = [description for description in unclaimed if description]
    if lost and not allow_unclaimed:
        raise StateNotClaimed(lost, [f"'{shape.name}'" for shape in shapes])
    if lost:
        _log.warning("state dropped, because the program does not have these operators: %s", ", ".join(lost))
    lineages: dict[str, tuple[Lineage, ...]] = {}
    memory: dict[str, tuple[SubtaskMemory, ...]] = {}
    for shape in shapes:
        old = by_id.get(shape.operator)
        if old is None:
            lineages[shape.operator] = (Lineage(),) * shape.parallelism
            memory[shape.operator] = (SubtaskMemory(),) * shape.parallelism
            continue
        if old.has_state and old.max_parallelism != shape.max_parallelism:
            raise MaxParallelismChanged(shape.name, old.max_parallelism, shape.max_parallelism)
        lineages[shape.operator] = _assign_lineages(old, shape, foreign)
        memory[shape.operator] = _assign_memories(old, shape)
    return Restored(lineages, memory)


def _describe_unclaimed(snapshot: OperatorSnapshot, pending: int) -> str:
    """An operator that the program does not have, with its staged output; empty if it has neither state nor output."""
    if pending:
        return f"'{snapshot.name}' ({pending} committables of staged output)"
    return f"'{snapshot.name}'" if snapshot.has_state else ""


def _assign_lineages(old: OperatorSnapshot, shape: OperatorShape, foreign: bool) -> tuple[Lineage, ...]:
    has_union_state = any(memory.has_union_state for memory in old.memory)  # every subtask gets the elements of all
    if old.parallelism == shape.parallelism and not foreign and not has_union_state:
        return old.lineages
    chains = tuple((subtask, lineage.own) for subtask, lineage in enumerate(old.lineages) if lineage.own)
    return (Lineage(restored=chains),) * shape.parallelism


def _assign_memories(old: OperatorSnapshot, shape: OperatorShape) -> tuple[SubtaskMemory, ...]:
    is_same = old.parallelism == shape.parallelism
    memories = old.memory if is_same else redistribute(old.memory, shape.parallelism)
    # channels may have changed, so they are dropped, and every task resends its watermark
    return tuple(replace(memory.with_parts([InputChannels()]), restored=True) for memory in memories)
