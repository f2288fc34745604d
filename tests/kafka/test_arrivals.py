"""A job that waits for records is woken by them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from kafka_running import LATEST, reading

from millstream.connector.source import Budget, SplitEnumerator
from millstream.testing.kafka import KafkaBroker

SECONDS = 30


@pytest.fixture
def enumerator(broker: KafkaBroker, topic: str) -> Iterator[SplitEnumerator]:
    broker.produce(topic, ["before"])
    source = reading(broker, topic).set_starting_offsets(LATEST).build()
    created = source.create_enumerator(1)
    yield created
    created.close()


def test_each_record_after_an_empty_plan_wakes_once(
    broker: KafkaBroker, topic: str, enumerator: SplitEnumerator
) -> None:
    arrived = threading.Semaphore(0)
    enumerator.notify_arrivals(arrived.release)
    budget = Budget(1000, 1 << 20, 0)
    enumerator.plan(budget)  # discovers the partition
    for number in range(3):
        assert not enumerator.plan(budget)
        broker.produce(topic, [f"{number}.0", f"{number}.1"])
        assert arrived.acquire(timeout=SECONDS)
        planned = 0
        while planned < 2:  # the second record may be there a little later
            planned += sum(part.records or 0 for part in enumerator.plan(budget))
    assert not arrived.acquire(blocking=False)


def test_records_that_were_planned_do_not_wake(broker: KafkaBroker, topic: str, enumerator: SplitEnumerator) -> None:
    """The watch is behind after records that came while nothing was watched; then it continues at the end."""
    arrived = threading.Semaphore(0)
    enumerator.notify_arrivals(arrived.release)
    budget = Budget(1000, 1 << 20, 0)
    enumerator.plan(budget)
    assert not enumerator.plan(budget)
    broker.produce(topic, ["first"])
    assert arrived.acquire(timeout=SECONDS)
    assert enumerator.plan(budget)
    broker.produce(topic, [str(number) for number in range(200)])
    planned = 0
    while planned < 200:
        planned += sum(part.records or 0 for part in enumerator.plan(budget))
    while arrived.acquire(blocking=False):  # a plan between two of the records was empty
        pass
    assert not enumerator.plan(budget)
    assert not arrived.acquire(timeout=1)
    broker.produce(topic, ["last"])
    assert arrived.acquire(timeout=SECONDS)
