"""A job's checkpoints and plan log on storage: what is found, replayed, kept and deleted."""

import errno
import json
from dataclasses import replace

import pytest

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.storage import CheckpointStorage
from millstream.checkpoint.storage_errors import VoidCheckpoint
from millstream.cluster.checkpoint_lookup import AllCheckpointsDamaged, OlderCheckpointRefused
from millstream.cluster.checkpoint_schedule import CheckpointSchedule
from millstream.cluster.checkpoints import Checkpoints, NoSuchCheckpoint, PlansMissing
from millstream.files.errors import StorageFailure
from millstream.runtime.memory import SubtaskMemory
from millstream.state.handles import Handle, Lineage
from millstream.state.snapshot import StateFileDamaged
from millstream.testing import ManualClock
from millstream_chaos.storage.faulty_files import FaultyFileSystem
from millstream_chaos.storage.memory_files import MemoryFileSystem


@pytest.fixture
def disk():
    made = MemoryFileSystem()
    made.make_dirs("/store")
    return made


def checkpoints(disk, job="job", interval=100, min_pause=0):
    storage = CheckpointStorage("/store", job, fs=disk)
    made = Checkpoints(storage, CheckpointSchedule(interval, min_pause), temporary=False)
    made.patience = ()
    return made


def metadata(number, epoch=None, job="job", at=0):
    return CheckpointMetadata(number, epoch or number, 0, job, "name", at, at, ())


def plan(epoch, *sources):
    return {"epoch": epoch, "now": 0, "sources": {name: {"ranges": [], "splits": [], "end": False} for name in sources}}


def epochs(found):
    return [each["epoch"] for each in found]


def test_a_new_job_finds_nothing(disk):
    made = checkpoints(disk)
    assert made.latest_intact() is None
    assert made.logged_plans(0, {"a"}) == []


def test_a_known_checkpoint_is_found_although_it_is_not_listed(disk, monkeypatch):
    made = checkpoints(disk)
    made.complete(metadata(1), ManualClock())
    made.latest_intact()
    made.storage.void(2)
    monkeypatch.setattr(CheckpointStorage, "list_checkpoints", lambda self: [2])
    assert made.latest_intact() == metadata(1)


def test_the_newest_intact_one_is_found(disk, caplog):
    made = checkpoints(disk)
    for number in (1, 2, 3):
        made.complete(metadata(number), ManualClock())
    disk.files["/store/job/chk-3/_metadata"] = b"?"
    with pytest.raises(OlderCheckpointRefused, match=r"chk-3/_metadata is damaged.*allow-older-checkpoint"):
        made.latest_intact()
    made.allow_older = True
    older = made.latest_intact()
    assert older.incarnation  # it writes committed output again, which must not be mistaken for the committed one
    assert replace(older, incarnation="") == metadata(2)
    assert "checkpoint 3 is damaged and skipped" in caplog.text


def test_a_damaged_checkpoint_that_committed_nothing_is_skipped(disk, caplog):
    made = checkpoints(disk)
    stored = made.storage.write("shared/a", b"state")
    handle = Handle(stored.name, stored.size, stored.sha256, 2)
    operator = OperatorSnapshot("op", "op", "op", 1, 128, (Lineage((handle,)),), (SubtaskMemory(),))
    for number, committables in ((1, {}), (2, {"sink": ()}), (3, {"sink": ("staged",)})):
        found = replace(metadata(number), operators=() if number == 1 else (operator,), committables=committables)
        made.complete(found, ManualClock())
    damaged = StateFileDamaged(stored.name, "it is damaged", missing=False)
    assert made.note_damage(damaged)
    with pytest.raises(
        OlderCheckpointRefused, match=r"with checkpoint 3 output of epochs 2 to 3 was committed to 'sink'"
    ):
        made.latest_intact()
    made.storage.delete_checkpoint(3)
    again = checkpoints(disk)
    assert again.latest_intact().checkpoint == 2
    assert again.note_damage(damaged)
    assert again.latest_intact() == metadata(1)
    assert "nothing was committed with checkpoint 2" in caplog.text


