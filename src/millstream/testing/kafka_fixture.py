"""A Kafka broker as a pytest fixture: `from millstream.testing.kafka_fixture import kafka_broker` in a conftest.py.

Promises: one broker for the whole session; if a conftest.py overrides the fixture `kafka_users`, they can log in.
Does not know: topics; each test creates its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from millstream.testing.kafka import KafkaBroker

__all__ = ["kafka_broker", "kafka_users"]


@pytest.fixture(scope="session")
def kafka_users() -> Mapping[str, str]:
    """Names and passwords of users; none by default, so the broker has no listener with a log-in."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_users: Mapping[str, str]) -> Iterator[KafkaBroker]:
    """A running broker."""
    with KafkaBroker(users=kafka_users) as broker:
        yield broker
