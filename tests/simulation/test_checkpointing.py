"""When checkpoints are taken, which are retained, which files they need, and the effect of failed checkpoints."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster import progress
from millstream.cluster.job_events import CheckpointDone, EpochDone
from millstream.job.job_status import JobStatus
from millstream.state.compaction import Rewrite
from millstream_chaos.samples.programs import PROGRAMS, Running, by_key, one_split
from millstream_chaos.simulation import OUTPUT, ROOT, Faults, Setup, World, compute_reference, find_operation, run

SETUP = Setup(PROGRAMS["tumbling"], epoch_records=20)
RETAIN = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
NO_RESTART = {"restart-strategy.type": "none"}


def with_options(setup, **options):
    return dataclasses.replace(setup, options={**setup.options, **options})


@pytest.mark.parametrize("every", [1, 2, 3])
def test_there_is_one_checkpoint_for_each_interval_and_one_at_the_end(every):
    with World() as world:
        life = run(dataclasses.replace(SETUP, checkpoint_every=every), world)
        taken = [each.epoch for each in life.checkpoints]
        last = life.epochs[-1].epoch
        assert taken == sorted({*range(every, last, every), last})


def test_the_pause_between_checkpoints_is_kept():
    setup = dataclasses.replace(SETUP, checkpoint_every=1, options={"execution.checkpointing.min-pause": "40 ms"})
    with World() as world:
        life = run(setup, world)
        taken = [each.epoch for each in life.checkpoints]
        assert len(taken) > 1
        assert all(late - early == 4 for early, late in pairwise(taken[:-1]))


def test_epochs_start_at_most_once_per_interval():
    with World() as world:
        starts = []
        run(
            with_options(SETUP, **{"millstream.epoch.min-interval": "500 ms"}),
            world,
            listen=lambda seen, _: starts.append(world.clock.now()) if isinstance(seen, EpochDone) else None,
        )
        assert len(starts) > 2
        assert all(later - earlier >= 500 for earlier, later in pairwise(starts))


@pytest.mark.parametrize("name", ["tumbling", "ordered_timers", "columns", "broadcast"])
@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_configured_number_of_checkpoints_is_kept_with_exactly_their_files(name, keep):
    setup = dataclasses.replace(
        SETUP,
        program=PROGRAMS[name],
        epoch_records=5,
        checkpoint_every=1,
        options={"execution.checkpointing.num-retained": str(keep)},
    )
    seen = []

    def look(observation, _):
        if isinstance(observation, CheckpointDone):
            seen.append(observation.id)
            storage = CheckpointStorage(ROOT, "job", fs=world.disk)
            assert storage.list_checkpoints() == seen[-keep:]
            needed = set()
            for number in seen[-keep:]:
                metadata = CheckpointMetadata.from_bytes(storage.read_metadata(number))
                for handle in metadata.handles:
                    StateReader(storage).read(handle)
                    needed.add(handle.file)
            assert set(storage.files()) == needed

    with World() as world:
        life = run(setup, world, Faults(engine=frozenset({4})), listen=look)
        assert life.status is JobStatus.FINISHED, life.failure
        assert len(seen) > keep


def test_a_job_can_start_from_every_retained_checkpoint():
    """Every kept checkpoint can be started from, by another job, and gives the same state in the end."""
    setup = with_options(SETUP, **RETAIN)
    with World() as world:
        crash = find_operation(setup, "chk-4/_metadata", "/shared/")
        run(setup, world, Faults(storage=(crash, "after")))
        kept = CheckpointStorage(ROOT, "job", fs=world.disk).list_checkpoints()
        assert len(kept) > 1
        before = {name: data for name, data in world.disk.files.items() if name.startswith(OUTPUT)}
        for number in kept:
            for name in [name for name in world.disk.files if name.startswith(OUTPUT)]:
                del world.disk.files[name]
            world.disk.files.update(before)
            path = f"{ROOT}/job/chk-{number}"
            other = dataclasses.replace(
                with_options(setup, **{"execution.state-recovery.path": path}), job=f"o{number}", repeats=True
            )
            life = run(other, world)
            assert life.status is JobStatus.FINISHED, life.failure
            assert world.visible() == compute_reference(SETUP)


# -------------------------------------------------------------------------------------------------- failed ones


@pytest.mark.parametrize("tolerable", [0, 1])
@pytest.mark.parametrize("what", ["write_bytes", "move_new", "sync_dir"])
def test_failed_checkpoints_are_tolerated_up_to_the_limit(tolerable, what):
    options = {"execution.checkpointing.tolerable-failed-checkpoints": str(tolerable), **NO_RESTART}
    setup = dataclasses.replace(SETUP, options=options)
    with World() as world:
        done = run(setup, world).operations
    at = next(i for i, op in enumerate(done) if op.name == what and "chk-2" in op.path)
    with World() as world:
        life = run(setup, world, Faults(storage=(at, "eio")))
        published = what == "sync_dir"  # the checkpoint exists: only its directory entry may not be synced yet
        assert life.status is (JobStatus.FINISHED if tolerable or published else JobStatus.FAILED), life.failure
        assert not set(world.visible()) - set(compute_reference(SETUP))
        if life.status is JobStatus.FINISHED:
            assert world.visible() == compute_reference(SETUP)
            numbers = [each.id for each in life.checkpoints]
            assert numbers[:2] == ([1, 2] if published else [1, 3])  # a number is used once
            assert numbers[1:] == list(range(numbers[1], numbers[-1] + 1))


def test_output_is_visible_only_after_its_checkpoint():
    """Law 7, seen at every epoch and every checkpoint."""
    counts = []

    def look(observation, _):
        if isinstance(observation, EpochDone | CheckpointDone):
            counts.append((isinstance(observation, CheckpointDone), len(world.visible())))

    with World() as world:
        run(SETUP, world, listen=look)
    shown = 0
    for checkpoint, visible in counts:
        assert checkpoint or visible == shown, "an epoch showed output by itself"
        shown = visible
    assert shown == len(compute_reference(SETUP))


# ------------------------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize("retain", [False, True])
def test_a_cancelled_job_keeps_checkpoints_as_configured(retain):
    def cancel(observation, master):
        if isinstance(observation, EpochDone) and observation.epoch == 5:
            master.cancel()

    with World() as world:
        life = run(with_options(SETUP, **(RETAIN if retain else {})), world, listen=cancel)
        assert life.status is JobStatus.CANCELED
        left = CheckpointStorage(ROOT, "job", fs=world.disk)
        assert bool(left.list_checkpoints()) is retain
        assert bool(left.files()) is retain
        assert not world.disk.list(f"{OUTPUT}/staged"), "staged output of a cancelled job"
        if retain:
            again = with_options(SETUP, **{"execution.state-recovery.path": f"{ROOT}/job/chk-2"})
            assert run(dataclasses.replace(again, job="again"), world).status is JobStatus.FINISHED
            assert world.visible() == compute_reference(SETUP)


def test_a_job_cancelled_while_it_waits_to_restart_ends_immediately():
    def cancel(observation, master):
        if getattr(observation, "status", None) is JobStatus.RESTARTING:
            master.cancel()

    with World() as world:
        life = run(SETUP, world, Faults(engine=frozenset({3})), listen=cancel)
        assert life.status is JobStatus.CANCELED
        assert sum(life.slept) < 1000


def test_a_finished_job_leaves_only_its_output():
    with World() as world:
        assert run(SETUP, world).status is JobStatus.FINISHED
        assert [name for name in world.disk.files if not name.startswith(f"{OUTPUT}/visible/")] == []


# ---------------------------------------------------------------------------------------------------- compaction


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_compaction_does_not_change_results(name, seed, monkeypatch):
    """State files merged at random, or replaced by a base or parts of one; workers come and go; there is a crash."""
    chance = np.random.default_rng([seed, 3])

    def compactions(lineages):
        wanted = {}
        for operator, parts in lineages.items():
            for subtask, lineage in enumerate(parts):
                if lineage.restored or (lineage.own and chance.random() < 0.4):
                    first = 1 if lineage.own and lineage.own[0].base else 0
                    since = 0 if lineage.restored else int(chance.integers(first, len(lineage.own) + 1)) % 4
                    what = max(since, 0) if since < len(lineage.own) else 0
                    if not lineage.restored and chance.random() < 0.6:
                        what = Rewrite(int(chance.integers(1, 3)), rows=int(chance.integers(1, 5)))
                    wanted.setdefault(operator, {})[subtask] = what
        return wanted

    setup = Setup(PROGRAMS[name], epoch_records=12, backend="lmdb" if seed % 2 else "hashmap")
    expected = compute_reference(setup)
    monkeypatch.setattr(progress, "plan_compactions", compactions)
    with World() as world:
        faults = Faults(forget=0.3, flip=0.3, seed=seed, storage=(60, "after"))
        life = run(setup, world, faults)
        if life.crashed:
            life = run(setup, world, dataclasses.replace(faults, storage=None))
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == expected


def test_a_long_job_keeps_few_files():
    """One small file an epoch: they are merged, and the merged ones too."""
    setup = Setup(lambda env: one_split(env, 160).key_by(by_key).process(Running()), 1, 1, checkpoint_every=10)
    most = []

    def look(observation, _):
        if isinstance(observation, CheckpointDone):
            storage = CheckpointStorage(ROOT, "job", fs=world.disk)
            most.append(len(CheckpointMetadata.from_bytes(storage.read_metadata(observation.id)).handles))

    with World() as world:
        life = run(setup, world, listen=look)
        assert life.status is JobStatus.FINISHED
        assert len(life.epochs) == 160
        assert max(most) <= 70
        assert world.visible() == compute_reference(setup)
