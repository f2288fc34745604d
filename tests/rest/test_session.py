"""A session cluster over REST: programs in processes of their own, with an engine in their process instead of Spark."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from millstream.cli.submission import pack
from millstream.client.remote import Refused, RemoteCluster
from millstream.cluster import entrypoint
from millstream.cluster.dispatcher import Dispatcher
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.server import RestServer
from millstream.cluster.session.driver import SessionDriver
from millstream.cluster.session.store import ProgramStore

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


def start(directory: Path, store: Path, *, recovers: bool = False) -> SessionCluster:
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
    context = RestContext(Dispatcher(), entrypoint.SystemClock(), lambda: f"{next(numbers):032x}", TOKEN, driver)
    server = RestServer.start(create_application(context), "127.0.0.1", "0", has_token=True)
    return SessionCluster(driver, server, RemoteCluster(server.address, TOKEN))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SessionCluster]:
    cluster = start(tmp_path / "local", tmp_path / "shared")
    yield cluster
    cluster.close()


def test_programs_share_slots_and_are_archived(cluster: SessionCluster, tmp_path: Path) -> None:
    first = cluster.run(2, ENDLESS, "endless")
    wait_for(lambda: cluster.jobs().get("endless"))
    cluster.run(2, "10", "short")
    waiting = wait_for(lambda: cluster.jobs().get("short"))
    assert (waiting.state, waiting.waiting) == ("CREATED", "waits for 2 slots: 1 of 3 are free")
    too_large = cluster.run(4, "10", "too large")
    wait_for(lambda: cluster.client.program(too_large)["status"] == "FAILED")
    assert "the job needs 4 slots, and the cluster has 3" in cluster.client.program(too_large)["error"]
    overview = cluster.client.overview()
    assert (overview["slots-total"], overview["slots-available"], overview["jobs-running"]) == (3, 1, 2)

    endless = cluster.jobs()["endless"].id
    wait_for(lambda: cluster.client.get(f"/jobs/{endless}/checkpoints")["counts"]["completed"])
    cluster.client.cancel(endless)
    wait_for(lambda: cluster.client.program(first)["end-time"] > 0)
    assert cluster.client.program(first)["status"] == "CANCELED"
    wait_for(lambda: (job := cluster.jobs()["short"]).state == "FINISHED" and job.end > 0)
    assert cluster.client.get(f"/jobs/{endless}/execution-result")["job-execution-result"]["id"] == endless
    with pytest.raises(Refused, match="has ended"):
        cluster.client.get(f"/jobs/{endless}/savepoints/{'0' * 32}")
    wait_for(lambda: cluster.client.overview()["slots-available"] == 3)
    wait_for(lambda: (tmp_path / "shared" / "history" / endless).exists())
    assert "the program is" in (cluster.driver.logs / f"{first}.log").read_text()


def test_a_failing_program_and_a_killed_one_do_not_touch_others(cluster: SessionCluster) -> None:
    upload = cluster.client.upload("broken.py", b"import no_such_module")
    broken = cluster.client.run(upload, [], {})
    victim = cluster.run(1, ENDLESS, "victim")
    cluster.run(1, ENDLESS, "neighbour")
    wait_for(lambda: {"victim", "neighbour"} <= cluster.jobs().keys())
    wait_for(lambda: cluster.client.program(broken)["status"] == "FAILED")
    assert "No module named 'no_such_module'" in cluster.client.program(broken)["error"]
    process = cluster.driver._hosted[victim].process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: cluster.client.program(victim)["status"] == "FAILED")
    assert "SIGKILL" in cluster.client.program(victim)["error"]
    wait_for(lambda: cluster.jobs()["neighbour"].state == "RUNNING")


def test_a_cluster_that_takes_over_continues_all_programs(tmp_path: Path) -> None:
    first = start(tmp_path / "first", tmp_path / "shared", recovers=True)
    try:
        program = first.run(1, ENDLESS, "endless")
        job = wait_for(lambda: first.jobs().get("endless")).id
        newest = wait_for(lambda: first.client.get(f"/jobs/{job}/checkpoints")["counts"]["completed"])
    finally:
        first.close()  # kills all processes, as the end of the cluster does
    second = start(tmp_path / "second", tmp_path / "shared", recovers=True)
    try:
        assert second.client.program(program)["status"] == "RUNNING"
        wait_for(lambda: job in {each.id for each in second.client.list_jobs()})

        def newer() -> Any:
            latest = second.client.get(f"/jobs/{job}/checkpoints")["latest"]["completed"]
            return latest is not None and latest["id"] > newest

        wait_for(newer)
        process = second.driver._hosted[program].process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)  # a lost program is started again
        wait_for(lambda: second.client.program(program)["restarts"] == 1)
        wait_for(lambda: second.driver._hosted[program].process not in (None, process))
        wait_for(lambda: second.jobs().get("endless") and second.jobs()["endless"].state == "RUNNING")
    finally:
        second.close()


def test_archives_with_dependencies_and_modules(cluster: SessionCluster, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helpers.py").write_text("WORD = 'helped'")
    job = tmp_path / "job.py"
    job.write_text(
        "import sys, pathlib\nprint('files', sorted(p.name for p in pathlib.Path('dependencies').rglob('*.py')))"
    )
    name, content, words = pack(str(job), None, {"python.files": str(tmp_path / "lib")})
    program = cluster.client.run(cluster.client.upload(name, content), words, {})
    wait_for(lambda: cluster.client.program(program)["status"] == "FINISHED")
    assert "files ['helpers.py']" in (cluster.driver.logs / f"{program}.log").read_text()


def test_what_cannot_run_is_refused_with_a_sentence(cluster: SessionCluster) -> None:
    for attempt, text in {
        "upload": lambda: cluster.client.upload("job.jar", b""),
        "large": lambda: cluster.client.upload("job.py", b"#" * 200_000),
        "class": lambda: cluster.client._request(
            "POST", f"/jars/{cluster.client.upload('a.py', b'')}/run", {"entryClass": "org.example.Main"}
        ),
        "graph": lambda: cluster.client._send("POST", "/jobs", b"x" * 1_000_000, "multipart/form-data"),
        "unknown": lambda: cluster.client.run("0_none.py", [], {}),
    }.items():
        with pytest.raises(Refused) as refused:
            text()
        assert len(str(refused.value)) > 20, attempt
    assert cluster.client.get("/jars")["files"][0]["name"] == "a.py"
    with pytest.raises(Refused, match="without a job"):
        cluster.client._request("POST", f"/jars/{cluster.client.upload('a.py', b'')}/run", {})


def test_nothing_is_answered_without_the_token(cluster: SessionCluster) -> None:
    for method, path in (("GET", "/jobs"), ("DELETE", "/cluster"), ("POST", "/jars/upload"), ("GET", "/openapi.json")):
        request = urllib.request.Request(cluster.server.address + path, method=method)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        with refused.value as answer:
            assert answer.code == 401
            assert list(json.load(answer)) == ["errors"]
    assert not cluster.driver.is_shut_down.is_set()
    with pytest.raises(Refused, match="needs a token"):
        RemoteCluster(cluster.server.address, "another token").overview()
