"""Old state x new program: what each subtask starts from.

Promises: keyed state goes to the subtask that owns its key group at the new parallelism; state of an operator that the
program no longer has is refused unless that is allowed; so is a changed max parallelism.
Does not know: files' content, engines.

After a change of parallelism every subtask reads the chains of all old ones and keeps its part; its first epoch writes
a base of its own, so no checkpoint ever names a chain of another parallelism than its own."""

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
    """The checkpoint has state, or staged output, that no operator of the program takes."""

    def __init__(self, operators: Sequence[str], have: Sequence[str]) -> None:
        self.operators = tuple(operators)
        super().__init__(
            f"the checkpoint has state of {', '.join(operators)}, which the program does not have "
            f"(it has {', '.join(have)})",
            hint="it may be of another program; give operators the uids they had, or set "
            "execution.state-recovery.ignore-unclaimed-state to drop that state; 'millstream savepoint check' "
            "tells what has changed",
        )


_log = logging.getLogger("millstream.restore")


class MaxParallelismChanged(UserError):
    """Key groups cannot be counted anew."""

    def __init__(self, name: str, old: int, new: int) -> None:
        super().__init__(
            f"operator '{name}' was checkpointed with max parallelism {old}, the program asks for {new}",
            hint=f"call set_max_parallelism({old}), or set none: then that of the checkpoint is taken",
        )


@dataclass(frozen=True)
class OperatorShape:
    """What restore needs to know of an operator of the new program."""

    operator: str
    name: str
    parallelism: int
    max_parallelism: int


@dataclass(frozen=True)
class Restored:
    """State and memory of every operator's subtasks."""

    lineages: dict[str, tuple[Lineage, ...]]
    memory: dict[str, tuple[SubtaskMemory, ...]]


def nothing(shapes: Sequence[OperatorShape]) -> Restored:
    """The beginning: no state, no memory."""
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
    """Deal the state of a checkpoint out to the subtasks of a program.

    A `foreign` checkpoint is of another job, whose files are not ours to keep: everything is written anew."""
    by_id = {each.operator: each for each in metadata.operators}
    wanted = {shape.operator for shape in shapes}
    left = [
        _unclaimed(each, metadata.pending(each.operator)) for each in metadata.operators if each.operator not in wanted
    ]
    lost = [told for told in left if told]
    if lost and not allow_unclaimed:
        raise StateNotClaimed(lost, [f"'{shape.name}'" for shape in shapes])
    if lost:
        _log.warning("dropped, for the program has no such operators: %s", ", ".join(lost))
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
        lineages[shape.operator] = _lineages(old, shape, foreign)
        memory[shape.operator] = _memories(old, shape)
    return Restored(lineages, memory)


def _unclaimed(left: OperatorSnapshot, pending: int) -> str:
    """An operator that the program does not have, and what it staged; empty if nothing of it is lost."""
    if pending:
        return f"'{left.name}' ({pending} committables of staged output)"
    return f"'{left.name}'" if left.has_state else ""


def _lineages(old: OperatorSnapshot, shape: OperatorShape, foreign: bool) -> tuple[Lineage, ...]:
    united = any(memory.has_union_state for memory in old.memory)  # every subtask starts with the elements of all
    if old.parallelism == shape.parallelism and not foreign and not united:
        return old.lineages
    chains = tuple((subtask, lineage.own) for subtask, lineage in enumerate(old.lineages) if lineage.own)
    return (Lineage(restored=chains),) * shape.parallelism


def _memories(old: OperatorSnapshot, shape: OperatorShape) -> tuple[SubtaskMemory, ...]:
    same = old.parallelism == shape.parallelism
    memories = old.memory if same else redistribute(old.memory, shape.parallelism)
    # who sends to whom may have changed: channels are forgotten, and every task resends its watermark
    return tuple(replace(memory.with_parts([InputChannels()]), restored=True) for memory in memories)
