"""Properties of windows, assigners, triggers, evictors and built-in aggregations."""

from __future__ import annotations

import pickle
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.functions.aggregations import Aggregations, Avg, Count, InvalidAggregations, Max, Min, Sum
from millstream.times import Duration, Time
from millstream.types.row import Row
from millstream.windows import assigners, continuous_triggers, evictors, sessions, triggers
from millstream.windows.evictors import TimestampedValue
from millstream.windows.triggers import TriggerResult
from millstream.windows.window import CountWindow, GlobalWindow, MergeCallback, TimeWindow, group_overlapping

times = st.integers(-(10**15), 10**15)


class Store:
    """State of one key and window, as contexts return it."""

    def __init__(self):
        self.values = {}

    def get_state(self, descriptor):
        return Cell(self.values, descriptor)


class Cell:
    def __init__(self, values, descriptor):
        self.values, self.name = values, descriptor.name
        self.reduce = descriptor.get_reduce_function().reduce if hasattr(descriptor, "get_reduce_function") else None

    def value(self):
        return self.values.get(self.name)

    get = value

    def update(self, value):
        self.values[self.name] = value

    def add(self, value):
        self.values[self.name] = self.reduce(self.values[self.name], value) if self.name in self.values else value

    def clear(self):
        self.values.pop(self.name, None)


class Context(Store):
    """A trigger and assigner context that stores timers in sets."""

    def __init__(self, now=0, watermark=MIN_WATERMARK):
        super().__init__()
        self.now, self.watermark = now, watermark
        self.event_timers, self.processing_timers = set(), set()

    def get_current_processing_time(self):
        return self.now

    def get_current_watermark(self):
        return self.watermark

    def get_runtime_context(self):
        return self

    def get_partitioned_state(self, descriptor):
        return self.get_state(descriptor)

    def register_event_time_timer(self, time):
        self.event_timers.add(time)

    def register_processing_time_timer(self, time):
        self.processing_timers.add(time)

    def delete_event_time_timer(self, time):
        self.event_timers.discard(time)

    def delete_processing_time_timer(self, time):
        self.processing_timers.discard(time)


@given(times, st.integers(1, 10**9), st.data())
def test_a_tumbling_window_contains_its_timestamp_and_is_aligned_to_the_offset(timestamp, size, data):
    offset = data.draw(st.integers(1 - size, size - 1))
    (window,) = assigners.TumblingEventTimeWindows(size, offset).assign_windows(None, timestamp, Context())
    assert window.start <= timestamp <= window.max_timestamp()
    assert window.end - window.start == size
    assert (window.start - offset) % size == 0


@given(st.integers(-500, 500), st.integers(1, 50), st.integers(1, 50), st.data())
def test_sliding_windows_are_all_aligned_windows_that_contain_the_timestamp(timestamp, size, slide, data):
    offset = data.draw(st.integers(1 - slide, slide - 1))
    windows = assigners.SlidingEventTimeWindows(size, slide, offset).assign_windows(None, timestamp, Context())
    starts = [s for s in range(timestamp, timestamp - size, -1) if (s - offset) % slide == 0]
    assert windows == [TimeWindow(s, s + size) for s in starts]


def test_processing_time_windows_ignore_the_timestamp_of_the_record():
    context = Context(now=25)
    of = [
        assigners.TumblingProcessingTimeWindows.of(Time.milliseconds(10)),
        assigners.SlidingProcessingTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)),
        sessions.ProcessingTimeSessionWindows.with_gap(Time.milliseconds(10)),
    ]
    assert [a.assign_windows(None, 3, context)[0].start for a in of] == [20, 25, 25]
    assert not any(a.is_event_time() for a in of)


@given(st.permutations(list(range(0, 60, 7))), st.integers(1, 20))
def test_sessions_do_not_depend_on_the_order_of_records(order, gap):
    assigner = sessions.EventTimeSessionWindows(gap)

    def result(timestamps):
        return [
            w for w, _ in group_overlapping(w for t in timestamps for w in assigner.assign_windows(None, t, Context()))
        ]

    assert result(order) == result(sorted(order))


