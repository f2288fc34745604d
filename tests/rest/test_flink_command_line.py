"""Flink's own command line, from Maven Central, with a running job."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rest_cluster import Cluster

from millstream.testing.maven import java, retrieve_cached

VERSION = "2.3.0"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def flink(cluster: Cluster, tmp_path: Path) -> Command:
    """Run `flink ACTION -m ADDRESS ARGUMENTS`."""
    jars = retrieve_cached(f"flink-clients-{VERSION}", ("org.apache.flink", "flink-clients", VERSION))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("rest.retry.max-attempts: 2\nrest.retry.delay: 1 s\n")
    command = [java(), "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    command.append("org.apache.flink.client.cli.CliFrontend")
    address = cluster.address.removeprefix("http://")

    def run(action: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, action, "-m", address, *arguments],
            env=os.environ | {"FLINK_CONF_DIR": str(tmp_path / "conf")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def test_jobs_are_listed_saved_and_stopped(cluster: Cluster, flink: Command, tmp_path: Path) -> None:
    listed = flink("list")
    assert f"{cluster.job} : sums (RUNNING)" in listed.stdout, listed.stderr

    saved = flink("savepoint", cluster.job, str(tmp_path / "savepoints"))
    (savepoint,) = (tmp_path / "savepoints").iterdir()
    assert f"Savepoint completed. Path: {savepoint}" in saved.stdout, saved.stderr
    disposed = flink("savepoint", "-d", str(savepoint))
    assert (disposed.returncode, list((tmp_path / "savepoints").iterdir())) == (0, [])

    (tmp_path / "file").touch()
    refused = flink("savepoint", cluster.job, str(tmp_path / "file"))
    assert refused.returncode == 1
    assert str(tmp_path / "file") in refused.stdout + refused.stderr

    stopped = flink("stop", "--drain", "--savepointPath", str(tmp_path / "savepoints"), cluster.job)
    (savepoint,) = (tmp_path / "savepoints").iterdir()
    assert f"Savepoint completed. Path: {savepoint}" in stopped.stdout, stopped.stderr
    assert f"{cluster.job} : sums (FINISHED)" in flink("list", "-a").stdout


def test_checkpoints_and_savepoints_are_triggered(cluster: Cluster, flink: Command, tmp_path: Path) -> None:
    assert f"{cluster.job} : sums (RUNNING)" in flink("list", "-r").stdout
    assert "sums" not in flink("list", "-s").stdout
    taken = flink("checkpoint", cluster.job, "--full")
    assert "Checkpoint" in taken.stdout, taken.stderr
    assert taken.returncode == 0
    detached = flink("savepoint", "-detached", cluster.job, str(tmp_path / "savepoints"))
    assert detached.returncode == 0, detached.stderr
    cancelled = flink("cancel", "-s", str(tmp_path / "cancelled"), cluster.job)
    (savepoint,) = (tmp_path / "cancelled").iterdir()
    assert str(savepoint) in cancelled.stdout, cancelled.stderr
    assert len(list((tmp_path / "savepoints").iterdir())) == 1


def test_a_job_is_cancelled(cluster: Cluster, flink: Command) -> None:
    unknown = flink("cancel", "f" * 32)
    assert unknown.returncode == 1
    assert f"there is no job {'f' * 32}" in unknown.stdout + unknown.stderr
    assert flink("cancel", cluster.job).returncode == 0
    assert f"{cluster.job} : sums (CANCELED)" in flink("list", "-a").stdout
