"""Stateful functions on the virtual clock: expiration, delayed messages that survive the driver, crashes, lost
workers."""

from dataclasses import replace
from datetime import timedelta

import pytest

from millstream.cluster.job_events import EpochDone
from millstream.job.job_status import JobStatus
from millstream.statefun import (
    IntType,
    LongType,
    StatefulFunctionDataStreamBuilder,
    StatefulFunctions,
    ValueSpec,
    egress_message_builder,
    make_json_type,
    message_builder,
)
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, find_operation, run, run_lives

OUT = "test/out"
JSON = make_json_type("test/json")
functions = StatefulFunctions()


def emit(context, value):
    context.send_egress(egress_message_builder(OUT, value, JSON))


def program(*messages):
    def build(env):
        builder = StatefulFunctionDataStreamBuilder.builder("test")
        builder = builder.with_data_stream_as_ingress(env.from_collection(list(messages)))
        egresses = builder.with_functions(functions).with_egress_id(OUT, JSON).build(env)
        return egresses.get_data_stream_for_egress_id(OUT)

    return build


@functions.bind(
    "test/expiring",
    [
        ValueSpec("after_call", IntType, expire_after_call=timedelta(milliseconds=150)),
        ValueSpec("after_write", IntType, expire_after_write=timedelta(milliseconds=150)),
        ValueSpec("forever", JSON),
    ],
)
def expiring(context, message):
    """Writes once, then reads 100 ms apart; after the fourth call it waits for 200 ms."""
    storage, call = context.storage, message.as_int()
    if call == 0:
        storage.after_call, storage.after_write, storage.forever = 1, 2, 3
    else:
        emit(context, [call, storage.after_call if call > 2 else None, storage.after_write, storage.forever])
    if call < 4:
        delay = timedelta(milliseconds=100 if call < 3 else 200)
        context.send_after(delay, message_builder("test/expiring", context.address.id, int_value=call + 1))


def test_values_expire_after_calls_and_after_writes():
    """A call keeps a value alive although it does not read it."""
    with World() as world:
        life = run(Setup(program(message_builder("test/expiring", "1", int_value=0))), world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == [
            "[1, None, 2, 3]",
            "[2, None, None, 3]",
            "[3, 1, None, 3]",
            "[4, None, None, 3]",
        ]


@functions.bind("test/late", [ValueSpec("sent", LongType)])
def late(context, message):
    """Reminds itself after two seconds."""
    if context.caller is None:
        context.send_after(timedelta(seconds=2), message_builder("test/late", context.address.id, int_value=7))
        context.storage.sent = 1
    else:
        emit(context, [context.address.id, message.as_int(), context.storage.sent])


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("backend", ["hashmap", "lmdb"])
def test_a_delayed_message_outlives_the_driver_and_a_change_of_parallelism(parallelism, backend):
    setup = Setup(program(*(message_builder("test/late", str(id), int_value=0) for id in range(9))), backend=backend)
    setup = replace(setup, epoch_records=3, checkpoint_every=1)
    with World() as world:
        crash = find_operation(setup, "chk-3/_metadata")
        assert run(setup, world, Faults(storage=(crash, "after"))).crashed
        life = run(replace(setup, parallelism=parallelism), world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == [f"['{id}', 7, 1]" for id in range(9)]


@functions.bind("test/relay")
def relay(context, message):
    """Passes numbers on, to one of two collectors."""
    number = message.as_int()
    context.send(message_builder("test/collector", str(number % 2), int_value=number))


@functions.bind("test/collector", [ValueSpec("numbers", JSON)])
def collect(context, message):
    """Emits the numbers of a relay in the order in which they came, when all are there."""
    numbers = context.storage.numbers or {}
    own = numbers.setdefault(context.caller.id, [])
    own.append(message.as_int())
    context.storage.numbers = numbers
    if len(own) == 10:
        emit(context, own)


@pytest.mark.parametrize("local_rounds", [1, 16])
def test_messages_between_two_functions_keep_their_order_over_epochs_and_rescales(monkeypatch, local_rounds):
    monkeypatch.setattr("millstream.runtime.operators.entities._MOST_LOCAL_ROUNDS", local_rounds)
    messages = [message_builder("test/relay", str(number % 3), int_value=number) for number in range(60)]
    setup = Setup(program(*messages), epoch_records=20, block_records=7, checkpoint_every=2)
    parallelism = [3, 1]

    def listen(observation, master):
        if isinstance(observation, EpochDone) and observation.epoch % 2 == 0 and parallelism:
            master.rescale(parallelism.pop())

    with World() as world:
        life = run(setup, world, listen=listen)
        assert life.status is JobStatus.FINISHED, life.failure
        assert not parallelism
        expected = [list(range(first, 60, 6)) for first in range(6)]
        assert world.visible() == sorted(map(repr, expected))


def test_a_crash_at_any_storage_operation_changes_nothing():
    setup = Setup(PROGRAMS["entities"], epoch_records=4, checkpoint_every=2)
    expected = compute_reference(setup)
    with World() as world:
        operations = len(run(setup, world).operations)
    for at in range(0, operations, 13):
        with World() as world:
            lives = run_lives(setup, world, [Faults(storage=(at, "after"))])
            assert lives[0].crashed, at
            assert world.visible() == expected, at


@pytest.mark.parametrize("attempts", ["twice", "broken", "mixed"])
def test_attempts_and_lost_workers_change_nothing(attempts):
    setup = Setup(PROGRAMS["entities"], parallelism=3, epoch_records=4)
    with World() as world:
        life = run(setup, world, Faults(attempts=attempts, forget=0.3, engine=frozenset({2, 5, 9})))
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == compute_reference(setup)
