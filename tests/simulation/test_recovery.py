"""Failures, restart strategies on an exact clock, and starting from a checkpoint of this or another job."""

import ast
import dataclasses

import pytest

from millstream.checkpoint.restore import MaxParallelismChanged, StateNotClaimed
from millstream.cluster.checkpoints import NoSuchCheckpoint
from millstream.cluster.job_events import StatusChanged
from millstream.files.errors import StorageFailure
from millstream.functions import KeyedProcessFunction
from millstream.job.job_status import JobStatus
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.state_descriptors.descriptors import ValueStateDescriptor
from millstream.types.factory import Types
from millstream_chaos.samples.programs import (
    EVENT,
    PROGRAMS,
    Running,
    SplitsSource,
    by_key,
    many_splits,
    one_split,
    strategy,
)
from millstream_chaos.samples.sample_input import events
from millstream_chaos.samples.splits_source import SplitsEnumerator
from millstream_chaos.simulation import (
    ROOT,
    EngineLost,
    Faults,
    Setup,
    Stumble,
    World,
    compute_reference,
    find_operation,
    run,
)
from millstream_chaos.storage.faulty_files import FaultyFileSystem

SETUP = Setup(PROGRAMS["tumbling"], epoch_records=20)
RETAIN = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
FIXED = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "2",
    "restart-strategy.fixed-delay.delay": "3 s",
}


def fail_at(name, at, times=1):
    def program(env):
        return one_split(env).map(Stumble(name, at, times), EVENT).key_by(by_key).process(Running())

    return program


def restarts(life):
    """(virtual time of the failure, delay) of every restart."""
    return [each for each in life.seen if isinstance(each, StatusChanged) and each.status is JobStatus.RESTARTING]


def with_options(setup, options):
    return dataclasses.replace(setup, options=options)


