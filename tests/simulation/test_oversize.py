"""An epoch that is too large for memory is planned smaller, also when it was planned by an earlier driver."""

import json

import pytest

from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.job_events import EpochCut, EpochDone
from millstream.common import Types, WatermarkStrategy
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.functions import ProcessFunction
from millstream.job.job_status import JobStatus
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run
from millstream_chaos.storage.faulty_files import SimulatedCrash

NAMES = ["tumbling", "connect", "broadcast", "operator_state", "union"]


def cuts(life):
    return [each for each in life.seen if isinstance(each, EpochCut)]


@pytest.mark.parametrize("name", NAMES)
def test_epochs_become_small_enough(name, caplog):
    setup = Setup(PROGRAMS[name], epoch_records=40)
    with World() as world:
        life = run(setup, world, Faults(most_records=7))
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == compute_reference(setup)
        assert max(done.records for done in life.epochs) <= 7
        assert cuts(life)
        assert all(cut.records_after < cut.records_before for cut in cuts(life))
    assert "records instead of" in caplog.text


@pytest.mark.parametrize("every", [1, 100])
def test_plans_of_an_earlier_driver_are_reduced(every):
    setup = Setup(PROGRAMS["tumbling"], epoch_records=15, checkpoint_every=every)
    with World() as world:
        done = run(setup, world).operations
    third = [number for number, each in enumerate(done) if each.path.endswith("epochs.log")][2]
    with World() as world:
        assert run(setup, world, Faults(storage=(third, "after"))).crashed
        life = run(setup, world, Faults(most_records=4))
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == compute_reference(setup)
        assert cuts(life)[0].epoch == (1 if every == 100 else 3)


def test_a_smaller_plan_is_durable_before_it_runs():
    """A driver that dies in the smaller epoch is followed by one that replays it, and does not know the first plan."""
    setup = Setup(PROGRAMS["tumbling"], epoch_records=30, checkpoint_every=100)
    with World() as world:
        crashed = run(setup, world, Faults(most_records=7), listen=crash_after_cut)
        assert crashed.crashed
        storage = CheckpointStorage("/checkpoints", setup.job, fs=world.files)
        assert len(storage.read_log("epochs.log")) == 2
        life = run(setup, world)
        assert life.epochs[0].epoch == 1
        assert life.epochs[0].records == cuts(crashed)[-1].records_after
        assert world.visible() == compute_reference(setup)


def crash_after_cut(observation, master):
    if isinstance(observation, EpochCut):
        master._execution.engine.run_epoch = die


def die(request):
    raise SimulatedCrash


def test_an_epoch_of_one_record_fails_the_job():
    options = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "6"}
    setup = Setup(PROGRAMS["tumbling"], epoch_records=30, options=options)
    with World() as world:
        life = run(setup, world, Faults(most_records=0))
        assert life.status is JobStatus.FAILED
        assert "do not fit into memory" in str(life.failure)
        assert cuts(life)[-1].records_after == 1


class Greedy(ProcessFunction):
    """Runs out of memory at the tenth record of an epoch, that is, of one processing time."""

    def open(self, runtime_context):
        self.seen = 0, 0

    def process_element(self, value, ctx):
        now = ctx.timer_service().current_processing_time()
        self.seen = now, self.seen[1] + 1 if self.seen[0] == now else 1
        if self.seen[1] == 10:
            raise MemoryError
        yield value


def test_a_function_without_enough_memory_gets_fewer_records():
    def program(env):
        source = NumberSequenceSource(1, 90)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        return numbers.process(Greedy(), Types.LONG())

    with World() as world:
        life = run(Setup(program, epoch_records=40), world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert sorted(world.visible()) == sorted(map(str, range(1, 91)))
        assert life.master.job.restarts == len(cuts(life)) == 1


def test_a_job_that_may_restore_older_checkpoints_replays_plans_unchanged():
    options = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "3"}
    options["millstream.recovery.allow-older-checkpoint"] = "true"
    with World() as world:
        life = run(Setup(PROGRAMS["tumbling"], epoch_records=30, options=options), world, Faults(most_records=7))
        assert life.status is JobStatus.FAILED
        assert cuts(life) == []
        assert life.master._policy._size.limit == 7, "a quarter: plans that are not cut make later epochs no smaller"


class Heavy(ProcessFunction):
    """The twenty records above `above` are large: the fourth one of an epoch does not fit into memory."""

    def __init__(self, above):
        self.above = above

    def open(self, runtime_context):
        self.seen = 0, 0

    def process_element(self, value, ctx):
        if self.above < value <= self.above + 20:
            now = ctx.timer_service().current_processing_time()
            self.seen = now, self.seen[1] + 1 if self.seen[0] == now else 1
            if self.seen[1] == 4:
                raise MemoryError
        yield value


def large_records(above, last=90):
    def program(env):
        source = NumberSequenceSource(1, last)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        return numbers.process(Heavy(above), Types.LONG())

    options = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "4"}
    return Setup(program, parallelism=1, epoch_records=10, checkpoint_every=100, options=options)


@pytest.mark.parametrize(("above", "cut"), [(5, 1), (35, 4), (255, 26)])
def test_an_epoch_long_after_the_checkpoint_is_reduced(above, cut):
    """The epochs before it are replayed as they were, however many there are, and are no reason to forget it."""
    setup = large_records(above, last=max(90, above + 20))
    with World() as world:
        life = run(setup, world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert cuts(life) == [EpochCut(cut, 10, 2)]
        assert life.master.job.restarts == 1
        assert sorted(map(int, world.visible())) == list(range(1, max(90, above + 20) + 1))


def test_plans_before_and_after_the_reduced_one_are_replayed_as_logged():
    """The log then has the old plan, a later one of the driver before, and the smaller plan: the last one counts."""
    setup = large_records(35)
    with World() as world:
        crashed = run(large_records(1000), world, listen=crash_after_epoch(5))  # without large records
        assert crashed.crashed
        storage = CheckpointStorage("/checkpoints", setup.job, fs=world.files)
        assert [json.loads(plan)["epoch"] for plan in storage.read_log("epochs.log")] == [1, 2, 3, 4, 5]
        crashed = run(setup, world, listen=crash_after_epoch(6))
        assert crashed.crashed
        assert cuts(crashed) == [EpochCut(4, 10, 2)]
        assert [json.loads(plan)["epoch"] for plan in storage.read_log("epochs.log")] == [1, 2, 3, 4, 5, 4, 5, 6]
        life = run(setup, world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert [done.records for done in life.epochs[:6]] == [10, 10, 10, 2, 2, 2]
        assert sorted(map(int, world.visible())) == list(range(1, 91))


def crash_after_epoch(epoch):
    def listen(observation, master):
        if isinstance(observation, EpochDone) and observation.epoch == epoch:
            raise SimulatedCrash

    return listen
