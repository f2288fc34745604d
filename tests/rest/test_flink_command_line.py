"""Flink's own command line, from Maven Central, with a running job."""

from __future__ import annotations

from pathlib import Path

import pytest
from flink_cli import Command, create_command
from rest_cluster import Cluster


@pytest.fixture
def flink(cluster: Cluster, tmp_path: Path) -> Command:
    return create_command(tmp_path, cluster.address)


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
