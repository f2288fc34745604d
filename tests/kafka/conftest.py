"""One broker for all tests here; each makes topics of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.testing.kafka import KafkaBroker
from millstream.testing.kafka_fixture import kafka_broker

__all__ = ["kafka_broker"]

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def kafka_users() -> dict[str, str]:
    return {"ann": "secret"}


@pytest.fixture
def broker(kafka_broker: KafkaBroker) -> KafkaBroker:
    return kafka_broker


@pytest.fixture
def topic(broker: KafkaBroker, request: pytest.FixtureRequest) -> str:
    """A new topic with one partition."""
    return broker.create_topic(name_of(request))


@pytest.fixture
def new_topic(broker: KafkaBroker, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Makes topics for this test: `new_topic("in", partitions=2)`."""
    return lambda ending, partitions=1: broker.create_topic(f"{name_of(request)}-{ending}", partitions)


@pytest.fixture
def staging(tmp_path: Path) -> str:
    return str(tmp_path / "staging")


def name_of(request: pytest.FixtureRequest) -> str:
    return re.sub(r"[^\w.-]", "-", request.node.name)[:150]
