"""Whole jobs in this process, without Spark."""

from __future__ import annotations

import pytest

from millstream.datastream import StreamExecutionEnvironment


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Every job of this folder runs on the inline engine."""


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
