"""The client of a job that runs in another process does what the client of a job of this process does."""

from __future__ import annotations

from pathlib import Path

import pytest
from rest_cluster import Cluster

from millstream.client.job_client import JobCancelled
from millstream.client.remote import Refused, RemoteCluster
from millstream.client.remote_job import connect_job
from millstream.job.job_status import JobStatus


def test_a_job_is_saved_rescaled_and_stopped(cluster: Cluster, tmp_path: Path) -> None:
    job = connect_job(RemoteCluster(cluster.address), cluster.job)
    assert str(job.get_job_id()) == cluster.job
    assert job.get_job_status().result() in (JobStatus.CREATED, JobStatus.RUNNING)
    assert not job.wait(0.1)
    assert Path(job.trigger_savepoint(str(tmp_path / "savepoints")).result()).exists()
    assert job.rescale({"sums": 3}).result() == 3
    with pytest.raises(Refused, match="maximum parallelism 8"):
        job.rescale(9).result()
    assert job.get_accumulators().result() == {}
    assert Path(job.stop_with_savepoint(True, str(tmp_path / "stopped")).result()).exists()
    result = job.get_job_execution_result().result()
    assert result.get_net_runtime() > 0
    assert job.get_job_status().result() is JobStatus.FINISHED


def test_a_cancelled_job_has_no_result(cluster: Cluster) -> None:
    job = connect_job(RemoteCluster(cluster.address), cluster.job)
    job.cancel().result()
    with pytest.raises(JobCancelled):
        job.get_job_execution_result().result()
    with pytest.raises(Refused, match="there is no job"):
        connect_job(RemoteCluster(cluster.address), "f" * 32)
