"""A session cluster in this process, whose programs run in processes of their own with an engine in their process
instead of Spark."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from millstream.client.remote import RemoteCluster
from millstream.cluster import entrypoint
from millstream.cluster.dispatcher import Dispatcher
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.server import RestServer
from millstream.cluster.session.driver import SessionDriver
from millstream.cluster.session.store import ProgramStore
from millstream.common import Configuration

TOKEN = "a token of the test"

PROGRAM = """
import sys
from millstream.cluster import entrypoint
from millstream.testing.inline_engine import InlineEngine
entrypoint.SparkEngine = lambda settings: InlineEngine()
from millstream.common import WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(int(sys.argv[1]))
numbers = env.from_source(NumberSequenceSource(0, int(sys.argv[2])), WatermarkStrategy.no_watermarks(), "numbers")
numbers.filter(lambda n: n < 0).print()
print("the program is", sys.argv)
env.execute(sys.argv[3])
"""
ENDLESS = str(10**12)


@dataclass
class SessionCluster:
    """A session cluster with its client."""

    driver: SessionDriver
    server: RestServer
    client: RemoteCluster

    def run(self, slots: int, records: str, name: str) -> str:
        upload = self.client.upload("job.py", PROGRAM.encode())
        return self.client.run(upload, [str(slots), records, name], {})

    def jobs(self) -> dict[str, Any]:
        return {job.name: job for job in self.client.list_jobs()}

    def close(self) -> None:
        self.server.stop()
        self.driver.close()


def wait_for(condition: Callable[[], Any]) -> Any:
    """Return the first true value of a condition."""
    for _ in range(900):
        if value := condition():
            return value
        time.sleep(0.1)
    pytest.fail("did not happen within 90 s")


def start(directory: Path, store: Path, *, recovers: bool = False, web: dict[str, str] | None = None) -> SessionCluster:
    settings = {
        "millstream.epoch.max-records": "20",
        "millstream.epoch.min-interval": "20 ms",
        "execution.checkpointing.interval": "100 ms",
        "execution.checkpointing.dir": str(store / "checkpoints"),
    }
    if recovers:
        settings |= {
            "high-availability.type": "lease",
            "high-availability.storageDir": str(store / "leases"),
            "millstream.high-availability.lease-duration": "1 s",
        }
    numbers = itertools.count(time.monotonic_ns())
    driver = SessionDriver(
        ProgramStore(str(store / "programs")),
        directory,
        slots=3,
        settings=settings,
        variables=dict,
        clock=entrypoint.SystemClock(),
        new_id=lambda: f"{next(numbers):032x}",
        new_token=lambda: "the token of a process",
        recovers=recovers,
        archive_directory=str(store / "history"),
        upload_limit=100_000,
    )
    driver.recover()
    configuration = Configuration.from_dict(dict(web or {}))
    context = RestContext(
        Dispatcher(),
        entrypoint.SystemClock(),
        lambda: f"{next(numbers):032x}",
        TOKEN,
        driver,
        configuration=configuration,
    )
    server = RestServer.start(create_application(context), "127.0.0.1", "0", has_token=True)
    return SessionCluster(driver, server, RemoteCluster(server.address, TOKEN))


def use_inline_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the workspaces of session clusters run jobs without Spark."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr("millstream.cluster.session.driver.WORKSPACE_MODULE", "inline_workspace")
