"""State fixes the max parallelism, unless the program sets one: then both must agree."""

import pytest

from millstream.checkpoint.restore import MaxParallelismChanged
from millstream.cluster.job_events import EpochDone, RescaleDone
from millstream.cluster.max_parallelism import MoreSubtasksThanState
from millstream.cluster.rescale import Adaptive, Rescaling
from millstream.job.job_status import JobStatus
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run

SAVED = "/savepoints"


def setup_of(program="keyed_timers", job="job", parallelism=2, **options):
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return Setup(PROGRAMS[program], parallelism, epoch_records=5, job=job, options=named)


def saved(world, program="keyed_timers", most="6"):
    """The path of a savepoint of a job with that max parallelism, stopped after three epochs."""
    asked = []

    def listen(observation, master):
        if isinstance(observation, EpochDone) and observation.epoch >= 3 and not asked:
            asked.append(master.savepoint(SAVED, stop=True))

    assert run(setup_of(program, pipeline__max_parallelism=most), world, listen=listen).status is JobStatus.FINISHED
    return asked[0].result(0)


def largest(life):
    return {planned.task.max_parallelism for planned in life.master._execution.plan.vertices if planned.level > 0}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_does_not_set_it_inherits_that_of_the_savepoint(program):
    with World() as world:
        path = saved(world, program)
        setup = setup_of(program, "second", 3, execution__state_recovery__path=path)
        life = run(setup, world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == compute_reference(setup_of(program))


def test_an_inherited_value_survives_crashes_and_rescales():
    """A later driver finds it in the checkpoints of the job, even if the savepoint was deleted."""
    with World() as world:
        path = saved(world)
        setup = setup_of(job="second", execution__state_recovery__path=path)
        points = len(run(setup, world).operations)
        expected = compute_reference(setup_of())
    with World() as world:
        path = saved(world)
        setup = setup_of(job="second", execution__state_recovery__path=path)
        assert run(setup, world, Faults(storage=(points * 2 // 3, "after"))).crashed
        for name in [name for name in world.disk.files if name.startswith(SAVED)]:
            del world.disk.files[name]

        def listen(observation, master):
            if isinstance(observation, EpochDone):
                master.rescale(6)

        life = run(setup_of(job="second"), world, listen=listen)
        assert life.status is JobStatus.FINISHED, life.failure
        assert largest(life) == {6}
        assert [each.slots for each in life.seen if isinstance(each, RescaleDone)]
        assert world.visible() == expected


def test_another_one_that_the_program_sets_is_refused():
    with World() as world:
        path = saved(world)
        options = {"execution__state_recovery__path": path, "pipeline__max_parallelism": "8"}
        life = run(setup_of(job="second", **options), world)
        assert life.status is JobStatus.FAILED
        assert isinstance(life.failure, MaxParallelismChanged)
        assert "with max parallelism 6, the program asks for 8" in str(life.failure)
        assert not life.epochs
        same = run(setup_of(job="third", **{**options, "pipeline__max_parallelism": "6"}), world)
        assert same.status is JobStatus.FINISHED


def test_more_subtasks_than_the_state_allows_are_refused():
    with World() as world:
        path = saved(world)
        options = {"execution__state_recovery__path": path}
        life = run(setup_of(job="second", parallelism=7, **options), world)
        assert isinstance(life.failure, MoreSubtasksThanState)
        assert "max parallelism 6, so it cannot run with parallelism 7" in str(life.failure)
        assert not life.epochs
        assert run(setup_of(job="third", parallelism=6, **options), world).status is JobStatus.FINISHED


def test_a_rescale_requested_before_the_restore_is_carried_out_with_it():
    with World() as world:
        path = saved(world)
        ordered = []

        def listen(observation, master):  # RUNNING is reported after state was found; this is before
            if not ordered:
                ordered.append(master.rescale(5))

        setup = setup_of(job="second", execution__state_recovery__path=path)
        life = run(setup, world, listen=listen)
        assert life.status is JobStatus.FINISHED, life.failure
        assert ordered[0].result(0) == 5
        assert largest(life) == {6}
        assert world.visible() == compute_reference(setup_of())


def test_the_adaptive_rule_stays_below_it():
    rescaling = Rescaling(Adaptive(most=128, stable_for=0, rest=0))
    rescaling.limit(24)
    assert rescaling.ask_scheduler(lambda: 100, 0, 2) == 24
