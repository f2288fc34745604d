"""Streams reinterpreted as keyed, and options against skew: the results equal those of the plain program."""

from __future__ import annotations

import pytest

from millstream.common import Configuration, Duration, Time, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.data_stream_utils import DataStreamUtils
from millstream.datastream.functions import AggregateFunction, ProcessJoinFunction, ProcessWindowFunction
from millstream.datastream.skew import salted
from millstream.datastream.state import ValueStateDescriptor
from millstream.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from millstream.errors import UserError
from millstream.functions.aggregations import Aggregations, Avg, Count, Max, Min, Sum
from millstream.options import PRE_AGGREGATION
from millstream.testing.harness import OperatorHarness

KIND = Types.ROW_NAMED(["key", "at", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])
ROWS = [("hot" if i % 4 else f"k{i % 3}", i * 13 % 90, i) for i in range(80)]
TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(20))
WINDOWS = {
    "tumbling": TUMBLING,
    "offset": TumblingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(7)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(30), Time.milliseconds(20)),
}
CUTS = [(1, None), (2, 1), (3, 9)]


def environment(parallelism: int = 2, records: int | None = None, combine: bool = False) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string(PRE_AGGREGATION.key, str(combine).lower())
    if records is not None:
        configuration.set_string("millstream.epoch.max-records", str(records))
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def timed(env, kind=KIND):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1000))
    stream = env.from_collection(ROWS, kind)
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda row, _: row[1]))


def names(env) -> list[str]:
    return [node.name for node in env._graph().nodes]


# ---------------------------------------------------------------------------------------------------- reinterpretation


class Count1(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


class Near(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[2], right[2]


class Same(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


@pytest.mark.parametrize(("parallelism", "records"), CUTS)
@pytest.mark.parametrize("selector", [0, lambda row: row[0]], ids=["field", "function"])
def test_a_partitioned_stream_is_reinterpreted_as_keyed_without_an_exchange(selector, parallelism, records):
    def counted(reinterpret: bool):
        env = environment(parallelism, records)
        once = env.from_collection(ROWS, KIND).key_by(selector, Types.STRING()).process(Same(), KIND)
        again = (
            DataStreamUtils.reinterpret_as_keyed_stream(once, selector, Types.STRING())
            if reinterpret
            else once.key_by(selector, Types.STRING())
        )
        counts = again.process(Count1())
        exchanges = [edge.partitioner.name for edge in env._graph().edges]
        return exchanges, sorted(counts.execute_and_collect())

    exchanges, results = counted(reinterpret=True)
    assert exchanges.count("HASH") == 1
    assert results == counted(reinterpret=False)[1]


def test_a_filter_after_another_key_does_not_forward_its_keys():
    env = environment()
    stream = env.from_collection(ROWS, Types.PICKLED_BYTE_ARRAY()).key_by(lambda row: row[0]).filter(lambda row: True)
    keyed = DataStreamUtils.reinterpret_as_keyed_stream(stream, lambda row: row[0])
    assert {key for key, _ in keyed.process(Count1()).execute_and_collect()} == {row[0] for row in ROWS}


def test_windows_and_joins_of_a_stream_reinterpreted_as_keyed():
    env = environment()
    once = timed(env).key_by(0).process(Same(), KIND)
    keyed = DataStreamUtils.reinterpret_as_keyed_stream(once, 0)
    assert sorted(_sums(keyed.window(TUMBLING)).execute_and_collect()) == plain("tumbling")

    env = environment()
    once = timed(env).key_by(0).process(Same(), KIND)
    keyed = DataStreamUtils.reinterpret_as_keyed_stream(once, 0)
    joined = keyed.interval_join(timed(env).key_by(0)).between(0, 5).process(Near())
    expected = [(a[2], b[2]) for a in ROWS for b in ROWS if a[0] == b[0] and a[1] <= b[1] <= a[1] + 5]
    assert sorted(joined.execute_and_collect()) == sorted(expected)


def test_a_key_in_the_wrong_subtask_is_refused():
    env = environment(3)
    moved = env.from_collection(ROWS, KIND).key_by(0).map(lambda row: (row[0] + "!", row[1], row[2]), KIND)
    DataStreamUtils.reinterpret_as_keyed_stream(moved, 0).process(Count1()).print()
    with pytest.raises(UserError) as caught:
        env.execute()
    for word in ("key group", "does not own", "!', ", "key_by", "Reinterpreted"):
        assert word in str(caught.value), str(caught.value)


def test_operators_after_it_need_its_parallelism():
    env = environment(2)
    once = env.from_collection(ROWS, KIND).key_by(0).process(Same(), KIND)
    DataStreamUtils.reinterpret_as_keyed_stream(once, 0).process(Count1()).set_parallelism(3).print()
    with pytest.raises(UserError, match="forward from 'Reinterpreted'"):
        env.execute()


# ----------------------------------------------------------------------------------------------------- pre-aggregation


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithStart(ProcessWindowFunction):
    def process(self, key, context, elements):
        for element in elements:
            yield key, context.window().start, element


def _add(one, other):
    return type(one)(key=one["key"], at=0, value=one["value"] + other["value"])


def _sums(windowed):
    return windowed.reduce(_add, WithStart()).map(lambda found: (found[0], found[1], found[2][2]))


def plain(kind: str) -> list[tuple[str, int, int]]:
    env = environment(1)
    return sorted(_sums(timed(env).key_by("key").window(WINDOWS[kind])).execute_and_collect())


FOLDS = {
    "reduce": _sums,
    "aggregate": lambda windowed: windowed.aggregate(Mean(), WithStart()),
    "columns": lambda windowed: windowed.aggregate(
        Aggregations(n=Count(), total=Sum("value"), least=Min("value"), top=Max("value"), some=Count("value"))
    ).map(tuple),
    "average": lambda windowed: windowed.aggregate(Aggregations(mean=Avg("value"))).map(tuple),
}


@pytest.mark.parametrize(("parallelism", "records"), CUTS)
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("kind", WINDOWS)
def test_local_aggregation_does_not_change_results(kind, fold, parallelism, records):
    def result(combine: bool):
        env = environment(parallelism, records, combine)
        found = FOLDS[fold](timed(env).key_by("key").window(WINDOWS[kind]))
        assert ("Pre-Aggregation" in names(env)) == (combine and fold != "average")
        return sorted(found.execute_and_collect())

    assert result(combine=True) == result(combine=False) != []


def test_built_in_aggregates_by_a_function_are_pre_aggregated_too():
    def result(combine: bool):
        env = environment(2, 7, combine)
        windowed = timed(env).key_by(lambda row: row["key"], Types.STRING()).window(TUMBLING)
        found = windowed.aggregate(Aggregations(mean=Avg("value"))).map(tuple)
        assert ("Pre-Aggregation" in names(env)) == combine
        return sorted(found.execute_and_collect())

    assert result(combine=True) == result(combine=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda windowed: windowed.allowed_lateness(5),
        lambda windowed: windowed.evictor(CountEvictor.of(1)),
        lambda windowed: windowed.trigger(TUMBLING.get_default_trigger(None)),
    ],
    ids=["lateness", "evictor", "trigger"],
)
def test_windows_that_need_single_records_are_not_pre_aggregated(change):
    env = environment(combine=True)
    _sums(change(timed(env).key_by("key").window(TUMBLING))).print()
    _sums(timed(env).key_by("key").window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))).print()
    assert "Pre-Aggregation" not in names(env)


