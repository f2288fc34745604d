"""The harness runs operators as a job does, and pipelines of several operators behave as in Flink."""

import time

import pytest

from millstream.connector.sink import Sink, SinkWriter
from millstream.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    FilterFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from millstream.datastream.window import TumblingEventTimeWindows
from millstream.event_time.timers import TimeDomain
from millstream.event_time.watermarks import MAX_WATERMARK, WatermarkStrategy
from millstream.runtime import block as blocks
from millstream.runtime.keys import KeySelection
from millstream.runtime.operators.process import ProcessSpec
from millstream.runtime.operators.reduce import ReduceSpec
from millstream.runtime.operators.sink import SinkSpec
from millstream.runtime.partitioners import Forward
from millstream.runtime.report import unpack_report
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.runtime.task import ChainedEdge, InEdge, OperatorNode, Task, TaskEnvironment, TaskRequest, TaskSpec
from millstream.state.handles import Lineage
from millstream.state_descriptors.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from millstream.state_descriptors.output_tag import OutputTag
from millstream.testing import HarnessMisused, ManualClock, OperatorHarness, Record, Timer, harness_for
from millstream.testing.clock import ClockWentBack
from millstream.testing.functions import NoHarness
from millstream.testing.harness import MemoryFiles
from millstream.times import Duration, Time
from millstream.types.factory import Types
from millstream.windows.window import TimeWindow

ODD = OutputTag("odd")
FIRST = KeySelection(Types.STRING(), selector=lambda value: value[0])


class Counter(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        if count % 2:
            yield ODD, value
        yield ctx.get_current_key(), count

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), f"timer {timestamp}"


def counter(**options):
    return harness_for(Counter(), key=lambda value: value[0], side_outputs=[ODD], **options)


def test_results_come_with_their_timestamps_and_side_outputs_apart():
    with counter() as harness:
        harness.process(("a", 1), 5)
        harness.process_all([("b", 1), ("a", 2)], [6, 7])
        assert harness.output == [Record(("a", 1), 5), Record(("b", 1), 6), Record(("a", 2), 7)]
        assert harness.take_output() == [Record(("a", 1), 5), Record(("b", 1), 6), Record(("a", 2), 7)]
        assert harness.take_output() == []
        assert harness.side_output(ODD) == [Record(("a", 1), 5), Record(("b", 1), 6)]
        assert harness.side_output("odd") == []
        harness.watermark(16)
        assert sorted(harness.values()) == [("a", "timer 15"), ("b", "timer 16")]
        assert harness.watermarks == [16]


def test_state_and_timers_can_be_inspected():
    with counter() as harness:
        harness.process_all([("a", 1), ("b", 1), ("a", 2)], [5, 6, 7])
        assert harness.state("count") == {"a": 2, "b": 1}
        waiting = [(15, "a"), (16, "b"), (17, "a")]
        assert harness.timers() == [Timer(TimeDomain.EVENT_TIME, time, key, None) for time, key in waiting]
        harness.watermark(15)
        assert [timer.time for timer in harness.timers()] == [16, 17]


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_snapshot_is_restored_at_any_parallelism_again_and_again(backend):
    keys = [f"k{n}" for n in range(9)]
    with counter(backend=backend) as harness:
        harness.process_all([(key, 1) for key in keys], range(9))
        early = harness.snapshot()
        for parallelism in (3, 2, 1):
            harness.rescale(parallelism)
            assert harness.state("count") == dict.fromkeys(keys, 4 - parallelism)
            harness.process_all([(key, 1) for key in keys], range(9))
        harness.take_output()
        harness.watermark(1000)
        assert sorted(harness.values()) == sorted((key, f"timer {10 + n}") for n, key in enumerate(keys))
        harness.restore(early, parallelism=4)
        assert harness.state("count") == dict.fromkeys(keys, 1)
    with counter(backend=backend) as other:
        other.restore(early, parallelism=2)
        other.process(("k1", 1), 1)
        assert other.values() == [("k1", 2)]


def test_a_restored_snapshot_can_be_taken_and_restored_again():
    with counter() as harness:
        harness.process(("a", 1), 1)
        harness.rescale(3)
        harness.rescale(2)
        harness.process(("a", 1), 1)
        assert harness.values()[-1] == ("a", 2)


