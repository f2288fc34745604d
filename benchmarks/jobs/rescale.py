"""The pause of a rescale: from the end of the last epoch at one parallelism to the end of the first at another.

Promises: the state holds all keys before the first rescale; the job goes on in between, with epochs of one size.
Does not know: how the pauses are judged."""

from __future__ import annotations

import json
from itertools import cycle
from typing import Any

from benchmarks import common
from benchmarks.jobs import epochs
from benchmarks.jobs.stepped_source import SteppedSource

from millstream.cluster.job_events import EpochDone, RescaleDone
from millstream.datastream.connectors.blackhole import BlackHoleSink

STEP = 1_000
BETWEEN = 4  # epochs from one rescale to the next


def main() -> None:
    """Load, rescale again and again, and tell the pauses."""
    args = common.arguments(__doc__, keys=1_000_000, records=20)
    env = epochs.environment()
    steps = (args.records + 2) * BETWEEN
    source = SteppedSource(keys=args.keys, step=STEP, steps=steps, load=args.keys, loading=200_000)
    epochs.counts(epochs.numbers(env, source)).sink_to(BlackHoleSink())
    wanted = cycle([3, 2, 4, 2, 1, 2])
    pauses: list[float] = []
    quiet = 0
    client: Any = None

    def follow(observation: Any) -> None:
        nonlocal quiet
        if isinstance(observation, RescaleDone):
            pauses.append(observation.pause_ms)
        if isinstance(observation, EpochDone) and observation.records <= STEP:
            quiet += 1
            if quiet % BETWEEN == 0 and client is not None and len(pauses) < args.records:
                client.rescale(next(wanted))

    env.register_listener(follow)
    client = env.execute_async("rescaled")
    client.get_job_execution_result().result()
    common.answer({"p95_ms": common.percentile(pauses, 0.95), "pauses": json.dumps([round(pause) for pause in pauses])})


if __name__ == "__main__":
    main()
