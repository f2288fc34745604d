"""Fixtures for whole jobs in this process that are stopped and restored."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.datastream import StreamExecutionEnvironment


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Every job of this folder runs on the inline engine."""


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., StreamExecutionEnvironment]:
    """A new environment with checkpoints below a directory of the test's own."""

    def make(parallelism: int = 2, checkpoints: bool = True, **options: str) -> StreamExecutionEnvironment:
        env = StreamExecutionEnvironment()
        env.set_parallelism(parallelism)
        (tmp_path / "checkpoints").mkdir(exist_ok=True)
        settings = {
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"),
            "millstream.epoch.idle-interval": "1 ms",
            "restart-strategy.type": "none",
        }
        if checkpoints:
            settings["execution.checkpointing.interval"] = "5 ms"
        settings.update({key.replace("__", ".").replace("_", "-"): value for key, value in options.items()})
        for key, value in settings.items():
            env._configuration.set_string(key, value)
        return env

    return make


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Waits until something holds, at most a minute."""

    def wait(holds: Callable[[], Any]) -> Any:
        until = time.monotonic() + 60
        while not (found := holds()):
            assert time.monotonic() < until, "it did not come to hold"
            time.sleep(0.005)
        return found

    return wait
