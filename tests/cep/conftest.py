"""Whole jobs in this process, without Spark; what the test files share stands beside them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from millstream.client import local
from millstream.client.job_client import JobClient
from millstream.cluster import entrypoint
from millstream.datastream import StreamExecutionEnvironment
from millstream.testing.inline_engine import InlineEngine

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run on the inline engine."""

    def submit(graph: Any, configuration: Any, name: str, listeners: Any = ()) -> JobClient:
        running = entrypoint.submit(graph, configuration, name, engine=InlineEngine(), listeners=listeners)
        return JobClient(local.LocalHandle(running))

    monkeypatch.setattr(local, "submit", submit)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
