"""Reads that fail for a moment, or return old or truncated data: no output is lost or repeated, no state is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from millstream.checkpoint.storage import METADATA, CheckpointStorage
from millstream.cluster import checkpoint_lookup
from millstream.job.job_status import JobStatus
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import RETRIES, Faults, Setup, World, compute_reference, run
from millstream_chaos.simulation.crash_states import find_damaged, record_life
from millstream_chaos.simulation.storage_points import Outcome, Points, Script
from millstream_chaos.storage.faulty_files import FaultyFileSystem, Reading, ReadMode
from millstream_chaos.storage.memory_files import MemoryFileSystem

SETUP = Setup(PROGRAMS["tumbling"], epoch_records=20, checkpoint_every=1)


def faulty(mode: ReadMode, at: int = 0, behind: int = 1) -> FaultyFileSystem:
    files = MemoryFileSystem.of({"/d/a": b"data", "/d/b": b""})
    return FaultyFileSystem(files, reading=Reading(at, mode, behind=behind))


def test_a_read_reports_an_existing_file_as_missing():
    assert not faulty("enoent").exists("/d/a")
    with pytest.raises(FileNotFoundError):
        faulty("enoent").read_bytes("/d/a")
    with pytest.raises(FileNotFoundError):
        faulty("enoent").list("/d")


def test_a_read_is_short():
    assert faulty("short").read_bytes("/d/a") == b"da"
    assert faulty("short").list("/d") == ["a"]
    assert faulty("short").size("/d/a") == 2


def test_a_stale_read_is_as_old_as_requested():
    files = faulty("stale", at=1, behind=2)
    for content in (b"1", b"2", b"3"):
        files.write_bytes("/d/a", content, True)
    assert [files.read_bytes("/d/a") for _ in range(3)] == [b"3", b"1", b"3"]


def test_reads_and_changes_are_counted_separately():
    files = faulty("eio", at=2)
    files.write_bytes("/d/c", b"", True)
    assert files.exists("/d/c")
    assert files.size("/d/a") == 4
    with pytest.raises(OSError, match="Input/output error"):
        files.read_bytes("/d/a")
    assert [each.name for each in files.operations] == ["write_bytes"]
    assert [each.name for each in files.reads] == ["exists", "size", "read_bytes"]


def test_state_of_an_unlisted_checkpoint_is_not_deleted():
    with World() as world:
        reads = run(SETUP, world).reads
        lists = [number for number, each in enumerate(reads) if each.name == "list" and each.path.endswith("/job")]
    assert len(lists) > 5
    for number in lists:
        with World() as world:
            history = record_life(SETUP, world, Script(rescales={}, savepoint=False), Faults(reads=(number, "enoent")))
            for frame in history.frames:
                newest = max((path for path in frame.disk.files if path.endswith(METADATA)), default=None)
                assert newest is None or not find_damaged(frame.disk), (number, newest)


@pytest.mark.parametrize("mode", ["enoent", "stale", "short"])
def test_a_recovery_that_misses_the_newest_checkpoint_duplicates_no_output(mode: ReadMode):
    """Nothing is logged after the newest checkpoint: only the next one of its number meets it."""
    setup = replace(SETUP, checkpoint_every=3, options={"execution.checkpointing.tolerable-failed-checkpoints": "3"})
    with World() as world:
        history = record_life(setup, world, Script(rescales={}, savepoint=False))
        made = [number for number, each in enumerate(history.operations) if each.target.endswith(METADATA)]
        for number in made[1:]:
            committed = next(
                n for n in range(number, len(history.operations)) if "visible" in history.operations[n].target
            )
            for read in range(6):
                left = history.restore_crash(committed, "after")
                life = run(setup, world, Faults(reads=(read, mode), reads_lasting=2, behind=8), listen=left.listener)
                if life.status is not JobStatus.FINISHED:
                    run(setup, world)
                assert world.visible() == compute_reference(setup), (number, read, life.failure)


@pytest.mark.parametrize("mode", ["enoent", "stale", "short"])
@pytest.mark.parametrize("lasting", [1, RETRIES])
def test_a_recovery_survives_every_temporarily_wrong_read(mode: ReadMode, lasting: int):
    """No restart strategy helps here: an error that says that nothing intact is left ends the job."""
    with World() as world:
        history = record_life(SETUP, world, Script(rescales={}, savepoint=False))
        third = [number for number, each in enumerate(history.operations) if each.target.endswith(METADATA)][2]
        history.restore_crash(third, "after")
        reads = len(run(SETUP, world).reads)
        for number in range(min(reads, 40)):
            left = history.restore_crash(third, "after")
            faults = Faults(reads=(number, mode), reads_lasting=lasting, behind=8)
            life = run(SETUP, world, faults, listen=left.listener)
            assert life.status is JobStatus.FINISHED, (number, life.failure)
            assert world.visible() == compute_reference(SETUP), number


def read_once(storage: CheckpointStorage, number: int, _: Sequence[float]) -> bytes:
    return storage.read_metadata(number)


def test_the_storage_case_distinguishes_needless_failures_from_necessary_ones(monkeypatch: pytest.MonkeyPatch):
    with World() as world:
        points = Points("tumbling", "rescaled", 20, world)
        number = [n for n, each in enumerate(points.history.operations) if each.target.endswith(METADATA)][2]

        def outcomes(reads: int) -> list[Outcome]:
            crash = {"operation": number, "mode": "after"}
            lies = [{"read": read, "read_mode": "short", "reads": reads} for read in range(12)]
            return [points.outcome({"faults": [crash, lie]}) for lie in lies]

        assert not any(each.started_again or each.needless for each in outcomes(1))
        monkeypatch.setattr(checkpoint_lookup, "_read", read_once)
        failed = [each for each in outcomes(1) if each.needless]
        assert failed
        assert all(each.started_again and "cannot recover" in str(each.needless) for each in failed)
        assert not any(each.needless for each in outcomes(RETRIES + 1))
