"""Leadership of a job that several drivers can run: standing by, taking over, and fencing the previous leader.

Promises: a driver runs the job only in a term of its own. What it does after another driver began a later term has no
effect: its checkpoints fail, and it commits nothing. A leader whose job makes no progress for a configured time gives
up its lease, so that another driver leads. A driver that stands by tolerates failing storage for the same time.
Does not know: engines, sources, how a lease is stored.

A term begins with a fence: a checkpoint with the next number, which repeats the last one. Checkpoints are created only
if their number is free, so of the fence and the old leader's next checkpoint exactly one exists. If the fence was
created first, the old leader's next checkpoint fails, so it cannot commit anything. If the old leader's checkpoint was
created first, the new leader continues from it.

A number can become free again when old checkpoints are deleted. Therefore a leader reads the lease again after it has
created a checkpoint and before it commits. If the lease is lost and a checkpoint with a greater number exists, or the
job has ended, the number had become free, and the leader deletes its checkpoint. Otherwise its checkpoint was created
before the fence: it stays, because the new leader may have committed the output that it names."""

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

_RENEWALS = 4  # renewals within the duration of a lease
_LEASE_READS = 12  # reads of the lease by a standby driver, within the duration of a lease
_SETTLED = 10  # durations of a lease after which a standby driver assumes that the leader has started its job

# the generations of one term: names of attempts contain the generation, so they differ between drivers
GENERATIONS = 1 << 20


class NotLeading(ExternalError):
    """This driver does not lead the job, or no longer."""


class LeadershipLost(NotLeading):
    """Another driver runs the job now."""

    hint = "the job runs there; restart this driver to have it stand by"

    def __init__(self, term: int, newest: int, holder: str) -> None:
        self.term, self.newest, self.holder = term, newest, holder
        reason = f"{holder} took over in term {newest}" if newest else "its lease was deleted"
        super().__init__(f"this driver led in term {term}, but {reason}")


class LeadershipGivenUp(NotLeading):
    """The job made no progress under this driver, which gave up its lease."""

    hint = "another driver leads if one stands by; find out why the job made no progress, then restart this driver"

    def __init__(self, term: int, seconds: float, cause: str | None = None) -> None:
        self.term, self.seconds, self.cause = term, seconds, cause
        text = f"the job made no progress for {seconds:g} s, so this driver gave up the lease of term {term}"
        super().__init__(f"{text}: {cause}" if cause else text)


class LeaseUnreachable(NotLeading):
    """A driver that stands by could not read the lease for too long."""

    hint = "check that high-availability.storageDir can be read, then restart this driver to have it stand by"

    def __init__(self, seconds: float, problem: MillstreamError) -> None:
        self.seconds, self.problem = seconds, problem
        super().__init__(f"this driver stood by and could not read the lease for {seconds:g} s: {problem.message}")


class StoppedWaiting(NotLeading):
    """The job was cancelled while this driver waited to lead."""

    def __init__(self) -> None:
        super().__init__("this driver was stopped while it waited to lead")


