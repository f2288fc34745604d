"""One job of the storage case, and the outcomes of faults at its storage operations.

Promises: a step has the faults of consecutive lives, each with at most one failing operation and one series of failing
reads; `outcome` runs these lives and then the rest of the job. What happens before a crash is computed once for all
crashes of a job, and what happens after it once for all crashes that leave the same state.
Does not know: which faults are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.cluster.job_master import JobMaster
from millstream.errors import ExternalError, UserError
from millstream.job.job_status import JobStatus
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import RETRIES, Faults, Life, Setup, World, compute_reference, run
from millstream_chaos.simulation.crash_states import (
    CrashState,
    History,
    find_damaged,
    fingerprint,
    operation_shape,
    record_life,
)
from millstream_chaos.storage.faulty_files import CRASHES, Mode, ReadMode
from millstream_chaos.storage.memory_files import MemoryFileSystem
from millstream_chaos.storage.power import POWER_LOSSES

SAVED = "/savepoints"
_RESCALES = {1: 4, 4: 1}  # after which epoch to which parallelism
_STOP_AFTER = 5
_REST = 1000  # records of an epoch after the last fault and request


def create_setup(program: str, records: int, every: int = 1, sink: str = "visible") -> Setup:
    """Return the job of a program."""
    strategy = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "20"}
    return Setup(PROGRAMS[program], epoch_records=records, checkpoint_every=every, sink=sink, options=strategy)


@dataclass(frozen=True)
class Fault:
    """The fault in one life of the driver: at an operation that changes storage, at reads, or both."""

    operation: int | None = None
    mode: Mode = "before"
    lasting: int = 1
    read: int | None = None
    read_mode: ReadMode = "eio"
    reads: int = 1
    behind: int = 1

    @property
    def is_crash(self) -> bool:
        """Whether the fault only ends the process."""
        return self.read is None and self.operation is not None and self.mode in (*CRASHES, *POWER_LOSSES)

    @property
    def is_survivable_read(self) -> bool:
        """Whether only reads fail, and no more of them than a job repeats; the job must survive that."""
        return self.read is not None and self.operation is None and self.reads <= RETRIES

    @property
    def crash_point(self) -> tuple[int, Mode]:
        """The operation and the mode of a fault at an operation that changes storage."""
        assert self.operation is not None
        return self.operation, self.mode

    def faults(self) -> Faults:
        """Return the fault as an argument of the simulation."""
        return Faults(
            storage=None if self.operation is None else (self.operation, self.mode),
            lasting=self.lasting,
            reads=None if self.read is None else (self.read, self.read_mode),
            reads_lasting=self.reads,
            behind=self.behind,
            seed=self.operation or 0,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        default = Fault()
        return {name: value for name, value in vars(self).items() if value != getattr(default, name)}


def parse_faults(step: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of a step, one for each life."""
    if "faults" in step:
        return [Fault(**fields) for fields in step["faults"]]
    again = step["again"]  # an older trace, with at most two faults
    first = Fault(step["operation"], step["mode"], step["lasting"])
    return [first] if again is None else [first, Fault(*again)]


