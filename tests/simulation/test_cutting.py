"""Law 1: results do not depend on how input is cut into blocks and epochs, or on the parallelism."""

from dataclasses import replace

import numpy as np
import pytest

from millstream.job.job_status import JobStatus
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Setup, World, compute_reference, run

CUTS = 5


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_cutting_into_epochs_does_not_change_results(name, seed):
    chance = np.random.default_rng([seed, sorted(PROGRAMS).index(name)])
    setup = Setup(PROGRAMS[name])
    expected = compute_reference(setup)
    assert expected
    for number in range(CUTS):
        cut = replace(
            setup,
            parallelism=(1, 2, 3, 2, 5)[number],
            epoch_records=int(chance.choice([1, 2, 5, 9, 30])),
            block_records=int(chance.choice([1, 2, 7, 65536])),
            checkpoint_every=int(chance.integers(1, 5)),
            backend=str(chance.choice(["hashmap", "lmdb"])),
        )
        with World() as world:
            life = run(cut, world)
            assert life.status is JobStatus.FINISHED, (cut, life.failure)
            assert world.visible() == expected, cut


@pytest.mark.parametrize("name", ["union", "side_output", "columns"])
def test_chaining_does_not_change_results(name):
    setup = Setup(PROGRAMS[name], options={"pipeline.operator-chaining.enabled": "false"})
    expected = compute_reference(Setup(PROGRAMS[name]))
    with World() as world:
        assert run(setup, world).status is JobStatus.FINISHED
        assert world.visible() == expected
