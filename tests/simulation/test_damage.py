"""Damage to stored files is noticed before user code sees state; recovery goes back, or says that it cannot."""

import dataclasses
import json
import logging

import pytest

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.checkpoints import AllCheckpointsDamaged
from millstream.model.functions import ProcessFunction
from millstream.model.job_status import JobStatus
from millstream.testing.sample_programs import PROGRAMS, many_splits
from millstream.testing.simulation import ROOT, Faults, Setup, World, point, reference, run

SETUP = Setup(PROGRAMS["tumbling"], epoch_records=30, checkpoint_every=1, repeats=True)


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
    after = point(SETUP, "chk-5/_metadata", "epochs.log")
    with World() as world:
        assert run(SETUP, world, Faults(storage=(after, "after"))).crashed
        return world.disk, reference(SETUP)


def metadata(disk, number):
    data = disk.files[f"{ROOT}/job/chk-{number}/_metadata"]
    return CheckpointMetadata.from_bytes(data[: data.rindex(b"\nsha256 ")])


def files_of(disk, number):
    return {f"{ROOT}/{handle.name}" for handle in metadata(disk, number).handles}


def damaged(world, disk, path, damage):
    world.disk.files, world.disk.directories = dict(disk.files), set(disk.directories)
    other = next(data for name, data in disk.files.items() if name != path and "/shared/" in name)
    made = DAMAGES[damage](disk.files[path], other)
    if made is None:
        del world.disk.files[path]
    else:
        assert made != disk.files[path]
        world.disk.files[path] = made


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_any_file_of_the_last_checkpoint_goes_back_to_the_one_before(stopped, damage, caplog):
    disk, expected = stopped
    own = files_of(disk, 5) - files_of(disk, 4)
    assert own
    for path in [f"{ROOT}/job/chk-5/_metadata", *sorted(own)]:
        with World() as world, caplog.at_level(logging.WARNING):
            damaged(world, disk, path, damage)
            caplog.clear()
            life = run(SETUP, world)
            assert life.status is JobStatus.FINISHED, (path, life.failure)
            assert world.visible() == expected, path
            gone = damage == "delete" and path.endswith("_metadata")  # then there never was such a checkpoint
            assert gone or "checkpoint 5 is damaged and passed over" in caplog.text


class Stamp(ProcessFunction):
    """Shows when, in processing time, a record was seen: what an epoch that is run again must not change."""

    def process_element(self, value, ctx):
        yield value[2], ctx.timer_service().current_processing_time()


def test_an_epoch_that_is_run_again_reads_and_sees_what_was_planned(stopped):
    """Laws 2 and 3. Ranges and processing time come from the log, even when the budget has changed since."""
    setup = dataclasses.replace(SETUP, program=lambda env: many_splits(env).process(Stamp()))
    with World() as world:
        assert run(setup, world, Faults(storage=(point(setup, "chk-5/_metadata", "epochs.log"), "after"))).crashed
        before = world.visible()
        world.disk.files[f"{ROOT}/job/chk-5/_metadata"] = b"?"
        world.clock.sleep(60)
        life = run(dataclasses.replace(setup, epoch_records=7), world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert life.master.job.restarts == 0, life.failure
        assert set(before) < set(world.visible())
        assert len(world.visible()) == len(reference(setup))


def test_damage_to_a_file_of_every_checkpoint_is_an_error_that_names_them(stopped):
    disk, _ = stopped
    everywhere = files_of(disk, 5) & files_of(disk, 4) & files_of(disk, 3)
    for path in sorted(everywhere):
        with World() as world:
            damaged(world, disk, path, "flip")
            before = world.visible()
            life = run(SETUP, world)
            assert life.status is JobStatus.FAILED
            assert isinstance(life.failure, AllCheckpointsDamaged)
            assert not life.epochs, "user code saw state"
            assert world.visible() == before
            assert all(f"chk-{number}" in str(life.failure) for number in (3, 4, 5))
            assert path in str(life.failure)
            assert "hint:" in str(life.failure)
    assert everywhere


def test_all_metadata_damaged_is_an_error_and_not_a_fresh_start(stopped):
    disk, _ = stopped
    with World() as world:
        world.disk.files, world.disk.directories = dict(disk.files), set(disk.directories)
        for number in (3, 4, 5):
            world.disk.files[f"{ROOT}/job/chk-{number}/_metadata"] = b"\0"
        life = run(SETUP, world)
        assert isinstance(life.failure, AllCheckpointsDamaged)
        assert not life.epochs


def test_checkpoints_deleted_by_hand_are_missed(stopped):
    """The log goes on where the deleted checkpoints were: starting from the beginning would be wrong."""
    disk, _ = stopped
    with World() as world:
        kept = {path: data for path, data in disk.files.items() if "/chk-" not in path}
        world.disk.files, world.disk.directories = kept, set(disk.directories)
        log = f"{ROOT}/job/epochs.log"
        storage = CheckpointStorage(ROOT, "job", fs=world.disk)
        storage.truncate_log("epochs.log", [r for r in storage.read_log("epochs.log") if json.loads(r)["epoch"] > 3])
        assert log in world.disk.files
        life = run(dataclasses.replace(SETUP, options={"restart-strategy.type": "none"}), world)
        assert life.status is JobStatus.FAILED
        assert "goes on after epoch 0, but the next plan in its log is of epoch 4" in str(life.failure)


def test_torn_end_of_the_plan_log_never_was(stopped):
    disk, expected = stopped
    with World() as world:
        damaged(world, disk, f"{ROOT}/job/epochs.log", "zero")
        world.disk.files[f"{ROOT}/job/epochs.log"] = disk.files[f"{ROOT}/job/epochs.log"][:-3]
        life = run(SETUP, world)
        assert life.status is JobStatus.FINISHED
        assert world.visible() == expected


def test_damage_in_the_middle_of_the_plan_log_is_an_error_that_names_it(stopped):
    disk, _ = stopped
    with World() as world:
        damaged(world, disk, f"{ROOT}/job/epochs.log", "flip")
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
        assert world.visible() == reference(SETUP)