def test_a_state_file_that_only_a_worker_cannot_read_is_not_damaged(disk):
    made = checkpoints(disk)
    stored = made.storage.write("shared/a", b"state")
    handle = Handle(stored.name, stored.size, stored.sha256, 2)
    operator = OperatorSnapshot("op", "op", "op", 1, 128, (Lineage((handle,)),), (SubtaskMemory(),))
    made.complete(replace(metadata(1), operators=(operator,)), ManualClock())
    missing = StateFileDamaged(stored.name, "there is no file", missing=True)
    assert not made.note_damage(missing)
    assert not made.note_damage(StateFileDamaged("job/shared/newer", "it is damaged", missing=False))
    disk.files.clear()
    assert made.note_damage(missing)


def test_a_number_is_used_once_even_after_a_failure(disk):
    made = checkpoints(FaultyFileSystem(disk, 1, "enospc"))
    with pytest.raises(StorageFailure):
        made.complete(metadata(1), ManualClock())
    assert made.next_id == 2
    made.complete(metadata(2), ManualClock())
    assert made.storage.list_checkpoints() == [1, 2]
    assert made.latest_intact() == metadata(2)
    with pytest.raises(VoidCheckpoint):
        made.storage.read_metadata(1)


def test_a_void_number_stays_while_a_checkpoint_before_it_is_kept(disk):
    made = checkpoints(disk)
    made.complete(metadata(1), ManualClock())
    made.storage.void(2)
    for number, kept in ((3, [1, 2, 3]), (4, [3, 4])):
        made.complete(metadata(number), ManualClock())
        made.retire(keep=2)
        assert made.storage.list_checkpoints() == kept


def test_metadata_of_kept_checkpoints_is_not_read_again(disk, monkeypatch):
    made = checkpoints(disk)
    made.complete(metadata(1), ManualClock())
    read = []
    monkeypatch.setattr(made.storage, "read_metadata", read.append)
    for number in (2, 3, 4):
        made.complete(metadata(number), ManualClock())
        made.retire(keep=2)
    assert read == []
    assert made.storage.list_checkpoints() == [3, 4]


def test_an_error_names_all_damaged_checkpoints_if_none_is_intact(disk):
    made = checkpoints(disk)
    for number in (1, 2):
        made.complete(metadata(number), ManualClock())
        disk.files[f"/store/job/chk-{number}/_metadata"] = b"?"
    with pytest.raises(AllCheckpointsDamaged, match=r"chk-2: .*chk-1: .*hint: "):
        made.latest_intact()


def test_unavailable_storage_is_not_damage(disk, monkeypatch):
    """An older checkpoint would repeat committed output; waiting does not."""
    made = checkpoints(disk)
    made.complete(metadata(1), ManualClock())

    def broken(path):
        raise OSError(errno.EIO, "Input/output error", path)

    monkeypatch.setattr(disk, "read_bytes", broken)
    with pytest.raises(StorageFailure):
        made.latest_intact()


def test_numbers_continue_after_a_damaged_checkpoint(disk):
    made = checkpoints(disk)
    made.complete(metadata(1), ManualClock())
    made.complete(metadata(2), ManualClock())
    again = checkpoints(disk)
    again.latest_intact()
    again.start(0, 1)
    assert again.next_id == 3


def test_the_pause_is_counted_from_the_end_of_a_checkpoint(disk):
    made, clock = checkpoints(disk, interval=10, min_pause=50), ManualClock(1000)
    made.start(1000, 0)
    made.complete(metadata(1, at=900), clock)
    assert not made.is_due(1049, 2)
    assert made.is_due(1050, 2)


def test_a_checkpoint_whose_directory_could_not_be_synced_exists(disk):
    counted = FaultyFileSystem(disk)
    checkpoints(counted).complete(metadata(1), ManualClock())
    sync = max(i for i, op in enumerate(counted.operations) if op.name == "sync_dir")
    made = checkpoints(FaultyFileSystem(disk, sync, "eio"))
    made.complete(metadata(2), ManualClock())
    assert made.latest_intact() == metadata(2)


