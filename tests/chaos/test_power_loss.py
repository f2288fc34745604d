"""Files that were not synced are lost after a power loss; committed output and the files of checkpoints are not."""

from __future__ import annotations

import pytest

from millstream.checkpoint.storage import METADATA, CheckpointStorage
from millstream_chaos.cases.storage import Points
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run_lives
from millstream_chaos.simulation.crash_states import find_damaged
from millstream_chaos.storage.memory_files import MemoryFileSystem
from millstream_chaos.storage.power import POWER_LOSSES, PowerLoss


def lose_power(files: MemoryFileSystem, how: PowerLoss, kept: int = 0) -> dict[str, bytes]:
    left = files.copy()
    left.lose_power(how, lambda count: min(kept, count - 1))
    return left.files


def disk() -> MemoryFileSystem:
    files = MemoryFileSystem()
    files.make_dirs("/d")
    return files


def test_a_new_file_needs_a_sync_of_its_data_and_of_its_directory():
    files = disk()
    files.write_bytes("/d/a", b"data", False)
    assert lose_power(files, "lost") == {}
    assert lose_power(files, "emptied") == {"/d/a": b""}
    assert lose_power(files, "mixed", kept=1) == {"/d/a": b"da"}
    files.write_bytes("/d/a", b"data", True)
    assert lose_power(files, "lost") == {}
    assert lose_power(files, "emptied") == {"/d/a": b"data"}
    files.sync_dir("/d")
    assert all(lose_power(files, how) == {"/d/a": b"data"} for how in POWER_LOSSES)


def test_appended_data_without_sync_is_lost_zero_or_torn():
    files = MemoryFileSystem.of({"/d/log": b"one"})
    files.append_bytes("/d/log", b"two!", False)
    assert lose_power(files, "lost") == {"/d/log": b"one"}
    assert lose_power(files, "emptied") == {"/d/log": b"one\0\0\0\0"}
    assert lose_power(files, "mixed") == {"/d/log": b"onetw"}


def test_a_rename_is_undone_atomically_unless_the_directory_is_synced():
    files = MemoryFileSystem.of({"/d/new": b"2", "/d/old": b"1"})
    files.replace("/d/new", "/d/old")
    assert lose_power(files, "lost") == {"/d/new": b"2", "/d/old": b"1"}
    assert lose_power(files, "emptied") == {"/d/old": b"2"}
    files.sync_dir("/d")
    assert lose_power(files, "lost") == {"/d/old": b"2"}


def test_the_first_changes_of_each_directory_may_survive():
    files = MemoryFileSystem.of({"/d/a": b"", "/d/b": b"", "/e/a": b"", "/e/b": b""})
    for path in ("/d/a", "/d/b", "/e/a", "/e/b"):
        files.remove(path)
    assert set(lose_power(files, "mixed", kept=1)) == {"/d/b", "/e/b"}


def test_a_deleted_checkpoint_does_not_reappear_without_its_files():
    files = disk()
    storage = CheckpointStorage("/d", "job", fs=files)
    storage.publish(1, b"{}")
    storage.delete_checkpoint(1)
    assert not any(path.endswith(METADATA) for path in lose_power(files, "lost"))


@pytest.mark.parametrize("mode", POWER_LOSSES)
def test_no_power_loss_loses_or_duplicates_output(mode: PowerLoss):
    setup = Setup(PROGRAMS["ordered_timers"], epoch_records=8, checkpoint_every=2)
    with World() as world:
        operations = len(run_lives(setup, world)[0].operations)
    for number in range(0, operations, 7):
        with World() as world:
            lives = run_lives(setup, world, [Faults(storage=(number, mode))])
            assert lives[0].crashed
            assert world.visible() == compute_reference(setup), number
            assert not find_damaged(world.disk)


def test_a_power_loss_after_a_recovery_loses_and_duplicates_nothing():
    """The driver dies after a rename and before the sync of the directory; the next one must not count on the name."""
    with World() as world:
        points = Points("side_output", "rescaled", 20, world, every=2)
        for number, operation in enumerate(points.history.operations):
            published = operation.target.endswith("/chk-1/_metadata")
            shown = operation.target.endswith("-00005")
            if not (published or shown):
                continue
            for again in range(0, 30, 3):
                step = {"operation": number, "mode": "after", "lasting": 1, "again": [again, "lost"]}
                outcome = points.outcome(step)
                assert (outcome.right, outcome.failure) == (True, None), (operation, again)
