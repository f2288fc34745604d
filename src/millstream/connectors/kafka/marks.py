"""The marks of transactional ids in a compacted topic: how far their output is written.

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
    configured,
    failure,
    library,
    patiently,
)
from millstream.connectors.kafka.mark import Mark, NotAMark

TOPIC = "millstream-marks"
_PARTITIONS = 16
_WAIT_SECONDS = 180.0  # for transactions of others
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(4 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}
_CREATE_SECONDS = 30.0
_READING = {
    "group.id": "millstream-marks",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    # a job waits for this to go on: the end of the partition is reported at once, not after half a second
    "fetch.wait.max.ms": 10,
    "fetch.error.backoff.ms": 20,
}


class MarksHidden(KafkaFailure):
    """An open transaction of another id hides marks that were committed after it."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(
            f"reading the mark of '{transactional_id}'",
            f"a transaction in the topic '{TOPIC}' is open for longer than {_WAIT_SECONDS:g} s",
            hint="`millstream txn list` shows it; the job it belongs to must come back, or it must be aborted",
        )


class MarkUnreadable(OutputRefused):
    """A mark cannot be read, so it is not known which output is written."""

    hint = (
        "if a newer release of millstream wrote it, run the job with that release; to give the mark up, write a "
        "message with this key and no value to the topic: then staged output that was written before appears twice"
    )

    def __init__(self, transactional_id: str, reason: str) -> None:
        self.transactional_id, self.reason = transactional_id, reason
        super().__init__(
            f"the mark of '{transactional_id}' in the topic '{TOPIC}' cannot be read, so no output is written: {reason}"
        )


class TopicNotDescribed(KafkaFailure):
    """The topic of the marks was created, or exists, and the brokers do not say which partitions it has."""

    def __init__(self, doing: str, error: object) -> None:
        reason = f"the brokers have not described its partitions for {_CREATE_SECONDS:g} s"
        super().__init__(
            doing,
            f"{reason}: {error}" if error else reason,
            hint="may the user of the sink DESCRIBE the topic? see its ACLs, and whether its partitions have leaders",
        )


class Marks:
    """The mark of one transactional id. Its clients stay open until `close`."""

    def __init__(self, transactional_id: str, connection: Mapping[str, Any]) -> None:
        """`connection`: settings for any kind of client."""
        self._id = transactional_id
        self._connection = dict(connection)
        self._servers = str(connection["bootstrap.servers"])
        self._doing = f"reading the mark of '{transactional_id}'"
        self._admin = configured("AdminClient", self._connection)
        self._consumer: Any = None
        self.partition = zlib.crc32(transactional_id.encode()) % self._partitions()

    def message(self, mark: Mark) -> tuple[Any, ...]:
        """The arguments of `produce` for a mark."""
        return TOPIC, mark.to_bytes(), self._id.encode(), self.partition

    def _partitions(self) -> int:
        doing, deadline = f"making the topic '{TOPIC}'", time.monotonic() + _CREATE_SECONDS
        kafka, admin = library(), self._admin
        try:
            while True:
                found = admin.list_topics(timeout=DEADLINE).topics.get(TOPIC)
                if found is not None and found.partitions:
                    return len(found.partitions)
                if time.monotonic() > deadline:
                    raise TopicNotDescribed(doing, None if found is None else found.error)
                if not self._create():
                    time.sleep(0.2)  # the broker that was asked may not know of it yet
        except kafka.KafkaException as problem:
            raise failure(problem, self._servers, doing) from problem

    def _create(self) -> bool:
        """Create the topic; False if there is one."""
        kafka, library_ = library(), admin_library()
        topic = library_.NewTopic(TOPIC, num_partitions=_PARTITIONS, replication_factor=-1, config=_COMPACTED)
        try:
            for done in self._admin.create_topics([topic], operation_timeout=10).values():
                done.result(DEADLINE)
        except kafka.KafkaException as problem:
            if problem.args[0].code() == kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise
        return True

    def read(self) -> Mark:
        """The last mark that was committed. The id must be open, so that no transaction of its own is undecided."""
        return self._read(library().IsolationLevel.READ_UNCOMMITTED)

    def peek(self) -> Mark:
        """The last mark that can be seen now, open or not: there may be newer ones that open transactions hide."""
        return self._read(library().IsolationLevel.READ_COMMITTED)

    def _read(self, isolation: Any) -> Mark:
        """The last mark before the end, as it is with or without open transactions."""
        kafka = library()
        if self._consumer is None:
            self._consumer = configured("Consumer", {**self._connection, **_READING})
        try:
            where = kafka.TopicPartition(TOPIC, self.partition, 0)  # compaction does not move where a partition begins
            end = patiently(lambda: self._end(isolation), self._servers, self._doing)
            self._consumer.assign([where])
            return self._newest(self._consumer, end)
        except kafka.KafkaException as problem:
            raise failure(problem, self._servers, self._doing) from problem

    def close(self) -> None:
        """Close the clients that read; messages can still be created."""
        consumer, self._consumer, self._admin = self._consumer, None, None
        if consumer is not None:
            consumer.close()

    def _end(self, isolation: Any) -> int:
        """Where the partition ends; a consumer would tell where committed data ends."""
        where = library().TopicPartition(TOPIC, self.partition)
        answer = self._admin.list_offsets(
            {where: admin_library().OffsetSpec.latest()},
            isolation_level=isolation,
            request_timeout=DEADLINE,
        )
        return int(answer[where].result(DEADLINE).offset)

    def _newest(self, consumer: Any, end: int) -> Mark:
        """Read up to the end as it was; the end of what is committed may come before it, for a while."""
        end_code, key = library().KafkaError._PARTITION_EOF, self._id.encode()
        text, at, deadline = b"{}", 0, time.monotonic() + _WAIT_SECONDS
        while at < end:
            if time.monotonic() > deadline:
                raise MarksHidden(self._id)
            for message in consumer.consume(1000, timeout=0.05):
                error = message.error()
                if error is None:
                    at = message.offset() + 1
                    text = (message.value() or b"{}") if message.key() == key else text
                elif error.code() == end_code:
                    at = max(at, message.offset())
        try:
            return Mark.from_bytes(text)
        except NotAMark as problem:
            raise MarkUnreadable(self._id, str(problem)) from problem