def test_a_checkpoint_that_could_not_be_written_does_not_exist(disk):
    made = checkpoints(FaultyFileSystem(disk, 1, "enospc"))
    with pytest.raises(StorageFailure, match="no space left"):
        made.complete(metadata(1), ManualClock())
    assert made.latest_intact() is None


# ----------------------------------------------------------------------------------------------------- the plan log


def test_plans_after_the_checkpoint_are_replayed_the_last_of_each_epoch(disk):
    made = checkpoints(disk)
    for epoch in (1, 2, 3, 4, 3, 4, 5):
        made.log_plan({**plan(epoch, "a"), "now": epoch * 10})
    assert epochs(made.logged_plans(2, {"a"})) == [3, 4, 5]
    assert epochs(made.logged_plans(5, {"a"})) == []


def test_a_gap_in_the_log_is_an_error(disk):
    made = checkpoints(disk)
    for epoch in (4, 5):
        made.log_plan(plan(epoch, "a"))
    with pytest.raises(PlansMissing, match="resumes after epoch 0, but the next plan in its log is of epoch 4"):
        made.logged_plans(0, {"a"})


def test_plans_of_a_program_with_other_sources_are_not_replayed(disk):
    made = checkpoints(disk)
    made.log_plan(plan(1, "a"))
    made.log_plan(plan(2, "a", "b"))
    assert epochs(made.logged_plans(0, {"a"})) == [1]


def test_plans_of_the_restored_job_are_copied_to_the_log(disk):
    first = checkpoints(disk, "first")
    first.complete(metadata(1, job="first"), ManualClock())
    for epoch in (1, 2, 3):
        first.log_plan(plan(epoch, "a"))
    second = checkpoints(disk, "second")
    second.open("/store/first/chk-1")
    assert epochs(second.logged_plans(1, {"a"})) == [2, 3]
    second.log_plan(plan(4, "a"))
    again = checkpoints(disk, "second")
    again.open("/store/first/chk-1")
    assert epochs(again.logged_plans(1, {"a"})) == [2, 3, 4]


@pytest.mark.parametrize("path", ["/store/job/chk-9", "/store/job", "/", "/none", "file:///store/job/chk-9/_metadata"])
def test_a_path_that_is_not_a_checkpoint(disk, path):
    with pytest.raises(NoSuchCheckpoint, match="is not a checkpoint"):
        checkpoints(disk).open(path)


@pytest.mark.parametrize("path", ["/store/job/chk-1", "file:///store/job/chk-1", "/store/job/chk-1/_metadata"])
def test_a_path_of_a_checkpoint(disk, path):
    checkpoints(disk).complete(metadata(1), ManualClock())
    assert checkpoints(disk, "other").open(path) == metadata(1)


# ----------------------------------------------------------------------------------------------------------- keeping


def test_old_plans_are_deleted_when_no_retained_checkpoint_needs_them(disk):
    made = checkpoints(disk)
    for epoch in range(1, 301):
        made.log_plan(plan(epoch, "a"))
        if epoch % 100 == 0:
            made.complete(metadata(epoch // 100, epoch), ManualClock())
    made.retire(keep=2)
    kept = [json.loads(record)["epoch"] for record in made.storage.read_log("epochs.log")]
    assert kept == list(range(201, 301))
    assert epochs(made.logged_plans(200, {"a"})) == list(range(201, 301))


def test_nothing_is_deleted_while_a_kept_checkpoint_cannot_be_read(disk):
    """Its files are unknown, so they cannot be kept."""
    made = checkpoints(disk)
    made.storage.write("shared/needed", b"x")
    for number in (1, 2, 3):
        made.complete(metadata(number), ManualClock())
    disk.files["/store/job/chk-2/_metadata"] = b"?"
    made = checkpoints(disk)
    with pytest.raises(Exception, match="damaged"):
        made.retire(keep=2)
    assert made.storage.files() == ["job/shared/needed"]
    made.complete(metadata(4), ManualClock())
    made.retire(keep=2)
    assert made.storage.list_checkpoints() == [3, 4]
    assert made.storage.files() == []
