"""Reads ranges of offsets in a task.

Promises: exactly the messages of [start, end), in order. Offsets without a message (compacted away, of an aborted
transaction, marks of transactions) are no reason to wait: the range is over when a message behind it, or the end of the
log at or behind its end, was seen. Offsets that are gone from the log are an error.
Does not know: where ranges come from; what messages mean.

A consumer stays open for each partition as long as the reader lives, and fetches ahead: the next range begins where the
last one ended as a rule, and then its messages are here already. One that does not is sought."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from millstream.connectors.kafka.client import BrokerUnreachable, KafkaFailure, configured, library
from millstream.connectors.kafka.offsets import KafkaTopicPartition
from millstream.connectors.kafka.records import Decoder, KafkaRecordDeserializationSchema
from millstream.errors import ExternalError
from millstream.model.source import Records, Rejected, SourceReader, SplitRange

_OPEN = 64  # consumers a reader keeps
_TURN = 0.02  # seconds to wait for a full batch
_SILENCE = 60.0  # seconds without a message that are too many
_BATCH = 10_000

DEFAULTS: dict[str, Any] = {
    "queued.max.messages.kbytes": 16 * 1024,
    "fetch.queue.backoff.ms": 5,  # librdkafka's own is a second, in which a queue that was full runs empty
    "fetch.message.max.bytes": 4 << 20,
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

    hint = "retention or a deletion removed records before they were read; begin a new job where the log begins now"

    def __init__(self, split: str, start: int, end: int, reason: str) -> None:
        self.split, self.start, self.end = split, start, end
        super().__init__(f"offsets {start} to {end} of {split} are gone: {reason}")


class _Partition:
    """An open consumer of one partition: what it fetched and nobody took yet, and where it is."""

    def __init__(self, split: str, settings: Mapping[str, Any]) -> None:
        self._of = KafkaTopicPartition.of_split(split)
        self._split = split
        self._servers = str(settings["bootstrap.servers"])
        reasons = self._reasons = deque(["no answer"], maxlen=1)

        def heard(error: Any) -> None:  # knows the list and not this object, which would be a cycle
            reasons.append(error.str())

        self._consumer = configured("Consumer", {**settings, **_DECIDED, "error_cb": heard})
        self._position: int | None = None
        self._left: list[Any] = []
        self._eof = library().KafkaError._PARTITION_EOF

    def messages(self, start: int, end: int, most: int) -> Iterator[list[Any]]:
        """The messages of a range, in batches that are not empty."""
        resumes, self._position = self._position == start, None  # known again when the range was read to its end
        if not resumes:
            self._seek(start)
        at, heard = start, time.monotonic()
        while at < end:
            taken, self._left = self._left, []
            if not taken:
                taken = self._consumer.consume(min(most, end - at), timeout=_TURN)
            batch, reached = self._sorted(taken, at, end)
            if reached > at or batch:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENCE:
                raise BrokerUnreachable(self._servers, f"reading {self._split} at offset {at}", self._reasons[0])
            at = reached
            if batch:
                yield batch
        self._position = end

    def _sorted(self, taken: list[Any], at: int, end: int) -> tuple[list[Any], int]:
        """Those of the range, and the offset up to which all is known; what lies behind the range is kept."""
        errors = list(map(library().Message.error, taken))
        if set(map(type, errors)) - {type(None)}:  # errors refuse to be compared with None
            index, error = next((index, error) for index, error in enumerate(errors) if error is not None)
            if error.code() == self._eof:
                # the end of the log: nothing before this offset is still to come
                batch, reached = self._cut(taken[:index], at, end)
                seen = taken[index].offset()
                if reached < end:
                    self._left = taken[index if seen > end else index + 1 :]  # it tells of the next range as well
                    return batch, max(reached, min(seen, end))
                self._left = [*self._left, *taken[index:]]
                return batch, reached
            self._check(error, at, end)
            del taken[index]
            return self._sorted(taken, at, end)
        return self._cut(taken, at, end)

    def _cut(self, messages: list[Any], at: int, end: int) -> tuple[list[Any], int]:
        if not messages:
            return [], at
        last: int = messages[-1].offset()
        if last < end:
            return messages, last + 1
        place = bisect_left(messages, end, key=lambda message: message.offset())
        self._left = messages[place:]
        return messages[:place], end

    def _check(self, error: Any, at: int, end: int) -> None:
        codes = library().KafkaError
        if error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            raise OffsetsGone(self._split, at, end, error.str())
        if error.fatal() or error.code() in (codes.UNKNOWN_TOPIC_OR_PART, codes.TOPIC_AUTHORIZATION_FAILED):
            raise KafkaFailure(doing=f"reading {self._split} at offset {at}", reason=f"{error.name()}: {error.str()}")
        self._reasons.append(error.str())

    def _seek(self, start: int) -> None:
        self._left = []
        self._consumer.assign([library().TopicPartition(self._of.topic, self._of.partition, start)])

    def close(self) -> None:
        self._consumer.close()


class KafkaReader(SourceReader):
    """Reads ranges of any partitions."""

    def __init__(self, schema: KafkaRecordDeserializationSchema, settings: Mapping[str, Any], block: int) -> None:
        self._decoder = Decoder(schema)
        self._settings = dict(settings)
        self._block = block
        self._partitions: dict[str, _Partition] = {}

    def take_rejected(self) -> Rejected:
        """Messages that could not be decoded and were left out, as the format asks for."""
        return self._decoder.take_rejected()

    def read(self, part: SplitRange) -> Iterator[Records]:
        """The records of a range."""
        start, end = part.start[0], part.end
        if start >= end:
            return
        partition = self._partition(part.split)
        for messages in partition.messages(start, end, min(self._block, _BATCH)):
            yield self._decoder.decode(messages)

    def _partition(self, split: str) -> _Partition:
        found = self._partitions.pop(split, None) or _Partition(split, self._settings)
        self._partitions[split] = found  # the newest last
        while len(self._partitions) > _OPEN:
            self._partitions.pop(next(iter(self._partitions))).close()
        return found

    def close(self) -> None:
        """Close all consumers."""
        while self._partitions:
            self._partitions.popitem()[1].close()
