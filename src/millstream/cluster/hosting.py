"""The connection of this process to its session cluster, which its jobs use.

Promises: a job has slots when `wait` returns without being cancelled; a job that can never have them is refused
immediately. Messages are lines of JSON: those to the cluster go through a pipe, its answers come from standard input.
When standard input ends, the cluster is gone, and this process ends immediately, because another cluster may run its
jobs.
Does not know: how the cluster decides."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any, TextIO

from millstream.errors import UserError

_CHECK_SECONDS = 0.5
_ANSWER_SECONDS = 60.0
CLUSTER_GONE = 75  # the exit code of a process whose cluster is gone


class SlotsRefused(UserError):
    """The session cluster cannot give a job its slots."""

    hint = "set a smaller parallelism, or start the cluster with more slots: taskmanager.numberOfTaskSlots"


class Host:
    """The connection to the session cluster."""

    def __init__(self, messages: TextIO, answers: TextIO) -> None:
        self._messages, self._answers = messages, answers
        self._changed = threading.Condition()
        self._verdicts: dict[str, tuple[str, str]] = {}  # the verdict and its reason, by job
        self._exit = threading.Event()

    def listen(self, end: Callable[[int], Any] = os._exit) -> None:
        """Read answers in a thread of its own, until the cluster is gone; then `end` this process."""

        def read() -> None:
            for line in self._answers:
                answer = json.loads(line)
                if answer["type"] == "exit":
                    self._exit.set()
                elif answer["type"] == "slots":
                    with self._changed:
                        self._verdicts[answer["job"]] = answer["verdict"], answer["reason"]
                        self._changed.notify_all()
            end(CLUSTER_GONE)

        threading.Thread(target=read, name="session-cluster", daemon=True).start()

    def send(self, **message: Any) -> None:
        """Send a message."""
        with self._changed:
            self._messages.write(json.dumps(message) + "\n")
            self._messages.flush()

    def request(self, job: str, name: str, slots: int) -> None:
        """Request slots for a job, or another number of them.

        Raises:
            SlotsRefused: The cluster cannot give them.

        """
        with self._changed:
            before = self._verdicts.pop(job, None)
        self.send(type="slots", job=job, name=name, slots=slots)
        with self._changed:
            if not self._changed.wait_for(lambda: job in self._verdicts, _ANSWER_SECONDS):
                msg = f"the session cluster has not answered within {_ANSWER_SECONDS:g} s"
                raise SlotsRefused(msg)
            verdict, reason = self._verdicts[job]
            if verdict == "refused" and before is not None:
                self._verdicts[job] = before  # the job keeps the slots that it has
        if verdict == "refused":
            raise SlotsRefused(reason)

    def reason(self, job: str) -> str | None:
        """Return why a job waits for slots; None if it has them."""
        with self._changed:
            verdict, reason = self._verdicts.get(job, ("", ""))
        return reason if verdict == "waiting" else None

    def wait(self, job: str, is_cancelled: Callable[[], bool]) -> None:
        """Wait until a job has its slots or is cancelled."""
        with self._changed:
            while self._verdicts[job][0] != "granted" and not is_cancelled():
                self._changed.wait(_CHECK_SECONDS)

    def release(self, job: str) -> None:
        """Release the slots of a job."""
        self.send(type="job_ended", job=job)

    def wait_for_exit(self) -> None:
        """Wait until the cluster lets this process exit."""
        self._exit.wait()
