"""Storage fails while a job runs: no space, I/O errors, read-only, stalls of half a minute, and processes that die.

Promises: at whatever operation of epochs, checkpoints, commits, rescales, savepoints and of the recovery that happens,
the output is in the end that of a run without faults. Every job is rescaled twice; some are stopped with a savepoint,
and another job goes on from it; half of those that die, die once more while they recover. What came before a crash is
lived once for all crashes of a job, and what comes after it once for all that leave the same behind.
Does not know: what the operations are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from millstream.cluster.job_master import JobMaster
from millstream.cluster.observations import EpochDone, Observation
from millstream.model.job_status import JobStatus
from millstream.testing.chaos import Report, Trace
from millstream.testing.crash_states import History, fingerprint, recorded
from millstream.testing.faults import CRASHES, Mode
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import Faults, Life, Setup, World, reference, run

ERRORS: tuple[Mode, ...] = ("enospc", "eio", "erofs", "stall")
SAVED = "/savepoints"
_SIZES = {"ci": (2, 60), "normal": (6, 400), "long": (17, None)}  # programs, points of each (None: every operation)
_RESCALES = {2: 3, 4: 1}  # after which epoch to which parallelism
_STOP_AFTER = 5
_EPOCH, _REST = 15, 60  # records of an epoch, and of one when all has happened that will


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
    return Setup(PROGRAMS[program], epoch_records=_EPOCH, checkpoint_every=1, options=strategy)


class Script:
    """What is asked of the job while it runs: to be rescaled, and to stop with a savepoint."""

    def __init__(self, *, savepoint: bool) -> None:
        self._savepoint = savepoint
        self._rescales = dict(_RESCALES)

    def __copy__(self) -> Script:
        made = Script(savepoint=self._savepoint)
        made._rescales = dict(self._rescales)
        return made

    def remembered(self) -> tuple[bool, frozenset[int]]:
        """What it will still ask for."""
        return self._savepoint, frozenset(self._rescales)

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


@dataclass(frozen=True)
class Outcome:
    """What came of a fault. `failure` is None when the job has come to its end."""

    crashes: int
    restarts: int
    resumed: bool
    failure: str | None
    right: bool

    def after_a_crash(self) -> Outcome:
        """The same with one crash more."""
        return replace(self, crashes=self.crashes + 1)


class Points:
    """The faults of one job: a program that is stopped with a savepoint, or not."""

    def __init__(self, program: str, expected: list[str], *, savepoint: bool, world: World) -> None:
        self._setup, self._expected, self._savepoint = _setup(program), expected, savepoint
        self._world = world
        self._history: History[Script] = recorded(self._setup, world, Script(savepoint=savepoint))
        self._known: dict[Any, Outcome] = {}

    def outcome(self, step: Mapping[str, Any]) -> Outcome:
        """Of one step of a trace."""
        number, mode, again = step["operation"], step["mode"], step["again"]
        faults = [Faults(storage=(again, mode))] if again is not None else []
        if mode not in CRASHES or number >= len(self._history.operations):
            self._world.rewind(World.empty(), World.BEGIN)
            first = Faults(storage=(number, mode), lasting=step["lasting"])
            return self._lived(Script(savepoint=self._savepoint), [first, *faults])
        left = self._history.left(number, mode)
        rest = self._ended([]) if left.finished else self._lived(left.listener, faults)
        return rest.after_a_crash()

    def _lived(self, script: Script, faults: list[Faults]) -> Outcome:
        """Live on, with the faults that are still to come."""
        key = (fingerprint(self._world), script.remembered()) if not faults else None
        if key in self._known:
            return self._known[key]
        over = not faults and not any(script.remembered())  # nothing else happens to this job
        setup = replace(self._setup, epoch_records=_REST) if over else self._setup
        life = run(setup, self._world, faults[0] if faults else None, listen=script)
        if life.crashed and not life.finished:
            return self._lived(script, faults[1:]).after_a_crash()
        outcome = self._ended([life])
        if key is not None:
            self._known[key] = outcome
        return outcome

    def _ended(self, lives: list[Life]) -> Outcome:
        """The job has ended; if with a savepoint, another one goes on from it."""
        disk = self._world.disk
        made = disk.list(SAVED) if disk.exists(SAVED) else []
        whole = [name for name in made if disk.exists(f"{SAVED}/{name}/_metadata")]
        resumes = self._savepoint and bool(whole) and self._world.visible() != self._expected
        if resumes:
            options = {**self._setup.options, "execution.state-recovery.path": f"{SAVED}/{max(whole)}"}
            rest = replace(self._setup, job="resumed", epoch_records=_REST, options=options)
            lives = [*lives, run(rest, self._world)]
        last = lives[-1] if lives else None
        finished = last is None or last.finished or last.status is JobStatus.FINISHED
        return Outcome(
            crashes=sum(life.crashed for life in lives),
            restarts=sum(life.master.job.restarts for life in lives if life.master is not None),
            resumed=resumes,
            failure=None if finished or last is None else f"{last.status} {last.failure}",
            right=self._world.visible() == self._expected,
        )


def play(trace: Trace, _directory: Path) -> Report:
    """One fault at a time, each in the world of a job that begins."""
    report = Report(trace)
    expected = {name: reference(_setup(name)) for name in {step["program"] for step in trace.steps}}
    outcomes: list[Outcome] = []
    points: dict[tuple[str, bool], Points] = {}
    with World() as world:
        for step in trace.shown():
            program, savepoint = step["program"], step["savepoint"]
            if (program, savepoint) not in points:
                world.rewind(World.empty(), World.BEGIN)
                points = {(program, savepoint): Points(program, expected[program], savepoint=savepoint, world=world)}
            outcome = points[program, savepoint].outcome(step)
            report.check(outcome.failure is None, f"{step}: {outcome.failure}")
            report.check(outcome.right, f"{step}: the output differs")
            outcomes.append(outcome)
    report.figures |= {
        "faults": len(outcomes),
        "restarts": sum(each.restarts for each in outcomes),
        "crashes": sum(each.crashes for each in outcomes),
        "resumed from a savepoint": sum(each.resumed for each in outcomes),
    }
    return report
