"""The enumerator of a receiver source: it runs the receiver, logs its records and plans ranges of the log.

Promises: a record is durable before it is planned; segments are deleted when no retained checkpoint needs them; a
failure of the receiver fails the job.
Does not know: what is received."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.connectors.receiver.contract import Receiver, ReceiverStopped
from millstream.connectors.receiver.log import SegmentedLog
from millstream.errors import ExternalError, MillstreamError
from millstream.serialization import codec

_STOP_TIMEOUT = 5.0  # seconds a receiver has to return after it was stopped


class ReceiverFailed(ExternalError):
    """The receiver raised an exception."""

    hint = "the records received before the failure are in the log; they are read after a restart"

    def __init__(self, receiver: object, problem: BaseException) -> None:
        super().__init__(f"the receiver {receiver!r} failed: {type(problem).__name__}: {problem}")


class ReceiverEnumerator(SplitEnumerator):
    """Offsets are numbers of records. The only split is named after the directory of the log."""

    def __init__(
        self, receiver: Receiver, log: SegmentedLog, position: int | None, *, backlog: int, retained: int
    ) -> None:
        self._description, self._log = receiver, log
        self._position = log.first if position is None else position
        log.check(self._position)
        self._backlog = backlog
        self._acknowledged: deque[int] = deque(maxlen=retained)  # the positions of the newest checkpoints
        self._changed = threading.Condition()
        self._is_stopping = False
        self._notify_arrival: Callable[[], None] = lambda: None
        self._failure: BaseException | None = None
        self._receiver: Receiver | None = None
        self._thread: threading.Thread | None = None

    # -------------------------------------------------------------------------------- called in the receiver's thread

    def _start(self) -> None:
        if self._thread is None and not self._log.ended:
            self._receiver = copy.deepcopy(self._description)
            run = copy_context().run
            self._thread = threading.Thread(target=run, args=(self._run, self._receiver), name="receiver", daemon=True)
            self._thread.start()

    def _run(self, receiver: Receiver) -> None:
        try:
            receiver.run(self._emit)
        except ReceiverStopped:
            return
        except Exception as problem:
            self._failure = problem
        else:
            with self._changed:
                if not self._is_stopping:
                    self._log.finish()
        self._notify_arrival()

    def _emit(self, value: Any, timestamp: int | None = None) -> None:
        payload = codec.encode((timestamp, value))
        with self._changed:
            while not self._is_stopping and self._log.bytes_from(self._position) > self._backlog:
                self._changed.wait(1.0)
            if self._is_stopping:
                msg = "the job needs no more records"
                raise ReceiverStopped(msg)
            self._log.append(payload)
        self._notify_arrival()

    # ------------------------------------------------------------------------------------- called in the job's thread

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan the records that were received since the last plan, after making them durable."""
        self._start()
        with self._changed:
            self._log.sync()
            if self._log.directory in budget.held:
                return []
            segment, start, end, next_number = self._log.part(self._position, budget.records, budget.bytes)
            records = next_number - self._position
            if records == 0:
                self._raise_failure()
                return []
            part = SplitRange(
                self._log.directory, [segment, start, self._position], [segment, end, next_number], records
            )
            self.skip(part)
            self._changed.notify_all()
        return [part]

    def plan_again(self, planned: Sequence[SplitRange], budget: Budget) -> list[SplitRange]:
        """Plan again from the log."""
        return self.plan(budget)

    def _raise_failure(self) -> None:
        """Raise the receiver's failure once all records before it are planned."""
        problem = self._failure
        if isinstance(problem, MillstreamError):
            raise problem
        if problem is not None:
            raise ReceiverFailed(self._description, problem) from problem

    def skip(self, done: SplitRange) -> None:
        """Continue after a part of the log."""
        self._position = done.end[2]

    def snapshot(self) -> dict[str, Any]:
        """Return the directory of the log and the number of the next record."""
        return {"directory": self._log.directory, "position": self._position}

    def finished(self) -> bool:
        """Whether the receiver returned and everything was planned."""
        with self._changed:
            return self._log.ended and self._position == self._log.end

    def splits(self) -> list[str]:
        """Return the only split."""
        return [] if self.finished() else [self._log.directory]

    def notify_arrivals(self, notify: Callable[[], None]) -> None:
        """Set the function that is called when records were received, or when the receiver has ended."""
        self._notify_arrival = notify

    def retain(self, checkpoints: int) -> None:
        """Keep the records that this many checkpoints need, or more if the source is configured so."""
        retained = max(checkpoints, self._acknowledged.maxlen or 1)
        self._acknowledged = deque(self._acknowledged, maxlen=retained)

    def acknowledge(self) -> None:
        """Delete records that no retained checkpoint needs."""
        self._acknowledged.append(self._position)
        if len(self._acknowledged) == self._acknowledged.maxlen:
            with self._changed:
                self._log.forget_before(self._acknowledged[0])

    def lag(self) -> int:
        """Return the number of records that are not planned."""
        with self._changed:
            return self._log.end - self._position

    def close(self) -> None:
        """Stop the receiver; records that it has emitted stay in the log."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._receiver is not None and self._thread is not None:
            with contextlib.suppress(Exception):  # the job ends or restarts in any case
                self._receiver.stop()
            self._thread.join(_STOP_TIMEOUT)
        with self._changed:
            self._log.close()
