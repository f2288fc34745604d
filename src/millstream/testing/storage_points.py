"""One job of the storage case: what comes of faults at its storage operations.

Promises: a step names the faults of lives that follow one another, at most one change of storage and one run of reads
in each; `outcome` lives through them and then to the end. What came before a crash is lived once for all crashes of a
job, and what comes after it once for all that leave the same behind.
Does not know: which faults there are to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.cluster.job_master import JobMaster
from millstream.errors import ExternalError, UserError
from millstream.job.job_status import JobStatus
from millstream.testing.crash_states import History, Left, damaged, fingerprint, recorded, shape
from millstream.testing.faults import CRASHES, Mode, ReadMode
from millstream.testing.memory_files import MemoryFileSystem
from millstream.testing.power import POWER_LOSSES
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import RETRIES, Faults, Life, Setup, World, reference, run

SAVED = "/savepoints"
_RESCALES = {1: 4, 4: 1}  # after which epoch to which parallelism
_STOP_AFTER = 5
_REST = 1000  # records of an epoch, when all has happened that will


def setup_of(program: str, records: int, every: int = 1, sink: str = "visible") -> Setup:
    """The job of a program before anything is asked of it."""
    strategy = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "20"}
    return Setup(PROGRAMS[program], epoch_records=records, checkpoint_every=every, sink=sink, options=strategy)


@dataclass(frozen=True)
class Fault:
    """What goes wrong in one life of the driver: at an operation that changes storage, at reads, or both."""

    operation: int | None = None
    mode: Mode = "before"
    lasting: int = 1
    read: int | None = None
    read_mode: ReadMode = "eio"
    reads: int = 1
    behind: int = 1

    @property
    def is_crash(self) -> bool:
        """Whether it does nothing but end the process."""
        return self.read is None and self.operation is not None and self.mode in (*CRASHES, *POWER_LOSSES)

    @property
    def is_brief_lie(self) -> bool:
        """Whether all that goes wrong are reads, and no more of them than a job repeats: the job must survive that."""
        return self.read is not None and self.operation is None and self.reads <= RETRIES

    @property
    def place(self) -> tuple[int, Mode]:
        """Where and how it is, if at an operation that changes storage."""
        assert self.operation is not None
        return self.operation, self.mode

    def faults(self) -> Faults:
        """As the simulation takes it."""
        return Faults(
            storage=None if self.operation is None else (self.operation, self.mode),
            lasting=self.lasting,
            reads=None if self.read is None else (self.read, self.read_mode),
            reads_lasting=self.reads,
            behind=self.behind,
            seed=self.operation or 0,
        )

    def to_json(self) -> dict[str, Any]:
        """Its fields that are not as they would be anyway."""
        plain = Fault()
        return {name: value for name, value in vars(self).items() if value != getattr(plain, name)}


def faults_of(step: Mapping[str, Any]) -> list[Fault]:
    """The faults of a step, one for each life."""
    if "faults" in step:
        return [Fault(**each) for each in step["faults"]]
    again = step["again"]  # a trace from before there could be more than two
    first = Fault(step["operation"], step["mode"], step["lasting"])
    return [first] if again is None else [first, Fault(*again)]


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

    def __call__(self, observation: JobEvent, master: JobMaster) -> None:
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
    """What came of a fault. `failure` is None when the job has come to its end; `started_again` after an error, and
    `needless` is that error if reads lied so briefly that the job should have survived."""

    crashes: int
    restarts: int
    resumed: bool
    started_again: bool
    failure: str | None
    right: bool
    damaged: Sequence[str] = ()
    needless: str | None = None

    def after_crashes(self, more: int) -> Outcome:
        """The same with crashes before it."""
        return replace(self, crashes=self.crashes + more)


class Points:
    """The faults of one job of a program. `history` is its life without any."""

    def __init__(
        self, program: str, job: str, records: int, world: World, *, every: int = 1, sink: str = "visible"
    ) -> None:
        self._job, self._world = job, world
        self._setup = setup_of(program, records, every, sink)
        self._expected = reference(self._setup)
        self._begin = World.empty(), float(World.BEGIN)
        world.rewind(World.empty(), World.BEGIN)
        if job == "resumed":
            run(self._setup, world, listen=Script.of("stopped"))
            world.disk = MemoryFileSystem.of(world.disk.files, world.disk.directories)
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
        first, *later = faults_of(step)
        if first.is_crash:
            left = self.history.left(*first.place)
        else:
            self._world.rewind(self._begin[0].copy(), self._begin[1])
            listener = Script.of(self._job)
            life = run(self._setup, self._world, first.faults(), listen=listener)
            if not life.crashed:
                return self._started_again(life, first)
            left = Left(listener, life.finished)
        crashes = 1
        for number, fault in enumerate(later):
            if left.finished:
                break
            recovered = number == 0 and first.is_crash and fault.is_crash and first.place in self.places
            recovery = self.recovery(*first.place) if recovered else None
            if recovery is not None and fault.place[0] < len(recovery.operations):
                finished = recovery.left(*fault.place).finished
            else:
                if recovered:
                    left = self.history.left(*first.place)
                life = run(self._setup, self._world, fault.faults(), listen=left.listener)
                if not life.crashed:
                    return self._started_again(life, fault).after_crashes(crashes)
                finished = life.finished
            left = Left(Script(rescales={}, savepoint=False), finished)  # whoever wanted something has given up
            crashes += 1
        lost_power = any(fault.mode in POWER_LOSSES for fault in (first, *later))
        return self._after(left, lost_power=lost_power).after_crashes(crashes)

    def _started_again(self, life: Life, fault: Fault) -> Outcome:
        """A job that ended with an error of storage can be started again once storage works."""
        named = isinstance(life.failure, ExternalError | UserError)
        if life.status is not JobStatus.FAILED or not named:
            return self._ended([life])
        ended = self._ended([life, run(replace(self._setup, epoch_records=_REST), self._world)])
        return replace(ended, needless=str(life.failure) if fault.is_brief_lie else None)

    def _after(self, left: Left[Script], *, lost_power: bool) -> Outcome:
        """Live on without faults. A loss of power may bring an old checkpoint back that was being deleted."""
        key = fingerprint(self._world), left.finished or left.listener.remembered(), lost_power
        if key not in self._known:
            broken = damaged(self._world.disk, old=not lost_power)
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
            started_again=any(life.status is JobStatus.FAILED for life in lives[:-1]),
            failure=None if finished or last is None else f"{last.status} {last.failure}",
            right=self._world.visible() == self._expected,
        )
