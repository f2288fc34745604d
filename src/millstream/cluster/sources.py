"""Sources of a job on the driver: plans of epochs, and the assignment of splits to subtasks.

Promises: a plan is plain JSON and complete: ranges, the splits that watermarks wait for, and whether the input ends
with it. Replaying a logged plan moves the positions exactly as planning it did.
Does not know: engines, the files of checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from millstream.cluster.connector_deadlines import EnumeratorWithDeadline
from millstream.cluster.job_events import RoundDone
from millstream.cluster.loops import Loops
from millstream.cluster.settings import JobSettings
from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.errors import UserError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.options import EPOCH_DEADLINE
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.operators.source import SourceMemory, SourceSpec, SourceWork
from millstream.runtime.report import TaskReport
from millstream.state.handles import Lineage

_MOST_ENDED = 1_000  # the number of ended splits whose last position is remembered


class SourcePlannedBackward(UserError):
    """An enumerator planned a range that begins before the end of the last one, or that ends before it starts."""

    def __init__(self, source: str, part: SplitRange, reason: str) -> None:
        self.source, self.part = source, part
        super().__init__(
            f"source '{source}' wants to read split '{part.split}' from {part.start!r} to {part.end!r}, {reason}",
            hint="plan() must return at most one range for each split, and each must begin where the one before ended",
        )


@dataclass(frozen=True)
class EpochPlan:
    """What an epoch reads, and its processing time `now`; it is logged before the first task starts."""

    epoch: int
    now: int
    sources: Mapping[str, Mapping[str, Any]]
    stop: bool = False  # whether this is the last epoch before the job stops, which reads nothing
    loops: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the work of iterations, by name

    @property
    def ends(self) -> bool:
        """Whether the input ends with this epoch, and all iterations."""
        return all(part["end"] for part in (*self.sources.values(), *self.loops.values()))

    @property
    def iterates(self) -> bool:
        """Whether an iteration has something to do in this epoch, with or without input."""
        return any(part["work"] for part in self.loops.values())

    @property
    def ranges(self) -> int:
        """The number of ranges that are read."""
        return sum(len(part["ranges"]) for part in self.sources.values())

    @property
    def records(self) -> int | None:
        """The number of records that are read; None if a source does not know it."""
        counts = [data[3] for part in self.sources.values() for data in part["ranges"]]
        return None if None in counts else sum(counts)

    @property
    def most_records(self) -> int | None:
        """The records read from the largest source (budgets are per source); None if a source does not know them."""
        if self.records is None:
            return None
        return max((sum(data[3] for data in part["ranges"]) for part in self.sources.values()), default=0)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        data = {"epoch": self.epoch, "now": self.now, "sources": {k: dict(v) for k, v in self.sources.items()}}
        if self.loops:
            data["loops"] = {k: dict(v) for k, v in self.loops.items()}
        return {**data, "stop": True} if self.stop else data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EpochPlan:
        """Create a plan from its JSON value."""
        return cls(data["epoch"], data["now"], data["sources"], data.get("stop", False), data.get("loops", {}))


class Sources:
    """The enumerators of a job."""

    def __init__(
        self,
        plan: ExecutionPlan,
        positions: Mapping[str, Any],
        retained: int = 1,
        timeout: int | None = None,
        loops: Loops | None = None,
    ) -> None:
        """Create the enumerators at `positions`. `retained` is how many checkpoints the job keeps; `timeout` is the
        milliseconds that a call of an enumerator may take; `loops` are the iterations of the plan."""
        self._specs: dict[str, tuple[SourceSpec, int]] = {}
        self._enumerators: dict[str, SplitEnumerator] = {}
        for planned in plan.vertices:
            node = planned.task.operators[0]
            if isinstance(node.spec, SourceSpec):
                parallelism = planned.task.parallelism
                self._specs[node.id] = (node.spec, parallelism)
                state = positions.get(node.id)
                create = partial(node.spec.source.create_enumerator, parallelism, state)
                name = node.name.removeprefix("Source: ")
                self._enumerators[node.id] = (
                    create() if timeout is None else EnumeratorWithDeadline(create, name, timeout, EPOCH_DEADLINE.key)
                )
                self._enumerators[node.id].retain(retained)
        self._loops = loops or Loops()
        self._ended: set[str] = set()
        self._names = {v.task.operators[0].id: v.task.operators[0].name for v in plan.vertices}
        self._planned: dict[str, dict[str, Any]] = {operator: {} for operator in self._enumerators}

    @classmethod
    def of(cls, plan: ExecutionPlan, positions: Mapping[str, Any], settings: JobSettings) -> Sources:
        """Create the sources of a job."""
        return cls(plan, positions, settings.retained, settings.deadline, Loops.of(plan))

    @property
    def operators(self) -> frozenset[str]:
        """The ids of the source operators."""
        return frozenset(self._enumerators)

    def notify_arrivals(self, notify: Callable[[], None]) -> None:
        """Set the function that sources call when there is something to plan."""
        for enumerator in self._enumerators.values():
            enumerator.notify_arrivals(notify)

    def plan(self, epoch: int, budget: Budget, memory: Mapping[str, Sequence[SubtaskMemory]]) -> EpochPlan:
        """Plan the next epoch."""
        held = self._held(memory)
        parts: dict[str, Any] = {}
        for operator, enumerator in self._enumerators.items():
            if operator in self._ended:
                parts[operator] = {"ranges": [], "splits": [], "end": True}
                continue
            source_budget = replace(budget, held=held.get(operator, frozenset()))
            parts[operator] = self._part(operator, enumerator.plan(source_budget))
        return EpochPlan(epoch, budget.now, parts, loops=self._loops.plan(parts, memory, budget.now))

    def measure_loops(self, plan: EpochPlan, reports: Sequence[TaskReport]) -> dict[str, RoundDone]:
        """Return what the iterations did in an accepted epoch, by name."""
        return self._loops.measure(plan.loops, reports)

    def _part(self, operator: str, ranges: Sequence[SplitRange]) -> dict[str, Any]:
        """Return the part of a plan for a source that has just planned these ranges."""
        enumerator = self._enumerators[operator]
        self._check(operator, ranges)
        end = enumerator.finished()
        if end:
            self._ended.add(operator)
        splits = enumerator.splits()
        self._forget_ended(operator, splits)
        return {"ranges": [part.to_json() for part in ranges], "splits": splits, "end": end}

    def plan_again(
        self, failed: EpochPlan, records: int, size: int, memory: Mapping[str, Sequence[SubtaskMemory]]
    ) -> EpochPlan:
        """Return a plan that begins where `failed` does and reads at most `records` and `size` bytes of each source.

        It is `failed` itself when no source can plan less; positions are then after it, as after `replay`."""
        held = self._held(memory)
        parts: dict[str, Mapping[str, Any]] = {}
        for operator, part in failed.sources.items():
            planned = [SplitRange.from_json(data) for data in part["ranges"]]
            budget = Budget(records, size, failed.now, held.get(operator, frozenset()))
            ranges = self._enumerators[operator].plan_again(planned, budget) if planned else None
            if ranges is None:
                self._replay(operator, part)
            parts[operator] = part if ranges is None else self._part(operator, ranges)
        if parts == failed.sources:
            return failed
        return EpochPlan(failed.epoch, failed.now, parts, loops=self._loops.plan(parts, memory, failed.now))

    def _check(self, operator: str, ranges: Sequence[SplitRange]) -> None:
        """Raise `SourcePlannedBackward` if a split goes back. Only numbers can be compared here."""
        before = self._planned[operator]
        name = self._names[operator].removeprefix("Source: ")
        for number, part in enumerate(ranges):
            if any(part.split == other.split for other in ranges[:number]):
                raise SourcePlannedBackward(name, part, "which has a range in this epoch already")
            if not _is_number(part.start) or not _is_number(part.end):
                continue
            if part.end < part.start:
                raise SourcePlannedBackward(name, part, "which ends before it starts")
            if part.start < before.get(part.split, part.start):
                raise SourcePlannedBackward(name, part, f"but it has been read to {before[part.split]!r}")
            before[part.split] = part.end

    def _forget_ended(self, operator: str, splits: Sequence[str]) -> None:
        """Forget positions of ended splits when there are many; otherwise they would be kept as long as the job runs.
        They are not forgotten immediately, because a source need not list its splits, but its positions are checked."""
        before = self._planned[operator]
        if len(before) > len(splits) + _MOST_ENDED:
            self._planned[operator] = {split: before[split] for split in splits if split in before}

    def closing(self, epoch: int, now: int, *, drain: bool) -> EpochPlan:
        """Plan the last epoch of a stopped job: it reads nothing; with `drain`, event time advances to its end."""
        parts: dict[str, Any] = {}
        for operator, enumerator in self._enumerators.items():
            ended = operator in self._ended
            splits = [] if ended or drain else enumerator.splits()
            parts[operator] = {"ranges": [], "splits": splits, "end": ended or drain}
        return EpochPlan(epoch, now, parts, stop=True, loops=self._loops.hold())

    def replay(self, plan: EpochPlan) -> None:
        """Advance past a logged plan."""
        for operator, part in plan.sources.items():
            self._replay(operator, part)

    def _replay(self, operator: str, part: Mapping[str, Any]) -> None:
        ranges = [SplitRange.from_json(data) for data in part["ranges"]]
        self._check(operator, ranges)
        self._enumerators[operator].replayed(ranges)
        if part["end"]:
            self._ended.add(operator)

    def work(
        self,
        plan: EpochPlan,
        memory: Mapping[str, Sequence[SubtaskMemory]],
        lineages: Mapping[str, Sequence[Lineage]] = MappingProxyType({}),
    ) -> dict[str, tuple[Any, ...]]:
        """Assign the ranges of a plan to subtasks, and rounds to the operators of iterations.

        A split stays with the subtask that remembers it: the watermark of another one may be past its records. A new
        split goes to the subtask that has the fewest."""
        work: dict[str, tuple[Any, ...]] = dict(self._loops.work(plan.loops, lineages))
        for operator, part in plan.sources.items():
            parallelism = self._specs[operator][1]
            names = sorted({*part["splits"], *(data[0] for data in part["ranges"])})
            owner = _owners(names, [subtask.part(SourceMemory).splits for subtask in memory[operator]])
            work[operator] = tuple(
                SourceWork(
                    ranges=[data for data in part["ranges"] if owner[data[0]] == subtask and data[3] != 0],
                    splits=[name for name in part["splits"] if owner[name] == subtask],
                    end=part["end"],
                )
                for subtask in range(parallelism)
            )
        return work

    def _held(self, memory: Mapping[str, Sequence[SubtaskMemory]]) -> dict[str, frozenset[str]]:
        """Return the splits that are too far ahead of their watermark alignment group; ended splits do not count."""
        groups: dict[str, list[tuple[str, str, int, int]]] = {}
        for operator, (spec, _) in self._specs.items():
            alignment = spec.strategy.alignment
            if alignment is None or operator in self._ended:
                continue
            unfinished = set(self._enumerators[operator].splits())
            for subtask in memory.get(operator, ()):
                for split, remembered in subtask.part(SourceMemory).splits.items():
                    if remembered.watermark is not None and split in unfinished:
                        entry = (operator, split, remembered.watermark, alignment.max_drift)
                        groups.setdefault(alignment.group, []).append(entry)
        held: dict[str, set[str]] = {}
        for members in groups.values():
            least = min(mark for _, _, mark, _ in members)
            for operator, split, mark, drift in members:
                if mark > least + drift:
                    held.setdefault(operator, set()).add(split)
        return {operator: frozenset(splits) for operator, splits in held.items()}

    def snapshot(self) -> dict[str, Any]:
        """Return the position of every source, for a checkpoint."""
        return {operator: enumerator.snapshot() for operator, enumerator in self._enumerators.items()}

    def acknowledge(self) -> None:
        """Notify the enumerators that a checkpoint contains their positions."""
        for enumerator in self._enumerators.values():
            enumerator.acknowledge()

    def lags(self) -> dict[str, int]:
        """Return how many records are not read yet, by the id of each source that knows it."""
        return {
            operator: lag for operator, enumerator in self._enumerators.items() if (lag := enumerator.lag()) is not None
        }

    def close(self) -> None:
        """Close every enumerator."""
        for enumerator in self._enumerators.values():
            enumerator.close()


def _is_number(position: Any) -> bool:
    return isinstance(position, int | float) and not isinstance(position, bool)


def _owners(names: Sequence[str], remembered: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the subtask of each split; `remembered` has the splits in the memory of each subtask."""
    owners = {name: subtask for subtask, splits in enumerate(remembered) for name in names if name in splits}
    counts = [sum(owner == subtask for owner in owners.values()) for subtask in range(len(remembered))]
    for name in names:
        if name not in owners:
            owners[name] = counts.index(min(counts))
            counts[owners[name]] += 1
    return owners
