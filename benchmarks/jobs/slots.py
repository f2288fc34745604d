"""An epoch of many resident slots with an all-to-all exchange, on one machine: what the number of slots costs.

Promises: a record for each slot in an epoch and one exchange by key, so that the slots, not the records, take the time;
the connections are counted in the slots' processes, and the first epochs are not counted.
Does not know: networks between hosts; many slots share few cores here."""

from __future__ import annotations

import threading
from typing import Any

import psutil
from benchmarks import common
from benchmarks.jobs import epochs
from benchmarks.jobs.stepped_source import SteppedSource

WARM_UP = 5


def count_connections() -> dict[str, int]:
    """The connections of all workers, each of which has two ends, and the most of one process."""
    most = total = 0
    for process in psutil.Process().children(recursive=True):
        try:
            if "python" in process.name():
                count = sum(link.status == psutil.CONN_NONE for link in process.net_connections("unix"))
                most, total = max(most, count), total + count
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return {"connections": total // 2, "most_connections": most}


def main() -> None:
    """Measure."""
    args = common.arguments(__doc__, slots=64, records=50, engine="resident")
    env = epochs.environment(**{"millstream.engine": args.engine}).set_parallelism(args.slots)
    source = SteppedSource(keys=100 * args.slots, step=args.slots, steps=WARM_UP + args.records)
    connections: dict[str, int] = {}

    def count_once(event: Any) -> None:
        if not connections and getattr(event, "epoch", 0) > WARM_UP // 2:
            connections.update(count_connections())

    env.register_listener(count_once)
    done = epochs.reports(env, epochs.counts(epochs.numbers(env, source)), "slots", epochs.EPOCHS)
    samples = epochs.durations(done, args.slots, args.records)
    common.answer({**common.latencies(samples), **connections, "threads": threading.active_count()})


if __name__ == "__main__":
    main()
