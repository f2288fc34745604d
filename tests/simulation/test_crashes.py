"""A crash at any storage operation of an epoch, a checkpoint or a recovery: nothing is lost, nothing shown twice."""

from functools import cache

import pytest

from millstream.model.job_status import JobStatus
from millstream.testing.faults import CRASHES, ERRORS
from millstream.testing.sample_programs import Running, by_key, one_split
from millstream.testing.simulation import Faults, Setup, World, history, live, point, reference, run


def small(env):
    return one_split(env, 12).key_by(by_key).process(Running())


SETUP = Setup(small, epoch_records=4, block_records=3, checkpoint_every=1)
NO_RESTART = {"restart-strategy.type": "none"}


@cache
def expected():
    return reference(SETUP)


@cache
def operations():
    with World() as world:
        life = run(SETUP, world)
        assert life.status is JobStatus.FINISHED
        assert len(life.checkpoints) == 3
        assert world.visible() == expected()
        return len(life.operations)


@pytest.mark.parametrize(("mode", "backend"), [*((mode, "hashmap") for mode in CRASHES), ("after", "lmdb")])
def test_crash_at_every_storage_operation(mode, backend):
    setup = Setup(small, epoch_records=4, block_records=3, checkpoint_every=1, backend=backend)
    for at in range(operations()):
        with World() as world:
            lives = live(setup, world, [Faults(storage=(at, mode))])
            assert lives[0].crashed, at
            assert world.visible() == expected(), (at, mode)


@pytest.mark.parametrize("mode", CRASHES)
@pytest.mark.parametrize("then", [None, "/shared/"], ids=["before the commit", "in the next epoch"])
def test_crash_at_every_storage_operation_of_the_recovery(mode, then):
    at = point(SETUP, "chk-2/_metadata", then)
    with World() as world:
        run(SETUP, world, Faults(storage=(at, "after")))
        disk = world.disk.copy()
        count = len(run(SETUP, world).operations)
        for again in range(count):
            world.disk.files, world.disk.directories = dict(disk.files), set(disk.directories)
            lives = live(SETUP, world, [Faults(storage=(again, mode))])
            assert lives[0].crashed, again
            assert world.visible() == expected(), (again, mode)


@pytest.mark.parametrize("mode", ERRORS)
def test_full_or_broken_disk_restarts_the_job(mode):
    for at in range(operations()):
        with World() as world:
            life = run(SETUP, world, Faults(storage=(at, mode)))
            assert life.status is JobStatus.FINISHED, (at, life.failure)
            assert world.visible() == expected(), (at, mode)


@pytest.mark.parametrize("mode", ERRORS)
def test_full_or_broken_disk_without_restarts_fails_readably_and_loses_nothing(mode):
    setup = Setup(small, epoch_records=4, block_records=3, checkpoint_every=1, options=NO_RESTART)
    failed = 0
    for at in range(operations()):
        with World() as world:
            life = run(setup, world, Faults(storage=(at, mode)))
            if life.status is JobStatus.FAILED:
                failed += 1
                assert {"enospc": "no space left", "eio": "input/output error"}[mode] in str(life.failure).lower()
                before = world.visible()
                assert not set(before) - set(expected())
                last = run(setup, world)
                assert last.status is JobStatus.FINISHED, (at, last.failure)
                assert set(before) <= set(world.visible())
            assert world.visible() == expected(), (at, mode)
    assert failed > operations() // 2


def test_histories_of_crashes_and_rescaling(seed):
    wrong = {n: problem for n in range(seed, seed + 20) if (problem := history(n)) is not None}
    assert not wrong, f"MILLSTREAM_SEED={min(wrong)}: {wrong}"
