"""Python workers and drivers are killed with `kill -9` while a job runs on this machine.

Promises: the output is that of a run without faults: every line once, in the order of its key. The clocks of workers
are wrong by a day, in both directions.
Does not know: clusters; see `executors` and `kafka`."""

from __future__ import annotations

from pathlib import Path

from millstream_chaos.jobs.kills import check_output, kill_on_files, plan_kills
from millstream_chaos.outputs.compare import read_lines
from millstream_chaos.trace import Report, Trace

_SIZES = {
    "ci": {"records": 24_000, "keys": 400, "epoch_records": 300, "kills": 6, "drivers": 1},
    "normal": {"records": 120_000, "keys": 5_000, "epoch_records": 800, "kills": 20, "drivers": 3},
    "long": {"records": 1_000_000, "keys": 100_000, "epoch_records": 800, "kills": 200, "drivers": 20},
}


def plan(seed: int, size: str) -> Trace:
    """Draw which process is killed after which epoch."""
    parameters = dict(_SIZES[size])
    return Trace("kills", seed, size, parameters, plan_kills(seed, parameters, ("worker",), ("driver",)))


def play(trace: Trace, directory: Path) -> Report:
    """Run the job with the kills, and check the output."""
    report = Report(trace)
    specification = kill_on_files(directory, report, standby=1)
    check_output(specification, directory, report, read_lines(specification.output))
    return report
