"""A producer of messages in columns; `flush` confirms that all of them were delivered.

Promises: a message that was not delivered is an error; a full buffer is waited for, up to a deadline. Producers outside
transactions are kept open in the process, one for each configuration: opening one costs more than an epoch, and a
writer lives for one epoch only.
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

from millstream.connectors.kafka.client import BrokerUnreachable, configured, failure, library
from millstream.connectors.kafka.cluster import partitions_of
from millstream.connectors.kafka.messages import Messages

_FLUSH_SECONDS = 120.0
_LEADERS_SECONDS = 30.0  # for which partitions that have a leader are taken to have one
_ASK_SECONDS = 1.0
_TURN = 0.05

DEFAULTS: dict[str, Any] = {
    "linger.ms": 20,
    "batch.size": 1 << 20,
    "batch.num.messages": 50_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 256 * 1024,
    "partitioner": "murmur2_random",  # where the Java client sends a key
}
_open: dict[str, Outlet] = {}


class Outlet:
    """A producer that counts messages that were not delivered."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._servers = str(settings["bootstrap.servers"])
        # callbacks know these lists and not this object: a producer in a reference cycle is destroyed at a bad time
        self._refused: list[tuple[str, Any]] = []
        self._reasons: deque[str] = deque(["no answer"], maxlen=1)
        refused, reasons = self._refused, self._reasons

        def undelivered(error: Any, message: Any) -> None:
            if error is not None:
                refused.append((message.topic(), error))

        def heard(error: Any) -> None:
            reasons.append(error.str())

        told: dict[str, Any] = {"delivery.report.only.error": True, "error_cb": heard}
        if "transactional.id" not in settings:  # else the commit fails; a callback is a fifth of what sending one costs
            told["on_delivery"] = undelivered
        self.producer = configured("Producer", {**DEFAULTS, **settings, **told})
        self._partitions: dict[str, list[int]] = {}
        self._chooses = "partitioner" not in settings
        self._led: dict[str, tuple[float, Iterator[int]]] = {}

    def send(self, messages: Messages) -> None:
        """Pass messages to the producer, which sends them in the background."""
        topic = messages.topic
        for values, columns in messages.pieces(self._anywhere):
            rest = iter(values)
            try:
                # every message without a frame of Python's own
                deque(map(self.producer.produce, repeat(topic), rest, *columns), maxlen=0)
            except BufferError:
                first = len(values) - length_hint(rest) - 1  # the one for which there was no room
                following = (column[first:] if isinstance(column, list) else column for column in columns)
                for message in zip(values[first:], *following, strict=False):
                    self._send_late(topic, message)
            except library().KafkaException as problem:
                raise failure(problem, self._servers, f"writing to topic '{topic}'") from problem
            self.producer.poll(0)
            self._check()

    def _anywhere(self, topic: str) -> int:
        """A partition with a leader, another one every time; -1 to have the client choose for each message, which is a
        fourth of all that sending one costs."""
        if not self._chooses:
            return -1
        until, found = self._led.get(topic, (0.0, iter(())))
        if time.monotonic() >= until:
            led = self._leading(topic)
            turn = os.getpid() % len(led) if led else 0  # producers do not go from partition to partition together
            found = cycle([*led[turn:], *led[:turn]])
            self._led[topic] = (time.monotonic() + _LEADERS_SECONDS, found)
        return next(found, -1)

    def _leading(self, topic: str) -> list[int]:
        try:
            known = self.producer.list_topics(topic, timeout=_ASK_SECONDS).topics[topic].partitions
        except library().KafkaException:
            return []
        return sorted(number for number, each in known.items() if each.leader >= 0)

    def _send_late(self, topic: str, message: tuple[Any, ...]) -> None:
        """Wait until the buffer has room."""
        began = time.monotonic()
        while True:
            try:
                self.producer.produce(topic, *message)
            except BufferError:
                self._full(began)
            else:
                return

    def _full(self, began: float) -> None:
        if time.monotonic() - began > _FLUSH_SECONDS:
            raise BrokerUnreachable(self._servers, f"{len(self.producer)} messages waited", self._reasons[0])
        self.producer.poll(_TURN)
        self._check()

    def _check(self) -> None:
        if self._refused:
            count, (topic, error) = len(self._refused), self._refused[0]
            self._refused.clear()
            raise failure(library().KafkaException(error), self._servers, f"writing {count} messages to '{topic}'")

    def flush(self) -> None:
        """Wait until every message is delivered."""
        try:
            left = self.producer.flush(_FLUSH_SECONDS)
        except (SystemError, library().KafkaException) as problem:
            cause = problem.__cause__ if isinstance(problem, SystemError) else problem
            raise failure(cause or problem, self._servers, "sending messages") from problem
        self._check()
        if left:
            self.purge()
            raise BrokerUnreachable(self._servers, f"{left} messages waited {_FLUSH_SECONDS:g} s", self._reasons[0])

    def purge(self) -> None:
        """Drop messages that were not sent."""
        self.producer.purge()
        self.producer.poll(0)
        self._refused.clear()

    def close(self) -> None:
        """Close the producer; what was not sent is dropped."""
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a transaction that has failed cannot be aborted again
            self.purge()
            self.producer.close()

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic, as first seen."""
        if topic not in self._partitions:
            self._partitions[topic] = partitions_of(self.producer, topic, self._servers)
        return self._partitions[topic]


def outlet(settings: Mapping[str, Any]) -> Outlet:
    """Return the producer of this process with these settings."""
    name = json.dumps(settings, sort_keys=True, default=str)
    found = _open.get(name)
    if found is None:
        found = _open[name] = Outlet(settings)
    return found


def discard(settings: Mapping[str, Any]) -> None:
    """Close a producer: after a fatal error a new one is needed."""
    _open.pop(json.dumps(settings, sort_keys=True, default=str), None)
