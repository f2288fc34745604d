"""A process that dies at any point of a savepoint loses and repeats nothing. Four variants of a job that stops are
tried. Two of them crash at even operations and two at odd ones, unless `MILLSTREAM_ALL_POINTS` is set."""

from __future__ import annotations

import os

import pytest

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.savepoint import open_snapshot
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.job_events import EpochDone
from millstream.job.job_status import JobStatus
from millstream.job.savepoints import SavepointFormatType
from millstream_chaos.samples import programs as sample_programs
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run, run_lives

SAVED = "/savepoints"
FORMS = list(SavepointFormatType)


def setup_of(job="job", **options):
    return Setup(sample_programs.PROGRAMS["tumbling"], epoch_records=20, checkpoint_every=1, job=job, options=options)


def request_savepoint(how, after=2):
    """Requests a savepoint once, after some epochs."""
    asked = []

    def listen(observation, master):
        if isinstance(observation, EpochDone) and observation.epoch >= after and not asked:
            asked.append(master.savepoint(SAVED, **how))

    return listen, asked


def saved(world):
    """The existing savepoints, all of which must be complete."""
    like = CheckpointStorage("/", fs=world.files)
    if not world.disk.exists(SAVED):
        return []
    names = [name for name in world.disk.list(SAVED) if world.disk.exists(f"{SAVED}/{name}/_metadata")]
    found = [open_snapshot(f"{SAVED}/{name}", like) for name in names]
    for each in found:
        each.verify()
    return found


def is_over(world):
    """Whether the job's newest checkpoint says that it was stopped."""
    storage = CheckpointStorage("/checkpoints", "job", fs=world.files)
    numbers = storage.list_checkpoints()
    return bool(numbers) and CheckpointMetadata.from_bytes(storage.read_metadata(numbers[-1])).ended


@pytest.mark.parametrize("drain", [False, True], ids=["stop", "drain"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.value)
def test_a_crash_at_any_step_of_stopping(form, drain):
    setup = setup_of()
    expected = compute_reference(setup)
    how = {"stop": True, "drain": drain, "form": form}
    with World() as world:
        listen, asked = request_savepoint(how)
        whole = run(setup, world, listen=listen)
        assert whole.status is JobStatus.FINISHED
        path = asked[0].result(0)
        steps = [n for n, each in enumerate(whole.operations) if SAVED in each.path or SAVED in each.target]
        total = len(whole.operations)
        again = setup_of(**{"execution.state-recovery.path": path})  # with the same id, and another crash
        assert run(again, world, Faults(storage=(total // 2, "after"))).crashed
        assert run_lives(again, world)[-1].status is JobStatus.FINISHED
        assert drain or world.visible() == expected
    stride = 1 if os.environ.get("MILLSTREAM_ALL_POINTS") else 2
    first = steps[0] - 6 + ((form is SavepointFormatType.NATIVE) != drain)
    for number in range(first, total, stride):
        mode = ("before", "after")[number // stride % 2]
        with World() as world:
            listen, _ = request_savepoint(how)
            life = run(setup, world, Faults(storage=(number, mode)), listen=listen)
            assert life.crashed, (number, mode)
            saved(world)
            if not life.finished and not is_over(world):  # as if the savepoint had never been requested
                run_lives(setup, world)
                assert world.visible() == expected, (number, mode)
                continue
            if not life.finished:
                assert run_lives(setup, world)[-1].status is JobStatus.FINISHED
            last = saved(world)[-1].path
            again = run(setup_of("again", **{"execution.state-recovery.path": last}), world)
            assert again.status is JobStatus.FINISHED, again.failure
            assert drain or world.visible() == expected, (number, mode)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.value)
def test_a_crash_at_any_step_of_a_savepoint_of_a_running_job(form):
    setup = setup_of()
    expected = compute_reference(setup)
    how = {"form": form}
    with World() as world:
        listen, asked = request_savepoint(how)
        whole = run(setup, world, listen=listen)
        assert whole.status is JobStatus.FINISHED
        assert world.visible() == expected
        (only,) = saved(world)
        assert asked[0].result(0) == only.path
        steps = [n for n, each in enumerate(whole.operations) if SAVED in each.path or SAVED in each.target]
    for number in steps:
        with World() as world:
            listen, _ = request_savepoint(how)
            run(setup, world, Faults(storage=(number, "before")), listen=listen)
            saved(world)
            run_lives(setup, world)
            assert world.visible() == expected, number
