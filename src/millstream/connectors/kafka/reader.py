"""Reads ranges of offsets in a task.

Promises: exactly the messages of [start, end), in order. Offsets without a message (compacted away, of an aborted
transaction, marks of transactions) are no reason to wait: the range is over when a message behind it, or the end of the
log at or behind its end, was seen. Offsets that are gone from the log are an error, or are counted where the source was
told to go on without.
Does not know: where ranges come from; what messages mean.

A consumer stays open for each partition as long as the reader lives, and fetches ahead: the next range begins where the
last one ended as a rule, and then its messages are here already. One that does not is sought."""

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
from millstream.connectors.kafka.client import DEADLINE, BrokerUnreachable, KafkaFailure, configured, failure, library
from millstream.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaTopicPartition
from millstream.connectors.kafka.records import Decoder, KafkaRecordDeserializationSchema, timestamps_of
from millstream.errors import ExternalError

_log = logging.getLogger("millstream.kafka")

_OPEN = 64  # consumers a reader keeps
_AHEAD = "queued.max.messages.kbytes"
_FAR, _NEAR = 16 << 10, 2 << 10  # about what is read while an epoch ends and the next begins; for many, less each
_FEW = 4
_TURN = 0.02  # seconds to wait for a full batch
_SILENCE = 60.0  # seconds without a message that are too many
_BATCH = 10_000

DEFAULTS: dict[str, Any] = {
    "fetch.queue.backoff.ms": 5,  # librdkafka's own is a second, in which a queue that was full runs empty
    "fetch.message.max.bytes": 1 << 20,
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 100,
}
_DECIDED: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}


class OffsetsGone(ExternalError):
    """A planned range is no longer in the log."""

    hint = (
        "retention or a deletion removed records before they were read; with the property auto.offset.reset = earliest "
        "the job goes on where the log begins now"
    )

    def __init__(self, split: str, start: int, end: int, reason: str) -> None:
        self.split, self.start, self.end = split, start, end
        super().__init__(f"offsets {start} to {end} of {split} are gone: {reason}")


