"""Totals of a job: accumulators and user metrics of its accepted epochs.

Promises: an epoch that is replayed after a restart replaces its earlier contribution, so everything is counted once.
Does not know: restarts; a replayed epoch is recognised by its number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.job.accumulators import Accumulator, merge_accumulators
from millstream.runtime.metrics import combine_values

_USER = "user."
_DISTRIBUTION = "distribution."
_MAX_CHECKPOINTS = 16  # how many of the newest checkpoints a job may restore


@dataclass(frozen=True)
class Totals:
    """The totals of all epochs up to one."""

    epoch: int = 0
    accumulators: Mapping[str, Accumulator[Any, Any]] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """Return the results by name: user metrics, then accumulators."""
        return {
            **self.metrics,
            **{name: accumulator.get_local_value() for name, accumulator in self.accumulators.items()},
        }

    def after(
        self, epoch: int, accumulators: Mapping[str, Accumulator[Any, Any]], metrics: Mapping[str, Mapping[str, Any]]
    ) -> Totals:
        """Return the totals after one more epoch."""
        sums = dict(self.metrics)
        for counts in metrics.values():
            for name, count in counts.items():
                short = name.removeprefix(_DISTRIBUTION)
                if short.startswith(_USER):
                    short = short.removeprefix(_USER)
                    sums[short] = combine_values(sums[short], count) if short in sums else count
        return Totals(epoch, merge_accumulators(self.accumulators, accumulators), sums)


class AcceptedTotals:
    """The totals of a running job, which may restore one of its checkpoints or restart from the beginning."""

    def __init__(self) -> None:
        self._checkpointed: list[Totals] = []
        self._current: Totals | None = None
        self._origin = Totals()

    def accept(
        self, epoch: int, accumulators: Mapping[str, Accumulator[Any, Any]], metrics: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Add an accepted epoch; one with a number that was accepted before is a replay."""
        before = self._current
        if before is not None and epoch <= before.epoch:
            self._checkpointed = [totals for totals in self._checkpointed if totals.epoch < epoch]
            before = self._checkpointed[-1] if self._checkpointed else None
        self._current = (before or self._origin).after(epoch, accumulators, metrics)

    def checkpoint(self) -> None:
        """Remember the totals: the job may restore this checkpoint."""
        if self._current is not None:
            self._checkpointed = [*self._checkpointed, self._current][-_MAX_CHECKPOINTS:]

    def values(self) -> dict[str, Any]:
        """Return the results by name."""
        return (self._current or self._origin).values()
