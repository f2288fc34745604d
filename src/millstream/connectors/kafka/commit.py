"""The committer of an exactly-once Kafka sink: it starts tasks that write staged messages in transactions.

Promises: the output of each epoch is in its topics once, however often and by whichever driver it is committed. A
driver that was replaced commits nothing more; a driver that holds the lease of its job can open a transactional id
again. The driver itself reads and writes no messages.
Does not know: how messages were serialized, how they are written.

Each subtask of a sink has its own transactional id, and so its own transaction: transactions become visible one after
the other, as in Flink. Output of one parallelism is committed before that of the next, because a rescale moves keys to
other subtasks, and the messages of a key must keep their order."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from millstream.connector.sink import Committer, ThisProcess, Workers
from millstream.connector.slot_task import SlotTask
from millstream.connectors.kafka.client import KafkaFailure
from millstream.connectors.kafka.commit_task import MAX_MESSAGES, CloseTransactions, Outcome, WriteStaged
from millstream.connectors.kafka.marks import MarkUnreadable
from millstream.connectors.kafka.staging import Staged, StagedOutputLost, Staging
from millstream.connectors.kafka.transactions import TakenOver
from millstream.errors import MillstreamError

_log = logging.getLogger("millstream.kafka")

_MAX_WAIT, _PAUSE = 120.0, 0.5  # seconds to retry, and between two attempts


@dataclass(frozen=True)
class _Lane:
    """The output of one job that is written with one transactional id, in order."""

    transaction: str
    slot: int
    files: tuple[Staged, ...]


class KafkaCommitter(Committer):
    """Starts tasks that write staged messages: a transactional id and a task for each subtask of the sink."""

    def __init__(
        self, prefix: str, directory: str, settings: Mapping[str, Any], *, max_messages: int = MAX_MESSAGES
    ) -> None:
        self.workers: Workers = ThisProcess()
        self._prefix, self._settings, self._max_messages = prefix, dict(settings), max_messages
        self._directory, self._staging = directory, Staging(directory)
        self._owned: dict[str, int] = {}  # slots by transactional id that tasks of this run have opened
        self._lost: dict[str, TakenOver] = {}
        self._directories: set[str] = set()

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Write the messages: those of a transactional id in the order of epochs, different ids in parallel."""
        staged = [Staged.from_json(data) for data in committables]
        self._directories.update(staged_file.directory for staged_file in staged)
        for phase in _phases(sorted(staged, key=lambda staged_file: (staged_file.epoch, staged_file.subtask))):
            self._commit_lanes(checkpoint, self._lanes(phase))
        self._staging.sweep(staged)

    def _lanes(self, staged: Sequence[Staged]) -> list[_Lane]:
        files: dict[tuple[str, str], list[Staged]] = {}
        for staged_file in staged:
            files.setdefault(
                (staged_file.transaction or f"{self._prefix}-{staged_file.sink}", staged_file.job), []
            ).append(staged_file)
        return [
            _Lane(transaction, lane_files[0].subtask, tuple(lane_files))
            for (transaction, _), lane_files in files.items()
        ]

    def _commit_lanes(self, checkpoint: int, lanes: Sequence[_Lane]) -> None:
        """Run tasks until all messages are written."""
        pending, lost_once = list(lanes), set[str]()
        deadline = time.monotonic() + _MAX_WAIT
        while True:
            for lane in pending:
                if lane.transaction in self._lost:
                    raise self._lost[lane.transaction]
            tasks = [SlotTask(lane.slot, self._task(lane)) for lane in pending]
            results = self.workers.run_tasks(tasks)
            pending, lane_results = [], list(zip(pending, results, strict=True))
            reasons = []
            for lane, result in lane_results:
                outcome = Outcome(result["outcome"])
                if outcome is Outcome.DONE:
                    self._record_done(checkpoint, lane, result)
                    continue
                pending.append(lane)
                reasons.append(str(result["reason"]))
                if outcome is Outcome.TAKEN_OVER:
                    self._regain(lane)
                elif outcome is Outcome.UNREADABLE:
                    raise MarkUnreadable(lane.transaction, str(result["reason"]))
                elif outcome is Outcome.LOST:
                    if lane.transaction in lost_once:
                        raise StagedOutputLost(result["reason"])
                    lost_once.add(
                        lane.transaction
                    )  # a faster attempt may have written it: the next try reads that from the mark
            if not pending:
                return
            if time.monotonic() > deadline:
                action = f"committing checkpoint {checkpoint} for {_MAX_WAIT:g} s"
                raise KafkaFailure(action, reasons[0])
            if any(reasons):
                _log.warning("output could not be committed yet: %s", next(filter(None, reasons)))
                time.sleep(_PAUSE)

    def _task(self, lane: _Lane) -> WriteStaged:
        claims = lane.transaction not in self._owned
        return WriteStaged(
            lane.transaction,
            self.workers.owner,
            claims,
            lane.files,
            self._directory,
            self._settings,
            self._max_messages,
        )

    def _record_done(self, checkpoint: int, lane: _Lane, result: Mapping[str, Any]) -> None:
        self._owned[lane.transaction] = lane.slot
        if result["skipped"]:
            skipped = "checkpoint %s: '%s' had written %s of %s staged files before, by the same attempts"
            _log.warning(skipped, checkpoint, lane.transaction, result["skipped"], len(lane.files))

    def _regain(self, lane: _Lane) -> None:
        """Handle an id that another run has fenced: the holder of the job's lease opens it again; without a lease the
        newer run wins."""
        self._owned.pop(lane.transaction, None)
        if not self.workers.leads():
            self._lost[lane.transaction] = TakenOver(lane.transaction)
            raise self._lost[lane.transaction]
        _log.warning(
            "'%s' was opened by another driver; this driver holds the lease and opens it again", lane.transaction
        )

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove files that will never be committed."""
        for staged in map(Staged.from_json, committables):
            self._directories.add(staged.directory)
            self._staging.remove(staged)

    def finish(self) -> None:
        """Remove the directories of staged files if nothing is in them."""
        self._staging.remove_empty(self._directories)

    def close(self) -> None:
        """Close the producers."""
        owned, self._owned = self._owned, {}
        servers = str(self._settings["bootstrap.servers"])
        tasks = [SlotTask(slot, CloseTransactions((servers, name, self.workers.owner))) for name, slot in owned.items()]
        with suppress(MillstreamError):  # dead workers have no producers; live ones close unused producers
            if tasks:
                self.workers.run_tasks(tasks)


def transactional_id(prefix: str, sink: str, subtask: int) -> str:
    """Return the transactional id of a subtask of a sink."""
    return f"{prefix}-{sink}-{subtask}"


def _phases(staged: Sequence[Staged]) -> Iterator[list[Staged]]:
    """Split output, in the order of epochs, where the parallelism changes."""
    for _, phase in itertools.groupby(staged, key=lambda staged_file: staged_file.parallelism):
        yield list(phase)