def test_functions_are_opened_again_after_a_restore_and_closed_at_the_end():
    class Lives(MapFunction):
        def open(self, runtime_context):
            print("open", runtime_context.get_index_of_this_subtask())

        def map(self, value):
            return value

        def close(self):
            print("close")

    with harness_for(Lives()) as harness:
        harness.process(1)
        harness.process(2)
        harness.restore(harness.snapshot())
        harness.process(3)
        harness.end_of_input()
        assert harness.printed == "open 0\nopen 0\nclose\n"


def test_one_operator_from_its_description():
    class Add(ReduceFunction):
        def reduce(self, value1, value2):
            return value1[0], value1[1] + value2[1]

    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    spec = ReduceSpec(Add(), FIRST)
    with OperatorHarness.of_spec(spec, keys=[FIRST], input_types=[pair], output_type=pair, parallelism=3) as harness:
        harness.process_all([("a", 1), ("a", 2)])
        assert harness.values() == [("a", 1), ("a", 3)]


def test_every_type_of_function_has_a_harness():
    class Even(FilterFunction):
        def filter(self, value):
            return value % 2 == 0

    class Pass(ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    class Sides(CoFlatMapFunction):
        def flat_map1(self, value):
            yield 1, value

        def flat_map2(self, value):
            yield 2, value

    class Join(KeyedCoProcessFunction):
        def open(self, runtime_context):
            self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY()))

        def process_element1(self, value, ctx):
            self.seen.add(value)
            yield ctx.get_current_key(), len(list(self.seen.get()))

        process_element2 = process_element1

    rules = MapStateDescriptor("rules", Types.STRING(), Types.LONG())

    class Rules(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.get_broadcast_state(rules).get(value)

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(rules).put(*value)

    with harness_for(Even()) as harness:
        harness.process_all([1, 2])
        assert harness.values() == [2]
    with harness_for(Pass()) as harness:
        harness.process(1, 7)
        assert harness.values() == [(1, 7)]
    with harness_for(Sides()) as harness:
        harness.process("x")
        harness.process("y", side=1)
        assert harness.values() == [(1, "x"), (2, "y")]
    with harness_for(Join(), key=(lambda v: v[0], lambda v: v[1])) as harness:
        harness.process(("k", 1))
        harness.process((1, "k"), side=1)
        assert harness.values() == [("k", 1), ("k", 2)]
    with harness_for(Rules(), broadcast=[rules], parallelism=2) as harness:
        harness.process(("x", 5), side=1)
        harness.process_all(["x", "x", "y"])
        assert sorted(map(str, harness.values())) == ["5", "5", "None"]


def test_misuse_is_explained():
    with pytest.raises(NoHarness, match="Counter needs a keyed stream"):
        harness_for(Counter())
    with pytest.raises(NoHarness, match="cannot be tested by itself"):
        harness_for(TimeWindow(0, 1))
    with counter() as harness:
        with pytest.raises(HarnessMisused, match="2 values and 1 timestamps"):
            harness.process_all([1, 2], [1])
        with pytest.raises(HarnessMisused, match="side output 'even' is not collected"):
            harness.side_output("even")
        harness.processing_time(5)
        with pytest.raises(ClockWentBack):
            harness.processing_time(4)


def test_the_clock_is_moved_by_the_test():
    clock = ManualClock(1000)
    clock.advance(500)
    assert (clock.now(), clock.precise()) == (1500, 1.5)


# ------------------------------------------------------------------------------------------------------- pipelines


def test_a_key_by_after_a_filter_on_another_key_uses_its_own_key():
    class Key(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.get_current_key(), value

    def define(stream):
        return (
            stream.key_by(lambda value: value[0]).filter(lambda _: True).key_by(lambda value: value[1]).process(Key())
        )

    with OperatorHarness(define, parallelism=2) as harness:
        harness.process_all([("a", 1), ("a", 2), ("b", 1)])
        assert sorted(harness.values()) == [(1, ("a", 1)), (1, ("b", 1)), (2, ("a", 2))]


class Remind(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


def test_output_of_processing_time_timers_reaches_operators_of_the_same_chain():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    strategy = strategy.with_timestamp_assigner(lambda value, _: value[1])

    def define(stream):
        return stream.key_by(lambda value: value[0]).process(Remind()).assign_timestamps_and_watermarks(strategy)

    with OperatorHarness(define) as harness:
        harness.process(("a", 50))
        harness.processing_time(60)
        assert harness.take_output() == [Record(("a", 50), 50)]
        assert harness.watermarks == [49]


class Staged(Sink):
    """Its committables are the records."""

    def create_writer(self, context):
        return StagingWriter()

    def create_committer(self):
        raise AssertionError


class StagingWriter(SinkWriter):
    def __init__(self):
        self.staged = []

    def write(self, values, timestamps):
        self.staged.extend(values)

    def prepare_commit(self):
        return self.staged


def test_output_of_processing_time_timers_is_not_lost_in_a_chained_sink():
    any_type = Types.PICKLED_BYTE_ARRAY()
    spec = TaskSpec(
        vertex="v",
        name="v",
        parallelism=1,
        max_parallelism=128,
        operators=(
            OperatorNode("remind", "remind", ProcessSpec(Remind(), (FIRST,)), any_type, Types.STRING()),
            OperatorNode("sink", "sink", SinkSpec(Staged()), any_type),
        ),
        chained=(ChainedEdge(0, 1),),
        inputs=(InEdge(0, 0, any_type, 1, Forward()),),
    )
    with OperatorHarness(lambda stream: stream) as home:  # only for its files
        task = Task(spec, 0, TaskEnvironment(MemoryFiles(home._job), lambda *_: None))
        batch = blocks.pack_batch(0, 0, 0, blocks.Batch(any_type, rows=[("a", 50)]))
        first = last_report(task.run(TaskRequest(1, now=10, attempt="1"), [batch]))
        assert first.timer == 50
        lineages = {"remind": Lineage().extend(*first.states["remind"])}
        second = last_report(task.run(TaskRequest(2, 50, "1", lineages=lineages, memory=first.memory), []))
        assert second.results == {"sink": [("a", 50)]}


def last_report(sent):
    return unpack_report([data for _, data in sent][-1])


def test_the_watermark_of_an_input_that_ended_before_a_rescale_is_not_waited_for_again():
    def define(first, second):
        both = first.map(lambda value: value).union(second)
        keyed = both.key_by(lambda value: value[0])
        return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).reduce(lambda one, _: one)

    with OperatorHarness(define, input_types=(None, None)) as harness:
        harness.process(("a", 1), 5, side=1)
        harness.end_of_input(side=0)
        harness.rescale(2)
        harness.watermark(20, side=1)
        assert harness.values() == [("a", 1)]
        harness.rescale(3)
        harness.end_of_input(side=1)
        assert harness.watermarks[-1] == MAX_WATERMARK


def test_an_idle_input_is_still_idle_after_a_rescale():
    def define(first, second):
        return first.union(second).key_by(lambda value: value).process(Echo())

    with OperatorHarness(define, input_types=(None, None)) as harness:
        harness.idle(side=0)
        harness.rescale(2)
        harness.watermark(20, side=1)
        assert harness.watermarks == [20]


class Echo(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


def test_the_broadcast_side_has_no_key():
    rules = MapStateDescriptor("rules", Types.STRING(), Types.LONG())

    class Confused(KeyedBroadcastProcessFunction):
        def open(self, runtime_context):
            self.mine = runtime_context.get_state(ValueStateDescriptor("mine", Types.LONG()))

        def process_element(self, value, ctx):
            self.mine.update(1)
            return ()

        def process_broadcast_element(self, value, ctx):
            yield self.mine.value()

    with harness_for(Confused(), key=lambda value: value, broadcast=[rules]) as harness:
        harness.process("a")
        with pytest.raises(UserFunctionFailed, match="has no key"):
            harness.process("x", side=1)


def test_the_other_side_of_a_broadcast_cannot_write():
    rules = MapStateDescriptor("rules", Types.STRING(), Types.LONG())

    class Writing(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            ctx.get_broadcast_state(rules).put("x", 1)
            return ()

        def process_broadcast_element(self, value, ctx):
            return ()

    with (
        harness_for(Writing(), broadcast=[rules]) as harness,
        pytest.raises(UserFunctionFailed, match="broadcast state is read-only in process_element"),
    ):
        harness.process("a")


def test_each_step_of_a_harness_is_fast():
    """A test of a function takes milliseconds: the harness starts no engine."""
    started = time.process_time()
    with counter() as harness:
        for number in range(20):
            harness.process(("a", number), number)
    assert time.process_time() - started < 5
