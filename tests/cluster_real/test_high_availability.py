"""Two drivers as processes: the one that waits takes over from one that was killed, or that slept too long."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from millstream.testing.chaos_driven import Drivers, fault_free, options, recovery_seconds
from millstream.testing.chaos_job import Specification, write_input
from millstream.testing.chaos_output import differences, lines_by_file
from millstream.testing.spark_cluster import kill

pytestmark = [pytest.mark.spark, pytest.mark.timeout(200)]


@pytest.fixture
def specification(tmp_path: Path) -> Specification:
    settings = options(tmp_path, epoch_records=200) | {"millstream.high-availability.lease-duration": "4 s"}
    made = Specification(str(tmp_path), options=settings)
    write_input(made.input, 4, records=10_000, keys=200, files=4)
    return made


def after(drivers: Drivers, epoch: int) -> int:
    """The leader, once it has come so far."""
    drivers.wait(lambda: drivers.epoch() >= epoch and drivers.leader() is not None, f"epoch {epoch}")
    leader = drivers.leader()
    assert leader is not None
    return leader


def check(specification: Specification, directory: Path) -> None:
    expected = fault_free(specification, directory / "without-faults")
    assert not list(differences(lines_by_file(specification.output), expected))


def test_a_killed_leaders_job_goes_on_in_the_driver_that_waits(specification: Specification, tmp_path: Path) -> None:
    with Drivers(specification, standby=1) as drivers:
        first = after(drivers, 10)
        killed_at = time.monotonic()
        kill(first)
        drivers.wait(lambda: recovery_seconds(drivers.told(), killed_at) is not None, "the new leader")
        print(f"taken over in {recovery_seconds(drivers.told(), killed_at):.1f} s")
        drivers.wait(drivers.ended, "the end of the job")
        assert drivers.leader() != first
    check(specification, tmp_path)


def test_a_leader_that_wakes_up_after_it_was_replaced_is_fenced_off(
    specification: Specification, tmp_path: Path
) -> None:
    with Drivers(specification, standby=1) as drivers:
        first = after(drivers, 10)
        kill(first, signal.SIGSTOP)
        stopped_at = time.monotonic()
        drivers.wait(lambda: recovery_seconds(drivers.told(), stopped_at) is not None, "the new leader")
        kill(first, signal.SIGCONT)
        drivers.wait(lambda: first not in drivers.living(), "the end of the old leader")
        assert "took over in term 2" in drivers.last_words()
        codes = drivers.exit_codes()
        assert codes[0] == 1 or codes[1] == 1
        drivers.wait(lambda: not drivers.living(), "the end of the job")
        assert 0 in drivers.exit_codes()
        statuses = [each["status"] for each in drivers.told() if "status" in each and each["pid"] == first]
        assert statuses[-1] == "SUSPENDED"
    check(specification, tmp_path)
