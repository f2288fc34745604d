"""The committer of an exactly-once Kafka sink: staged messages become transactions.

Promises: each epoch's output is in its topics once, however often it is committed, and by whoever: a run that was
replaced is fenced. Epochs of a checkpoint go into one transaction, or into several when there are very many messages.
Does not know: how messages were made.

What a crash does. Before the transaction commits: it is aborted when the id is opened again, and repeated from the
files. After it: the mark, which is part of it, says so, and only then do the files go."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from millstream.connectors.kafka.client import BrokerUnreachable, KafkaFailure
from millstream.connectors.kafka.marks import Mark, advanced
from millstream.connectors.kafka.messages import Messages
from millstream.connectors.kafka.staging import Staged, Staging
from millstream.connectors.kafka.transactions import TakenOver, Transactions, marks_of
from millstream.model.sink import Committer

_log = logging.getLogger("millstream.kafka")

_MOST = 5_000_000  # messages in a transaction, as far as whole epochs allow
_PATIENCE, _PAUSE = 120.0, 0.5  # seconds to try, and between two tries


class KafkaCommitter(Committer):
    """Writes what was staged. One transactional id for each sink: `<prefix>-<sink>`."""

    def __init__(self, prefix: str, directory: str, settings: Mapping[str, Any], *, most: int = _MOST) -> None:
        self._prefix, self._settings, self._most = prefix, dict(settings), most
        self._staging = Staging(directory)
        self._open: dict[str, Transactions] = {}
        self._lost: dict[str, TakenOver] = {}
        self._latest: dict[str, Mark] = {}  # how far the output has come if nobody else writes
        self._directories: set[str] = set()

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Write the messages, in the order of epochs and subtasks."""
        by_sink: dict[str, list[Staged]] = {}
        for data in committables:
            staged = Staged.from_json(data)
            by_sink.setdefault(staged.sink, []).append(staged)
            self._directories.add(staged.directory)
        for sink, mine in by_sink.items():
            self._commit_sink(sink, sorted(mine, key=lambda staged: (staged.epoch, staged.subtask)))

    def _commit_sink(self, sink: str, staged: list[Staged]) -> None:
        if sink in self._lost:
            raise self._lost[sink]
        began = time.monotonic()
        while True:
            try:
                self._try_sink(sink, staged)
            except TakenOver as problem:
                self._lost[sink] = problem  # opening the id again would fence those who took over
                raise
            except (BrokerUnreachable, KafkaFailure) as problem:
                if time.monotonic() - began > _PATIENCE:
                    raise
                _log.warning("output waits to be committed: %s", problem)
                time.sleep(_PAUSE)
            else:
                break
        self._staging.sweep(staged)

    def _try_sink(self, sink: str, staged: list[Staged]) -> None:
        """After a failure the id is opened anew: only then is known what became of its transaction."""
        try:
            opened = self._opened(sink)
            for group in _groups(staged, self._most):
                self._commit_group(opened, group)
        except BaseException:
            self._forget(sink)
            raise

    def _commit_group(self, opened: Transactions, group: list[Staged]) -> None:
        """Files of one job whose epochs follow one another: what is not committed yet, in one transaction."""
        job, last = group[0].job, group[-1].epoch
        done = opened.mark.get(job, -1)
        pending = [each for each in group if each.epoch > done]
        if pending:
            self._latest[group[0].sink] = advanced(opened.mark, job, last)
            opened.write(self._messages(pending), job, last)
        else:
            _log.info("epochs %s to %s were committed before", group[0].epoch, last)
        for each in group:
            self._staging.remove(each)

    def _messages(self, staged: list[Staged]) -> Iterator[Messages]:
        for each in staged:
            yield from self._staging.read(each)

    def _opened(self, sink: str) -> Transactions:
        if sink not in self._open:
            name = transactional_id(self._prefix, sink)
            if sink in self._latest:
                self._check(sink, marks_of(name, self._settings).peek())  # before it is opened, which fences
            self._open[sink] = Transactions(name, self._settings)
            self._check(sink, self._open[sink].mark)
        return self._open[sink]

    def _check(self, sink: str, mark: Mark) -> None:
        """A transaction that has expired and one that was fenced look alike; but who fenced it moves the mark on."""
        known = self._latest.get(sink, mark)
        if any(epoch > known.get(job, -1) for job, epoch in mark.items()):
            raise TakenOver(transactional_id(self._prefix, sink))

    def _forget(self, sink: str) -> None:
        found = self._open.pop(sink, None)
        if found is not None:
            found.close()

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove files that will never be committed."""
        for staged in map(Staged.from_json, committables):
            self._directories.add(staged.directory)
            self._staging.remove(staged)

    def close(self) -> None:
        """Let go of the producers."""
        for sink in list(self._open):
            self._forget(sink)
        self._staging.leave(self._directories)


def transactional_id(prefix: str, sink: str) -> str:
    """The transactional id of a sink."""
    return f"{prefix}-{sink}"


def _groups(staged: list[Staged], most: int) -> Iterator[list[Staged]]:
    """Whole epochs of one job, as many as fit into a transaction."""
    group: list[Staged] = []
    for each in staged:
        new_epoch = bool(group) and each.epoch != group[-1].epoch
        if group and (each.job != group[-1].job or (new_epoch and sum(e.records for e in group) >= most)):
            yield group
            group = []
        group.append(each)
    if group:
        yield group
