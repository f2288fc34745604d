"""Kafka to Kafka in a bare loop: one process, one consumer, one producer of confluent-kafka.

Promises: the loop a careful person writes: consumed in batches, produced one by one, flushed at the end; with
`--once 1`, in transactions of a second. It has the settings of millstream's clients, and like millstream it names the
partition of a message, which saves the client a quarter of the cost of sending.
Does not know: peers."""

from __future__ import annotations

import time
from typing import Any

from benchmarks import common, kafka_peers
from confluent_kafka import Consumer, Producer, TopicPartition


def copy(servers: str, topic: str, records: int, *, once: bool, partitions: int = 2) -> None:
    """The first records of `in` to a topic."""
    where = {"bootstrap.servers": servers}
    consumer = Consumer({**where, **kafka_peers.CONSUMER, "group.id": "loop", "enable.auto.commit": False})
    settings: dict[str, Any] = {**where, **kafka_peers.PRODUCER}
    producer = Producer({**settings, **({"transactional.id": "loop"} if once else {"enable.idempotence": True})})
    ends = kafka_peers.ends(records, partitions)
    consumer.assign([TopicPartition("in", partition, 0) for partition in range(partitions)])
    if once:
        producer.init_transactions()
        producer.begin_transaction()
    began, copied = time.monotonic(), 0
    while copied < records:
        for message in consumer.consume(10_000, timeout=0.1):
            if message.error() is None and message.offset() < ends[message.partition()]:
                copied += 1
                while True:
                    try:
                        producer.produce(topic, message.value(), partition=message.partition())
                        break
                    except BufferError:
                        producer.poll(0.01)
        producer.poll(0)
        if once and time.monotonic() - began > 1:
            producer.commit_transaction()
            producer.begin_transaction()
            began = time.monotonic()
    if once:
        producer.commit_transaction()
    producer.flush()
    consumer.close()


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=500_000, records=5_000_000, once=0, partitions=2)
    with kafka_peers.served(args.records, args.partitions) as server:

        def run(topic: str, records: int) -> None:
            copy(server.servers, topic, records, once=bool(args.once), partitions=args.partitions)

        kafka_peers.measure(server, run, args)


if __name__ == "__main__":
    main()
