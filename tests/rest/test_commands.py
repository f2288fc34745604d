"""`millstream list`, `savepoint`, `stop` and `cancel` with a running job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rest_cluster import Cluster, wait_for

MAIN = "import sys; from millstream.cli.main import main; sys.exit(main(sys.argv[1:]))"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(cluster: Cluster) -> Command:
    """Run `millstream` in a process of its own: what this one prints belongs to the functions of the job."""
    address = cluster.address.removeprefix("http://")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        arguments = words if "-m" in words else (*words, "-m", address)
        return subprocess.run(
            [sys.executable, "-c", MAIN, *arguments], capture_output=True, text=True, timeout=120, check=False
        )

    return run


def test_a_job_is_listed_saved_and_stopped(cluster: Cluster, command: Command, tmp_path: Path) -> None:
    header, line = command("list").stdout.splitlines()
    assert header.split() == ["id", "name", "state", "started", "tasks"]
    assert line.startswith(f"{cluster.job}  sums")
    assert json.loads(command("list", "-s", "--json").stdout) == []

    saved = command("savepoint", cluster.job, str(tmp_path / "savepoints"))
    (savepoint,) = (tmp_path / "savepoints").iterdir()
    assert saved.stdout == f"savepoint: {savepoint}\n"
    assert list(savepoint.iterdir())

    assert command("savepoint", "-d", str(savepoint)).stdout == f"disposed {savepoint}\n"
    assert list((tmp_path / "savepoints").iterdir()) == []
    missing = command("savepoint", "-d", str(savepoint))
    assert (missing.returncode, str(savepoint) in missing.stderr) == (1, True)
    requested = command("savepoint", "sums", str(tmp_path / "savepoints"), "-detached").stdout
    wait_for(lambda: cluster.get(requested.split("GET ")[1].strip())["status"]["id"] == "COMPLETED")

    stopped = command("stop", "--drain", "--type", "native", "-p", str(tmp_path / "stopped"), "sums")
    (savepoint,) = (tmp_path / "stopped").iterdir()
    assert stopped.stdout == f"stopped {cluster.job}\nsavepoint: {savepoint}\n"
    assert command("list").stdout == "no jobs\n"
    assert "FINISHED" in command("list", "-a").stdout


def test_a_job_is_cancelled_with_a_savepoint(cluster: Cluster, command: Command, tmp_path: Path) -> None:
    cancelled = command("cancel", "-s", str(tmp_path / "savepoints"), cluster.job[:8])
    (savepoint,) = (tmp_path / "savepoints").iterdir()
    assert cancelled.stdout == f"savepoint: {savepoint}\ncancelled {cluster.job}\n"
    cluster.client.wait(30)
    assert cluster.get(f"/jobs/{cluster.job}/status") == {"status": "CANCELED"}


def test_a_job_is_rescaled_and_observed(cluster: Cluster, command: Command) -> None:
    assert command("rescale", "sums", "3").stdout == f"the job {cluster.job} runs with 3 slots\n"
    assert command("rescale", "sums", "sums=4").stdout == f"the job {cluster.job} runs with 4 slots\n"
    refused = command("rescale", "sums", "9")
    assert (refused.returncode, "maximum parallelism 8" in refused.stderr) == (1, True)
    taken = command("checkpoint", "sums")
    assert taken.stdout.startswith("checkpoint: "), taken.stderr
    assert int(json.loads(command("metrics", "sums", "--json").stdout)["numberOfCompletedCheckpoints"]) > 0
    assert command("exceptions", "sums").stdout == "no failures\n"
    assert "keeps no log" in command("logs", "sums").stderr
    assert json.loads(command("cluster", "status", "--json").stdout)["slots-total"] == 4


def test_mistakes(cluster: Cluster, command: Command, tmp_path: Path) -> None:
    unknown = command("cancel", "other")
    assert unknown.returncode == 1
    assert f"the jobs are: {cluster.job} (sums)" in unknown.stderr
    (tmp_path / "file").touch()
    refused = command("savepoint", "sums", str(tmp_path / "file"))
    assert refused.returncode == 1
    assert str(tmp_path / "file") in refused.stderr
    unreachable = command("list", "-m", "127.0.0.1:1")
    assert unreachable.returncode == 1
    assert "no cluster answers at http://127.0.0.1:1" in unreachable.stderr
