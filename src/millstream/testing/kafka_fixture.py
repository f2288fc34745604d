"""A Kafka broker as a pytest fixture: `from millstream.testing.kafka_fixture import kafka_broker` in a conftest.py.

Promises: one broker for the whole session, gone after the last test.
Does not know: topics; each test makes its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millstream.testing.kafka import KafkaBroker

__all__ = ["kafka_broker"]


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[KafkaBroker]:
    """A running broker."""
    with KafkaBroker() as broker:
        yield broker
