"""Storage fails while a job runs: no space, I/O errors, read-only, stalls of half a minute, and processes that die.

Promises: at whatever operation that happens, the output is in the end that of a run without faults.
Does not know: what the operations are for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from millstream.model.job_status import JobStatus
from millstream.testing.chaos import Report, Trace
from millstream.testing.faults import Mode
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import Faults, Setup, World, live, reference, run

MODES: tuple[Mode, ...] = ("enospc", "eio", "erofs", "stall", "before", "after", "torn")
_SIZES = {"ci": (2, 60), "normal": (6, 400), "long": (17, None)}  # programs, points of each (None: every operation)


def plan(seed: int, size: str) -> Trace:
    """Which operations of which programs fail, how, and for how many operations."""
    programs, most = _SIZES[size]
    chance = np.random.default_rng([seed, 17])
    steps = []
    for name in sorted(map(str, chance.choice(sorted(PROGRAMS), programs, replace=False))):
        with World() as world:
            count = len(run(_setup(name), world).operations)
        points = [(number, mode) for number in range(count) for mode in MODES]
        chosen = range(len(points)) if most is None else chance.choice(len(points), min(most, len(points)), False)
        for place in sorted(map(int, chosen)):
            number, mode = points[place]
            lasting = int(chance.integers(1, 8)) if mode in ("enospc", "eio", "erofs") else 1
            steps.append({"program": name, "operation": number, "mode": mode, "lasting": lasting})
    return Trace("storage", seed, size, {}, steps)


def _setup(program: str) -> Setup:
    strategy = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "20"}
    return Setup(PROGRAMS[program], epoch_records=15, checkpoint_every=1, options=strategy)


def play(trace: Trace, _directory: Path) -> Report:
    """One fault at a time, from the beginning."""
    report = Report(trace)
    expected = {name: reference(_setup(name)) for name in {step["program"] for step in trace.steps}}
    restarts = crashes = 0
    for step in trace.steps:
        setup = _setup(step["program"])
        with World() as world:
            faults = Faults(storage=(step["operation"], step["mode"]), lasting=step["lasting"])
            lives = live(setup, world, [faults])
            crashes += sum(life.crashed for life in lives)
            restarts += sum(life.master.job.restarts for life in lives if life.master is not None)
            last = lives[-1]
            finished = last.finished or last.status is JobStatus.FINISHED
            report.check(finished, f"{step}: {last.status} {last.failure}")
            report.check(world.visible() == expected[step["program"]], f"{step}: the output differs")
    report.figures |= {"faults": len(trace.steps), "restarts": restarts, "crashes": crashes}
    return report
