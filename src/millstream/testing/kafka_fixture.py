"""A Kafka broker as a pytest fixture: `from millstream.testing.kafka_fixture import kafka_broker` in a conftest.py.

Promises: one broker for the whole session, gone after the last test; with another fixture `kafka_users`, one that these
may log in to.
Does not know: topics; each test makes its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from millstream.testing.kafka import KafkaBroker

__all__ = ["kafka_broker", "kafka_users"]


@pytest.fixture(scope="session")
def kafka_users() -> Mapping[str, str]:
    """Names and passwords: none, and no listener that asks for them."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_users: Mapping[str, str]) -> Iterator[KafkaBroker]:
    """A running broker."""
    with KafkaBroker(users=kafka_users) as broker:
        yield broker
