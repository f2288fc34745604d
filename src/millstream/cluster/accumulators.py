"""What a job has added up: accumulators and user metrics, as of its accepted epochs.

Promises: an epoch that is run again after a restart replaces what it had added before, so everything counts once.
Does not know: how restarts come about; the number of an epoch says where the job went back to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.job.accumulators import Accumulator, merged
from millstream.runtime.metrics import combined

_USER = "user."
_DISTRIBUTION = "distribution."
_KEPT = 16  # checkpoints a job may go back to


@dataclass(frozen=True)
class Totals:
    """Sums up to an epoch."""

    epoch: int = 0
    accumulators: Mapping[str, Accumulator[Any, Any]] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """The results by name: user metrics, then accumulators."""
        return {**self.metrics, **{name: each.get_local_value() for name, each in self.accumulators.items()}}

    def after(
        self, epoch: int, accumulators: Mapping[str, Accumulator[Any, Any]], metrics: Mapping[str, Mapping[str, Any]]
    ) -> Totals:
        """With what one epoch added."""
        sums = dict(self.metrics)
        for counts in metrics.values():
            for name, count in counts.items():
                short = name.removeprefix(_DISTRIBUTION)
                if short.startswith(_USER):
                    short = short.removeprefix(_USER)
                    sums[short] = combined(sums[short], count) if short in sums else count
        return Totals(epoch, merged(self.accumulators, accumulators), sums)


class AcceptedTotals:
    """The totals of a running job, which may go back to one of its checkpoints or to its beginning."""

    def __init__(self) -> None:
        self._marks: list[Totals] = []
        self._now: Totals | None = None
        self._origin = Totals()

    def accept(
        self, epoch: int, accumulators: Mapping[str, Accumulator[Any, Any]], metrics: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """An epoch was accepted; one whose number came before means that the job went back."""
        before = self._now
        if before is not None and epoch <= before.epoch:
            self._marks = [mark for mark in self._marks if mark.epoch < epoch]
            before = self._marks[-1] if self._marks else None
        self._now = (before or self._origin).after(epoch, accumulators, metrics)

    def checkpoint(self) -> None:
        """The job may come back to where it is now."""
        if self._now is not None:
            self._marks = [*self._marks, self._now][-_KEPT:]

    def values(self) -> dict[str, Any]:
        """The results by name."""
        return (self._now or self._origin).values()
