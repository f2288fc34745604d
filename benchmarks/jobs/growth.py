"""Epoch time of millstream against the number of keys in state, with the disk backend.

Promises: the state holds all keys before the first sample; every sampled epoch changes as many existing keys.
Does not know: the size it is compared with, or how memory is measured."""

from __future__ import annotations

from benchmarks import common
from benchmarks.jobs import epochs
from benchmarks.jobs.stepped_source import SteppedSource

LOADING = 500_000


def main() -> None:
    """Load, then measure."""
    args = common.arguments(__doc__, keys=10_000, changed=10_000, records=40)
    env = epochs.environment(**{"state.backend.type": "rocksdb"})
    source = SteppedSource(keys=args.keys, step=args.changed, steps=args.records, load=args.keys, loading=LOADING)
    output = epochs.counts(epochs.numbers(env, source))
    done = epochs.reports(env, output, "growth", epochs.EPOCHS)
    common.answer({**common.latencies(epochs.durations(done, args.changed, args.records)), "keys": args.keys})


if __name__ == "__main__":
    main()
