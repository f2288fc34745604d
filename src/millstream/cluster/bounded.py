"""Committers and enumerators whose calls have a deadline.

Promises: a call that has not ended in time raises `TookTooLong`, which names what waited for what; it is left behind,
and until it ends no other call is made to the same committer or enumerator: that raises `StillUnderWay`. So what comes
back late meets nothing newer. The committer breaks its connections, so that the call ends soon. A call that waits for
the reader of the job's own output has no deadline: it logs what it waits for, and ends when the job is cancelled or its
lease was given up.
Does not know: sinks, sources, restarts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from millstream.cluster.deadlines import begun, has_no_deadlines
from millstream.connector.sink import Committer
from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.errors import ExternalError, MillstreamError

T = TypeVar("T")

_log = logging.getLogger("millstream.job")

_LOOK = 1.0  # seconds between two signs of life of a call without a deadline
_WARN_EVERY = 60  # of these
_ENDING = 2.0  # seconds that a call of a cancelled job gets to end after it was interrupted


class TookTooLong(ExternalError):
    """A sink or a source did not come back in time."""

    def __init__(self, who: str, doing: str, millis: int, remedy: str) -> None:
        self.who, self.doing, self.millis = who, doing, millis
        super().__init__(
            f"{who} did not {doing} within {millis / 1000:g} s",
            hint=f"see whether the system behind it answers; {remedy}",
        )


class StillUnderWay(ExternalError):
    """A sink or a source cannot be used before an earlier call of it has ended."""

    hint = "see whether the system behind it answers; the job goes on when the call has ended"

    def __init__(self, who: str, doing: str, before: str) -> None:
        self.who, self.doing, self.before = who, doing, before
        super().__init__(f"{who} cannot {doing}: it was to {before}, which is late and has still not ended")


class Calls:
    """Calls to one thing outside, never two at a time. `option` is what gives the time. Without a time, a call waits
    for the reader of the job's output, and `backpressured` is called every second: what that raises ends the wait."""

    def __init__(
        self, who: str, millis: int | None, option: str, backpressured: Callable[[], None] = lambda: None
    ) -> None:
        self._who, self._time, self._backpressured = who, (millis, f"else raise {option}"), backpressured
        self._left: tuple[Future[Any], str] | None = None
        self._hurry: tuple[int, str] | None = None
        self._over: threading.Event | None = None  # set when the caller no longer waits for the call under way

    def call(
        self,
        doing: str,
        work: Callable[[], T],
        interrupt: Callable[[], None] = lambda: None,
        *,
        patient: bool = False,
    ) -> T:
        """The result of `work`; after too long `interrupt` is to make it end. `patient`: it has its full time in a
        cancelled job too."""
        if has_no_deadlines():
            return work()
        if self._left is not None and not self._has_ended(self._left[0]):
            raise StillUnderWay(self._who, doing, self._left[1])
        over = threading.Event()
        if not patient:
            self._over = over
        hurry = None if patient else self._hurry  # after `_over` is set: `hurry` misses no call
        outcome = begun(work)
        outcome.add_done_callback(lambda _: over.set())
        try:
            self._wait(over, doing, (hurry or self._time)[0])
            if outcome.done():
                return outcome.result()
            millis, remedy = (None if patient else self._hurry) or self._time
            raise TookTooLong(self._who, doing, millis or 0, remedy)
        finally:
            self._over = None
            if not outcome.done():
                self._left = outcome, doing
                self._interrupt(interrupt)

    def _interrupt(self, interrupt: Callable[[], None]) -> None:
        try:
            interrupt()
        except Exception as problem:
            _log.warning("%s could not be interrupted: %s", self._who, problem)

    def _wait(self, over: threading.Event, doing: str, millis: int | None) -> None:
        if millis is not None:
            over.wait(millis / 1000)
            return
        looks = 0
        while not over.wait(_LOOK):
            looks += 1
            self._backpressured()
            if looks % _WARN_EVERY == 0:
                _log.warning(
                    "the job is backpressured: %s cannot %s until the results are read. Read on, close the "
                    "iterator, or cancel the job.",
                    self._who,
                    doing,
                )

    def _has_ended(self, left: Future[Any]) -> bool:
        if self._hurry is not None:
            wait([left], _ENDING)
        return left.done()

    def hurry(self, millis: int, remedy: str) -> None:
        """The job is cancelled: the call under way has this time from now on, and so has every later one that is not
        patient. `remedy` is for who reads that this was too short. From another thread."""
        longest, usual = self._time
        self._hurry = (millis, remedy) if longest is None or millis < longest else (longest, usual)
        over = self._over
        if over is not None:
            timer = threading.Timer(millis / 1000, over.set)
            timer.daemon = True
            timer.start()

    def close(self, work: Callable[[], None]) -> None:
        """Do the last call, now or when the one under way has ended."""
        if self._left is None or self._left[0].done():
            self.call("close its connections", work, patient=True)
        else:
            self._left[0].add_done_callback(lambda _: work())


