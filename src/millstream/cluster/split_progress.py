"""How far each split of a source is in event time, from the memory of its subtasks.

Promises: a pure function of the memory after an accepted epoch.
Does not know: what reads splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.operators.source import SourceMemory


@dataclass(frozen=True)
class SplitProgress:
    """A split, and the subtask that reads it. `watermark` is None if the split is idle; `active_at` is when it was last
    read, in milliseconds since 1970."""

    split: str
    subtask: int
    watermark: int | None
    active_at: int


def split_progress(
    memory: Mapping[str, Sequence[SubtaskMemory]], sources: Iterable[str]
) -> dict[str, tuple[SplitProgress, ...]]:
    """Return the splits of source operators by operator id."""
    return {
        operator: tuple(
            SplitProgress(name, subtask, split.watermark, split.active_at)
            for subtask, remembered in enumerate(memory.get(operator, ()))
            for name, split in remembered.part(SourceMemory).splits.items()
        )
        for operator in sources
    }
