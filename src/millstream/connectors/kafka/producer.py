"""A producer of messages in columns; `flush` confirms that all of them were delivered.

Promises: a message that was not delivered is an error; if the buffer is full, `send` waits, up to a deadline. Producers
outside transactions are kept open in the process, one for each configuration: opening one costs more than an epoch, and
a writer exists for one epoch only.
Does not know: checkpoints, transactions."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import cycle, repeat
from operator import length_hint
from typing import Any

from millstream.connectors.kafka.client import BrokerUnreachable, create_client, failure, library
from millstream.connectors.kafka.cluster import partitions_of
from millstream.connectors.kafka.messages import Messages

_FLUSH_SECONDS = 120.0
_LEADERS_SECONDS = 30.0  # how long the leaders of partitions are cached
_REQUEST_SECONDS = 1.0
_POLL_SECONDS = 0.05

DEFAULTS: dict[str, Any] = {
    "linger.ms": 20,
    "batch.size": 1 << 20,
    "batch.num.messages": 50_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 256 * 1024,
    "partitioner": "murmur2_random",  # the same partition for a key as the Java client
}
_open: dict[str, MessageProducer] = {}


class MessageProducer:
    """A producer that counts messages that were not delivered."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._servers = str(settings["bootstrap.servers"])
        # callbacks refer to these lists, not to this object: a producer in a reference cycle would be destroyed too
        # late
        self._refused: list[tuple[str, Any]] = []
        self._reasons: deque[str] = deque(["no answer"], maxlen=1)
        refused, reasons = self._refused, self._reasons

        def on_undelivered(error: Any, message: Any) -> None:
            if error is not None:
                refused.append((message.topic(), error))

        def on_error(error: Any) -> None:
            reasons.append(error.str())

        callbacks: dict[str, Any] = {"delivery.report.only.error": True, "error_cb": on_error}
        if (
            "transactional.id" not in settings
        ):  # in a transaction, the commit fails instead; callbacks are a fifth of the cost of a message
            callbacks["on_delivery"] = on_undelivered
        self.producer = create_client("Producer", {**DEFAULTS, **settings, **callbacks})
        self._partitions: dict[str, list[int]] = {}
        self._chooses = "partitioner" not in settings
        self._partition_cycles: dict[str, tuple[float, Iterator[int]]] = {}

    def send(self, messages: Messages) -> None:
        """Pass messages to the producer, which sends them in the background."""
        topic = messages.topic
        for values, columns in messages.pieces(self._next_partition):
            remaining = iter(values)
            try:
                # one call per message without a Python frame
                deque(map(self.producer.produce, repeat(topic), remaining, *columns), maxlen=0)
            except BufferError:
                first = len(values) - length_hint(remaining) - 1  # the message for which the buffer had no room
                following = (column[first:] if isinstance(column, list) else column for column in columns)
                for message in zip(values[first:], *following, strict=False):
                    self._send_when_possible(topic, message)
            except library().KafkaException as problem:
                raise failure(problem, self._servers, f"writing to topic '{topic}'") from problem
            self.producer.poll(0)
            self._check()

    def _next_partition(self, topic: str) -> int:
        """Return a partition with a leader, another one each time; -1 lets the client choose for each message, which is
        a quarter of the cost of sending."""
        if not self._chooses:
            return -1
        valid_until, partitions = self._partition_cycles.get(topic, (0.0, iter(())))
        if time.monotonic() >= valid_until:
            leading = self._partitions_with_leader(topic)
            # random, so that producers start with different partitions
            first = os.getpid() % len(leading) if leading else 0
            partitions = cycle([*leading[first:], *leading[:first]])
            self._partition_cycles[topic] = (time.monotonic() + _LEADERS_SECONDS, partitions)
        return next(partitions, -1)

    def _partitions_with_leader(self, topic: str) -> list[int]:
        try:
            partitions = self.producer.list_topics(topic, timeout=_REQUEST_SECONDS).topics[topic].partitions
        except library().KafkaException:
            return []
        return sorted(number for number, partition in partitions.items() if partition.leader >= 0)

    def _send_when_possible(self, topic: str, message: tuple[Any, ...]) -> None:
        """Wait until the buffer has room."""
        began = time.monotonic()
        while True:
            try:
                self.producer.produce(topic, *message)
            except BufferError:
                self._wait_for_room(began)
            else:
                return

    def _wait_for_room(self, began: float) -> None:
        if time.monotonic() - began > _FLUSH_SECONDS:
            raise BrokerUnreachable(self._servers, f"{len(self.producer)} messages waited", self._reasons[0])
        self.producer.poll(_POLL_SECONDS)
        self._check()

    def _check(self) -> None:
        if self._refused:
            count, (topic, error) = len(self._refused), self._refused[0]
            self._refused.clear()
            raise failure(library().KafkaException(error), self._servers, f"writing {count} messages to '{topic}'")

    def flush(self) -> None:
        """Wait until every message is delivered."""
        try:
            unsent = self.producer.flush(_FLUSH_SECONDS)
        except (SystemError, library().KafkaException) as problem:
            cause = problem.__cause__ if isinstance(problem, SystemError) else problem
            raise failure(cause or problem, self._servers, "sending messages") from problem
        self._check()
        if unsent:
            self.purge()
            raise BrokerUnreachable(self._servers, f"{unsent} messages waited {_FLUSH_SECONDS:g} s", self._reasons[0])

    def purge(self) -> None:
        """Drop messages that were not sent."""
        self.producer.purge()
        self.producer.poll(0)
        self._refused.clear()

    def close(self) -> None:
        """Close the producer; messages that were not sent are dropped."""
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a transaction that has failed cannot be aborted again
            self.purge()
            self.producer.close()

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic; they are requested once."""
        if topic not in self._partitions:
            self._partitions[topic] = partitions_of(self.producer, topic, self._servers)
        return self._partitions[topic]


def shared_producer(settings: Mapping[str, Any]) -> MessageProducer:
    """Return the producer of this process with these settings."""
    name = json.dumps(settings, sort_keys=True, default=str)
    producer = _open.get(name)
    if producer is None:
        producer = _open[name] = MessageProducer(settings)
    return producer


def discard(settings: Mapping[str, Any]) -> None:
    """Close a producer: after a fatal error a new one is needed."""
    _open.pop(json.dumps(settings, sort_keys=True, default=str), None)
