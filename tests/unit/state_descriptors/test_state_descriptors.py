"""State descriptors, time to live, output tags, and how functions that are passed in are wrapped."""

from __future__ import annotations

import operator
import pickle

import pytest

from millstream.config.resources import IncompleteResources, MemorySize, SlotSharingGroup, merge_resources
from millstream.functions import (
    AggregateFunction,
    AsyncRetryStrategy,
    FlatMapFunction,
    InvalidRetryStrategy,
    MapFunction,
    ReduceFunction,
    WrongFunctionType,
    as_function,
)
from millstream.state_descriptors.descriptors import (
    AggregatingStateDescriptor,
    InvalidStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    NotAType,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from millstream.state_descriptors.output_tag import InvalidOutputTag, OutputTag
from millstream.state_descriptors.ttl import InvalidTimeToLive, StateTtlConfig
from millstream.times import Duration, Time
from millstream.types.factory import Types


class AddOne(MapFunction):
    def map(self, value):
        return value + 1


class Split(FlatMapFunction):
    def flat_map(self, value):
        yield from value


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return value + accumulator

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def test_python_hints_mean_the_same_as_types():
    assert ValueStateDescriptor("v", int) == ValueStateDescriptor("v", Types.LONG())
    assert ListStateDescriptor("l", str) == ListStateDescriptor("l", Types.STRING())
    assert MapStateDescriptor("m", str, int) == MapStateDescriptor("m", Types.STRING(), Types.LONG())
    assert ValueStateDescriptor("v", None).type_info == Types.PICKLED_BYTE_ARRAY()


@pytest.mark.parametrize("given", [Types.LONG, "LONG", 5])
def test_a_value_that_is_not_a_type_is_refused(given):
    with pytest.raises(NotAType, match="is not a type"):
        ValueStateDescriptor("v", given)


@pytest.mark.parametrize("name", ["", None, 3])
def test_state_needs_a_name(name):
    with pytest.raises(InvalidStateDescriptor):
        ValueStateDescriptor(name, int)


def test_descriptors_compare_by_all_properties_and_can_be_pickled():
    plain, with_ttl = ValueStateDescriptor("v", int), ValueStateDescriptor("v", int, ttl=Duration.of_hours(1))
    assert plain != with_ttl
    assert plain != ListStateDescriptor("v", int)
    reducing = ReducingStateDescriptor("r", operator.add, int)
    for descriptor in (plain, with_ttl, reducing):
        assert pickle.loads(pickle.dumps(descriptor)) == descriptor


def test_disabled_time_to_live_is_none():
    descriptor = ValueStateDescriptor("v", int)
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    assert descriptor.ttl_config.get_ttl() == Time.seconds(1)
    disabled = StateTtlConfig.new_builder(Time.seconds(1)).set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    descriptor.enable_time_to_live(disabled)
    assert descriptor.ttl_config is None


def test_time_to_live_defaults_are_those_of_flink():
    config = StateTtlConfig.new_builder(Duration.of_days(1)).build()
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl() == Time.days(1)
    cleanup = config.get_cleanup_strategies()
    assert cleanup.is_cleanup_in_background()
    assert not cleanup.in_full_snapshot()
    assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 5
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy().get_query_time_after_num_entries() == 1000
    without = StateTtlConfig.new_builder(Time.days(1)).disable_cleanup_in_background().build().get_cleanup_strategies()
    assert without.get_incremental_cleanup_strategy() is None


def test_time_to_live_must_be_positive():
    with pytest.raises(InvalidTimeToLive, match="not 0 ms"):
        StateTtlConfig.new_builder(Time.seconds(0)).build()


def test_a_callable_is_called_without_a_wrapper():
    function = as_function(operator.neg, MapFunction)
    assert isinstance(function, MapFunction)
    assert function.map is operator.neg
    assert function == as_function(operator.neg, MapFunction)
    assert ReducingStateDescriptor("r", max, int).get_reduce_function().reduce(1, 2) == 2
    add_one = AddOne()
    assert as_function(add_one, MapFunction) is add_one
    assert as_function(str, MapFunction).map(1) == "1"


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        (AddOne, MapFunction, r"the class AddOne itself was given; hint: pass an instance: AddOne\(\)"),
        (Split(), MapFunction, "a MapFunction or a callable of 1 argument is taken, but a FlatMapFunction was given"),
        (lambda a, b: a, MapFunction, "cannot be called with 1 argument"),
        (lambda a: a, ReduceFunction, "cannot be called with 2 arguments"),
        (3, MapFunction, "3 of type int was given"),
        (lambda a: a, AggregateFunction, "an AggregateFunction is taken"),
    ],
)
def test_another_function_is_refused_with_the_accepted_classes(given, kind, says):
    with pytest.raises(WrongFunctionType, match=says):
        as_function(given, kind)


def test_aggregating_state_takes_an_aggregate_function_only():
    assert AggregatingStateDescriptor("a", Total(), int).get_agg_function().merge(1, 2) == 3
    with pytest.raises(WrongFunctionType):
        AggregatingStateDescriptor("a", max, int)


def test_output_tags_are_equal_by_id():
    late = OutputTag("late", Types.LONG())
    assert {late: 1}[OutputTag("late")] == 1
    assert pickle.loads(pickle.dumps(late)).type_info == Types.LONG()
    assert OutputTag("row", [Types.STRING(), Types.LONG()]).type_info == Types.ROW([Types.STRING(), Types.LONG()])
    with pytest.raises(InvalidOutputTag):
        OutputTag("")


def test_backoff_depends_on_the_number_of_attempts_alone():
    strategy = AsyncRetryStrategy.exponential_backoff(4, 100, 350, 1.5, None, None)
    assert [strategy.get_backoff_time_millis(n) for n in (5, 1, 2, 3, 4)] == [350, 100, 150, 225, 337]
    assert [strategy.can_retry(n) for n in (4, 5)] == [True, False]
    with pytest.raises(InvalidRetryStrategy, match="backoff_time_millis"):
        AsyncRetryStrategy.fixed_delay(1, 0, None, None)


def test_a_slot_sharing_group_has_all_required_resources_or_none():
    assert SlotSharingGroup.builder("g").build().get_cpu_cores() is None
    group = SlotSharingGroup.builder("g").set_cpu_cores(1).set_task_heap_memory_mb(2).build()
    assert (group.get_managed_memory(), str(group.get_task_heap_memory())) == (MemorySize(0), "2 mb")
    with pytest.raises(IncompleteResources, match="'g'"):
        SlotSharingGroup.builder("g").set_cpu_cores(1).build()


def test_a_slot_has_what_the_largest_group_needs():
    small = SlotSharingGroup.builder("a").set_cpu_cores(0.5).set_task_heap_memory_mb(2).set_external_resource("gpu", 1)
    large = SlotSharingGroup.builder("b").set_cpu_cores(2.5).set_task_heap_memory_mb(2)
    resources = merge_resources(merge_resources({}, large.build()), small.build())
    assert resources == {"cpus": "3", "gpu": "1"}
    assert merge_resources({}, SlotSharingGroup.builder("c").build()) == {}
