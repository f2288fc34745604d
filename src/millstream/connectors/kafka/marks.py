"""The marks of transactional ids, in a compacted topic: which output is written.

Promises: a mark is written in the same transaction as the output it describes, so both are visible or neither is;
`read` returns the last committed mark, and waits for open transactions of other ids that could hide it.
Does not know: what an epoch's output is.

The topic is created when it is first needed. Its name is `millstream-marks`; the key of a message is the transactional
id, its value is a mark. Compaction keeps one message for each id, for ever."""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from typing import Any

from millstream.connector.sink import OutputRefused
from millstream.connectors.kafka.client import (
    DEADLINE,
    KafkaFailure,
    admin_library,
    create_client,
    failure,
    library,
    retry_while_unavailable,
)
from millstream.connectors.kafka.mark import Mark, NotAMark

TOPIC = "millstream-marks"
_PARTITIONS = 16
_WAIT_SECONDS = 180.0  # for transactions of other ids
_TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(4 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}
_CREATE_SECONDS = 30.0
_CONSUMER_SETTINGS = {
    "group.id": "millstream-marks",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    # jobs wait for this, so the end of the partition must be reported immediately, not after half a second
    "fetch.wait.max.ms": 10,
    "fetch.error.backoff.ms": 20,
}


class MarksHidden(KafkaFailure):
    """An open transaction of another id hides marks that were committed after it."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(
            f"reading the mark of '{transactional_id}'",
            f"a transaction in the topic '{TOPIC}' has been open for longer than {_WAIT_SECONDS:g} s",
            hint="`millstream txn list` shows it; restart its job, or abort the transaction",
        )


class MarkUnreadable(OutputRefused):
    """A mark cannot be read, so it is unknown which output is written."""

    hint = (
        "if a newer release of millstream wrote it, run the job with that release; to discard the mark, write a "
        "message with this key and no value to the topic: then staged output that was written before appears twice"
    )

    def __init__(self, transactional_id: str, reason: str) -> None:
        self.transactional_id, self.reason = transactional_id, reason
        super().__init__(
            f"the mark of '{transactional_id}' in the topic '{TOPIC}' cannot be read, so no output is written: {reason}"
        )


class TopicNotDescribed(KafkaFailure):
    """The topic of the marks exists, but the brokers do not return its partitions."""

    def __init__(self, action: str, error: object) -> None:
        reason = f"the brokers have not described its partitions for {_CREATE_SECONDS:g} s"
        super().__init__(
            action,
            f"{reason}: {error}" if error else reason,
            hint="check that the user of the sink may DESCRIBE the topic, and that its partitions have leaders",
        )


class Marks:
    """The mark of one transactional id. Its clients stay open until `close`."""

    def __init__(self, transactional_id: str, connection: Mapping[str, Any]) -> None:
        """`connection`: settings for all types of clients."""
        self._id = transactional_id
        self._connection = dict(connection)
        self._servers = str(connection["bootstrap.servers"])
        self._action = f"reading the mark of '{transactional_id}'"
        self._admin = create_client("AdminClient", self._connection)
        self._consumer: Any = None
        self.partition = zlib.crc32(transactional_id.encode()) % self._partitions()

    def message(self, mark: Mark) -> tuple[Any, ...]:
        """Return the arguments of `produce` for a mark."""
        return TOPIC, mark.to_bytes(), self._id.encode(), self.partition

    def _partitions(self) -> int:
        action, deadline = f"creating the topic '{TOPIC}'", time.monotonic() + _CREATE_SECONDS
        kafka, admin = library(), self._admin
        try:
            while True:
                topic = admin.list_topics(timeout=DEADLINE).topics.get(TOPIC)
                if topic is not None and topic.partitions:
                    return len(topic.partitions)
                if time.monotonic() > deadline:
                    raise TopicNotDescribed(action, None if topic is None else topic.error)
                if not self._create():
                    time.sleep(0.2)  # the broker may not know the topic yet
        except kafka.KafkaException as problem:
            raise failure(problem, self._servers, action) from problem

    def _create(self) -> bool:
        """Create the topic; return False if it exists."""
        kafka, library_ = library(), admin_library()
        topic = library_.NewTopic(TOPIC, num_partitions=_PARTITIONS, replication_factor=-1, config=_TOPIC_SETTINGS)
        try:
            for future in self._admin.create_topics([topic], operation_timeout=10).values():
                future.result(DEADLINE)
        except kafka.KafkaException as problem:
            if problem.args[0].code() == kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise
        return True

    def read(self) -> Mark:
        """Return the last committed mark. The id must be open, so that none of its own transactions is pending."""
        return self._read(library().IsolationLevel.READ_UNCOMMITTED)

    def peek(self) -> Mark:
        """Return the last visible mark; open transactions may hide newer ones."""
        return self._read(library().IsolationLevel.READ_COMMITTED)

    def _read(self, isolation: Any) -> Mark:
        """Return the last mark before the end of the partition at an isolation level."""
        kafka = library()
        if self._consumer is None:
            self._consumer = create_client("Consumer", {**self._connection, **_CONSUMER_SETTINGS})
        try:
            topic_partition = kafka.TopicPartition(
                TOPIC, self.partition, 0
            )  # compaction does not change the first offset
            end = retry_while_unavailable(lambda: self._end(isolation), self._servers, self._action)
            self._consumer.assign([topic_partition])
            return self._newest(self._consumer, end)
        except kafka.KafkaException as problem:
            raise failure(problem, self._servers, self._action) from problem

    def close(self) -> None:
        """Close the clients that read; messages can still be created."""
        consumer, self._consumer, self._admin = self._consumer, None, None
        if consumer is not None:
            consumer.close()

    def _end(self, isolation: Any) -> int:
        """Return the end of the partition; a consumer would return the end of committed data."""
        topic_partition = library().TopicPartition(TOPIC, self.partition)
        futures = self._admin.list_offsets(
            {topic_partition: admin_library().OffsetSpec.latest()},
            isolation_level=isolation,
            request_timeout=DEADLINE,
        )
        return int(futures[topic_partition].result(DEADLINE).offset)

    def _newest(self, consumer: Any, end: int) -> Mark:
        """Return the newest mark before `end`; committed data may end before it for a while."""
        end_code, key = library().KafkaError._PARTITION_EOF, self._id.encode()
        text, offset, deadline = b"{}", 0, time.monotonic() + _WAIT_SECONDS
        while offset < end:
            if time.monotonic() > deadline:
                raise MarksHidden(self._id)
            for message in consumer.consume(1000, timeout=0.05):
                error = message.error()
                if error is None:
                    offset = message.offset() + 1
                    text = (message.value() or b"{}") if message.key() == key else text
                elif error.code() == end_code:
                    offset = max(offset, message.offset())
        try:
            return Mark.from_bytes(text)
        except NotAMark as problem:
            raise MarkUnreadable(self._id, str(problem)) from problem
