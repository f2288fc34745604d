"""Jobs that run in this process, without Spark. Modules that the test files share are in this folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millstream.datastream import StreamExecutionEnvironment

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Run every job of this folder on the inline engine."""


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
