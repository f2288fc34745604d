"""Deadlines of calls to connectors: committers of sinks and enumerators of sources.

Promises: a call that has not ended in time raises `CallTimedOut`, which names the connector and the operation. The call
continues in its thread; until it ends, other calls of the same committer or enumerator raise `CallStillRunning`, so two
calls never overlap. The committer is interrupted, so that the late call ends soon. A call that waits for the reader of
the job's own output has no deadline: it logs why it waits, and ends when the job is cancelled or its lease was given
up.
Does not know: sinks, sources, restarts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from millstream.cluster.deadlines import has_no_deadlines, start_in_thread
from millstream.connector.sink import Committer
from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.errors import ExternalError, MillstreamError

T = TypeVar("T")

_log = logging.getLogger("millstream.job")

_POLL = 1.0  # seconds between two checks of a call without a deadline
_WARN_EVERY = 60  # the number of checks between two log messages
_ENDING = 2.0  # seconds that a call of a cancelled job has to end after it was interrupted


class CallTimedOut(ExternalError):
    """A call of a sink or a source did not end in time."""

    def __init__(self, connector: str, doing: str, millis: int, remedy: str) -> None:
        self.connector, self.doing, self.millis = connector, doing, millis
        super().__init__(
            f"{connector} did not {doing} within {millis / 1000:g} s",
            hint=f"check that its external system responds; {remedy}",
        )


class CallStillRunning(ExternalError):
    """A sink or a source cannot be called before an earlier call has ended."""

    hint = "check that its external system responds; the job continues when the call has ended"

    def __init__(self, connector: str, doing: str, before: str) -> None:
        self.connector, self.doing, self.before = connector, doing, before
        super().__init__(f"{connector} cannot {doing}: an earlier call to {before} timed out and has still not ended")


class ConnectorCalls:
    """Calls of one connector, never two at a time. `option` is the key of the option with the timeout. Without a
    timeout, a call waits for the reader of the job's output, and `backpressured` is called every second; an error that
    it raises ends the wait."""

    def __init__(
        self, connector: str, millis: int | None, option: str, backpressured: Callable[[], None] = lambda: None
    ) -> None:
        self._connector, self._time, self._backpressured = connector, (millis, f"else raise {option}"), backpressured
        self._late_call: tuple[Future[Any], str] | None = None
        self._hurry: tuple[int, str] | None = None
        self._over: threading.Event | None = None  # set when the caller no longer waits for the current call

    def call(
        self,
        doing: str,
        work: Callable[[], T],
        interrupt: Callable[[], None] = lambda: None,
        *,
        patient: bool = False,
    ) -> T:
        """Return the result of `work`; after the timeout `interrupt` is called to make it end. A `patient` call keeps
        its full timeout in a cancelled job."""
        if has_no_deadlines():
            return work()
        if self._late_call is not None and not self._has_ended(self._late_call[0]):
            raise CallStillRunning(self._connector, doing, self._late_call[1])
        over = threading.Event()
        if not patient:
            self._over = over
        hurry = None if patient else self._hurry  # read after `_over` was set, so that `hurry` affects this call, too
        outcome = start_in_thread(work)
        outcome.add_done_callback(lambda _: over.set())
        try:
            self._wait(over, doing, (hurry or self._time)[0])
            if outcome.done():
                return outcome.result()
            millis, remedy = (None if patient else self._hurry) or self._time
            raise CallTimedOut(self._connector, doing, millis or 0, remedy)
        finally:
            self._over = None
            if not outcome.done():
                self._late_call = outcome, doing
                self._interrupt(interrupt)

    def _interrupt(self, interrupt: Callable[[], None]) -> None:
        try:
            interrupt()
        except Exception as problem:
            _log.warning("%s could not be interrupted: %s", self._connector, problem)

    def _wait(self, over: threading.Event, doing: str, millis: int | None) -> None:
        if millis is not None:
            over.wait(millis / 1000)
            return
        checks = 0
        while not over.wait(_POLL):
            checks += 1
            self._backpressured()
            if checks % _WARN_EVERY == 0:
                _log.warning(
                    "the job is backpressured: %s cannot %s until the results are read. Continue to read, "
                    "close the iterator, or cancel the job.",
                    self._connector,
                    doing,
                )

    def _has_ended(self, late: Future[Any]) -> bool:
        if self._hurry is not None:
            wait([late], _ENDING)
        return late.done()

    def hurry(self, millis: int, remedy: str) -> None:
        """Shorten the timeout because the job is cancelled: for the current call, counted from now, and for every later
        call that is not patient. `remedy` is part of the error if the time is too short. May be called from another
        thread."""
        longest, usual = self._time
        self._hurry = (millis, remedy) if longest is None or millis < longest else (longest, usual)
        over = self._over
        if over is not None:
            timer = threading.Timer(millis / 1000, over.set)
            timer.daemon = True
            timer.start()

    def close(self, work: Callable[[], None]) -> None:
        """Make the last call: now, or when a late call has ended."""
        if self._late_call is None or self._late_call[0].done():
            self.call("close its connections", work, patient=True)
        else:
            self._late_call[0].add_done_callback(lambda _: work())


class CommitterWithDeadline(Committer):
    """A committer of the sink `name`. Without a timeout, its calls wait for the reader of the job's output."""

    def __init__(
        self,
        committer: Committer,
        name: str,
        millis: int | None,
        option: str,
        backpressured: Callable[[], None] = lambda: None,
    ) -> None:
        self._committer = committer
        self._calls = ConnectorCalls(f"sink '{name}'", millis, option, backpressured)

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Commit, within the timeout."""
        doing = f"commit the output of checkpoint {checkpoint}" if checkpoint >= 0 else "commit the output of an epoch"
        self._call(doing, lambda: self._committer.commit(checkpoint, committables))

    def reached(self, watermark: int, now: int) -> None:
        """Notify the committer of a watermark, within the timeout."""
        self._call("process a watermark", lambda: self._committer.reached(watermark, now))

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove output that will not be committed, within the timeout."""
        self._call("remove output", lambda: self._committer.abort(committables))

    def snapshot(self) -> Any:
        """Return what a checkpoint keeps for the committer."""
        return self._committer.snapshot()

    def restore(self, state: Any) -> None:
        """Restore the state that a checkpoint keeps for the committer."""
        self._committer.restore(state)

    def describe(self, committables: Sequence[Any]) -> str:
        """Describe output that is not committed."""
        return self._committer.describe(committables)

    def interrupt(self) -> None:
        """Make the current call fail soon."""
        self._committer.interrupt()

    def hurry(self, millis: int, remedy: str) -> None:
        """Shorten the timeout of commits and aborts, because the job is cancelled; from any thread."""
        self._calls.hurry(millis, remedy)

    def finish(self) -> None:
        """Complete pending output, within the timeout."""
        self._calls.call("complete its output", self._committer.finish, self._committer.interrupt, patient=True)

    def close(self) -> None:
        """Close: now, or when the current call has ended."""
        self._calls.close(self._committer.close)

    def _call(self, doing: str, work: Callable[[], None]) -> None:
        self._calls.call(doing, work, self._committer.interrupt)


