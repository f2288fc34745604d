"""A job on Spark is rescaled while it runs, and follows the executors of a cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from millstream.testing.spark_cluster import SparkCluster
from millstream_chaos.jobs.drivers import Drivers, create_options, run_without_faults
from millstream_chaos.jobs.keyed_job import Specification, write_input
from millstream_chaos.jobs.rescaling import offer_ports, rescale_running_job
from millstream_chaos.machine.python_path import source_folders
from millstream_chaos.outputs.compare import find_differences, read_lines

pytestmark = [pytest.mark.spark, pytest.mark.timeout(200)]


def read_rescales(drivers: Drivers) -> list[int]:
    return [each["rescaled"] for each in drivers.read_progress() if "rescaled" in each]


def check(specification: Specification, directory: Path) -> None:
    expected = run_without_faults(specification, directory / "without-faults")
    assert not list(find_differences(read_lines(specification.output), expected))


def test_rescaled_from_another_process_while_it_runs(tmp_path: Path) -> None:
    options = create_options(tmp_path, epoch_records=200) | offer_ports()
    specification = Specification(str(tmp_path), options=options)
    write_input(specification.input, 5, records=8_000, keys=200, files=4)
    with Drivers(specification) as drivers:
        for number, wanted in enumerate([3, 1, 4], 1):
            due = 8 * number
            drivers.wait(lambda due=due: drivers.has_ended() or drivers.epoch() >= due, "an epoch")
            rescale_running_job(options, wanted)
        drivers.wait(drivers.has_ended, "the end of the job")
        assert read_rescales(drivers) == [3, 1, 4]
        assert len({each["pid"] for each in drivers.read_progress()}) == 1
    check(specification, tmp_path)


def test_an_adaptive_job_follows_the_executors(tmp_path: Path) -> None:
    with SparkCluster(workers=1, python_path=source_folders()) as cluster:
        settings = create_options(tmp_path, epoch_records=150) | cluster.settings()
        settings |= {
            "jobmanager.scheduler": "adaptive",
            "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "500 ms",
            "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "500 ms",
        }
        if os.environ.get("MILLSTREAM_TEST_ENGINE", "jobs") != "jobs":
            settings["millstream.epoch.min-interval"] = "600 ms"  # else it ends before the second executor is there
        specification = Specification(str(tmp_path), parallelism=2, options=settings)
        write_input(specification.input, 6, records=12_000, keys=200, files=4)
        with Drivers(specification) as drivers:
            drivers.wait(lambda: drivers.has_ended() or read_rescales(drivers) == [1], "one slot for one executor")
            cluster.start_worker(1)
            drivers.wait(lambda: drivers.has_ended() or read_rescales(drivers) == [1, 2], "a second slot")
            drivers.wait(drivers.has_ended, "the end of the job")
            assert read_rescales(drivers) == [1, 2]
    check(specification, tmp_path)
