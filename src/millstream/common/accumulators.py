"""Flink's `api.common.accumulators`: what a job adds up, for `JobExecutionResult.get_accumulator_result`."""

from millstream.job.accumulators import (
    Accumulator,
    AverageAccumulator,
    DoubleCounter,
    DoubleMaximum,
    DoubleMinimum,
    Histogram,
    IntCounter,
    IntMaximum,
    IntMinimum,
    ListAccumulator,
    LongCounter,
    LongMaximum,
    LongMinimum,
)

__all__ = [
    "Accumulator",
    "AverageAccumulator",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
]