def test_windows_that_touch_merge_and_others_do_not():
    merges = []

    class Collect(MergeCallback[TimeWindow]):
        def merge(self, to_be_merged, merge_result):
            merges.append((set(to_be_merged), merge_result))

    a, b, c = TimeWindow(0, 10), TimeWindow(10, 20), TimeWindow(21, 30)
    sessions.EventTimeSessionWindows(10).merge_windows([c, b, a], Collect())
    assert merges == [({a, b}, TimeWindow(0, 20))]


def test_a_dynamic_gap_is_extracted_from_each_record_and_must_be_positive():
    assigner = sessions.EventTimeSessionWindows.with_dynamic_gap(lambda record: record["gap"])
    assert assigner.assign_windows({"gap": 4}, 10, Context()) == [TimeWindow(10, 14)]
    with pytest.raises(sessions.InvalidSessionGap, match="not 0"):
        assigner.assign_windows({"gap": 0}, 10, Context())


@pytest.mark.parametrize("missing", [None, MIN_WATERMARK])
def test_event_time_window_refuses_a_record_without_timestamp(missing):
    for assigner in (assigners.TumblingEventTimeWindows(5, 0), sessions.EventTimeSessionWindows(5)):
        with pytest.raises(assigners.NoTimestamp, match="assign_timestamps_and_watermarks"):
            assigner.assign_windows("x", missing, Context())


@pytest.mark.parametrize(
    "make",
    [
        lambda: assigners.TumblingEventTimeWindows.of(Time.seconds(1), Time.seconds(1)),
        lambda: assigners.TumblingProcessingTimeWindows(0, 0),
        lambda: assigners.SlidingEventTimeWindows(10, 5, -5),
        lambda: assigners.CountTumblingWindowAssigner(0),
        lambda: sessions.EventTimeSessionWindows(0),
    ],
)
def test_invalid_lengths_are_refused(make):
    with pytest.raises(assigners.InvalidWindowAssigner, match="must satisfy"):
        make()


@given(st.integers(1, 7), st.integers(1, 7))
def test_count_sliding_assigns_each_record_to_the_windows_that_contain_it(size, slide):
    context, assigner = Context(), assigners.CountSlidingWindowAssigner(size, slide)
    for number in range(20):
        ids = {w.id for w in assigner.assign_windows(None, 0, context)}
        assert ids == {i for i in range(20) if i * slide <= number < i * slide + size}


def test_count_tumbling_fires_each_full_window_once():
    context, assigner = Context(), assigners.CountTumblingWindowAssigner.of(3)
    windows = [assigner.assign_windows(None, 0, context)[0] for _ in range(7)]
    assert [w.id for w in windows] == [0, 0, 0, 1, 1, 1, 2]
    trigger, counts = assigner.get_default_trigger(None), Context()
    fired = [trigger.on_element(None, 0, w, counts).is_fire() for w in windows[:6]]
    assert fired == [False, False, True, False, False, True]


def test_event_time_trigger_fires_at_the_watermark_and_for_each_late_record():
    trigger, window, context = triggers.EventTimeTrigger(), TimeWindow(0, 10), Context(watermark=8)
    assert trigger.on_element(None, 5, window, context) is TriggerResult.CONTINUE
    assert context.event_timers == {9}
    assert trigger.on_event_time(9, window, context) is TriggerResult.FIRE
    context.watermark = 9
    assert trigger.on_element(None, 5, window, context) is TriggerResult.FIRE
    trigger.clear(window, context)
    assert context.event_timers == set()


def test_continuous_event_time_trigger_fires_at_each_interval_and_at_the_end():
    trigger, window, context = (
        continuous_triggers.ContinuousEventTimeTrigger.of(Duration.of_millis(4)),
        TimeWindow(0, 10),
        Context(),
    )
    assert trigger.on_element(None, 1, window, context) is TriggerResult.CONTINUE
    fired = []
    while context.event_timers:
        time = min(context.event_timers)
        context.event_timers.remove(time)
        if trigger.on_event_time(time, window, context).is_fire():
            fired.append(time)
    assert fired == [4, 8, 9]


def test_continuous_processing_time_trigger_stops_at_the_end_of_the_window():
    trigger, window, context = continuous_triggers.ContinuousProcessingTimeTrigger(4), TimeWindow(0, 10), Context(now=1)
    trigger.on_element(None, 1, window, context)
    fired = []
    while context.processing_timers:
        time = min(context.processing_timers)
        context.processing_timers.remove(time)
        if trigger.on_processing_time(time, window, context).is_fire():
            fired.append(time)
    assert fired == [4, 8, 9]


