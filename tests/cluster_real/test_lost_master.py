"""A standalone master dies and is replaced: the new one does not know the job, and the job runs on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from millstream.testing.spark_cluster import SparkCluster
from millstream_chaos.jobs.drivers import Drivers, create_options, measure_recovery, run_without_faults
from millstream_chaos.jobs.keyed_job import Specification, write_input
from millstream_chaos.machine.python_path import source_folders
from millstream_chaos.outputs.compare import find_differences, read_lines

pytestmark = [pytest.mark.spark, pytest.mark.timeout(280)]


def test_a_job_whose_master_was_replaced_continues_with_a_new_application(tmp_path: Path) -> None:
    """A master that was started anew gives executors to applications that it knows; the worker that comes with it
    stands for workers that find their way to it. Spark itself would wait for ever."""
    with SparkCluster(workers=1, python_path=source_folders()) as cluster:
        settings = create_options(tmp_path, epoch_records=200) | cluster.settings()
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
            drivers.wait(
                lambda: measure_recovery(drivers.read_progress(), lost_at) is not None, "life with another master"
            )
            drivers.wait(drivers.has_ended, "the end of the job")
            assert "its master may have been lost" in (tmp_path / "drivers.log").read_text()
    expected = run_without_faults(specification, tmp_path / "without-faults")
    assert not list(find_differences(read_lines(specification.output), expected))
