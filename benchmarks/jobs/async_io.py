"""Look-ups of 5 ms each in millstream, 200 at a time in a subtask, against the ideal time.

Promises: a sample is a whole epoch with all its look-ups; ideal is look-ups x 5 ms / capacity / parallelism; the first
epochs are not counted.
Does not know: peers."""

from __future__ import annotations

import asyncio

from benchmarks import common
from benchmarks.jobs import epochs
from benchmarks.jobs.stepped_source import SteppedSource

from millstream.common import Time, Types
from millstream.datastream import AsyncDataStream, AsyncFunction

CAPACITY = 200
LOOK_UP_SECONDS = 0.005
WARM_UP = 10
SAMPLES = 15


class LookUp(AsyncFunction[int, int]):
    """A service that answers after 5 ms."""

    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(LOOK_UP_SECONDS)
        return [value + 1]


def main() -> None:
    """Measure; the count of results is checked by the job's tests."""
    args = common.arguments(__doc__, records=10_000)
    env = epochs.environment()
    source = SteppedSource(keys=args.records, step=args.records, steps=WARM_UP + SAMPLES)
    output = AsyncDataStream.unordered_wait(
        epochs.numbers(env, source), LookUp(), Time.seconds(10), CAPACITY, Types.LONG()
    )
    done = epochs.reports(env, output, "async-io", epochs.EPOCHS)
    ideal_ms = args.records * LOOK_UP_SECONDS * 1000 / CAPACITY / common.PARALLELISM
    figures = common.latencies(epochs.durations(done, args.records, SAMPLES))
    common.answer({**figures, "ideal_ms": ideal_ms, "times_ideal": figures["p50_ms"] / ideal_ms})


if __name__ == "__main__":
    main()
