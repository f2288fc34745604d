"""A standalone master dies and another one comes in its place: it does not know the job, which goes on all the same."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from millstream.testing.chaos_driven import Drivers, fault_free, options, recovery_seconds
from millstream.testing.chaos_job import Specification, write_input
from millstream.testing.chaos_output import differences, lines_by_file
from millstream.testing.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]


def test_a_job_whose_master_was_replaced_goes_on_with_a_new_application(tmp_path: Path) -> None:
    """A master that was started anew gives executors to applications that it knows; the worker that comes with it
    stands for workers that find their way to it. Spark itself would wait for ever."""
    with SparkCluster(workers=1) as cluster:
        settings = options(tmp_path, epoch_records=200) | cluster.settings()
        settings |= {"heartbeat.interval": "500 ms", "heartbeat.timeout": "4 s"}
        specification = Specification(str(tmp_path), parallelism=1, options=settings)
        write_input(specification.input, 4, records=6_000, keys=100, files=2)
        with Drivers(specification) as drivers:
            drivers.wait(lambda: drivers.epoch() >= 5, "epoch 5")
            lost_at = time.monotonic()
            cluster.kill_master()
            cluster.kill_worker(0)
            cluster.start_master()
            cluster.start_worker(0)
            drivers.wait(lambda: recovery_seconds(drivers.told(), lost_at) is not None, "life with another master")
            drivers.wait(drivers.ended, "the end of the job")
            assert "its master may have been lost" in (tmp_path / "drivers.log").read_text()
    expected = fault_free(specification, tmp_path / "without-faults")
    assert not list(differences(lines_by_file(specification.output), expected))