def test_late_records_are_counted_one_by_one():
    def define(stream):
        stream.get_execution_environment()._configuration.set(PRE_AGGREGATION, True)
        return _sums(stream.key_by("key").window(TUMBLING))

    with OperatorHarness(define, input_types=[KIND]) as harness:
        harness.watermark(50)
        harness.process_all([("a", 1, 1), ("a", 2, 2), ("a", 55, 3), ("a", 56, 4)], [1, 2, 55, 56])
        assert harness.counter("numLateRecordsDropped") == 2
        harness.end_of_input()
        assert harness.values() == [("a", 40, 7)]


def test_records_without_a_timestamp_are_refused_before_the_exchange_too():
    env = environment(combine=True)
    env.from_collection(ROWS, KIND).key_by("key").window(TUMBLING).reduce(_add).print()
    with pytest.raises(UserError, match="assign_timestamps_and_watermarks"):
        env.execute()


# ------------------------------------------------------------------------------------------------------------- salting


@pytest.mark.parametrize(("parallelism", "records"), CUTS)
def test_two_phases_have_the_results_of_one(parallelism, records):
    env = environment(parallelism, records)
    found = salted(timed(env), lambda row: row["key"], _add, 4, TUMBLING, Types.STRING())
    sums = sorted((row["key"], row["value"]) for row in found.execute_and_collect())
    assert sums == sorted((key, value) for key, _, value in plain("tumbling"))


def test_a_hot_key_is_distributed():
    env = environment(2)
    salted(timed(env), lambda row: "hot", _add, 8, TUMBLING)
    salt = next(node for node in env._graph().nodes if node.name == "Salt")
    function = salt.spec.function
    assert [function.map(row)[0] for row in ROWS[:16]] == [*range(1, 8), 0] * 2


@pytest.mark.parametrize(
    ("buckets", "window", "words"),
    [
        (0, TUMBLING, "buckets must be an int of at least 1, not 0"),
        (4, WINDOWS["sliding"], "same windows"),
        (4, None, "same windows"),
    ],
)
def test_impossible_salting_is_refused(buckets, window, words):
    with pytest.raises(UserError, match=words):
        salted(timed(environment()), lambda row: row["key"], _add, buckets, window)
