"""A crash or an error at any storage operation: no output is lost or repeated. With state on disk, and without
restarts; `chaos storage` covers state in memory and restarts. `MILLSTREAM_ALL_POINTS=1` runs many more random
histories."""

import os
from dataclasses import replace
from functools import cache

import pytest

from millstream.job.job_status import JobStatus
from millstream_chaos.samples.programs import Running, by_key, one_split
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run, run_lives
from millstream_chaos.simulation.histories import run_history
from millstream_chaos.storage.faulty_files import ERRORS


def small(env):
    return one_split(env, 12).key_by(by_key).process(Running())


SETUP = Setup(small, epoch_records=4, block_records=3, checkpoint_every=1)
HISTORIES = 200 if os.environ.get("MILLSTREAM_ALL_POINTS") else 6
NO_RESTART = {"restart-strategy.type": "none"}


@cache
def expected():
    return compute_reference(SETUP)


@cache
def operations():
    with World() as world:
        life = run(SETUP, world)
        assert life.status is JobStatus.FINISHED
        assert len(life.checkpoints) == 3
        assert world.visible() == expected()
        return len(life.operations)


def test_crash_at_every_storage_operation_with_state_on_disk():
    setup = replace(SETUP, backend="lmdb")
    for at in range(operations()):
        with World() as world:
            lives = run_lives(setup, world, [Faults(storage=(at, "after"))])
            assert lives[0].crashed, at
            assert world.visible() == expected(), at


@pytest.mark.parametrize("mode", ERRORS)
def test_a_full_or_broken_disk_fails_the_job_with_a_clear_error_and_loses_nothing(mode):
    setup = replace(SETUP, options=NO_RESTART)
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
    wrong = {n: problem for n in range(seed, seed + HISTORIES) if (problem := run_history(n)) is not None}
    assert not wrong, f"MILLSTREAM_SEED={min(wrong)}: {wrong}"
