"""Operator state: a function's fields survive epochs, restores and changes of parallelism."""

from __future__ import annotations

import pytest

from millstream.common import Configuration, Types
from millstream.connector.sink import Sink, SinkWriter
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.functions import (
    CheckpointedFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessWindowFunction,
)
from millstream.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from millstream.errors import UserError
from millstream.testing.harness import OperatorHarness

LISTED = ListStateDescriptor("listed", Types.LONG())


class Buffer(FlatMapFunction, CheckpointedFunction):
    """Buffers records, and emits them sorted when it gets the record that asks for it."""

    def __init__(self, union: bool = False):
        self.union = union
        self.held: list[int] = []

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.state = store.get_union_list_state(LISTED) if self.union else store.get_list_state(LISTED)
        self.held.extend(self.state.get())
        assert store.get_registered_state_names() == {"listed"}
        assert context.is_restored() == (context.get_restored_checkpoint_id() is not None)

    def flat_map(self, value):
        if value is None:
            return [sorted(self.held)]
        self.held.append(value)
        return []

    def snapshot_state(self, context):
        assert context.get_checkpoint_id() > 0
        self.state.update(self.held)


def test_list_state_is_redistributed_evenly_when_the_parallelism_changes():
    with OperatorHarness(lambda stream: stream.rebalance().flat_map(Buffer())) as harness:
        harness.process_all(range(10))
        harness.rescale(3)
        harness.process_all([None] * 3)
        parts = harness.values()
        assert sorted(value for part in parts for value in part) == list(range(10))
        assert sorted(map(len, parts)) == [3, 3, 4]
        harness.process_all([10, 11, 12])
        harness.rescale(1)
        harness.process(None)
        assert harness.values() == [list(range(13))]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_after_a_restore_every_subtask_has_all_of_a_union_list(parallelism):
    define = lambda stream: stream.rebalance().flat_map(Buffer(union=True))  # noqa: E731
    with OperatorHarness(define, parallelism=2) as harness:
        harness.process_all(range(6))
        harness.process_all([None] * 2)
        assert sorted(harness.values()) == [[0, 2, 4], [1, 3, 5]]
        harness.restore(harness.snapshot(), parallelism)
        harness.process_all([None] * parallelism)
        assert harness.values() == [list(range(6))] * parallelism


@pytest.mark.parametrize("records", [1, 3, 100])
def test_fields_are_kept_over_epochs(records):
    class Pass(FilterFunction, CheckpointedFunction):
        """Every third record."""

        def initialize_state(self, context):
            self.state = context.get_operator_state_store().get_list_state(LISTED)
            self.seen = sum(self.state.get())

        def filter(self, value):
            self.seen += 1
            return self.seen % 3 == 0

        def snapshot_state(self, context):
            self.state.update([self.seen])

    configuration = Configuration()
    configuration.set_string("millstream.epoch.max-records", str(records))
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    passed = env.from_collection(list(range(10)), Types.LONG()).filter(Pass())
    assert list(passed.execute_and_collect()) == [2, 5, 8]


def test_initialize_state_is_called_before_open_and_both_once_per_start():
    class Order(MapFunction, CheckpointedFunction):
        def __init__(self):
            self.calls = []

        def initialize_state(self, context):
            self.calls.append("initialize")

        def open(self, runtime_context):
            self.calls.append("open")

        def map(self, value):
            return list(self.calls)

        def snapshot_state(self, context):
            self.calls.append("snapshot")

    with OperatorHarness(lambda stream: stream.map(Order())) as harness:
        harness.process(1)
        harness.process(2)
        harness.restore(harness.snapshot())
        harness.process(3)
        begun = ["initialize", "open"]
        assert harness.values() == [begun, [*begun, "snapshot"], begun]


