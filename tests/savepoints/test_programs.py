"""Programs of every type are stopped with a savepoint and restored at another parallelism, with the same results."""

from __future__ import annotations

import dataclasses

import pytest

from millstream.cluster.job_events import EpochDone
from millstream.job.job_status import JobStatus
from millstream.job.savepoints import SavepointFormatType
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Setup, World, compute_reference, run

BACKENDS = ("hashmap", "lmdb")


@pytest.mark.parametrize("form", SavepointFormatType, ids=lambda form: form.value)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_output_is_that_of_a_job_without_a_savepoint(name, form):
    setup = Setup(PROGRAMS[name], parallelism=2, epoch_records=9)
    expected = compute_reference(setup)
    with World() as world:
        for stop, parallelism in enumerate((3, 1, 2)):
            asked = []

            def listen(observation, master, asked=asked):
                if isinstance(observation, EpochDone) and not asked:
                    asked.append(master.savepoint("/savepoints", stop=True, form=form))

            backend = BACKENDS[(stop + len(name)) % 2]
            life = run(dataclasses.replace(setup, job=f"job{stop}", backend=backend), world, listen=listen)
            assert life.status is JobStatus.FINISHED, life.failure
            path = asked[0].result(0)
            setup = dataclasses.replace(setup, parallelism=parallelism, options={"execution.state-recovery.path": path})
        last = run(dataclasses.replace(setup, job="last"), world)
        assert last.status is JobStatus.FINISHED, last.failure
        assert world.visible() == expected
