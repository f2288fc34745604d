"""Whole jobs in this process, without Spark; what the test files share stands beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millstream.datastream import StreamExecutionEnvironment

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Every job of this folder runs on the inline engine."""


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
