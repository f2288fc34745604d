"""Which driver runs a job, when several stand by: waiting, taking over, and being fenced off.

Promises: a driver runs the job only in a term of its own; what it does after another one began a later term has no
effect: its checkpoints are refused, and it commits nothing. A leader whose job does not move for a stated time gives
its lease up, so that another driver leads; a driver that stands by bears with storage that fails for as long.
Does not know: engines, sources, how a lease is kept.

A term begins with a fence: a checkpoint with the next number, which repeats the last one. Checkpoints are made with
create-if-absent, so of the old leader's next checkpoint and the fence one exists. Is it the fence, the old leader can
make no checkpoint any more, and so commit nothing new. Is it the old leader's, the new one goes on from there. A number
may come free again when old checkpoints are deleted: so a leader looks at the lease once more after it made a
checkpoint, and before it commits; whoever freed the number had taken a later term long before, and left a checkpoint
with a greater one, or the job has ended. Without either, the checkpoint was made before the fence: it stays, for the
new leader may have committed what it names."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.storage_errors import CheckpointTaken
from millstream.cluster.lease import Lease, Outcome, Watch
from millstream.errors import ExternalError, MillstreamError
from millstream.job.job_status import JobStatus

_log = logging.getLogger("millstream.leadership")

_RENEWALS = 4  # in the duration of a lease
_LOOKS = 12  # of a waiting driver, in the duration of a lease
_SETTLED = 10  # durations after which a leader has done what it does at its start

GENERATIONS = 1 << 20  # of one term: names of attempts contain the generation, so no two drivers' names meet


class NotLeading(ExternalError):
    """This driver does not lead, or not any more: the job is another one's to run."""


class LeadershipLost(NotLeading):
    """Another driver runs the job now."""

    hint = "the job goes on there; start this driver again to have it stand by"

    def __init__(self, term: int, newest: int, holder: str) -> None:
        self.term, self.newest, self.holder = term, newest, holder
        taken = f"{holder} took over in term {newest}" if newest else "its lease is gone"
        super().__init__(f"this driver led in term {term}, but {taken}")


class LeadershipGivenUp(NotLeading):
    """The job did not move under this driver, which left it to others."""

    hint = "another driver leads if one stands by; see why nothing moved, then start this one again"

    def __init__(self, term: int, seconds: float, cause: str | None = None) -> None:
        self.term, self.seconds, self.cause = term, seconds, cause
        told = f"the job did not move for {seconds:g} s, so this driver gave up the lease of term {term}"
        super().__init__(f"{told}: {cause}" if cause else told)


class LeaseUnreachable(NotLeading):
    """A driver that stands by could not look at the lease for too long."""

    hint = "is the high-availability.storageDir there? Start this driver again to have it stand by"

    def __init__(self, seconds: float, problem: MillstreamError) -> None:
        self.seconds, self.problem = seconds, problem
        super().__init__(f"this driver stood by and could not look at the lease for {seconds:g} s: {problem.message}")


class StoppedWaiting(NotLeading):
    """The wait for leadership was given up."""

    def __init__(self) -> None:
        super().__init__("this driver stopped waiting before it led")