class Leadership:
    """One driver's side of the leadership of one job. `now` is monotonic, in seconds. `patience` is how long a leader
    keeps its lease without progress, and how long a driver stands by that cannot read the lease."""

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
        self._progress_at = 0.0
        self._last_problem: str | None = None  # the time of the last progress
        self.gave_up = False
        self.term = 0

    def wait(
        self,
        stopped: Callable[[], bool],
        prepare: Callable[[], None] = lambda: None,
        newest_term: Callable[[], int] = lambda: 0,
    ) -> Outcome | None:
        """Stand by until this driver leads, or until the job has ended under another driver; then return its outcome.
        Raises `StoppedWaiting` when `stopped` returns true.

        `prepare` is called once, when another driver has led for a while: not immediately, because the other driver may
        just be starting on this machine. `newest_term` returns the last term that left a checkpoint: if the lease was
        deleted, terms continue from there, because attempts, plans and checkpoints are named by them. A read of the
        lease that fails is repeated, until none has succeeded for too long."""
        if self.term:  # this driver leads already, but could not begin its term
            self.verify()
            return None
        watch = Watch()
        since: float | None = None
        prepared = False
        read_at, failures = self._now(), 0
        while not stopped():
            try:
                outcome = self._lease.outcome()
                if outcome is not None:
                    return outcome
                watch = watch.after(self._lease.held(), self._now())
                seen = watch.seen
                expired = watch.is_expired(self._now(), self._duration)
                term = (newest_term() if seen is None else seen.term) + 1
                if expired and self._lease.take(term, self._holder):
                    self._lead(term, seen.holder if seen is not None else None)
                    return None
            except MillstreamError as problem:
                failures += 1
                _log.warning("the lease could not be read, attempt %s: %s", failures, problem)
                if self._now() - read_at >= self._patience:
                    raise LeaseUnreachable(self._patience, problem) from problem
                self._sleep(min(2.0**failures * self._duration / _LEASE_READS, self._duration))
                continue
            read_at, failures = self._now(), 0
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
                    _log.warning("this driver stands by, but could not prepare its engine: %s", problem)
            self._sleep(self._duration / _LEASE_READS)
        raise StoppedWaiting

    def _lead(self, term: int, before: str | None) -> None:
        self.term = term
        self._progress_at = self._now()
        if before is not None:
            _log.warning(
                "taking over from %s, which has not renewed its lease for %g s: term %s", before, self._duration, term
            )
        if self._renews_itself:
            threading.Thread(target=self._renew_on, name="lease", daemon=True).start()

    def _renew_on(self) -> None:
        while not self._closed.wait(self._duration / _RENEWALS):
            if self.give_up_if_stuck():
                return
            try:
                self.renew()
            except MillstreamError as problem:  # the next renewal may succeed; if none does, another driver takes over
                _log.warning("the lease could not be renewed: %s", problem)

    def give_up_if_stuck(self) -> bool:
        """Give up the lease if the job has made no progress for too long; return whether it is given up."""
        if not self.gave_up and self._now() - self._progress_at >= self._patience:
            self.gave_up = True
            _log.error(
                "the job has made no progress for %g s: the lease of term %s is given up", self._patience, self.term
            )
        return self.gave_up

    def report_progress(self) -> None:
        """Keep the lease: the job makes progress (see `leader_progress`). Raises when the lease was given up."""
        self.ensure_not_given_up()
        self._progress_at, self._last_problem = self._now(), None

    def ensure_not_given_up(self) -> None:
        """Raise `LeadershipGivenUp` when the lease was given up."""
        if self.gave_up:
            raise LeadershipGivenUp(self.term, self._patience, self._last_problem)

    def explain(self, problem: Exception) -> Exception:
        """Return the error to report for a problem: after the lease was given up, the problem is why there was no
        progress."""
        if isinstance(problem, NotLeading):
            return problem
        self._last_problem = str(problem)
        return LeadershipGivenUp(self.term, self._patience, self._last_problem) if self.gave_up else problem

    def renew(self) -> None:
        """Renew the lease once."""
        self._beat += 1
        self._lease.renew(self.term, self._beat)

    def verify(self) -> None:
        """Raise `LeadershipLost` if another driver has begun a later term, `LeadershipGivenUp` if this one gave up."""
        self.ensure_not_given_up()
        held = self._lease.held()
        if held is None or held.term != self.term:
            raise LeadershipLost(self.term, held.term if held else 0, held.holder if held else "nobody")

    def is_concluded(self) -> bool:
        """Whether the job has ended, under this driver or another one."""
        return self._lease.outcome() is not None

    def conclude(self, status: str, cause: str | None) -> None:
        """Write that the job has ended, so that no driver runs it again."""
        self._lease.conclude(Outcome(status, cause))

    def announce_end(self, status: JobStatus, cause: str | None) -> bool:
        """Write the end of the job, before its checkpoints are deleted, if this driver leads; return whether it did."""
        try:
            if self.term == 0 or not status.is_globally_terminal_state():
                return False
            self.verify()
            self.conclude(status.name, cause if status is JobStatus.FAILED else None)
        except ExternalError as problem:
            _log.warning("the end of the job could not be written for other drivers: %s", problem)
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """Stop renewing the lease: another driver may lead when it has expired."""
        self._closed.set()

    @property
    def first_generation(self) -> int:
        """The first generation of attempts of this term."""
        return self.term * GENERATIONS


class Fences(Protocol):
    """The operations on a job's checkpoints that taking over needs."""

    def numbers(self) -> Sequence[int]:
        """Return the numbers of the checkpoints that exist."""

    def latest_intact(self) -> CheckpointMetadata | None:
        """Return the newest checkpoint that is intact."""

    def publish_new(self, metadata: CheckpointMetadata) -> None:
        """Create a checkpoint; raises `CheckpointTaken` if its number is taken."""

    def discard(self, checkpoint: int) -> None:
        """Delete a checkpoint."""

    def is_superseded(self, checkpoint: int) -> bool:
        """Whether there is a checkpoint with a greater number."""


def check_leadership(leadership: Leadership, fences: Fences, published: int | None = None) -> None:
    """Raise `LeadershipLost` if another driver leads. A checkpoint that was just `published` stays if it was created
    before the fence, because the new leader commits it; it is deleted if its number had become free again."""
    try:
        leadership.verify()
    except LeadershipLost:
        if published is not None and (fences.is_superseded(published) or leadership.is_concluded()):
            fences.discard(published)
        raise


def take_over(
    leadership: Leadership,
    fences: Fences,
    recommit: Callable[[CheckpointMetadata], None],
    empty: CheckpointMetadata,
) -> CheckpointMetadata:
    """Begin a term and return its fence, after which an earlier leader cannot create checkpoints.

    A crash before the fence exists changes nothing but repeats a commit; after it, the next leader finds the fence.
    `empty` is the checkpoint before the first epoch."""
    while True:
        # read before the newest checkpoint, so that a checkpoint created in between has this number
        number = max(fences.numbers(), default=0) + 1
        newest = fences.latest_intact()
        if newest is not None:
            recommit(newest)
        base = newest if newest is not None else empty
        fence = dataclasses.replace(
            base, checkpoint=number, generation=leadership.first_generation, committables={}, bytes_new=0
        )
        leadership.verify()
        try:
            fences.publish_new(fence)
        except CheckpointTaken:
            continue
        if max(fences.numbers(), default=0) > number:  # storage had not listed it before, so the fence has no effect
            fences.discard(number)
            continue
        try:
            leadership.verify()  # otherwise the number became free again, after a later term
        except LeadershipLost:
            fences.discard(number)
            raise
        return fence
