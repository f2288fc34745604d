"""Transactions of one transactional id, each with a mark of the output that is in the topics.

Promises: messages and mark appear together or not at all. Opening fences the previous user of the id, waits for the
outcome of its transaction, and only then reads the mark: so the mark shows whether an interrupted commit succeeded.
Does not know: files, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from millstream.connectors.kafka.client import KafkaFailure, failure, library
from millstream.connectors.kafka.mark import Mark
from millstream.connectors.kafka.marks import Marks
from millstream.connectors.kafka.messages import Messages
from millstream.connectors.kafka.producer import MessageProducer
from millstream.errors import ExternalError

_CALL_SECONDS = 30.0
_SHARED = ("bootstrap.servers", "security.", "sasl.", "ssl.", "client.", "socket.", "broker.", "log_level")


class TakenOver(ExternalError):
    """Another driver uses the transactional id."""

    hint = "another run of this job has taken over; end this run, or give each job its own transactional id prefix"

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        super().__init__(f"the transactional id '{transactional_id}' was taken over, so nothing more is committed here")


class Transactions:
    """A transactional producer and its mark. `owner` is the run of a driver that it works for.

    With `claims`, it takes the id over from another run; without, it raises `TakenOver` if another run has it."""

    def __init__(self, transactional_id: str, settings: Mapping[str, Any], owner: str, *, claims: bool) -> None:
        self.id, self.owner = transactional_id, owner
        self._servers = str(settings["bootstrap.servers"])
        self._timeout = float(settings["transaction.timeout.ms"]) / 1000
        self._marks = Marks(transactional_id, {key: settings[key] for key in settings if key.startswith(_SHARED)})
        try:
            self._open({**settings, "transactional.id": transactional_id}, claims=claims)
        finally:
            self._marks.close()

    def _open(self, settings: Mapping[str, Any], *, claims: bool) -> None:
        if not claims:
            self._check(self._marks.peek())  # before the id is opened, which fences
        self._producer = MessageProducer(settings)
        try:
            self._call(lambda: self._producer.producer.init_transactions(_CALL_SECONDS), "opening transactions")
            self.mark = self._marks.read()
            if not claims:
                self._check(self.mark)
            elif self.mark.is_foreign(self.owner):  # the mark shows the other run that it was replaced
                self.write((), self.mark.owned_by(self.owner))
        except BaseException:
            self.close()
            raise

    def _check(self, mark: Mark) -> None:
        """Raise if another run of the job has the id. An expired transaction and another attempt of this run are not
        such errors."""
        if mark.is_foreign(self.owner):
            raise TakenOver(self.id)

    def write(self, messages: Iterable[Messages], mark: Mark) -> int:
        """Write messages and the mark in one transaction, and return the number of messages. After an error the object
        is unusable: the outcome of the transaction is known when the id is opened again."""
        began = time.monotonic()
        count = 0
        producer = self._producer.producer
        try:
            self._call(producer.begin_transaction, "beginning a transaction")
            for batch in messages:
                count += len(batch)
                self._producer.send(batch)
            self._producer.flush()  # before the mark: an open transaction in its topic blocks readers of marks
            self._call(lambda: self._mark(mark), "marking the transaction")
            self._call(lambda: producer.commit_transaction(_CALL_SECONDS), "committing")
        except BaseException as problem:
            self._abort()
            raise self._explain(problem, began) from problem
        self.mark = mark
        return count

    def _mark(self, mark: Mark) -> None:
        """Add the mark. If the transaction has failed, the client reports only that nothing can be added; the broker's
        reason is in the response to a commit, which then fails."""
        producer, kafka = self._producer.producer, library()
        try:
            producer.produce(*self._marks.message(mark))
        except kafka.KafkaException as problem:
            if problem.args[0].code() == kafka.KafkaError._STATE:
                producer.commit_transaction(_CALL_SECONDS)
            raise

    def _call(self, call: Callable[[], None], action: str) -> None:
        try:
            call()
        except library().KafkaException as problem:
            raise failure(problem, self._servers, f"{action} as '{self.id}'") from problem

    def _explain(self, problem: BaseException, began: float) -> BaseException:
        """Return the error to raise. The broker ends a transaction after its timeout, with the error of a takeover."""
        expired = time.monotonic() - began >= self._timeout
        if expired and isinstance(problem, KafkaFailure):
            return KafkaFailure(
                f"the transaction of '{self.id}'",
                f"it took longer than {self._timeout:g} s ({problem.message})",
                hint="raise transaction.timeout.ms, or take checkpoints more often",
            )
        return problem

    def _abort(self) -> None:
        with suppress(Exception):  # the transaction ends by its timeout, or when the id is opened again
            self._producer.purge()
            self._producer.producer.abort_transaction(5)

    def close(self) -> None:
        """Close the producer."""
        self._producer.close()
