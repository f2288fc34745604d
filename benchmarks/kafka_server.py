"""A broker for one contestant: topics filled with records of 100 bytes, until its standard input ends.

Promises: one line of JSON on standard output when the topics are full, and one for every line of input: the digest of
what is in the topic `check`, or how long records take from `in` to `out`. Nothing is left behind.
Does not know: who reads."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path

from benchmarks import common, kafka_feed

from millstream.testing import maven
from millstream.testing.kafka import KafkaBroker

CONNECTOR = ("org.apache.flink", "flink-sql-connector-kafka", "5.0.0-2.2")


def fill(broker: KafkaBroker, topic: str, records: int, partitions: int = 2) -> None:
    """Each record is its number, filled up to 100 bytes; record `i` is in partition `i % partitions`."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 50, "batch.size": 1 << 20})
    for start in range(0, records, 20_000):
        for partition in range(partitions):
            numbers = range(start + partition, min(start + 20_000, records), partitions)
            left = [{"value": b"%0100d" % number} for number in numbers]
            while left:
                with contextlib.suppress(BufferError):
                    producer.produce_batch(topic, left, partition)
                left = [message for message in left if message.pop("_error", None) is not None]
                producer.poll(0.01 if left else 0)
    producer.flush()


def connector(cache: Path) -> str:
    """Flink's connector, for the peer that needs it."""
    place = cache / f"{CONNECTOR[1]}-{CONNECTOR[2]}.jar"
    if not place.exists():
        maven.retrieve(CONNECTOR, cache, alone=True)
    return str(place)


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--jar", type=Path, help="also fetch Flink's connector, to this folder")
    args = parser.parse_args()
    jar = connector(args.jar) if args.jar is not None else None
    with KafkaBroker(quick_start=False, heap="768m") as broker:
        for topic in ("in", "out", "check"):
            broker.create_topic(topic, args.partitions)
        fill(broker, "in", args.records, args.partitions)
        print(json.dumps({"servers": broker.bootstrap_servers, "jar": jar}), flush=True)
        for line in sys.stdin:  # what is asked: `check`, or `latency RATE SECONDS`
            question, *numbers = line.split()
            if question == "check":
                answer = common.digest((value,) for value in broker.values("check"))
            else:
                answer = kafka_feed.measure_latency(broker.bootstrap_servers, *map(int, numbers))
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
