"""A running job behind a REST server, in this process."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from millstream.client.job_client import JobClient
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource


@dataclass
class Cluster:
    """A REST server and the job that it shows."""

    address: str
    client: JobClient
    directory: Path

    @property
    def job(self) -> str:
        return str(self.client.get_job_id())

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request with a JSON body, as Flink's clients do; return the status code and the answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def get(self, path: str) -> Any:
        """Return the answer to a GET request that succeeds."""
        code, answer = self.request("GET", path)
        assert code == 200, answer
        return answer


def start_job(directory: Path, name: str) -> JobClient:
    """Start a job that runs until it is stopped, with small epochs."""
    configuration = Configuration.from_dict(
        {
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "execution.checkpointing.interval": "100 ms",
            "millstream.epoch.max-records": "20",
            "millstream.epoch.min-interval": "20 ms",
            "parallelism.default": "2",
            "taskmanager.memory.process.size": "2g",
            "pipeline.max-parallelism": "8",
            "rest.flamegraph.enabled": "true",
            "rest.flamegraph.delay-between-samples": "1 ms",
            "user.token": "very secret",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = env.from_source(NumberSequenceSource(0, 10**9), WatermarkStrategy.no_watermarks(), "numbers")
    sums = numbers.key_by(lambda n: n % 5, Types.LONG()).reduce(lambda a, b: a + b).uid("sums")
    sums.filter(lambda n: n < 0).print()
    return env.execute_async(name)


def wait_for(condition: Callable[[], Any]) -> Any:
    """Return the first true value of a condition."""
    for _ in range(300):
        if value := condition():
            return value
        time.sleep(0.1)
    pytest.fail("did not happen within 30 s")