class BoundedCommitter(Committer):
    """A committer of the sink `name`. Without a time, its calls wait for the reader of the job's output."""

    def __init__(
        self,
        committer: Committer,
        name: str,
        millis: int | None,
        option: str,
        backpressured: Callable[[], None] = lambda: None,
    ) -> None:
        self._committer = committer
        self._calls = Calls(f"sink '{name}'", millis, option, backpressured)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Commit, in time."""
        doing = f"commit the output of checkpoint {checkpoint}" if checkpoint >= 0 else "show the output of an epoch"
        self._call(doing, lambda: self._committer.commit(checkpoint, committables))

    def reached(self, watermark: int, now: int) -> None:
        """Tell how far the time is, in time."""
        self._call("take note of a watermark", lambda: self._committer.reached(watermark, now))

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove what will not be committed, in time."""
        self._call("remove output", lambda: self._committer.abort(committables))

    def snapshot(self) -> Any:
        """What the committer must know after a restore."""
        return self._committer.snapshot()

    def restore(self, kept: Any) -> None:
        """Take it back."""
        self._committer.restore(kept)

    def describe(self, committables: Sequence[Any]) -> str:
        """Name output that is left behind."""
        return self._committer.describe(committables)

    def interrupt(self) -> None:
        """Have the call under way fail soon."""
        self._committer.interrupt()

    def hurry(self, millis: int, remedy: str) -> None:
        """The job is cancelled: what commits, or removes output, must end within this time. From another thread."""
        self._calls.hurry(millis, remedy)

    def finish(self) -> None:
        """Complete what waits, in time."""
        self._calls.call("complete its output", self._committer.finish, self._committer.interrupt, patient=True)

    def close(self) -> None:
        """Close, now or when the call under way has ended."""
        self._calls.close(self._committer.close)

    def _call(self, doing: str, work: Callable[[], None]) -> None:
        self._calls.call(doing, work, self._committer.interrupt)


class BoundedEnumerator(SplitEnumerator):
    """An enumerator of the source `name`. What only looks at what it knows is asked directly."""

    def __init__(self, create: Callable[[], SplitEnumerator], name: str, millis: int, option: str) -> None:
        self._calls = Calls(f"source '{name}'", millis, option)
        self._enumerator = self._calls.call("find its splits", create)

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan, in time."""
        return self._calls.call("plan what to read", lambda: self._enumerator.plan(budget))

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange] | None:
        """Plan less, in time."""
        return self._calls.call("plan less to read", lambda: self._enumerator.plan_again(planned, budget))

    def plan_from(self, starts: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan less from where ranges begin, in time."""
        return self._calls.call("plan less to read", lambda: self._enumerator.plan_from(starts, budget))

    def replayed(self, ranges: Sequence[SplitRange]) -> None:
        """Move behind ranges, in time."""
        self._calls.call("move to its position", lambda: self._enumerator.replayed(ranges))

    def acknowledge(self) -> None:
        """Let go of input, in time."""
        self._calls.call("acknowledge what was read", self._enumerator.acknowledge)

    def retain(self, checkpoints: int) -> None:
        """Know how many checkpoints are kept."""
        self._enumerator.retain(checkpoints)

    def snapshot(self) -> Any:
        """The position."""
        return self._enumerator.snapshot()

    def finished(self) -> bool:
        """Whether nothing will come."""
        return self._enumerator.finished()

    def splits(self) -> list[str]:
        """The splits that may give records."""
        return self._enumerator.splits()

    def skip(self, done: SplitRange) -> None:
        """Move behind a range."""
        self._enumerator.skip(done)

    def lag(self) -> int | None:
        """How many records wait."""
        return self._enumerator.lag()

    def close(self) -> None:
        """Close, now or when the call under way has ended; a job that restarts has another enumerator."""
        try:
            self._calls.close(self._enumerator.close)
        except MillstreamError as problem:
            _log.warning("%s", problem)