def test_purging_trigger_purges_if_the_nested_trigger_fires():
    trigger, context = triggers.PurgingTrigger.of(triggers.CountTrigger.of(2)), Context()
    results = [trigger.on_element(None, 0, GlobalWindow.get(), context) for _ in range(2)]
    assert results == [TriggerResult.CONTINUE, TriggerResult.FIRE_AND_PURGE]
    assert trigger.can_merge()


def test_delta_trigger_compares_with_the_record_of_the_last_fire():
    trigger, context = triggers.DeltaTrigger.of(5, lambda old, new: new - old), Context()
    fired = [trigger.on_element(v, 0, GlobalWindow.get(), context).is_fire() for v in (1, 4, 6, 7, 12, 13)]
    assert fired == [False, False, False, True, False, True]


@pytest.mark.parametrize(
    ("evictor", "expected"),
    [
        (evictors.CountEvictor.of(2), [5, 9]),
        (evictors.CountEvictor.of(9), [1, 8, 5, 9]),
        (evictors.TimeEvictor.of(Time.milliseconds(4)), [8, 9]),
        (evictors.DeltaEvictor.of(4, lambda value, last: last - value), [8, 9]),
    ],
)
def test_an_evictor_keeps_the_expected_records_in_order(evictor, expected):
    elements = [TimestampedValue(v, v) for v in (1, 8, 5, 9)]
    evictor.evict_after(elements, 4, GlobalWindow.get(), None)
    assert len(elements) == 4
    evictor.evict_before(elements, 4, GlobalWindow.get(), None)
    assert [e.value for e in elements] == expected


@pytest.mark.parametrize(
    "value",
    [
        TimeWindow(1, 2),
        CountWindow(3),
        GlobalWindow.get(),
        assigners.TumblingEventTimeWindows.of(Time.seconds(1)),
        assigners.GlobalWindows.create(),
        assigners.CountSlidingWindowAssigner.of(4, 2),
        sessions.EventTimeSessionWindows.with_gap(Duration.of_seconds(1)),
        triggers.PurgingTrigger.of(triggers.CountTrigger.of(2)),
        continuous_triggers.ContinuousEventTimeTrigger(5),
        evictors.TimeEvictor.of(Time.seconds(1), True),
        Aggregations(n=Count(), total=Sum("amount")),
    ],
)
def test_descriptions_can_be_pickled_and_compare_by_value(value):
    copy = pickle.loads(pickle.dumps(value))
    assert copy == value
    assert hash(copy) == hash(value)
    assert repr(copy) == repr(value)


def test_window_serializers_read_the_bytes_that_they_write():
    for assigner, window in [
        (assigners.TumblingEventTimeWindows(5, 0), TimeWindow(-5, 0)),
        (assigners.CountTumblingWindowAssigner(5), CountWindow(7)),
        (assigners.GlobalWindows(), GlobalWindow()),
    ]:
        stream = BytesIO()
        assigner.get_window_serializer().serialize(window, stream)
        assert assigner.get_window_serializer().deserialize(BytesIO(stream.getvalue())) == window


@given(st.lists(st.none() | st.integers(-100, 100)), st.integers(0, 100))
def test_aggregations_ignore_nulls_and_can_be_merged(amounts, cut):
    function = Aggregations(n=Count(), known=Count("a"), total=Sum("a"), low=Min("a"), high=Max("a"), mean=Avg("a"))

    def aggregate_part(part):
        accumulator = function.create_accumulator()
        for amount in part:
            accumulator = function.add({"a": amount}, accumulator)
        return accumulator

    known = [a for a in amounts if a is not None]
    expected = Row(
        n=len(amounts),
        known=len(known),
        total=sum(known) if known else None,
        low=min(known, default=None),
        high=max(known, default=None),
        mean=sum(known) / len(known) if known else None,
    )
    assert function.get_result(aggregate_part(amounts)) == expected
    assert function.merge(aggregate_part(amounts[:cut]), aggregate_part(amounts[cut:])) == aggregate_part(amounts)


def test_unknown_aggregations_are_refused():
    with pytest.raises(InvalidAggregations, match="the class Sum"):
        Aggregations(total=Sum)
