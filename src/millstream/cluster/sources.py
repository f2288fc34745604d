"""The sources of a job as its planner sees them: what to read next, and who reads it.

Promises: a plan is plain JSON and complete: ranges, the splits watermarks wait for, and whether the input ends with it;
replaying a logged plan moves the positions exactly as planning it did.
Does not know: engines, checkpoints' files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.graph.execution_plan import ExecutionPlan
from millstream.model.source import Budget, SplitEnumerator, SplitRange
from millstream.model.watermarks import MIN_WATERMARK
from millstream.runtime.operators.source import SourceSpec


@dataclass(frozen=True)
class EpochPlan:
    """What an epoch reads, and when: durable before its first task starts."""

    epoch: int
    now: int
    sources: Mapping[str, Mapping[str, Any]]

    @property
    def ends(self) -> bool:
        """Whether the input ends with this epoch."""
        return all(part["end"] for part in self.sources.values())

    @property
    def ranges(self) -> int:
        """How many ranges are read."""
        return sum(len(part["ranges"]) for part in self.sources.values())

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {"epoch": self.epoch, "now": self.now, "sources": {k: dict(v) for k, v in self.sources.items()}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EpochPlan:
        """The inverse of `to_json`."""
        return cls(data["epoch"], data["now"], data["sources"])


class Sources:
    """The enumerators of a job."""

    def __init__(self, plan: ExecutionPlan, positions: Mapping[str, Any]) -> None:
        self._specs: dict[str, tuple[SourceSpec, int]] = {}
        self._enumerators: dict[str, SplitEnumerator] = {}
        for planned in plan.vertices:
            node = planned.task.operators[0]
            if isinstance(node.spec, SourceSpec):
                parallelism = planned.task.parallelism
                self._specs[node.id] = (node.spec, parallelism)
                state = positions.get(node.id)
                self._enumerators[node.id] = node.spec.source.create_enumerator(parallelism, state)
        self._ended: set[str] = set()

    @property
    def operators(self) -> frozenset[str]:
        """The ids of the source operators."""
        return frozenset(self._enumerators)

    def plan(self, epoch: int, budget: Budget, memory: Mapping[str, Sequence[dict[str, Any]]]) -> EpochPlan:
        """The next epoch's ranges."""
        held = self._held(memory)
        parts: dict[str, Any] = {}
        for operator, enumerator in self._enumerators.items():
            if operator in self._ended:
                parts[operator] = {"ranges": [], "splits": [], "end": True}
                continue
            asked = Budget(budget.records, budget.bytes, budget.now, held.get(operator, frozenset()))
            ranges = enumerator.plan(asked)
            end = enumerator.finished()
            if end:
                self._ended.add(operator)
            parts[operator] = {
                "ranges": [part.to_json() for part in ranges],
                "splits": enumerator.splits(),
                "end": end,
            }
        return EpochPlan(epoch, budget.now, parts)

    def replay(self, plan: EpochPlan) -> None:
        """Move behind a logged plan."""
        for operator, part in plan.sources.items():
            self._enumerators[operator].replayed([SplitRange.from_json(data) for data in part["ranges"]])
            if part["end"]:
                self._ended.add(operator)

    def work(
        self, plan: EpochPlan, memory: Mapping[str, Sequence[dict[str, Any]]]
    ) -> dict[str, tuple[dict[str, Any], ...]]:
        """A plan dealt out to subtasks. A split stays with the subtask that remembers it: the watermark of another one
        may be past its records. A new split goes to the subtask that has the fewest."""
        dealt: dict[str, tuple[dict[str, Any], ...]] = {}
        for operator, part in plan.sources.items():
            parallelism = self._specs[operator][1]
            names = sorted({*part["splits"], *(data[0] for data in part["ranges"])})
            owner = _owners(names, [each.get("splits", {}) for each in memory[operator]])
            dealt[operator] = tuple(
                {
                    "ranges": [data for data in part["ranges"] if owner[data[0]] == subtask],
                    "splits": [name for name in part["splits"] if owner[name] == subtask],
                    "end": part["end"],
                }
                for subtask in range(parallelism)
            )
        return dealt

    def _held(self, memory: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, frozenset[str]]:
        """Splits that are ahead of their alignment group by more than it allows; one at its end holds nobody back."""
        groups: dict[str, list[tuple[str, str, int, int]]] = {}
        for operator, (spec, _) in self._specs.items():
            alignment = spec.strategy.alignment
            if alignment is None or operator in self._ended:
                continue
            going_on = set(self._enumerators[operator].splits())
            for subtask in memory.get(operator, ()):
                for split, known in subtask.get("splits", {}).items():
                    mark = known.get("watermark", MIN_WATERMARK)
                    if mark is not None and split in going_on:
                        entry = (operator, split, mark, alignment.max_drift)
                        groups.setdefault(alignment.group, []).append(entry)
        held: dict[str, set[str]] = {}
        for members in groups.values():
            least = min(mark for _, _, mark, _ in members)
            for operator, split, mark, drift in members:
                if mark > least + drift:
                    held.setdefault(operator, set()).add(split)
        return {operator: frozenset(splits) for operator, splits in held.items()}

    def snapshot(self) -> dict[str, Any]:
        """Every source's position."""
        return {operator: enumerator.snapshot() for operator, enumerator in self._enumerators.items()}

    def acknowledge(self) -> None:
        """A checkpoint holds the positions."""
        for enumerator in self._enumerators.values():
            enumerator.acknowledge()

    def lag(self) -> int | None:
        """Records that wait, over all sources that know."""
        known = [lag for enumerator in self._enumerators.values() if (lag := enumerator.lag()) is not None]
        return sum(known) if known else None

    def close(self) -> None:
        """Close every enumerator."""
        for enumerator in self._enumerators.values():
            enumerator.close()


def _owners(names: Sequence[str], known: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The subtask of each split; `known` has the splits that each subtask remembers."""
    owners = {name: subtask for subtask, mine in enumerate(known) for name in names if name in mine}
    counts = [sum(owner == subtask for owner in owners.values()) for subtask in range(len(known))]
    for name in names:
        if name not in owners:
            owners[name] = counts.index(min(counts))
            counts[owners[name]] += 1
    return owners