class EnumeratorWithDeadline(SplitEnumerator):
    """An enumerator of the source `name`. Methods that only read the state of the enumerator have no deadline."""

    def __init__(self, create: Callable[[], SplitEnumerator], name: str, millis: int, option: str) -> None:
        self._calls = ConnectorCalls(f"source '{name}'", millis, option)
        self._enumerator = self._calls.call("find its splits", create)

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan an epoch, within the timeout."""
        return self._calls.call("plan what to read", lambda: self._enumerator.plan(budget))

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange] | None:
        """Plan less than before, within the timeout."""
        return self._calls.call("plan less to read", lambda: self._enumerator.plan_again(planned, budget))

    def plan_from(self, starts: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan less from where ranges begin, within the timeout."""
        return self._calls.call("plan less to read", lambda: self._enumerator.plan_from(starts, budget))

    def replayed(self, ranges: Sequence[SplitRange]) -> None:
        """Advance past ranges, within the timeout."""
        self._calls.call("move to its position", lambda: self._enumerator.replayed(ranges))

    def acknowledge(self) -> None:
        """Acknowledge input, within the timeout."""
        self._calls.call("acknowledge what was read", self._enumerator.acknowledge)

    def notify_arrivals(self, notify: Callable[[], None]) -> None:
        """Set what is called when records have arrived."""
        self._enumerator.notify_arrivals(notify)

    def retain(self, checkpoints: int) -> None:
        """Set how many checkpoints the job keeps."""
        self._enumerator.retain(checkpoints)

    def snapshot(self) -> Any:
        """Return the position for a checkpoint."""
        return self._enumerator.snapshot()

    def finished(self) -> bool:
        """Whether the input has ended."""
        return self._enumerator.finished()

    def splits(self) -> list[str]:
        """Return the splits that may have records."""
        return self._enumerator.splits()

    def skip(self, done: SplitRange) -> None:
        """Advance past a range."""
        self._enumerator.skip(done)

    def lag(self) -> int | None:
        """Return how many records are not read yet."""
        return self._enumerator.lag()

    def close(self) -> None:
        """Close: now, or when the current call has ended; a job that restarts creates another enumerator."""
        try:
            self._calls.close(self._enumerator.close)
        except MillstreamError as problem:
            _log.warning("%s", problem)
