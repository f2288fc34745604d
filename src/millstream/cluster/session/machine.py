"""The state machine of a session cluster: its programs, and the actions for each event.

Promises: a program whose process is lost starts again if its jobs can be recovered, unless it is lost too often within
an hour. A program that has ended is archived once, and has no slots; only the event `Forgotten` changes it.
Does not know: processes, files, clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from millstream.cluster.session.slots import Granted, SlotPool, SlotRequest, Verdict

_MAX_RESTARTS, _RESTARTS_WITHIN = 10, 3_600_000  # milliseconds


class ProgramStatus(Enum):
    """The status of a program, with Flink's names for applications."""

    RUNNING = "RUNNING"
    CANCELING = "CANCELING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"

    @property
    def is_final(self) -> bool:
        """Whether the program has ended."""
        return self in (ProgramStatus.FINISHED, ProgramStatus.FAILED, ProgramStatus.CANCELED)


@dataclass(frozen=True)
class Program:
    """A program of the cluster. `losses` are the times at which its process was lost, those of the last hour; `waits`
    are the reasons why its jobs wait, by job; `error` is why it failed."""

    id: str
    status: ProgramStatus = ProgramStatus.RUNNING
    restarts: int = 0
    losses: tuple[int, ...] = ()
    error: str | None = None
    waits: Mapping[str, str] = field(default_factory=dict)


# -------------------------------------------------------------------------------------------------------------- events


@dataclass(frozen=True)
class Submitted:
    """A program is in the store and is to run."""

    program: str


@dataclass(frozen=True)
class SlotsRequested:
    """A job asks for slots."""

    request: SlotRequest


@dataclass(frozen=True)
class JobEnded:
    """A job of a program has ended."""

    program: str
    job: str


@dataclass(frozen=True)
class ProgramEnded:
    """A program and its jobs have ended; `error` is why it failed."""

    program: str
    error: str | None = None
    is_cancelled: bool = False


@dataclass(frozen=True)
class ProgramLost:
    """The process of a program is gone, or cannot run its jobs any more; `at` is the time in milliseconds."""

    program: str
    reason: str
    at: int


@dataclass(frozen=True)
class CancelRequested:
    """A program is to be cancelled."""

    program: str


@dataclass(frozen=True)
class Forgotten:
    """A program that has ended is removed from the list."""

    program: str


Event = Submitted | SlotsRequested | JobEnded | ProgramEnded | ProgramLost | CancelRequested | Forgotten

# ------------------------------------------------------------------------------------------------------------- actions


@dataclass(frozen=True)
class Start:
    """Start the process of the program."""

    program: str


@dataclass(frozen=True)
class Answer:
    """Answer the request for slots of a job."""

    request: SlotRequest
    verdict: Verdict


@dataclass(frozen=True)
class CancelJobs:
    """Cancel all jobs of the program, including those that it starts later, and end its process if it does not end by
    itself."""

    program: str


@dataclass(frozen=True)
class Archive:
    """Archive the program and its jobs, and end its process."""

    program: str


Action = Start | Answer | CancelJobs | Archive


@dataclass(frozen=True)
class Session:
    """The programs and slots of a cluster. `recovers`: jobs can continue in another process."""

    slots: SlotPool
    programs: Mapping[str, Program] = field(default_factory=dict)
    recovers: bool = False

    def _with(self, program: Program, slots: SlotPool | None = None) -> Session:
        return replace(self, programs={**self.programs, program.id: program}, slots=slots or self.slots)

    def _without(self, program: str) -> Session:
        return replace(self, programs={key: value for key, value in self.programs.items() if key != program})


def on_event(session: Session, event: Event) -> tuple[Session, tuple[Action, ...]]:
    """Return the session after an event, and what to do."""
    if isinstance(event, Submitted):
        return session._with(Program(event.program)), (Start(event.program),)
    program = session.programs[event.request.program if isinstance(event, SlotsRequested) else event.program]
    if program.status.is_final:
        return (session._without(program.id) if isinstance(event, Forgotten) else session), ()
    match event:
        case SlotsRequested(request=request):
            slots, verdict = session.slots.request(request)
            return _with_waits(replace(session, slots=slots)), (Answer(request, verdict),)
        case JobEnded(job=job):
            return _release(session, program, job)
        case CancelRequested() if program.status is ProgramStatus.CANCELING:
            return session, ()
        case CancelRequested():
            return session._with(replace(program, status=ProgramStatus.CANCELING)), (CancelJobs(program.id),)
        case ProgramEnded(error=error, is_cancelled=is_cancelled):
            status = ProgramStatus.FINISHED if error is None else ProgramStatus.FAILED
            status = ProgramStatus.CANCELED if is_cancelled else status
            return _end(session, program, status, error)
        case ProgramLost(reason=reason, at=at):
            losses = (*(loss for loss in program.losses if loss > at - _RESTARTS_WITHIN), at)
            if session.recovers and program.status is ProgramStatus.RUNNING and len(losses) <= _MAX_RESTARTS:
                session, actions = _release(session, program, None)
                lost = session.programs[program.id]
                restarted = replace(lost, restarts=lost.restarts + 1, losses=losses, error=reason)
                return session._with(restarted), (*actions, Start(program.id))
            return _end(session, program, ProgramStatus.FAILED, reason)
        case Forgotten():
            msg = f"program {program.id} has not ended: {program.status.value}"
            raise ValueError(msg)


def _end(
    session: Session, program: Program, status: ProgramStatus, error: str | None
) -> tuple[Session, tuple[Action, ...]]:
    if program.status is ProgramStatus.CANCELING:
        status, error = ProgramStatus.CANCELED, None
    session, actions = _release(session, program, None)
    ended = replace(session.programs[program.id], status=status, error=error)
    return session._with(ended), (*actions, Archive(program.id))


def _release(session: Session, program: Program, job: str | None) -> tuple[Session, tuple[Action, ...]]:
    slots, granted = session.slots.release(program.id, job)
    return _with_waits(replace(session, slots=slots)), tuple(Answer(request, Granted()) for request in granted)


def _with_waits(session: Session) -> Session:
    """Return the session with the reasons why jobs wait, in their programs."""
    waits: dict[str, dict[str, str]] = {}
    for request in session.slots.waiting:
        waits.setdefault(request.program, {})[request.job] = session.slots.explain(request)
    programs = {key: replace(program, waits=waits.get(key, {})) for key, program in session.programs.items()}
    return replace(session, programs=programs)
