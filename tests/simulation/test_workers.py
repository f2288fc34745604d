"""Laws 4 and 5: an attempt has no effect on accepted state, and a state store may be behind, ahead or unknown."""

from dataclasses import replace

import pytest

from millstream.job.job_status import JobStatus
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run

NAMES = sorted(PROGRAMS)


def is_right(setup, faults):
    with World() as world:
        life = run(setup, world, faults)
        assert life.status is JobStatus.FINISHED, life.failure
        assert life.master.job.restarts == 0
        assert world.visible() == compute_reference(setup)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", ["hashmap", "lmdb"])
def test_a_worker_that_lost_its_state_restores_it(name, backend, seed):
    is_right(Setup(PROGRAMS[name], backend=backend, epoch_records=20), Faults(forget=0.4, seed=seed))


@pytest.mark.parametrize("name", NAMES)
def test_workers_with_different_backends_take_turns(name, seed):
    is_right(Setup(PROGRAMS[name], parallelism=3, epoch_records=20), Faults(forget=0.5, flip=0.6, seed=seed))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("attempts", ["twice", "broken"])
def test_a_failed_or_repeated_attempt_has_no_effect(name, attempts, seed):
    backend = "lmdb" if NAMES.index(name) % 2 else "hashmap"
    is_right(Setup(PROGRAMS[name], backend=backend, epoch_records=20), Faults(attempts=attempts, seed=seed))


def test_no_two_attempts_write_the_same_file():
    with World() as world:
        life = run(
            Setup(PROGRAMS["tumbling"], epoch_records=20), world, Faults(attempts="twice", engine=frozenset({5}))
        )
        written = [each.target for each in life.operations if each.name == "replace" and "/shared/" in each.target]
        assert len(written) == len(set(written)) > 20


def test_attempts_have_no_effect_when_workers_are_replaced(seed):
    setup = Setup(PROGRAMS["session"], parallelism=3, epoch_records=9)
    is_right(setup, Faults(attempts="twice", forget=0.3, flip=0.5, seed=seed))
    is_right(replace(setup, backend="lmdb"), Faults(attempts="broken", forget=0.3, flip=0.5, seed=seed))
