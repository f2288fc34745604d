"""Distributions of numbers, as Flink's clients read them.

Promises: pure functions; a quantile is one of the numbers.
Does not know: what the numbers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean


def summarize_numbers(values: Sequence[float], quantiles: Mapping[str, float]) -> dict[str, float]:
    """Return minimum, maximum, average and quantiles (by name) of numbers; zeros if there are none."""
    ordered = sorted(values) or [0]
    last = len(ordered) - 1
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "avg": mean(ordered),
        **{name: ordered[min(last, int(share * len(ordered)))] for name, share in quantiles.items()},
    }
