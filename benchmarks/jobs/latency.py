"""One record an epoch in millstream: a Python function, and a count per key after each of `exchange` exchanges.

Promises: a sample is a whole epoch, from planning it to accepting its report, and with
`--checkpoints 1` the checkpoint after it, too; the first epochs are not counted.
Does not know: peers, or how the latencies are compared."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import common
from benchmarks.jobs import epochs
from benchmarks.jobs.stepped_source import SteppedSource

from millstream.common import Types

WARM_UP = 100


def next_number(number: int) -> int:
    """The user's function."""
    return number + 1


def main() -> None:
    """Measure; there is nothing to compare in the output of a clock."""
    args = common.arguments(__doc__, exchange=0, records=200, engine="jobs", checkpoints=0)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        env = epochs.environment(
            **{"millstream.engine": args.engine, "execution.checkpointing.dir": Path(directory).as_uri()}
        )
        if args.checkpoints:
            env.enable_checkpointing(10)  # shorter than an epoch
        source = SteppedSource(keys=common.CHECK_KEYS, step=1, steps=WARM_UP + args.records)
        output = epochs.numbers(env, source).map(next_number, output_type=Types.LONG())
        for _ in range(args.exchange):
            output = epochs.counts(output)
        done, published = epochs.all_reports(env, output, "latency")
    samples = epochs.durations(done, 1, args.records)
    if args.checkpoints:
        added = [float(each["duration_ms"]) for each in published[-args.records :]]
        if len(added) < args.records:
            message = f"wanted a checkpoint after each of {args.records} epochs, found {len(added)}"
            raise SystemExit(message)
        samples = [epoch + checkpoint for epoch, checkpoint in zip(samples, added, strict=True)]
    common.answer(common.latencies(samples))


if __name__ == "__main__":
    main()
