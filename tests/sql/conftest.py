"""Jobs that run in this process, without Spark. Modules that the test files share are in this folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from millstream.table import EnvironmentSettings, TableEnvironment

sys.path.append(str(Path(__file__).parent))


@pytest.fixture
def t_env(inline_engine: None) -> TableEnvironment:
    """A streaming environment with one subtask."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    return env


@pytest.fixture
def orders(t_env: TableEnvironment, request: pytest.FixtureRequest) -> Any:
    """The rows ORDERS of the test module as a table."""
    return t_env.from_elements(request.module.ORDERS, ["id", "k", "v"])
