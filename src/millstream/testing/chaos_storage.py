"""Storage fails while a job runs: no space, I/O errors, read-only, stalls of half a minute, and processes that die.

Promises: at whatever operation of epochs, checkpoints, commits, rescales, savepoints and of the recovery that happens,
the output is in the end that of a run without faults. Every job is rescaled twice; some are stopped with a savepoint,
and another job goes on from it; half of those that die, die once more while they recover.
Does not know: what the operations are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from millstream.cluster.job_master import JobMaster
from millstream.cluster.observations import EpochDone, Observation
from millstream.model.job_status import JobStatus
from millstream.testing.chaos import Report, Trace
from millstream.testing.faults import CRASHES, Mode
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import Faults, Life, Setup, World, reference, run

ERRORS: tuple[Mode, ...] = ("enospc", "eio", "erofs", "stall")
SAVED = "/savepoints"
_SIZES = {"ci": (2, 60), "normal": (6, 400), "long": (17, None)}  # programs, points of each (None: every operation)
_RESCALES = {2: 3, 4: 1}  # after which epoch to which parallelism
_STOP_AFTER = 5


def plan(seed: int, size: str) -> Trace:
    """Which operations of which programs fail, how, and for how many operations."""
    programs, most = _SIZES[size]
    chance = np.random.default_rng([seed, 17])
    steps = []
    for name in sorted(map(str, chance.choice(sorted(PROGRAMS), programs, replace=False))):
        points: list[tuple[int, Mode, bool]] = []
        for savepoint in (False, True):
            with World() as world:
                count = len(run(_setup(name), world, listen=Script(savepoint=savepoint)).operations)
            for number in range(count):  # every way to die, and one of the errors
                modes = (*CRASHES, ERRORS[number % len(ERRORS)])
                points += [(number, mode, savepoint) for mode in modes]
        chosen = range(len(points)) if most is None else chance.choice(len(points), min(most, len(points)), False)
        for place in sorted(map(int, chosen)):
            number, mode, savepoint = points[place]
            lasting = int(chance.integers(1, 8)) if mode in ERRORS[:3] else 1
            again = int(chance.integers(0, 30)) if mode in CRASHES and chance.random() < 0.5 else None
            steps.append(
                {
                    "program": name,
                    "operation": number,
                    "mode": mode,
                    "lasting": lasting,
                    "savepoint": savepoint,
                    "again": again,
                }
            )
    return Trace("storage", seed, size, {}, steps)


def _setup(program: str) -> Setup:
    strategy = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "20"}
    return Setup(PROGRAMS[program], epoch_records=15, checkpoint_every=1, options=strategy)


class Script:
    """What is asked of the job while it runs: to be rescaled, and to stop with a savepoint."""

    def __init__(self, *, savepoint: bool) -> None:
        self._savepoint = savepoint
        self._rescales = dict(_RESCALES)

    def __call__(self, observation: Observation, master: JobMaster) -> None:
        """Something happened."""
        if not isinstance(observation, EpochDone):
            return
        parallelism = self._rescales.pop(observation.epoch, None)
        if parallelism is not None:
            master.rescale(parallelism)
        if self._savepoint and observation.epoch >= _STOP_AFTER:
            self._savepoint = False
            master.savepoint(SAVED, stop=True)


def lived(step: Mapping[str, Any], world: World, expected: list[str]) -> list[Life]:
    """The lives of a job with the faults of a step; and, if it stopped with a savepoint, of the one after it."""
    setup = _setup(step["program"])
    script = Script(savepoint=step["savepoint"])
    faults = [Faults(storage=(step["operation"], step["mode"]), lasting=step["lasting"])]
    if step["again"] is not None:
        faults.append(Faults(storage=(step["again"], step["mode"])))
    lives: list[Life] = []
    while not lives or (lives[-1].crashed and not lives[-1].finished):
        lives.append(run(setup, world, faults.pop(0) if faults else None, listen=script))
    made = world.disk.list(SAVED) if world.disk.exists(SAVED) else []
    whole = [name for name in made if world.disk.exists(f"{SAVED}/{name}/_metadata")]
    if step["savepoint"] and whole and world.visible() != expected:
        resumed = {**setup.options, "execution.state-recovery.path": f"{SAVED}/{max(whole)}"}
        lives.append(run(replace(setup, job="resumed", options=resumed), world))
    return lives


def play(trace: Trace, _directory: Path) -> Report:
    """One fault at a time, from the beginning."""
    report = Report(trace)
    expected = {name: reference(_setup(name)) for name in {step["program"] for step in trace.steps}}
    restarts = crashes = resumed = 0
    for step in trace.shown():
        with World() as world:
            lives = lived(step, world, expected[step["program"]])
            crashes += sum(life.crashed for life in lives)
            restarts += sum(life.master.job.restarts for life in lives if life.master is not None)
            last = lives[-1]
            finished = last.finished or last.status is JobStatus.FINISHED
            report.check(finished, f"{step}: {last.status} {last.failure}")
            report.check(world.visible() == expected[step["program"]], f"{step}: the output differs")
            resumed += last.master is not None and last.master._submitted.id == "resumed"
    report.figures |= {"faults": len(trace.steps), "restarts": restarts, "crashes": crashes}
    report.figures["resumed from a savepoint"] = resumed
    return report
