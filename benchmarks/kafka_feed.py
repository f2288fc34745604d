"""Records sent to the topic `in` of a broker, and received from `out`: how long that takes.

Promises: the time is from before the send to after the receipt, of committed records only, in this process; the first
seconds are not counted. Records are sent at their time, however slow the reader is.
Does not know: what copies the records."""

from __future__ import annotations

import threading
import time
from typing import Any

from benchmarks import common
from confluent_kafka import Consumer, Producer, TopicPartition

WARM_UP_SECONDS = 8
_PARTITIONS = 2
_TICK = 0.005
_DEADLINE = 120.0
_SAMPLES_PER_SECOND = 1_000


def measure_latency(servers: str, rate: int, seconds: int) -> dict[str, Any]:
    """Send `rate` records a second; the percentiles of those after the warm-up."""
    count, first = rate * (WARM_UP_SECONDS + seconds), rate * WARM_UP_SECONDS
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "latency",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
        }
    )
    partitions = [TopicPartition("out", number) for number in range(_PARTITIONS)]
    for partition in partitions:
        partition.offset = consumer.get_watermark_offsets(partition, timeout=30)[1]
    consumer.assign(partitions)
    _await_job(servers, consumer)
    sender = threading.Thread(target=_send, args=(servers, rate, count), daemon=True)
    sender.start()
    step = max(1, rate // _SAMPLES_PER_SECOND)
    samples: dict[int, float] = {}
    deadline, seen = time.monotonic() + WARM_UP_SECONDS + seconds + _DEADLINE, 0
    while seen < count:
        if time.monotonic() > deadline:
            message = f"{seen} of {count} records have arrived"
            raise SystemExit(message)
        for message in consumer.consume(1_000 if rate > 1_000 else 1, timeout=0.1):
            if message.error() is not None:
                continue
            now = time.monotonic_ns()
            seen += 1
            number, _, created = message.value().decode().partition(" ")
            if int(number) >= first and int(number) % step == 0:
                samples.setdefault(int(number), (now - int(created)) / 1e6)
    sender.join()
    consumer.close()
    return common.latencies(list(samples.values()))


def _await_job(servers: str, consumer: Consumer) -> None:
    """Send a record, and wait until the job has copied it: how long a job takes to start is not measured."""
    producer = _producer(servers)
    producer.produce("in", b"0 0", partition=0)
    producer.flush()
    deadline = time.monotonic() + _DEADLINE
    while (message := consumer.poll(0.1)) is None or message.error() is not None:
        if time.monotonic() > deadline:
            message = f"the job has copied nothing in {_DEADLINE:g} s"
            raise SystemExit(message)


def _producer(servers: str) -> Producer:
    return Producer({"bootstrap.servers": servers, "linger.ms": 0, "queue.buffering.max.messages": 1_000_000})


def _send(servers: str, rate: int, count: int) -> None:
    producer = _producer(servers)
    began, number = time.monotonic(), 0
    while number < count:
        due = min(count, int((time.monotonic() - began) * rate) + 1)
        for each in range(number, due):
            producer.produce("in", b"%d %d" % (each, time.monotonic_ns()), partition=each % _PARTITIONS)
        producer.poll(0)
        number = max(number, due)
        time.sleep(max(0.0, max(began + number / rate, began + _TICK) - time.monotonic()))
    producer.flush()
