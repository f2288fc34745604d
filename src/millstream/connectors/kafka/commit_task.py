"""The task that writes the staged output of one transactional id.

Promises: each file's messages are in the topics once, however many attempts of the task run, also at the same time: an
attempt that opens the id later fences the earlier ones, and reads from the mark what they have written. A file is
removed after its transaction is committed.
Does not know: checkpoints, other transactional ids, when to retry.

A producer stays open in the process between two tasks, because opening one takes longer than a small transaction.

What a crash does. Before the transaction is committed: it is aborted when the id is opened again, and repeated from the
files. After that: the mark, which is part of the transaction, says that it was committed; the files are removed only
then."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from millstream.connectors.kafka.client import BrokerUnreachable, KafkaFailure
from millstream.connectors.kafka.marks import MarkUnreadable
from millstream.connectors.kafka.messages import Messages
from millstream.connectors.kafka.staging import Staged, StagedOutputLost, Staging
from millstream.connectors.kafka.transactions import TakenOver, Transactions

MAX_MESSAGES = 5_000_000  # messages in a transaction, rounded up to complete epochs
_IDLE_SECONDS = 300.0  # seconds after which an unused producer is closed


class Outcome(StrEnum):
    """How an attempt to write ended."""

    DONE = "done"
    RETRY = "retry"
    LOST = "lost"  # a file is missing: a faster attempt may have written it
    TAKEN_OVER = "taken over"
    UNREADABLE = "unreadable"  # the mark cannot be read, so it is unknown which output was written


@dataclass
class _Open:
    transactions: Transactions
    settings: Mapping[str, Any]
    used: float


Key = tuple[str, str, str]  # servers, transactional id and owner
_opened: dict[Key, _Open] = {}


@dataclass(frozen=True)
class WriteStaged:
    """Write staged output of one job, in the order of `files`, and remove the files.

    `owner` is the run of the driver; with `claims`, it fences another run. The result is JSON: the
    outcome, the number of messages and files that were written, of files that were written before, and a reason."""

    transaction: str
    owner: str
    claims: bool
    files: tuple[Staged, ...]
    directory: str
    settings: Mapping[str, Any] = field(repr=False)
    max_messages: int = MAX_MESSAGES

    def __call__(self) -> dict[str, Any]:
        """Make one attempt. After a failure the id must be opened again to know the outcome of its transaction."""
        try:
            return {"outcome": Outcome.DONE, **self._write()}
        except TakenOver:
            outcome, reason = Outcome.TAKEN_OVER, ""
        except StagedOutputLost as problem:
            outcome, reason = Outcome.LOST, problem.path
        except MarkUnreadable as problem:
            outcome, reason = Outcome.UNREADABLE, problem.reason
        except (BrokerUnreachable, KafkaFailure) as problem:
            outcome, reason = Outcome.RETRY, str(problem)
        return {"outcome": outcome, "reason": reason}

    def _write(self) -> dict[str, int]:
        opened, staging = self._open(), Staging(self.directory)
        counts = {"messages": 0, "written": 0, "skipped": 0}
        try:
            for group in _groups(self.files, self.max_messages):
                pending = opened.mark.pending(self.transaction, group, staging.exists)
                if pending:
                    counts["messages"] += opened.write(
                        _messages(staging, pending), opened.mark.after(self.owner, pending)
                    )
                    counts["written"] += len(pending)
                counts["skipped"] += len(group) - len(pending)
                for staged_file in group:
                    staging.remove(staged_file)
        except BaseException:
            close(self._key)
            raise
        return counts

    @property
    def _key(self) -> Key:
        return str(self.settings["bootstrap.servers"]), self.transaction, self.owner

    def _open(self) -> Transactions:
        entry = _opened.get(self._key)
        if entry is None or entry.settings != self.settings:
            close(self._key)
            _close_idle()
            transactions = Transactions(self.transaction, self.settings, self.owner, claims=self.claims)
            entry = _opened[self._key] = _Open(transactions, self.settings, 0.0)
        entry.used = time.monotonic()
        return entry.transactions


@dataclass(frozen=True)
class CloseTransactions:
    """Close a producer that a task left open in this process."""

    key: Key

    def __call__(self) -> None:
        """Close the producer, if it is open in this process."""
        close(self.key)


def close(key: Key) -> None:
    """Close a producer, if it is open in this process."""
    entry = _opened.pop(key, None)
    if entry is not None:
        entry.transactions.close()


def _close_idle() -> None:
    """Close producers of jobs that have ended, or that run elsewhere now."""
    now = time.monotonic()
    for key in [key for key, entry in _opened.items() if now - entry.used > _IDLE_SECONDS]:
        close(key)


def _messages(staging: Staging, files: list[Staged]) -> Iterator[Messages]:
    for staged_file in files:
        yield from staging.read(staged_file)


def _groups(files: tuple[Staged, ...], max_messages: int) -> Iterator[list[Staged]]:
    """Group whole epochs, as many as fit into a transaction."""
    group: list[Staged] = []
    for staged_file in files:
        new_epoch = bool(group) and staged_file.epoch != group[-1].epoch
        if group and new_epoch and sum(file.records for file in group) >= max_messages:
            yield group
            group = []
        group.append(staged_file)
    if group:
        yield group
