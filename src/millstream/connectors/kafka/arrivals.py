"""Watches partitions for new records, so that a job need not poll them.

Promises: after `watch`, the function is called once, from a thread, as soon as a partition has a record at its offset
or after it. The record is fetched only to learn of it; at most a few are fetched ahead. A failure of the brokers ends
nothing: the job polls as well, and it reports failures.
Does not know: what is read.

The consumer continues where it is, because a request that waits for records cannot be withdrawn: another position
would be asked for only when it has ended."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from millstream.connectors.kafka.client import create_client, library
from millstream.connectors.kafka.offsets import KafkaTopicPartition
from millstream.errors import MillstreamError

_log = logging.getLogger("millstream.kafka")

_POLL_SECONDS = 0.1
_MOST_STALE = 32  # records that were planned already; then the consumer goes to the watched offsets
_END_SECONDS = 2.0
_SETTINGS = {
    "enable.auto.commit": False,
    "auto.offset.reset": "latest",
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 64,
    "fetch.message.max.bytes": 1 << 10,
    "fetch.queue.backoff.ms": 1,
    "fetch.error.backoff.ms": 500,
    "error_cb": lambda _: None,  # the requests of the job itself report the failure
}


class Arrivals:
    """Watches partitions in a thread, which starts when it is first needed."""

    def __init__(self, settings: Mapping[str, Any], notify: Callable[[], None]) -> None:
        self._settings, self._notify = {**settings, **_SETTINGS}, notify
        self._changed = threading.Condition()
        self._watched: dict[tuple[str, int], int] = {}  # offsets; empty while there is no function to notify
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def watch(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        """Notify when there is a record at one of these offsets, or after it."""
        with self._changed:
            self._watched = {(partition.topic, partition.partition): at for partition, at in offsets.items()}
            self._changed.notify()
        if self._thread is None and offsets:
            self._thread = threading.Thread(target=self._run, name="kafka-arrivals", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread and its connections."""
        with self._changed:
            self._is_closed = True
            self._watched = {}
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        try:
            consumer = create_client("Consumer", self._settings)
        except MillstreamError as problem:
            _log.info("new records are found by polling: %s", problem)
            return
        try:
            while self._await_request():
                self._await_arrival(consumer)
        except library().KafkaException as problem:
            _log.info("new records are found by polling: %s", problem)
        finally:
            consumer.close()

    def _await_request(self) -> bool:
        with self._changed:
            while not self._watched and not self._is_closed:
                self._changed.wait()
            return not self._is_closed

    def _await_arrival(self, consumer: Any) -> None:
        """Read until a record has arrived, or no offsets are watched any more."""
        stale = 0
        while watched := self._watched:
            assigned = {(partition.topic, partition.partition) for partition in consumer.assignment()}
            if assigned != watched.keys() or stale > _MOST_STALE:
                stale = 0
                consumer.assign([library().TopicPartition(*key, at) for key, at in watched.items()])
            message = consumer.poll(_POLL_SECONDS)
            if message is None or message.error() is not None:
                continue
            if message.offset() < self._watched.get((message.topic(), message.partition()), message.offset() + 1):
                stale += 1
                continue
            with self._changed:
                self._watched = {}
            self._notify()
