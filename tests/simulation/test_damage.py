"""Damaged files are detected before user code sees state. A recovery that would repeat output is refused unless it is
explicitly allowed."""

import dataclasses
import errno
import json
import logging
import os

import pytest

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.state_files import JobStateFiles
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.checkpoint_lookup import AllCheckpointsDamaged, OlderCheckpointRefused, SnapshotDamaged
from millstream.cluster.checkpoint_schedule import CheckpointSchedule
from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.job_events import CheckpointDone, EpochDone
from millstream.engine import epoch_level
from millstream.functions import ProcessFunction
from millstream.job.job_status import JobStatus
from millstream.state.snapshot import StateFileDamaged
from millstream.testing import ManualClock
from millstream_chaos.samples.programs import PROGRAMS, many_splits
from millstream_chaos.simulation import ROOT, Faults, Setup, World, compute_reference, find_operation, run
from millstream_chaos.storage.memory_files import MemoryFileSystem

STRICT = Setup(PROGRAMS["interval_join"], epoch_records=30, checkpoint_every=1)
SETUP = dataclasses.replace(
    STRICT,
    repeats=True,
    options={"millstream.recovery.allow-older-checkpoint": "true", "restart-strategy.type": "none"},
)


def flip(data, _):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


DAMAGES = {
    "flip": flip,
    "truncate": lambda data, _: data[: len(data) * 2 // 3],
    "delete": lambda data, _: None,
    "zero": lambda data, _: b"\0" * len(data),
    "swap": lambda data, other: other,
}


@pytest.fixture(scope="module")
def stopped():
    """The disk of a job that died after its fifth checkpoint, with three kept, and the right output."""
    after = find_operation(SETUP, "chk-5/_metadata", "epochs.log")
    with World() as world:
        assert run(SETUP, world, Faults(storage=(after, "after"))).crashed
        return world.disk, compute_reference(SETUP)


def metadata(disk, number):
    data = disk.files[f"{ROOT}/job/chk-{number}/_metadata"]
    return CheckpointMetadata.from_bytes(data[: data.rindex(b"\nsha256 ")])


def files_of(disk, number):
    return {f"{ROOT}/{handle.name}" for handle in metadata(disk, number).handles}


def damage_file(world, disk, path, damage):
    world.disk.files, world.disk.directories = dict(disk.files), set(disk.directories)
    other = next(data for name, data in disk.files.items() if name != path and "/shared/" in name)
    made = DAMAGES[damage](disk.files[path], other)
    if made is None:
        del world.disk.files[path]
    else:
        assert made != disk.files[path]
        world.disk.files[path] = made


@pytest.mark.parametrize("damage", DAMAGES)
def test_after_damage_to_the_last_checkpoint_the_one_before_is_restored(stopped, damage, caplog):
    disk, expected = stopped
    own = files_of(disk, 5) - files_of(disk, 4)
    assert own
    for path in [f"{ROOT}/job/chk-5/_metadata", *sorted(own)]:
        with World() as world, caplog.at_level(logging.WARNING):
            damage_file(world, disk, path, damage)
            caplog.clear()
            life = run(SETUP, world)
            assert life.status is JobStatus.FINISHED, (path, life.failure)
            assert world.visible() == expected, path
            assert "checkpoint 5 is damaged and skipped" in caplog.text
            assert "the job recovers from the older checkpoint 4; " in caplog.text


@pytest.mark.parametrize("damage", DAMAGES)
def test_restoring_a_checkpoint_older_than_committed_output_is_refused(stopped, damage):
    disk, _ = stopped
    own = files_of(disk, 5) - files_of(disk, 4)
    setup = dataclasses.replace(STRICT, options={"restart-strategy.type": "fixed-delay"})
    for path in [f"{ROOT}/job/chk-5/_metadata", *sorted(own)]:
        with World() as world:
            damage_file(world, disk, path, damage)
            before = world.visible()
            life = run(setup, world)
            assert life.status is JobStatus.FAILED
            assert isinstance(life.failure, OlderCheckpointRefused)
            assert life.master.job.restarts == 0, "trying again does not help"
            assert not life.epochs
            assert world.visible() == before
            told = str(life.failure)
            assert path in told
            assert "checkpoint 5 is damaged" in told
            assert "The newest intact one is 4" in told
            assert "millstream.recovery.allow-older-checkpoint" in told
            sink = "is not known" if path.endswith("_metadata") else "output of epochs 5 to 5 was committed to"
            assert sink in told


def test_damage_that_a_worker_detects_later_is_handled_in_the_same_way(stopped):
    """A worker that is replaced reads the state again, while the job runs."""
    lost = []

    def damage(observation, master):
        if isinstance(observation, CheckpointDone) and observation.id == 4:
            newest = metadata(world.disk, 4)
            lost.append(f"{ROOT}/{newest.handles[-1].file}")
            world.disk.files[lost[0]] = b"?"
            epoch_level.dispose_tasks()

    with World() as world:
        life = run(STRICT, world, listen=damage)
        assert life.status is JobStatus.FAILED
        assert isinstance(life.failure, OlderCheckpointRefused | AllCheckpointsDamaged)
        assert lost[0] in str(life.failure)


def test_a_damaged_file_that_no_checkpoint_needs_is_written_again():
    """It was written after the newest checkpoint: the epochs since then are run again."""
    setup = dataclasses.replace(STRICT, epoch_records=15, checkpoint_every=3)

    def damage(observation, master):
        if isinstance(observation, EpochDone) and observation.epoch == 5 and not hurt:
            needed = {file for number in disk_numbers(world) for file in files_of(world.disk, number)}
            written = {path for path in world.disk.files if "/shared/" in path} - needed
            hurt.extend(written)
            for path in written:
                world.disk.files[path] = b"?"
            epoch_level.dispose_tasks()

    hurt = []
    with World() as world:
        life = run(dataclasses.replace(setup, options={"restart-strategy.type": "fixed-delay"}), world, listen=damage)
        assert hurt
        assert life.status is JobStatus.FINISHED, life.failure
        assert life.master.job.restarts == 1
        assert world.visible() == compute_reference(setup)


def disk_numbers(world):
    return CheckpointStorage(ROOT, "job", fs=world.disk).list_checkpoints()


def test_a_damaged_savepoint_is_refused_by_name(stopped):
    disk, _ = stopped
    start = f"{ROOT}/job/chk-5"
    options = {"execution.state-recovery.path": start, "restart-strategy.type": "fixed-delay"}
    other = dataclasses.replace(STRICT, job="other", options=options)
    path = sorted(files_of(disk, 5))[0]
    with World() as world:
        damage_file(world, disk, path, "flip")
        life = run(other, world)
        assert isinstance(life.failure, SnapshotDamaged)
        assert life.master.job.restarts == 0
        assert path in str(life.failure)
        assert start in str(life.failure)
        assert not life.epochs


class Stamp(ProcessFunction):
    """Emits the processing time at which a record was seen; a replayed epoch must not change it."""

    def process_element(self, value, ctx):
        yield value[2], ctx.timer_service().current_processing_time()


def test_a_replayed_epoch_has_the_plan_of_the_first_run(stopped):
    """Laws 2 and 3. Ranges and processing time come from the log, even when the budget has changed since."""
    setup = dataclasses.replace(SETUP, program=lambda env: many_splits(env).process(Stamp()))
    with World() as world:
        assert run(
            setup, world, Faults(storage=(find_operation(setup, "chk-5/_metadata", "epochs.log"), "after"))
        ).crashed
        before = world.visible()
        world.disk.files[f"{ROOT}/job/chk-5/_metadata"] = b"?"
        world.clock.sleep(60)
        life = run(dataclasses.replace(setup, epoch_records=7), world)
        assert life.checkpoints[0].id == 6, "a number is used once"
        assert life.status is JobStatus.FINISHED, life.failure
        assert life.master.job.restarts == 0, life.failure
        assert set(before) < set(world.visible())
        assert len(world.visible()) == len(compute_reference(setup))


def test_damage_to_a_file_of_every_checkpoint_is_an_error_that_names_them(stopped):
    disk, _ = stopped
    everywhere = files_of(disk, 5) & files_of(disk, 4) & files_of(disk, 3)
    for path in sorted(everywhere):
        with World() as world:
            damage_file(world, disk, path, "flip")
            before = world.visible()
            life = run(SETUP, world)
            assert life.status is JobStatus.FAILED
            assert isinstance(life.failure, AllCheckpointsDamaged)
            assert not life.epochs, "user code saw state"
            assert world.visible() == before
            assert all(f"chk-{number}" in str(life.failure) for number in (3, 4, 5))
            assert os.path.basename(path) in str(life.failure)
            assert "hint:" in str(life.failure)
    assert everywhere


def test_damage_to_all_metadata_is_an_error_and_not_a_new_start(stopped):
    disk, _ = stopped
    with World() as world:
        world.disk.files, world.disk.directories = dict(disk.files), set(disk.directories)
        for number in (3, 4, 5):
            world.disk.files[f"{ROOT}/job/chk-{number}/_metadata"] = b"\0"
        life = run(SETUP, world)
        assert isinstance(life.failure, AllCheckpointsDamaged)
        assert not life.epochs


def test_manually_deleted_checkpoints_are_detected(stopped):
    """The log goes on where the deleted checkpoints were: starting from the beginning would be wrong."""
    disk, _ = stopped
    with World() as world:
        kept = {path: data for path, data in disk.files.items() if "/chk-" not in path}
        world.disk.files, world.disk.directories = kept, set(disk.directories)
        log = f"{ROOT}/job/epochs.log"
        storage = CheckpointStorage(ROOT, "job", fs=world.disk)
        storage.truncate_log("epochs.log", [r for r in storage.read_log("epochs.log") if json.loads(r)["epoch"] > 3])
        assert log in world.disk.files
        life = run(SETUP, world)
        assert life.status is JobStatus.FAILED
        assert isinstance(life.failure, AllCheckpointsDamaged)
        assert "there is no file /checkpoints/job/chk-5/_metadata" in str(life.failure)
        assert not life.epochs


def test_a_torn_end_of_the_plan_log_is_ignored(stopped):
    disk, expected = stopped
    with World() as world:
        damage_file(world, disk, f"{ROOT}/job/epochs.log", "zero")
        world.disk.files[f"{ROOT}/job/epochs.log"] = disk.files[f"{ROOT}/job/epochs.log"][:-3]
        life = run(SETUP, world)
        assert life.status is JobStatus.FINISHED
        assert world.visible() == expected


def test_damage_in_the_middle_of_the_plan_log_is_an_error_that_names_it(stopped):
    disk, _ = stopped
    with World() as world:
        damage_file(world, disk, f"{ROOT}/job/epochs.log", "flip")
        life = run(dataclasses.replace(SETUP, options={"restart-strategy.type": "none"}), world)
        assert life.status is JobStatus.FAILED
        assert "epochs.log is damaged" in str(life.failure)


def test_a_damaged_checkpoint_among_the_kept_ones_does_not_stop_a_running_job():
    def damage(observation, master):
        if getattr(observation, "id", None) == 2:
            world.disk.files[f"{ROOT}/job/chk-2/_metadata"] = b"\0"

    with World() as world:
        life = run(SETUP, world, listen=damage)
        assert life.status is JobStatus.FINISHED
        assert life.master.job.restarts == 0
        assert world.visible() == compute_reference(SETUP)


class Hiding(MemoryFileSystem):
    """Hides the files of checkpoint 2 from some reads."""

    looks = 0

    def _hides(self, path):
        self.looks -= "/chk-2" in path
        return "/chk-2" in path and self.looks >= 0

    def exists(self, path):
        return not self._hides(path) and super().exists(path)

    def read_bytes(self, path):
        if self._hides(path):
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        return super().read_bytes(path)


class Short(MemoryFileSystem):
    """Truncates the files of checkpoint 2 for some reads."""

    looks = 0

    def read_bytes(self, path):
        data = super().read_bytes(path)
        self.looks -= "/chk-2" in path
        return data[: len(data) // 2] if "/chk-2" in path and self.looks >= 0 else data


@pytest.mark.parametrize(
    ("disk_class", "looks", "problem"),
    [
        (Hiding, 1, "there is no file /store/job/chk-2/_metadata"),
        (Hiding, 2, "there is no file /store/job/chk-2/_metadata"),
        (Short, 1, "the file /store/job/chk-2/_metadata is damaged"),
        (Short, 3, "the file /store/job/chk-2/_metadata is damaged"),
    ],
)
def test_a_checkpoint_that_is_temporarily_incomplete_is_read_again(disk_class, looks, problem):
    disk = disk_class()
    disk.make_dirs("/store")
    made = Checkpoints(CheckpointStorage("/store", "job", fs=disk), CheckpointSchedule(100), temporary=False)
    made.patience = (0.001, 0.001, 0.001)
    snapshots = [CheckpointMetadata(number, number, 0, "job", "name", 0, 0, ()) for number in (1, 2)]
    for snapshot in snapshots:
        made.complete(snapshot, ManualClock())
    made.log_plan({"epoch": 3})
    disk.looks = looks
    assert made.latest_intact() == snapshots[1]
    disk.looks = 100
    with pytest.raises(OlderCheckpointRefused, match=problem):
        made.latest_intact()


@pytest.mark.parametrize(
    ("disk_class", "missing", "problem"),
    [
        (Hiding, True, "there is no file /store/job/shared/chk-2"),
        (Short, False, "expected 5 bytes, found 2 bytes"),
    ],
)
@pytest.mark.parametrize("looks", [1, 3])
def test_a_state_file_that_is_temporarily_incomplete_is_read_again(disk_class, looks, missing, problem):
    disk = disk_class()
    disk.make_dirs("/store")
    storage = CheckpointStorage("/store", "job", fs=disk)
    stored = storage.write("shared/chk-2", b"state")
    files = JobStateFiles(storage, None, (0.001, 0.001, 0.001))
    disk.looks = looks
    assert files.read(stored) == b"state"
    disk.looks = 100
    with pytest.raises(StateFileDamaged, match=problem) as damaged:
        files.read(stored)
    assert damaged.value.missing is missing


@pytest.mark.parametrize("mode", ["enoent", "short"])
def test_an_initial_snapshot_that_is_temporarily_missing_is_read_again(stopped, mode):
    disk, _ = stopped
    options = {"execution.state-recovery.path": f"{ROOT}/job/chk-5", "restart-strategy.type": "none"}
    other = dataclasses.replace(STRICT, job="other", options=options)

    def start(faults):
        with World() as world:
            world.disk.files, world.disk.directories = dict(disk.files), set(disk.directories)
            return run(other, world, faults)

    asked = [n for n, read in enumerate(start(Faults()).reads) if "/chk-5/_metadata" in read.path]
    for number in asked[:2]:
        life = start(Faults(reads=(number, mode), reads_lasting=3))
        assert life.status is JobStatus.FINISHED, life.failure