class _Partition:
    """An open consumer of one partition: what it fetched and nobody took yet, and where it is."""

    def __init__(self, split: str, settings: Mapping[str, Any], reset: KafkaOffsetResetStrategy) -> None:
        self._of = KafkaTopicPartition.of_split(split)
        self._split = split
        self._reset = reset
        self.lost = 0  # offsets that were gone
        self._servers = str(settings["bootstrap.servers"])
        reasons = self._reasons = deque(["no answer"], maxlen=1)

        def heard(error: Any) -> None:  # knows the list and not this object, which would be a cycle
            reasons.append(error.str())

        self._consumer = configured("Consumer", {**settings, **_DECIDED, "error_cb": heard})
        self._position: int | None = None
        self._stopped = False  # at an error: it reads on only after it is sought
        self._left: list[Any] = []
        self._eof = library().KafkaError._PARTITION_EOF

    def messages(self, start: int, end: int, most: int) -> Iterator[tuple[list[Any], np.ndarray]]:
        """The messages of a range with their timestamps, in batches that are not empty."""
        resumes, self._position = self._position == start, None  # known again when the range was read to its end
        if not resumes:
            self._seek(start)
        at, heard = start, time.monotonic()
        while at < end:
            taken, self._left = self._left, []
            if not taken:
                taken = self._consumer.consume(min(most, end - at), timeout=_TURN)
            times = timestamps_of(taken)
            batch, reached = self._sorted(taken, times, at, end)
            if reached > at or batch:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENCE:
                raise BrokerUnreachable(self._servers, f"reading {self._split} at offset {at}", self._reasons[0])
            at = reached
            if batch:
                yield batch, times[: len(batch)]
        self._position = None if self._stopped else end

    def _sorted(self, taken: list[Any], times: np.ndarray, at: int, end: int) -> tuple[list[Any], int]:
        """Those of the range, which come first, and the offset up to which all is known; what lies behind the range is
        kept. An error has no time, so where all have one there is none."""
        index = None if not taken or times.min() >= 0 else _first_error(taken)
        if index is None:
            return self._cut(taken, at, end)
        error = taken[index].error()
        batch, reached = self._cut(taken[:index], at, end)
        if reached >= end:
            self._left = [*self._left, *taken[index:]]
        elif error.code() == self._eof:
            # the end of the log: nothing before this offset is still to come
            seen = taken[index].offset()
            self._left = taken[index if seen > end else index + 1 :]  # it tells of the next range as well
            reached = max(reached, min(seen, end))
        elif error.code() in (library().KafkaError._AUTO_OFFSET_RESET, library().KafkaError.OFFSET_OUT_OF_RANGE):
            reached = self._behind_gap(reached, end, error.str())
        else:
            self._check(error, reached)
            self._left = taken[index + 1 :]
        return batch, reached

    def _behind_gap(self, at: int, end: int, reason: str) -> int:
        """Offsets from `at` on are gone: where to go on, if that may be."""
        gone = OffsetsGone(self._split, at, end, reason)
        if self._reset is KafkaOffsetResetStrategy.NONE:
            raise gone
        where = library().TopicPartition(self._of.topic, self._of.partition)
        try:
            first, _ = self._consumer.get_watermark_offsets(where, timeout=DEADLINE)
        except library().KafkaException as problem:
            raise failure(problem, self._servers, f"looking for the beginning of {self._split}") from problem
        if first <= at:  # nothing was removed before it: the log itself is another one
            raise gone
        found = int(min(first, end))
        _log.warning("%s; going on at %s, as auto.offset.reset says", gone.message, found)
        self.lost += found - at
        if found < end:
            self._seek(found)
        self._stopped = found == end
        return found

    def _cut(self, messages: list[Any], at: int, end: int) -> tuple[list[Any], int]:
        if not messages:
            return [], at
        last: int = messages[-1].offset()
        if last < end:
            return messages, last + 1
        place = bisect_left(messages, end, key=lambda message: message.offset())
        self._left = messages[place:]
        return messages[:place], end

    def _check(self, error: Any, at: int) -> None:
        codes = library().KafkaError
        if error.fatal() or error.code() in (codes.UNKNOWN_TOPIC_OR_PART, codes.TOPIC_AUTHORIZATION_FAILED):
            raise KafkaFailure(doing=f"reading {self._split} at offset {at}", reason=f"{error.name()}: {error.str()}")
        self._reasons.append(error.str())

    def _seek(self, start: int) -> None:
        self._left, self._stopped = [], False
        self._consumer.assign([library().TopicPartition(self._of.topic, self._of.partition, start)])

    def close(self) -> None:
        self._consumer.close()


def _first_error(messages: list[Any]) -> int | None:
    """The place of the first message that is an error."""
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
        """Messages that could not be decoded and were left out, as the format asks for; and those that were gone."""
        lost = 0
        for partition in self._partitions.values():
            lost, partition.lost = lost + partition.lost, 0
        rejected = self._decoder.take_rejected()
        return replace(rejected, count=rejected.count + lost) if lost else rejected

    def read(self, part: SplitRange) -> Iterator[Records]:
        """The records of a range."""
        start, end = part.start[0], part.end
        if start >= end:
            return
        partition = self._partition(part.split)
        for messages, times in partition.messages(start, end, min(self._block, _BATCH)):
            yield self._decoder.decode(messages, times)

    def _partition(self, split: str) -> _Partition:
        found = self._partitions.pop(split, None)
        if found is None:
            ahead = _FAR if len(self._partitions) < _FEW else _NEAR
            found = _Partition(split, {_AHEAD: ahead, **self._settings}, self._reset)
        self._partitions[split] = found  # the newest last
        while len(self._partitions) > _OPEN:
            self._partitions.pop(next(iter(self._partitions))).close()
        return found

    def close(self) -> None:
        """Close all consumers."""
        while self._partitions:
            self._partitions.popitem()[1].close()