class Script:
    """The requests to the job while it runs: rescales, and a stop with a savepoint."""

    def __init__(self, *, rescales: Mapping[int, int], savepoint: bool) -> None:
        self._rescales = dict(rescales)
        self._savepoint = savepoint

    @classmethod
    def of(cls, job: str) -> Script:
        """Return the requests to one of the jobs."""
        return cls(rescales=_RESCALES if job != "resumed" else {}, savepoint=job == "stopped")

    def __copy__(self) -> Script:
        return Script(rescales=self._rescales, savepoint=self._savepoint)

    def pending_requests(self) -> tuple[bool, frozenset[int]]:
        """Return the requests that were not sent yet."""
        return self._savepoint, frozenset(self._rescales)

    def __call__(self, event: JobEvent, master: JobMaster) -> None:
        """Send the requests that are due after an epoch."""
        if not isinstance(event, EpochDone):
            return
        parallelism = self._rescales.pop(event.epoch, None)
        if parallelism is not None:
            master.rescale(parallelism)
        if self._savepoint and event.epoch >= _STOP_AFTER:
            self._savepoint = False
            master.savepoint(SAVED, stop=True)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a step.

    Attributes:
        crashes: The number of crashes.
        restarts: The number of restarts by the restart strategy.
        resumed: Whether another job continued from a savepoint.
        started_again: Whether the job failed and was started again.
        failure: The final error; None if the job finished.
        right: Whether the output is the expected one.
        damaged: Incomplete checkpoints that a crash left.
        needless: The error of a job that should have survived, because only few reads failed.

    """

    crashes: int
    restarts: int
    resumed: bool
    started_again: bool
    failure: str | None
    right: bool
    damaged: Sequence[str] = ()
    needless: str | None = None

    def after_crashes(self, more: int) -> Outcome:
        """Return the outcome with earlier crashes added."""
        return replace(self, crashes=self.crashes + more)


class Points:
    """Runs one job of a program with faults. `history` is its life without faults."""

    def __init__(
        self, program: str, job: str, records: int, world: World, *, every: int = 1, sink: str = "visible"
    ) -> None:
        self._job, self._world = job, world
        self._setup = create_setup(program, records, every, sink)
        self._expected = compute_reference(self._setup)
        self._begin = World.empty(), float(World.BEGIN)
        world.rewind(World.empty(), World.BEGIN)
        if job == "resumed":
            run(self._setup, world, listen=Script.of("stopped"))
            world.disk = MemoryFileSystem.of(world.disk.files, world.disk.directories)
            self._begin = world.disk.copy(), world.clock.millis
            self._setup = self._resuming() or self._setup
        self.history: History[Script] = record_life(self._setup, world, Script.of(job))
        self._recovery: tuple[tuple[int, Mode], History[Script] | None] | None = None
        self._known: dict[Any, Outcome] = {}

    @property
    def first_operation(self) -> int:
        """The operation that plans the first epoch in which the job differs from the other jobs.

        This is the first epoch at a new parallelism, the last one before a savepoint, or the first one after it."""
        rescales = frozenset(_RESCALES)
        differs: dict[str, Callable[[Script], bool]] = {
            "rescaled": lambda script: script.pending_requests()[1] != rescales,
            "stopped": lambda script: not script.pending_requests()[0],
            "resumed": lambda _: True,
        }
        since = self.history.find_first(differs[self._job])
        return next(
            number
            for number, operation in enumerate(self.history.operations)
            if number >= since and operation.name == "append_bytes"
        )

    @cached_property
    def crash_points(self) -> Sequence[tuple[int, Mode]]:
        """Crashes after which recovery differs: the first operation of each shape since `first_operation`.

        Operations that only create a temporary file, create a directory or sync one are left out."""
        first_by_shape: dict[tuple[str, str], int] = {}
        for number, operation in enumerate(self.history.operations[self.first_operation :], self.first_operation):
            if operation.target or not (operation.name in ("make_dirs", "sync_dir") or operation.path.endswith(".tmp")):
                first_by_shape.setdefault(operation_shape(operation), number)
        return [(number, "torn" if name == "append_bytes" else "after") for (name, _), number in first_by_shape.items()]

    def recovery(self, number: int, mode: Mode) -> History[Script] | None:
        """Return the recorded life after a crash; None if the job had reported its end."""
        if self._recovery is None or self._recovery[0] != (number, mode):
            left = self.history.restore_crash(number, mode)
            life = None if left.finished else record_life(self._setup, self._world, left.listener)
            self._recovery = (number, mode), life
        return self._recovery[1]

    def outcome(self, step: Mapping[str, Any]) -> Outcome:
        """Run one step of a trace."""
        first, *later = parse_faults(step)
        if first.is_crash:
            left = self.history.restore_crash(*first.crash_point)
        else:
            self._world.rewind(self._begin[0].copy(), self._begin[1])
            listener = Script.of(self._job)
            life = run(self._setup, self._world, first.faults(), listen=listener)
            if not life.crashed:
                return self._started_again(life, first)
            left = CrashState(listener, life.finished)
        crashes = 1
        for number, fault in enumerate(later):
            if left.finished:
                break
            recovered = number == 0 and first.is_crash and fault.is_crash and first.crash_point in self.crash_points
            recovery = self.recovery(*first.crash_point) if recovered else None
            if recovery is not None and fault.crash_point[0] < len(recovery.operations):
                finished = recovery.restore_crash(*fault.crash_point).finished
            else:
                if recovered:
                    left = self.history.restore_crash(*first.crash_point)
                life = run(self._setup, self._world, fault.faults(), listen=left.listener)
                if not life.crashed:
                    return self._started_again(life, fault).after_crashes(crashes)
                finished = life.finished
            left = CrashState(
                Script(rescales={}, savepoint=False), finished
            )  # requests are not repeated after a second crash
            crashes += 1
        lost_power = any(fault.mode in POWER_LOSSES for fault in (first, *later))
        return self._after(left, lost_power=lost_power).after_crashes(crashes)

    def _started_again(self, life: Life, fault: Fault) -> Outcome:
        """Start a job again that ended with an error of storage; storage works now."""
        is_expected = isinstance(life.failure, ExternalError | UserError)
        if life.status is not JobStatus.FAILED or not is_expected:
            return self._ended([life])
        ended = self._ended([life, run(replace(self._setup, epoch_records=_REST), self._world)])
        return replace(ended, needless=str(life.failure) if fault.is_survivable_read else None)

    def _after(self, left: CrashState[Script], *, lost_power: bool) -> Outcome:
        """Run the rest without faults. A loss of power may restore an old checkpoint whose deletion was not synced."""
        key = fingerprint(self._world), left.finished or left.listener.pending_requests(), lost_power
        if key not in self._known:
            broken = find_damaged(self._world.disk, old=not lost_power)
            is_rest = not any(left.listener.pending_requests())
            setup = replace(self._setup, epoch_records=_REST) if is_rest else self._setup
            lives = [] if left.finished else [run(setup, self._world, listen=left.listener)]
            self._known[key] = replace(self._ended(lives), damaged=broken)
        return self._known[key]

    def _resuming(self) -> Setup | None:
        """Return the job that continues from the savepoint, if there is one."""
        disk = self._world.disk
        names = disk.list(SAVED) if disk.exists(SAVED) else []
        complete = [name for name in names if disk.exists(f"{SAVED}/{name}/_metadata")]
        if not complete:
            return None
        options = {**self._setup.options, "execution.state-recovery.path": f"{SAVED}/{max(complete)}"}
        return replace(self._setup, job="resumed", options=options)

    def _ended(self, lives: Sequence[Life]) -> Outcome:
        """Return the outcome of a job that ended; after a savepoint, first run another job that continues from it."""
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
