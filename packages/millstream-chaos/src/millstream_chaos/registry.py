"""The cases of `millstream chaos`, by name.

Promises: the trace of a case is a function of its seed and size; a case is imported when it is used.
Does not know: what a case does. A case is a module with `plan(seed, size) -> Trace` and
`play(trace, directory) -> Report`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from millstream.errors import UserError
from millstream_chaos.trace import Report, Trace

CASES: Mapping[str, str] = {
    "kills": "files > keyed state, timers, windows > exactly-once files; workers and drivers killed",
    "kafka": "Kafka > keyed state, timers, windows > Kafka exactly-once; workers and drivers killed",
    "brokers": "the broker is killed and restarted, transactions expire, topics lose unread records",
    "replicas": "three brokers: leaders are killed, replicas fall behind, too few are in sync",
    "loops": "iterations and entities, as Spark jobs and on resident slots; workers and drivers killed",
    "poison": "records that cannot be read, in every format: fail, skip and dead-letter",
    "executors": "the same on a standalone cluster; executors and whole machines killed",
    "mixed": "a cluster with state on disk: processes killed or stopped, several at once; SQL; rescales",
    "upgrade": "the leader runs the last release, the driver that takes over runs this one",
    "network": "links between drivers, executors and the broker are cut, in one direction or both",
    "leaders": "two drivers for one job; the old one is stopped before each storage operation and continues later",
    "rescale": "a random walk of the parallelism from 1 to 16, with crashes inside half of the steps",
    "damage": "every file of a checkpoint damaged in every way",
    "storage": "storage without space, with errors, read-only, stalling; crashes at every operation",
    "objects": "an object store that throttles, fails, loses responses, lists slowly; drivers killed",
    "clocks": "the wall clock jumps; idle partitions; timestamps far in the past and in the future",
    "pressure": "slow sink, fast source, a hot key, 1 MB records: memory stays flat",
    "resources": "a full disk for stores, shuffle files or checkpoints; memory runs out",
    "soak": "small epochs for hours, rescales and kills: nothing grows, every record once",
    "hostile": "pickles in checkpoint files: nothing is executed",
}

#: The cases whose jobs run on Spark, on the engine of their trace.
ON_ENGINES = ("kills", "kafka", "executors", "mixed", "network", "pressure", "resources", "soak")


class NoSuchCase(UserError):
    """There is no case of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no chaos case '{name}'", hint=f"use one of {', '.join(CASES)}")


def plan(case: str, seed: int, size: str, **parameters: Any) -> Trace:
    """Return the trace of a case; `parameters` are those of the function `plan` of the case."""
    return cast(Trace, _module(case).plan(seed, size, **parameters))


def play(trace: Trace, directory: Path) -> Report:
    """Carry out a trace, with its files in a directory, and return the report."""
    return cast(Report, _module(trace.case).play(trace, directory))


def _module(case: str) -> Any:
    if case not in CASES:
        raise NoSuchCase(case)
    return importlib.import_module(f"millstream_chaos.cases.{case}")
