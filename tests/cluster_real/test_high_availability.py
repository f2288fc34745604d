"""Two drivers as processes: the standby driver takes over from one that was killed, or that was suspended too long."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from millstream.testing.spark_cluster import kill
from millstream_chaos.jobs.drivers import Drivers, create_options, measure_recovery, run_without_faults
from millstream_chaos.jobs.keyed_job import Specification, write_input
from millstream_chaos.outputs.compare import find_differences, read_lines

pytestmark = [pytest.mark.spark, pytest.mark.timeout(200)]


@pytest.fixture
def specification(tmp_path: Path) -> Specification:
    settings = create_options(tmp_path, epoch_records=200) | {"millstream.high-availability.lease-duration": "4 s"}
    made = Specification(str(tmp_path), options=settings)
    write_input(made.input, 4, records=6_000, keys=200, files=4)
    return made


def wait_for_leader(drivers: Drivers, epoch: int) -> int:
    """The leader, once it has come so far."""
    drivers.wait(lambda: drivers.epoch() >= epoch and drivers.leader() is not None, f"epoch {epoch}")
    leader = drivers.leader()
    assert leader is not None
    return leader


def check(specification: Specification, directory: Path) -> None:
    expected = run_without_faults(specification, directory / "without-faults")
    assert not list(find_differences(read_lines(specification.output), expected))


def test_the_standby_continues_the_job_of_a_killed_leader(specification: Specification, tmp_path: Path) -> None:
    with Drivers(specification, standby=1) as drivers:
        first = wait_for_leader(drivers, 10)
        killed_at = time.monotonic()
        kill(first)
        drivers.wait(lambda: measure_recovery(drivers.read_progress(), killed_at) is not None, "the new leader")
        print(f"taken over in {measure_recovery(drivers.read_progress(), killed_at):.1f} s")
        drivers.wait(drivers.has_ended, "the end of the job")
        assert drivers.leader() != first
    check(specification, tmp_path)


def test_a_leader_that_resumes_after_its_replacement_is_fenced(specification: Specification, tmp_path: Path) -> None:
    with Drivers(specification, standby=1) as drivers:
        first = wait_for_leader(drivers, 10)
        kill(first, signal.SIGSTOP)
        stopped_at = time.monotonic()
        drivers.wait(lambda: measure_recovery(drivers.read_progress(), stopped_at) is not None, "the new leader")
        kill(first, signal.SIGCONT)
        drivers.wait(lambda: first not in drivers.running_pids(), "the end of the old leader")
        assert "took over in term 2" in drivers.read_log_end()
        codes = drivers.exit_codes()
        assert codes[0] == 1 or codes[1] == 1
        drivers.wait(lambda: not drivers.running_pids(), "the end of the job")
        assert 0 in drivers.exit_codes()
        statuses = [each["status"] for each in drivers.read_progress() if "status" in each and each["pid"] == first]
        assert statuses[-1] == "SUSPENDED"
    check(specification, tmp_path)
