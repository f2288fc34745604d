"""Reads ranges of offsets in a task.

Promises: exactly the messages of [start, end), in order. The reader does not wait for offsets without a message
(compacted, of an aborted transaction, control records): the range ends when a message after it, or the end of the log
at or after its end, arrives. Offsets that were removed from the log are an error, or they are skipped and counted if
the source has a reset strategy.
Does not know: where ranges come from; what messages mean.

A consumer stays open for each partition as long as the reader exists, and fetches ahead: usually the next range begins
where the last one ended, and its messages are already here. Otherwise the consumer seeks."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.connector.source import Records, Rejected, SourceReader, SplitRange
from millstream.connectors.kafka.client import (
    DEADLINE,
    BrokerUnreachable,
    KafkaFailure,
    create_client,
    failure,
    library,
)
from millstream.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaTopicPartition
from millstream.connectors.kafka.records import Decoder, KafkaRecordDeserializationSchema, timestamps_of
from millstream.errors import ExternalError

_log = logging.getLogger("millstream.kafka")

_MAX_CONSUMERS = 64  # consumers that a reader keeps open
_PREFETCH = "queued.max.messages.kbytes"
_LARGE_PREFETCH = 16 << 10  # KiB; about as much as is read between two epochs
_SMALL_PREFETCH = 2 << 10  # KiB; for many partitions
_FEW_PARTITIONS = 4
_POLL_SECONDS = 0.02  # seconds to wait for a full batch
_MAX_SILENCE = 60.0  # seconds without a message after which reading fails
_BATCH = 10_000

DEFAULTS: dict[str, Any] = {
    "fetch.queue.backoff.ms": 5,  # the default is a second, within which a full queue would become empty
    "fetch.message.max.bytes": 1 << 20,
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 100,
}
_FIXED_SETTINGS: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}


class OffsetsGone(ExternalError):
    """Offsets of a planned range are no longer in the log."""

    hint = (
        "retention or a deletion removed records before they were read; with the property auto.offset.reset = earliest "
        "the job continues at the first offset of the log"
    )

    def __init__(self, split: str, start: int, end: int, reason: str) -> None:
        self.split, self.start, self.end = split, start, end
        super().__init__(f"offsets {start} to {end} of {split} are no longer in the log: {reason}")


class _Partition:
    """An open consumer of one partition, with its position and the messages that were fetched but not read."""

    def __init__(self, split: str, settings: Mapping[str, Any], reset: KafkaOffsetResetStrategy) -> None:
        self._topic_partition = KafkaTopicPartition.of_split(split)
        self._split = split
        self._reset = reset
        self.lost = 0  # how many offsets were skipped because they are no longer in the log
        self._servers = str(settings["bootstrap.servers"])
        reasons = self._reasons = deque(["no answer"], maxlen=1)

        def on_error(error: Any) -> None:  # refers to the list, not to this object, to avoid a reference cycle
            reasons.append(error.str())

        self._consumer = create_client("Consumer", {**settings, **_FIXED_SETTINGS, "error_cb": on_error})
        self._position: int | None = None
        self._stopped = False  # set after an error: the consumer must seek before it can read again
        self._fetched: list[Any] = []
        self._eof = library().KafkaError._PARTITION_EOF

    def messages(self, start: int, end: int, max_messages: int) -> Iterator[tuple[list[Any], np.ndarray]]:
        """Yield the messages of a range with their timestamps, in batches that are not empty."""
        resumes, self._position = self._position == start, None  # set again when the range was read completely
        if not resumes:
            self._seek(start)
        offset, last_message_at = start, time.monotonic()
        while offset < end:
            fetched, self._fetched = self._fetched, []
            if not fetched:
                fetched = self._consumer.consume(min(max_messages, end - offset), timeout=_POLL_SECONDS)
            times = timestamps_of(fetched)
            batch, reached = self._take_range(fetched, times, offset, end)
            if reached > offset or batch:
                last_message_at = time.monotonic()
            elif time.monotonic() - last_message_at > _MAX_SILENCE:
                raise BrokerUnreachable(self._servers, f"reading {self._split} at offset {offset}", self._reasons[0])
            offset = reached
            if batch:
                yield batch, times[: len(batch)]
        self._position = None if self._stopped else end

    def _take_range(self, fetched: list[Any], times: np.ndarray, offset: int, end: int) -> tuple[list[Any], int]:
        """Return the messages of the range, which are first, and the offset up to which it is read; messages after the
        range are kept. An error has no timestamp, so there is none if all have one."""
        index = None if not fetched or times.min() >= 0 else _first_error(fetched)
        if index is None:
            return self._cut(fetched, offset, end)
        error = fetched[index].error()
        batch, reached = self._cut(fetched[:index], offset, end)
        if reached >= end:
            self._fetched = [*self._fetched, *fetched[index:]]
        elif error.code() == self._eof:
            # the end of the log was reached: all messages before this offset have arrived
            log_end = fetched[index].offset()
            # kept, because it may also end the next range
            self._fetched = fetched[index if log_end > end else index + 1 :]
            reached = max(reached, min(log_end, end))
        elif error.code() in (library().KafkaError._AUTO_OFFSET_RESET, library().KafkaError.OFFSET_OUT_OF_RANGE):
            reached = self._skip_gap(reached, end, error.str())
        else:
            self._check(error, reached)
            self._fetched = fetched[index + 1 :]
        return batch, reached

    def _skip_gap(self, offset: int, end: int, reason: str) -> int:
        """Return where to continue after offsets that are no longer in the log; raise without a reset strategy."""
        error = OffsetsGone(self._split, offset, end, reason)
        if self._reset is KafkaOffsetResetStrategy.NONE:
            raise error
        topic_partition = library().TopicPartition(self._topic_partition.topic, self._topic_partition.partition)
        try:
            first, _ = self._consumer.get_watermark_offsets(topic_partition, timeout=DEADLINE)
        except library().KafkaException as problem:
            raise failure(problem, self._servers, f"requesting the first offset of {self._split}") from problem
        if first <= offset:  # no records were removed, so the topic was created again
            raise error
        resumed = int(min(first, end))
        _log.warning("%s; continuing at %s because of auto.offset.reset", error.message, resumed)
        self.lost += resumed - offset
        if resumed < end:
            self._seek(resumed)
        self._stopped = resumed == end
        return resumed

    def _cut(self, messages: list[Any], offset: int, end: int) -> tuple[list[Any], int]:
        if not messages:
            return [], offset
        last: int = messages[-1].offset()
        if last < end:
            return messages, last + 1
        index = bisect_left(messages, end, key=lambda message: message.offset())
        self._fetched = messages[index:]
        return messages[:index], end

    def _check(self, error: Any, offset: int) -> None:
        codes = library().KafkaError
        if error.fatal() or error.code() in (codes.UNKNOWN_TOPIC_OR_PART, codes.TOPIC_AUTHORIZATION_FAILED):
            raise KafkaFailure(
                action=f"reading {self._split} at offset {offset}", reason=f"{error.name()}: {error.str()}"
            )
        self._reasons.append(error.str())

    def _seek(self, start: int) -> None:
        self._fetched, self._stopped = [], False
        self._consumer.assign(
            [library().TopicPartition(self._topic_partition.topic, self._topic_partition.partition, start)]
        )

    def close(self) -> None:
        self._consumer.close()


def _first_error(messages: list[Any]) -> int | None:
    """Return the index of the first message that is an error; None if there is none."""
    return next((index for index, message in enumerate(messages) if message.error() is not None), None)


class KafkaReader(SourceReader):
    """Reads ranges of any partitions."""

    def __init__(
        self,
        schema: KafkaRecordDeserializationSchema,
        settings: Mapping[str, Any],
        block: int,
        reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> None:
        self._decoder = Decoder(schema)
        self._settings = dict(settings)
        self._reset = reset
        self._block = block
        self._partitions: dict[str, _Partition] = {}

    def take_rejected(self) -> Rejected:
        """Return the messages that were skipped: those that cannot be decoded, and those no longer in the log."""
        lost = 0
        for partition in self._partitions.values():
            lost, partition.lost = lost + partition.lost, 0
        rejected = self._decoder.take_rejected()
        return replace(rejected, count=rejected.count + lost) if lost else rejected

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records of a range."""
        start, end = part.start[0], part.end
        if start >= end:
            return
        partition = self._partition(part.split)
        for messages, times in partition.messages(start, end, min(self._block, _BATCH)):
            yield self._decoder.decode(messages, times)

    def _partition(self, split: str) -> _Partition:
        partition = self._partitions.pop(split, None)
        if partition is None:
            prefetch = _LARGE_PREFETCH if len(self._partitions) < _FEW_PARTITIONS else _SMALL_PREFETCH
            partition = _Partition(split, {_PREFETCH: prefetch, **self._settings}, self._reset)
        self._partitions[split] = partition  # the most recently used last
        while len(self._partitions) > _MAX_CONSUMERS:
            self._partitions.pop(next(iter(self._partitions))).close()
        return partition

    def close(self) -> None:
        """Close all consumers."""
        while self._partitions:
            self._partitions.popitem()[1].close()
