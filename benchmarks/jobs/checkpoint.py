"""Bytes that millstream writes for a checkpoint after few keys changed, against a full snapshot.

Promises: the state holds all keys before the first sample, and a checkpoint follows every epoch; checkpoints that write
a new base are samples too, and count in the mean.
Does not know: how the storage lays files out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import mean, median

from benchmarks import common
from benchmarks.jobs import epochs
from benchmarks.jobs.stepped_source import SteppedSource

LOADING = 250_000
INTERVAL_MS = 10  # shorter than an epoch


def main() -> None:
    """Load, then measure."""
    args = common.arguments(__doc__, keys=1_000_000, changed=10_000, records=20)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        env = epochs.environment(
            **{"state.backend.type": "rocksdb", "execution.checkpointing.dir": Path(directory).as_uri()}
        )
        env.enable_checkpointing(INTERVAL_MS)
        source = SteppedSource(keys=args.keys, step=args.changed, steps=args.records, load=args.keys, loading=LOADING)
        output = epochs.counts(epochs.numbers(env, source))
        done = epochs.reports(env, output, "checkpoint", epochs.CHECKPOINTS)
    if len(done) < args.records:
        message = f"wanted {args.records} checkpoints, found {len(done)}"
        raise SystemExit(message)
    sampled = done[-args.records :]
    full = median(float(each["full_bytes"]) for each in sampled)
    written = [float(each["bytes"]) for each in sampled]
    common.answer(
        {
            "samples": len(sampled),
            "bytes": median(written),
            "full_bytes": full,
            "fraction": median(written) / full,
            "mean_fraction": mean(written) / full,
            "duration_ms": median(float(each["duration_ms"]) for each in sampled),
        }
    )


if __name__ == "__main__":
    main()
