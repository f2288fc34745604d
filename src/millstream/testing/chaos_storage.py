"""Storage fails while a job runs: no space, I/O errors, read-only, stalls of half a minute, and processes that die.

Promises: at whatever operation of epochs, checkpoints, commits, rescales, savepoints and of the recovery that happens,
the output is in the end that of a run without faults, and no death leaves half a checkpoint. Three jobs of a program
are put through it: one that is rescaled twice, one that is also stopped with a savepoint, the one that goes on from
that. At every operation of them a process dies (before, after, half-way), and storage fails in one way; where a death
leaves something new to recover from, the recovery dies at every operation until it has made a checkpoint. What came
before a crash is lived once for all crashes of a job, and what comes after it once for all that leave the same behind.
Does not know: what the operations are for."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from millstream.cluster.job_master import JobMaster
from millstream.cluster.observations import EpochDone, Observation
from millstream.model.job_status import JobStatus
from millstream.testing.chaos import Report, Trace
from millstream.testing.crash_states import History, Left, damaged, fingerprint, recorded, shape
from millstream.testing.faults import CRASHES, Mode
from millstream.testing.power import POWER_LOSSES
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import Faults, Life, Setup, World, reference, run

ERRORS: tuple[Mode, ...] = ("enospc", "eio", "erofs", "stall")
JOBS = ("rescaled", "stopped", "resumed")
SAVED = "/savepoints"
CI = ("reminders", "side_output")  # keyed state, timers, windows, early and late output: every kind of file is touched
_RESCALES = {1: 4, 4: 1}  # after which epoch to which parallelism
_STOP_AFTER = 5
_REST = 1000  # records of an epoch, when all has happened that will


class _Size(NamedTuple):
    """How much is played: programs (None: those of CI), the least epochs of a job, how many deaths have another one
    anywhere in the recovery, and whether a job fails where one before it has too, and only what follows is another."""

    programs: int | None
    epochs: int
    again: float
    repeated: bool


_SIZES = {
    "ci": _Size(None, 6, 0.0, False),
    "normal": _Size(6, 6, 0.25, False),
    "long": _Size(len(PROGRAMS), 20, 0.5, True),
}


def plan(seed: int, size: str) -> Trace:
    """Which operations of which programs fail, how, and for how many operations."""
    programs, epochs, again, repeated = _SIZES[size]
    chance = np.random.default_rng([seed, 17])
    chosen = CI if programs is None else sorted(map(str, chance.choice(sorted(PROGRAMS), programs, replace=False)))
    records = {name: _epoch_records(name, epochs) for name in chosen}
    steps: list[Mapping[str, Any]] = []
    with World() as world:
        for name in chosen:
            for job in JOBS:
                points = Points(name, job, records[name], world)
                begin = 0 if repeated or job != "stopped" else points.begun
                found = [
                    *_points(range(begin, len(points.history.operations)), again, chance),
                    *_recovery_points(points),
                ]
                steps += [{"program": name, "job": job, **point} for point in found]
    return Trace("storage", seed, size, {"epoch records": records}, steps)


def _points(operations: range, again: float, chance: np.random.Generator) -> Iterator[dict[str, Any]]:
    first = int(chance.integers(len(ERRORS)))
    for number in operations:
        for mode in CRASHES:
            dies = chance.random() < again
            yield _point(number, mode, (int(chance.integers(0, 30)), mode) if dies else None)
        error = ERRORS[(first + number) % len(ERRORS)]
        yield _point(number, error, lasting=int(chance.integers(1, 8)) if error != "stall" else 1)


def _recovery_points(points: Points) -> Iterator[dict[str, Any]]:
    for place in points.places:
        recovery = points.recovery(*place)
        for number in range(recovery.secured if recovery is not None else 0):
            for mode in CRASHES:
                yield _point(*place, (number, mode))


def _point(number: int, mode: Mode, again: tuple[int, Mode] | None = None, lasting: int = 1) -> dict[str, Any]:
    return {"operation": number, "mode": mode, "lasting": lasting, "again": None if again is None else list(again)}


def _epoch_records(program: str, epochs: int) -> int:
    """The largest epochs with which a program has so many of them."""
    for records in (60, 40, 30, 20, 15, 10, 8, 7, 6, 5, 4, 3, 2):
        with World() as world:
            if len(run(_setup(program, records), world).epochs) >= epochs:
                return records
    return 1


def _setup(program: str, records: int, every: int = 1) -> Setup:
    strategy = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "20"}
    return Setup(PROGRAMS[program], epoch_records=records, checkpoint_every=every, options=strategy)


class Script:
    """What is asked of the job while it runs: to be rescaled, and to stop with a savepoint."""

    def __init__(self, *, rescales: Mapping[int, int], savepoint: bool) -> None:
        self._rescales = dict(rescales)
        self._savepoint = savepoint

    @classmethod
    def of(cls, job: str) -> Script:
        """What is asked of one of the jobs."""
        return cls(rescales=_RESCALES if job != "resumed" else {}, savepoint=job == "stopped")

    def __copy__(self) -> Script:
        return Script(rescales=self._rescales, savepoint=self._savepoint)

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
    damaged: Sequence[str] = ()

    def after_crashes(self, more: int) -> Outcome:
        """The same with crashes before it."""
        return replace(self, crashes=self.crashes + more)


class Points:
    """The faults of one job of a program. `history` is its life without any."""

    def __init__(self, program: str, job: str, records: int, world: World, *, every: int = 1) -> None:
        self._job, self._world = job, world
        self._setup = _setup(program, records, every)
        self._expected = reference(self._setup)
        self._begin = World.empty(), float(World.BEGIN)
        world.rewind(World.empty(), World.BEGIN)
        if job == "resumed":
            run(self._setup, world, listen=Script.of("stopped"))
            self._begin = world.disk.copy(), world.clock.millis
            self._setup = self._resuming() or self._setup
        self.history: History[Script] = recorded(self._setup, world, Script.of(job))
        self._recovery: tuple[tuple[int, Mode], History[Script] | None] | None = None
        self._known: dict[Any, Outcome] = {}

    @property
    def begun(self) -> int:
        """The operation that plans the first epoch after the job was asked for what makes it another one than the job
        before it: the first at a new parallelism, the one that ends it before a savepoint, the first from there."""
        rescales = frozenset(_RESCALES)
        asked: dict[str, Callable[[Script], bool]] = {
            "rescaled": lambda script: script.remembered()[1] != rescales,
            "stopped": lambda script: not script.remembered()[0],
            "resumed": lambda _: True,
        }
        since = self.history.since(asked[self._job])
        return next(n for n, each in enumerate(self.history.operations) if n >= since and each.kind == "append_bytes")

    @cached_property
    def places(self) -> Sequence[tuple[int, Mode]]:
        """Crashes that leave something new to recover from: the first operation of each shape since `begun`, where
        it does more than begin a file or sync one."""
        found: dict[tuple[str, str], int] = {}
        for number, each in enumerate(self.history.operations[self.begun :], self.begun):
            if each.target or not (each.kind in ("make_dirs", "sync_dir") or each.path.endswith(".tmp")):
                found.setdefault(shape(each), number)
        return [(number, "torn" if kind == "append_bytes" else "after") for (kind, _), number in found.items()]

    def recovery(self, number: int, mode: Mode) -> History[Script] | None:
        """The life after a crash; None when the job had told its end."""
        if self._recovery is None or self._recovery[0] != (number, mode):
            left = self.history.left(number, mode)
            life = None if left.finished else recorded(self._setup, self._world, left.listener)
            self._recovery = (number, mode), life
        return self._recovery[1]

    def outcome(self, step: Mapping[str, Any]) -> Outcome:
        """Of one step of a trace."""
        number, mode, again = step["operation"], step["mode"], step["again"]
        if mode not in (*CRASHES, *POWER_LOSSES):
            self._world.rewind(self._begin[0].copy(), self._begin[1])
            faults = Faults(storage=(number, mode), lasting=step["lasting"])
            return self._ended([run(self._setup, self._world, faults, listen=Script.of(self._job))])
        left = self.history.left(number, mode)
        if again is None or left.finished:
            return self._after(left).after_crashes(1)
        recovery = self.recovery(number, mode) if (number, mode) in self.places else None
        if recovery is not None and again[0] < len(recovery.operations):
            finished = recovery.left(*again).finished
        else:
            left = self.history.left(number, mode)
            life = run(self._setup, self._world, Faults(storage=tuple(again)), listen=left.listener)
            if not life.crashed:
                return self._ended([life]).after_crashes(1)
            finished = life.finished
        gone = Left(Script(rescales={}, savepoint=False), finished)  # whoever wanted something has given up
        return self._after(gone).after_crashes(2)

    def _after(self, left: Left[Script]) -> Outcome:
        """Live on without faults."""
        key = fingerprint(self._world), left.finished or left.listener.remembered()
        if key not in self._known:
            broken = damaged(self._world.disk)
            over = not any(left.listener.remembered())  # nothing else happens to this job
            setup = replace(self._setup, epoch_records=_REST) if over else self._setup
            lives = [] if left.finished else [run(setup, self._world, listen=left.listener)]
            self._known[key] = replace(self._ended(lives), damaged=broken)
        return self._known[key]

    def _resuming(self) -> Setup | None:
        """The job that goes on from the savepoint, if there is one."""
        disk = self._world.disk
        made = disk.list(SAVED) if disk.exists(SAVED) else []
        whole = [name for name in made if disk.exists(f"{SAVED}/{name}/_metadata")]
        if not whole:
            return None
        options = {**self._setup.options, "execution.state-recovery.path": f"{SAVED}/{max(whole)}"}
        return replace(self._setup, job="resumed", options=options)

    def _ended(self, lives: Sequence[Life]) -> Outcome:
        """The job has ended; if with a savepoint, another one goes on from it."""
        resuming = self._resuming() if self._job == "stopped" else None
        resumes = resuming is not None and self._world.visible() != self._expected
        if resuming is not None and resumes:
            lives = [*lives, run(replace(resuming, epoch_records=_REST), self._world)]
        last = lives[-1] if lives else None
        finished = last is None or last.finished or last.status is JobStatus.FINISHED
        return Outcome(
            crashes=sum(life.crashed for life in lives),
            restarts=sum(life.master.job.restarts for life in lives if life.master is not None),
            resumed=resumes,
            failure=None if finished or last is None else f"{last.status} {last.failure}",
            right=self._world.visible() == self._expected,
        )


@contextmanager
def _little_garbage() -> Iterator[None]:
    """What is loaded by now stays: looking through it for cycles took a tenth of the time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def play(trace: Trace, _directory: Path) -> Report:
    """One fault at a time, each in the world of a job that begins."""
    report = Report(trace)
    outcomes: list[Outcome] = []
    points: dict[tuple[str, str], Points] = {}
    with World() as world, _little_garbage():
        for step in trace.shown():
            program, job = step["program"], step["job"]
            if (program, job) not in points:
                points = {(program, job): Points(program, job, trace.parameters["epoch records"][program], world)}
            outcome = points[program, job].outcome(step)
            report.check(outcome.failure is None, f"{step}: {outcome.failure}")
            report.check(not outcome.damaged, f"{step}: half a checkpoint is left: {outcome.damaged}")
            report.check(outcome.right, f"{step}: the output differs")
            outcomes.append(outcome)
    report.figures |= {
        "faults": len(outcomes),
        "restarts": sum(each.restarts for each in outcomes),
        "crashes": sum(each.crashes for each in outcomes),
        "resumed from a savepoint": sum(each.resumed for each in outcomes),
    }
    return report