class Leadership:
    """The part of one driver in the leadership of one job. `now` is monotonic, in seconds; `patience` is how long a job
    that does not move keeps its leader, and how long a driver stands by without a look at the lease."""

    def __init__(
        self,
        lease: Lease,
        holder: str,
        duration: float,
        now: Callable[[], float],
        sleep: Callable[[float], None],
        *,
        renews_itself: bool = True,
        patience: float = math.inf,
    ) -> None:
        self._lease, self._holder, self._duration = lease, holder, duration
        self._now, self._sleep = now, sleep
        self._renews_itself = renews_itself
        self._patience = patience
        self._closed = threading.Event()
        self._beat = 0
        self._moved_at = 0.0
        self._last: str | None = None  # what went wrong since the job moved
        self.gave_up = False
        self.term = 0

    def wait(
        self,
        stopped: Callable[[], bool],
        prepare: Callable[[], None] = lambda: None,
        newest_term: Callable[[], int] = lambda: 0,
    ) -> Outcome | None:
        """Stand by until this driver leads, or the job has ended elsewhere: then how. Raises when `stopped` says so.

        `prepare` is called once when another driver has led for a while: not at once, for that one may just be
        starting, on this machine. `newest_term` gives the last term that left a checkpoint: if the lease was deleted,
        terms go on from there, for attempts, plans and checkpoints are named by them. A look that fails is repeated,
        until none has succeeded for too long."""
        if self.term:  # it leads already, and has not begun its term yet
            self.verify()
            return None
        watch = Watch()
        since: float | None = None
        prepared = False
        looked_at, failures = self._now(), 0
        while not stopped():
            try:
                outcome = self._lease.outcome()
                if outcome is not None:
                    return outcome
                watch = watch.after(self._lease.held(), self._now())
                seen = watch.seen
                expired = watch.expired(self._now(), self._duration)
                term = (newest_term() if seen is None else seen.term) + 1
                if expired and self._lease.take(term, self._holder):
                    self._lead(term, seen.holder if seen is not None else None)
                    return None
            except MillstreamError as problem:
                failures += 1
                _log.warning("the lease could not be looked at, try %s: %s", failures, problem)
                if self._now() - looked_at >= self._patience:
                    raise LeaseUnreachable(self._patience, problem) from problem
                self._sleep(min(2.0**failures * self._duration / _LOOKS, self._duration))
                continue
            looked_at, failures = self._now(), 0
            if expired:
                continue
            if since is None and seen is not None:
                _log.info("standing by: %s leads in term %s", seen.holder, seen.term)
                since = self._now()
            if since is not None and not prepared and self._now() - since > _SETTLED * self._duration:
                prepared = True
                try:
                    prepare()
                except MillstreamError as problem:
                    _log.warning("this driver stands by unprepared: %s", problem)
            self._sleep(self._duration / _LOOKS)
        raise StoppedWaiting

    def _lead(self, term: int, before: str | None) -> None:
        self.term = term
        self._moved_at = self._now()
        if before is not None:
            _log.warning("taking over from %s, which has been silent for %g s: term %s", before, self._duration, term)
        if self._renews_itself:
            threading.Thread(target=self._renew_on, name="lease", daemon=True).start()

    def _renew_on(self) -> None:
        while not self._closed.wait(self._duration / _RENEWALS):
            if self.is_stuck():
                return
            try:
                self.renew()
            except MillstreamError as problem:  # the next one may succeed; if none does, another driver takes over
                _log.warning("the lease could not be renewed: %s", problem)

    def is_stuck(self) -> bool:
        """Whether the job has not moved for too long; then the lease is given up and not renewed any more."""
        if not self.gave_up and self._now() - self._moved_at >= self._patience:
            self.gave_up = True
            _log.error("the job has not moved for %g s: the lease of term %s is given up", self._patience, self.term)
        return self.gave_up

    def moved(self) -> None:
        """The job makes progress (see `movement`). Raises when the lease was given up."""
        self.ensure_not_given_up()
        self._moved_at, self._last = self._now(), None

    def ensure_not_given_up(self) -> None:
        """Raise `LeadershipGivenUp` when the lease was given up."""
        if self.gave_up:
            raise LeadershipGivenUp(self.term, self._patience, self._last)

    def explained(self, problem: Exception) -> Exception:
        """What went wrong, as seen from here: what fails after the lease was given up is why the job did not move."""
        if isinstance(problem, NotLeading):
            return problem
        self._last = str(problem)
        return LeadershipGivenUp(self.term, self._patience, self._last) if self.gave_up else problem

    def renew(self) -> None:
        """Say once that this driver lives."""
        self._beat += 1
        self._lease.renew(self.term, self._beat)

    def verify(self) -> None:
        """Raise `LeadershipLost` when another driver has begun a later term, `LeadershipGivenUp` when one may."""
        self.ensure_not_given_up()
        held = self._lease.held()
        if held is None or held.term != self.term:
            raise LeadershipLost(self.term, held.term if held else 0, held.holder if held else "nobody")

    def is_concluded(self) -> bool:
        """Whether the job has ended, here or elsewhere."""
        return self._lease.outcome() is not None

    def conclude(self, status: str, cause: str | None) -> None:
        """The job has ended: nobody is to run it again."""
        self._lease.conclude(Outcome(status, cause))

    def tell_end(self, status: JobStatus, cause: str | None) -> bool:
        """Whether the end of the job is this driver's to tell; then it is told, before checkpoints may go."""
        try:
            if self.term == 0 or not status.is_globally_terminal_state():
                return False
            self.verify()
            self.conclude(status.name, cause if status is JobStatus.FAILED else None)
        except ExternalError as problem:
            _log.warning("the end of the job could not be told to other drivers: %s", problem)
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """Say no more; another driver may lead after the duration of the lease."""
        self._closed.set()

    @property
    def first_generation(self) -> int:
        """The first generation of attempts of this term."""
        return self.term * GENERATIONS


class Fences(Protocol):
    """What taking over needs of a job's checkpoints."""

    def numbers(self) -> Sequence[int]:
        """The checkpoints that exist."""

    def latest_intact(self) -> CheckpointMetadata | None:
        """The newest one that is whole."""

    def publish_new(self, metadata: CheckpointMetadata) -> None:
        """Make one that must not exist yet."""

    def discard(self, checkpoint: int) -> None:
        """Take one back."""

    def is_superseded(self, checkpoint: int) -> bool:
        """Whether there is a later one."""


def check_leadership(leadership: Leadership, fences: Fences, made: int | None = None) -> None:
    """Between a checkpoint and its commit: another driver may have begun a term, and commits what was `made` before
    that; but not under a number that came free again later, which is taken back."""
    try:
        leadership.verify()
    except LeadershipLost:
        if made is not None and (fences.is_superseded(made) or leadership.is_concluded()):
            fences.discard(made)
        raise


def take_over(
    leadership: Leadership,
    fences: Fences,
    recommit: Callable[[CheckpointMetadata], None],
    empty: CheckpointMetadata,
) -> CheckpointMetadata:
    """Begin a term; gives the checkpoint it begins with, from which an earlier leader can no longer go on.

    A crash before the fence exists leaves all as it was, but for a repeated commit; after it, the next leader finds the
    fence. `empty` is the checkpoint before the first epoch."""
    while True:
        number = (
            max(fences.numbers(), default=0) + 1
        )  # before looking for the newest: one made in between is not missed
        found = fences.latest_intact()
        if found is not None:
            recommit(found)
        base = found if found is not None else empty
        fence = dataclasses.replace(
            base, checkpoint=number, generation=leadership.first_generation, committables={}, bytes_new=0
        )
        leadership.verify()
        try:
            fences.publish_new(fence)
        except CheckpointTaken:
            continue
        if max(fences.numbers(), default=0) > number:  # storage did not list it before: the fence would stop nobody
            fences.discard(number)
            continue
        try:
            leadership.verify()  # or the number has come free again, after a later term
        except LeadershipLost:
            fences.discard(number)
            raise
        return fence
