"""One record an epoch in millstream: a Python function, and a count per key after each of `exchange` exchanges.

Promises: a sample is a whole epoch, from planning it to accepting its report; the first epochs are not counted.
Does not know: peers, or how the latencies are compared."""

from __future__ import annotations

from benchmarks import common
from benchmarks.jobs import epochs
from benchmarks.jobs.stepped_source import SteppedSource

from millstream.common import Types

WARM_UP = 20


def next_number(number: int) -> int:
    """The user's function."""
    return number + 1


def main() -> None:
    """Measure; there is nothing to compare in the output of a clock."""
    args = common.arguments(__doc__, exchange=0, records=200, engine="jobs")
    env = epochs.environment(**{"millstream.engine": args.engine})
    source = SteppedSource(keys=common.CHECK_KEYS, step=1, steps=WARM_UP + args.records)
    output = epochs.numbers(env, source).map(next_number, output_type=Types.LONG())
    for _ in range(args.exchange):
        output = epochs.counts(output)
    done = epochs.reports(env, output, "latency", epochs.EPOCHS)
    common.answer(common.latencies(epochs.durations(done, 1, args.records)))


if __name__ == "__main__":
    main()
