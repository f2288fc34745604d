"""Medians with bootstrap intervals.

Promises: the same values give the same interval, since the resampling is seeded; an interval never leaves the range of
its values.
Does not know: what the values are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEAST_SAMPLES = 3  # fewer say nothing about the spread
_RESAMPLES, _CONFIDENCE, _SEED = 10_000, 0.95, 19


@dataclass(frozen=True, slots=True)
class Interval:
    """The median of `samples` values, and the ends of its 95 % interval."""

    low: float
    median: float
    high: float
    samples: int

    @property
    def is_quotable(self) -> bool:
        """Return whether there are enough samples for an interval."""
        return self.samples >= LEAST_SAMPLES


def bootstrap(values: Sequence[float]) -> Interval:
    """Return the median and its percentile bootstrap interval.

    Of five rounds, the ends are the lowest and the highest or nearly so: five rounds do not say more."""
    if not values:
        message = "no values"
        raise ValueError(message)
    array = np.asarray(values, dtype=float)
    chosen = np.random.default_rng(_SEED).integers(0, len(array), (_RESAMPLES, len(array)))
    medians = np.median(array[chosen], axis=1)
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return Interval(float(low), float(np.median(array)), float(high), len(array))