# ------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize("at", [1, 2, 7, 19, 40])
def test_a_function_that_raises_once_does_not_change_the_output(at):
    expected = compute_reference(Setup(lambda env: one_split(env).key_by(by_key).process(Running())))
    with World() as world:
        life = run(Setup(fail_at(f"once-{at}", at), parallelism=1), world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert life.master.job.restarts == 1
        assert world.visible() == expected


def test_a_function_that_always_raises_fails_the_job_with_the_users_error():
    with World() as world:
        life = run(Setup(fail_at("always", 5, times=99), parallelism=1, options=FIXED), world)
        assert life.status is JobStatus.FAILED
        assert isinstance(life.failure, UserFunctionFailed)
        assert str(life.failure).startswith("Traceback")
        assert "ValueError: a simulated failure at" in str(life.failure)
        assert len(restarts(life)) == 2


@pytest.mark.parametrize("name", ["session", "columns", "count_window", "broadcast"])
def test_an_engine_that_is_lost_repeatedly_does_not_change_the_output(name):
    setup = Setup(PROGRAMS[name], epoch_records=20)
    with World() as world:
        life = run(setup, world, Faults(engine=frozenset({0, 2, 3, 7})))
        assert life.status is JobStatus.FINISHED
        assert world.visible() == compute_reference(setup)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@pytest.mark.parametrize("parallelism", [1, 3, 5])
def test_another_parallelism_after_a_crash_does_not_change_the_output(name, parallelism):
    setup = Setup(PROGRAMS[name], epoch_records=9, backend="lmdb" if parallelism == 3 else "hashmap")
    with World() as world:
        crash = find_operation(setup, "chk-2/_metadata", "/shared/")
        assert run(setup, world, Faults(storage=(crash, "after"))).crashed
        life = run(dataclasses.replace(setup, parallelism=parallelism), world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == compute_reference(setup)


# --------------------------------------------------------------------------------------------- restart strategies


def failing(options, failures=20, every=2):
    """The failure times and delays of a job whose engine is lost in the given epochs."""
    setup = dataclasses.replace(SETUP, options=options, epoch_records=30)
    with World() as world:
        life = run(setup, world, Faults(engine=frozenset(range(1, failures * every, every))))
        return life, life.slept


def test_no_restart_without_checkpoints_by_default():
    with World() as world:
        life = run(dataclasses.replace(SETUP, checkpoint_every=None), world, Faults(engine=frozenset({1})))
        assert life.status is JobStatus.FAILED
        assert isinstance(life.failure, EngineLost)
        assert not restarts(life)


def test_exponential_delay_with_checkpoints_by_default():
    life, slept = failing({}, failures=3)
    assert life.status is JobStatus.FINISHED
    assert sum(slept) == 1000 + 1500 + 2250


def test_the_strategy_none_disables_restarts():
    life, slept = failing({"restart-strategy.type": "none"})
    assert life.status is JobStatus.FAILED
    assert not slept


def test_fixed_delay_waits_exactly_and_gives_up():
    life, slept = failing(FIXED)
    assert life.status is JobStatus.FAILED
    assert sum(slept) == 2 * 3000
    assert life.master.job.restarts == 2


def test_failure_rate_gives_up_when_failures_are_too_close():
    options = {
        "restart-strategy.type": "failure-rate",
        "restart-strategy.failure-rate.max-failures-per-interval": "3",
        "restart-strategy.failure-rate.failure-rate-interval": "10 s",
        "restart-strategy.failure-rate.delay": "1 s",
    }
    life, slept = failing(options)
    assert life.status is JobStatus.FAILED
    assert sum(slept) == 3 * 1000
    seldom = {**options, "restart-strategy.failure-rate.delay": "4 s"}
    life, slept = failing(seldom, failures=5)
    assert life.status is JobStatus.FINISHED
    assert sum(slept) == 5 * 4000


def test_a_recovery_that_keeps_failing_counts_as_failures(monkeypatch):
    """Reading checkpoints fails from the first attempt on: the restart strategy decides each time."""
    calls = []

    def broken(self, path):
        calls.append(path)
        raise OSError(5, "Input/output error", path)

    options = {**FIXED, "restart-strategy.fixed-delay.attempts": "2000", "restart-strategy.fixed-delay.delay": "1 ms"}
    with World() as world:
        world.disk.make_dirs(f"{ROOT}/job")
        monkeypatch.setattr(FaultyFileSystem, "list", broken)
        life = run(with_options(SETUP, options), world)
        assert life.status is JobStatus.FAILED
        assert isinstance(life.failure, StorageFailure)
        assert len(calls) == 2001


# ------------------------------------------------------------------------------------------- from a checkpoint


def retained(world, setup=SETUP):
    """The path of the first checkpoint of a job that died two epochs later."""
    crash = find_operation(setup, "chk-1/_metadata", "epochs.log") + 20
    assert run(setup, world, Faults(storage=(crash, "after"))).crashed
    return f"{ROOT}/{setup.job}/chk-1"


def resumed(setup, path, **options):
    named = {key.replace("_", "-"): value for key, value in options.items()}
    return dataclasses.replace(setup, job="other", options={"execution.state-recovery.path": path, **named})


@pytest.mark.parametrize("parallelism", [1, 2, 4])
@pytest.mark.parametrize("name", ["tumbling", "columns", "count_window", "keyed_timers", "broadcast"])
def test_another_job_continues_from_a_path(name, parallelism):
    setup = Setup(PROGRAMS[name], epoch_records=12)
    with World() as world:
        path = retained(world, setup)
        life = run(dataclasses.replace(resumed(setup, path), parallelism=parallelism), world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == compute_reference(setup)


@pytest.mark.parametrize("again", range(0, 120, 7))
def test_another_job_that_fails_before_its_own_checkpoint_replays_the_plans_of_the_first(again):
    setup = dataclasses.replace(SETUP, checkpoint_every=4)
    with World() as world:
        path = retained(world, setup)
        second = dataclasses.replace(resumed(setup, path), checkpoint_every=50)
        life = run(second, world, Faults(engine=frozenset({2, 5}), storage=(again, "eio")))
        assert life.status is JobStatus.FINISHED, life.failure
        assert life.master.job.restarts >= 2
        assert world.visible() == compute_reference(setup)


def test_another_job_does_not_need_the_files_of_the_first_after_its_first_checkpoint():
    with World() as world:
        second = resumed(SETUP, retained(world))
        done = run(second, world).operations
        published = next(i for i, op in enumerate(done) if op.target.endswith("/other/chk-1/_metadata"))
    with World() as world:
        retained(world)
        assert run(second, world, Faults(storage=(published, "after"))).crashed
        for gone in [name for name in world.disk.files if name.startswith(f"{ROOT}/job/")]:
            del world.disk.files[gone]
        life = run(second, world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == compute_reference(SETUP)


def test_a_job_prefers_its_own_checkpoint_to_its_initial_path():
    with World() as world:
        second = resumed(SETUP, retained(world))
        done = run(second, world).operations
        published = next(i for i, op in enumerate(done) if op.target.endswith("/other/chk-2/_metadata"))
    with World() as world:
        retained(world)
        run(second, world, Faults(storage=(published, "after")))
        life = run(second, world)
        assert life.epochs[0].epoch > 4, "it began again from the path"
        assert world.visible() == compute_reference(SETUP)


def test_a_checkpoint_of_another_program_is_refused():
    with World() as world:
        path = retained(world)
        life = run(resumed(Setup(PROGRAMS["keyed_timers"]), path), world)
        assert life.status is JobStatus.FAILED
        assert isinstance(life.failure, StateNotClaimed)
        assert "which the program does not have" in str(life.failure)
        assert "ignore-unclaimed-state" in str(life.failure)
        assert not life.epochs
        assert life.master.job.restarts == 0


def test_unclaimed_state_can_be_dropped():
    with World() as world:
        path = retained(world)
        setup = resumed(Setup(PROGRAMS["keyed_timers"]), path)
        options = {**setup.options, "execution.state-recovery.ignore-unclaimed-state": "true"}
        life = run(with_options(setup, options), world)
        assert life.status is JobStatus.FINISHED, life.failure


def test_a_changed_max_parallelism_is_refused():
    with World() as world:
        setup = resumed(SETUP, retained(world))
        life = run(with_options(setup, {**setup.options, "pipeline.max-parallelism": "64"}), world)
        assert isinstance(life.failure, MaxParallelismChanged)
        assert "max parallelism 128, the program asks for 64" in str(life.failure)
        assert not life.epochs


@pytest.mark.parametrize("path", [f"{ROOT}/job/chk-99", "/nowhere", f"{ROOT}/job", "/"])
def test_a_path_without_a_checkpoint_is_refused(path):
    with World() as world:
        retained(world)
        life = run(resumed(SETUP, path), world)
        assert life.status is JobStatus.FAILED
        assert isinstance(life.failure, NoSuchCheckpoint), life.failure
        assert f"'{path}' is not a checkpoint" in str(life.failure)
        assert life.master.job.restarts == 0


def test_a_damaged_checkpoint_at_a_path_is_refused_before_user_code_runs():
    with World() as world:
        path = retained(world)
        world.disk.files[f"{path}/_metadata"] = world.disk.files[f"{path}/_metadata"][:-100]
        second = resumed(SETUP, path)
        life = run(with_options(second, {**second.options, "restart-strategy.type": "none"}), world)
        assert life.status is JobStatus.FAILED
        assert "is damaged" in str(life.failure)
        assert not life.epochs


def test_a_checkpoint_directory_that_disappears_fails_the_job_with_a_clear_error(monkeypatch):
    original = FaultyFileSystem.make_dirs

    def vanished(self, path):
        if path.startswith(ROOT):
            raise FileNotFoundError(2, "No such file or directory", path)
        original(self, path)

    monkeypatch.setattr(FaultyFileSystem, "make_dirs", vanished)
    with World() as world:
        life = run(with_options(SETUP, {"restart-strategy.type": "none"}), world)
        assert life.status is JobStatus.FAILED
        assert "no such file or directory; hint: create or mount the directory" in str(life.failure)


# ------------------------------------------------------------------------------------------------- idle sources


class Trickle(SplitsSource):
    """A source that has nothing after its first records until much later."""

    def create_enumerator(self, parallelism, state=None):
        return _Trickling([len(split) for split in self.splits], state)


class _Trickling(SplitsEnumerator):
    def plan(self, budget):
        if self._at[0] >= 10 and budget.now < 1_060_000:
            return []
        return super().plan(budget)


def read_trickle(env):
    source = env.from_source(Trickle((events(20),)), strategy(), "trickle").set_parallelism(1)
    return source.key_by(by_key).process(Running())


@pytest.mark.parametrize("job", ["job", "other"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_restored_job_that_waits_for_input_keeps_its_state(job, parallelism):
    """Its sources are silent, and a checkpoint is due long before they speak."""
    setup = Setup(read_trickle, epoch_records=5)
    expected = compute_reference(Setup(lambda env: one_split(env, 20).key_by(by_key).process(Running())))
    with World() as world:
        run(setup, world)
        assert world.visible() == expected
    crash = find_operation(setup, "chk-1/_metadata")
    with World() as world:
        assert run(setup, world, Faults(storage=(crash, "after"))).crashed
        second = resumed(setup, f"{ROOT}/job/chk-1") if job == "other" else setup
        second = dataclasses.replace(second, parallelism=parallelism, job=job)
        assert run(second, world, Faults(storage=(crash + 14, "after"))).crashed
        life = run(second, world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == expected


class Alarm(KeyedProcessFunction):
    """Emits a key five seconds of processing time after it was first seen."""

    def open(self, runtime_context):
        self.set = runtime_context.get_state(ValueStateDescriptor("set", Types.BOOLEAN()))

    def process_element(self, value, ctx):
        if not self.set.value():
            self.set.update(True)
            ctx.timer_service().register_processing_time_timer(1_005_000)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.timer_service().current_processing_time() - timestamp


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_restored_processing_time_timer_fires_without_input(parallelism):
    def program(env):
        source = env.from_source(Trickle((events(20),)), strategy(), "trickle").set_parallelism(1)
        return source.key_by(by_key).process(Alarm())

    setup = Setup(program, epoch_records=5)
    with World() as world:
        assert run(setup, world, Faults(storage=(find_operation(setup, "chk-1/_metadata"), "after"))).crashed
        life = run(dataclasses.replace(setup, parallelism=parallelism), world)
        assert life.status is JobStatus.FINISHED, life.failure
        alarms = [ast.literal_eval(row) for row in world.visible()]
        assert sorted(key for key, _ in alarms) == ["k0", "k1", "k2", "k3", "k4"]
        assert all(late < 100 for _, late in alarms), alarms


def test_many_splits_at_another_parallelism_are_each_read_once():
    setup = Setup(lambda env: many_splits(env).map(str), epoch_records=9)
    with World() as world:
        run(setup, world, Faults(storage=(80, "before")))
        assert run(dataclasses.replace(setup, parallelism=3), world).status is JobStatus.FINISHED
        assert world.visible() == compute_reference(setup)
