"""A SQL gateway in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gateway_client import GatewayClient

from millstream.cli.gateway import start_gateway
from millstream.config.configuration import Configuration


@pytest.fixture
def gateway(inline_engine: None) -> Iterator[Any]:
    """A gateway whose jobs run without Spark."""
    started = start_gateway(Configuration.from_dict({"sql-gateway.endpoint.rest.port": "0"}))
    yield started
    started.stop()


@pytest.fixture
def client(gateway: Any) -> GatewayClient:
    """A session of the gateway."""
    return GatewayClient(gateway.address)