def test_a_failed_attempt_does_not_change_fields():
    class Fails(MapFunction, CheckpointedFunction):
        def initialize_state(self, context):
            self.state = context.get_operator_state_store().get_list_state(LISTED)
            self.seen = sum(self.state.get())

        def map(self, value):
            self.seen += 10 // value
            return self.seen

        def snapshot_state(self, context):
            self.state.update([self.seen])

    with OperatorHarness(lambda stream: stream.map(Fails())) as harness:
        harness.process_all([10, 10])
        with pytest.raises(UserError):
            harness.process_all([10, 10, 0])
        harness.process_all([10, 10])
        assert harness.values() == [1, 2, 3, 4]


def test_keyed_and_broadcast_state_are_available_too():
    limits = MapStateDescriptor("limits", Types.STRING(), Types.LONG())

    class Both(KeyedProcessFunction, CheckpointedFunction):
        def initialize_state(self, context):
            self.mine = context.get_keyed_state_store().get_state(ValueStateDescriptor("mine", Types.LONG()))
            store = context.get_operator_state_store()
            self.limits = store.get_broadcast_state(limits)
            assert store.get_registered_broadcast_state_names() == {"limits"}
            self.limits.put("all", 7)

        def process_element(self, value, ctx):
            self.mine.update((self.mine.value() or 0) + value)
            yield self.mine.value(), self.limits.get("all")

        def snapshot_state(self, context):
            pass

    with OperatorHarness(lambda stream: stream.key_by(lambda v: v % 2).process(Both()), parallelism=2) as harness:
        harness.process_all([1, 2, 3])
        harness.rescale(3)
        harness.process_all([1, 2])
        assert sorted(harness.values()) == [(1, 7), (2, 7), (4, 7), (4, 7), (5, 7)]


def test_a_window_function_may_keep_operator_state():
    class Count(ProcessWindowFunction, CheckpointedFunction):
        def initialize_state(self, context):
            self.state = context.get_operator_state_store().get_list_state(LISTED)
            self.fired = sum(self.state.get())

        def process(self, key, context, elements):
            self.fired += 1
            yield self.fired

        def snapshot_state(self, context):
            self.state.update([self.fired])

    with OperatorHarness(lambda stream: stream.key_by(lambda v: v).count_window(1).process(Count())) as harness:
        harness.process_all([1, 2])
        harness.restore(harness.snapshot())
        harness.process(3)
        assert harness.values() == [1, 2, 3]


class Numbered(SinkWriter, CheckpointedFunction):
    """Prints each record with a number that counts over all epochs."""

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(LISTED)
        self.number = sum(self.state.get())

    def write(self, values, timestamps):
        for value in values:
            self.number += 1
            print(f"{self.number}:{value}")

    def prepare_commit(self):
        return []

    def snapshot_state(self, context):
        self.state.update([self.number])


class NumberedSink(Sink):
    commits_with_epoch = True

    def create_writer(self, context):
        return Numbered()


def test_a_sinks_writer_may_keep_operator_state(capsys):
    configuration = Configuration()
    configuration.set_string("millstream.epoch.max-records", "2")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    env.from_collection(["a", "b", "c", "d", "e"], Types.STRING()).sink_to(NumberedSink())
    env.execute()
    assert capsys.readouterr().out.split() == ["1:a", "2:b", "3:c", "4:d", "5:e"]


def refused(define, *words):
    with OperatorHarness(define) as harness, pytest.raises(UserError) as caught:
        harness.process(1)
    assert all(word in str(caught.value) for word in words), str(caught.value)


class Misuse(MapFunction, CheckpointedFunction):
    def __init__(self, ask):
        self.ask = ask

    def initialize_state(self, context):
        self.ask(context)

    def map(self, value):
        return value

    def snapshot_state(self, context):
        pass


def test_misuse_is_refused():
    def twice(context):
        store = context.get_operator_state_store()
        store.get_list_state(LISTED)
        store.get_union_list_state(LISTED)

    def keyed(context):
        context.get_keyed_state_store().get_state(ValueStateDescriptor("mine", Types.LONG()))

    refused(lambda stream: stream.map(Misuse(twice)), "'listed' is used twice", "union list")
    refused(lambda stream: stream.map(Misuse(keyed)), "not keyed", "'mine'")
