"""Sessions that fire once, at their end, have a fast path; its results must equal those of the general one."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millstream.datastream.functions import AggregateFunction, ProcessWindowFunction, ReduceFunction
from millstream.datastream.window import EventTimeSessionWindows
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.runtime.windows.merging import mapping_of, stored_form
from millstream.state_descriptors.descriptors import ValueStateDescriptor
from millstream.state_descriptors.output_tag import OutputTag
from millstream.testing import OperatorHarness
from millstream.testing.ends import Rows, Watermark
from millstream.times import Time
from millstream.types.factory import Types
from millstream.windows.triggers import EventTimeTrigger
from millstream.windows.window import TimeWindow

LATE = OutputTag("late")
TABLES = ("windows/merging", "window/elements", "window/reduced", "window/accumulator", "ended")


class AskedForEachRecord(EventTimeTrigger):
    """The same trigger as a subclass, so that its windows use the general path."""


class Early(EventTimeTrigger):
    """Has a timer before the end of the window, which does nothing."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.start + 1)
        return super().on_element(element, timestamp, window, ctx)


class Told(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window(), context.current_watermark(), list(elements)

    def clear(self, context):
        context.global_state().get_state(ValueStateDescriptor("ended", Types.LONG())).update(context.window().end)


class Joined(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], f"{value1[1]} {value2[1]}"


class Listed(AggregateFunction):
    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return [*accumulator, value[1]]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return [*acc_a, "|", *acc_b]


APPLIED = {
    "elements": lambda windows: windows.process(Told()),
    "reduced": lambda windows: windows.reduce(Joined()),
    "aggregated": lambda windows: windows.aggregate(Listed(), window_function=Told()),
}


def harness(trigger, kind, backend="hashmap"):
    windows = EventTimeSessionWindows.with_gap(Time.milliseconds(10))

    def define(stream):
        windowed = stream.key_by(lambda value: value[0]).window(windows).trigger(trigger)
        return APPLIED[kind](windowed.side_output_late_data(LATE))

    return OperatorHarness(define, side_outputs=[LATE], backend=backend, compact=at_times_all)


def at_times_all(lineage):
    """The live state of a worker is written too, not only its changes."""
    return 0 if len(lineage.own) > 1 else None


def seen(tested):
    states = {name: tested.state(name) for name in TABLES}
    states["windows/merging"] = {key: list(mapping_of(each).items()) for key, each in states["windows/merging"].items()}
    return tested.output, tested.side_output(LATE), tested.timers(), states


records = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60)), min_size=1, max_size=8)
epochs = st.lists(st.lists(records | st.integers(-1, 70), max_size=4), max_size=5)


@pytest.mark.parametrize("kind", APPLIED)
@settings(max_examples=40)
@example([[[("a", 0), ("a", 30), ("a", 5), ("a", 15), ("a", 22)]], [70]])
@example([[[("a", 0), ("a", 20)], 12, [("a", 1), ("a", 10)]], [[("a", 9)], 70]])
@given(epochs)
def test_sessions_equal_those_of_the_general_operator(kind, epochs):
    with harness(EventTimeTrigger(), kind) as quick, harness(AskedForEachRecord(), kind) as general:
        reached = -1
        for number, pieces in enumerate(epochs):
            work = []
            for piece in pieces:
                if isinstance(piece, int):
                    reached = max(reached, piece)
                    work.append(Watermark(reached))
                else:
                    values = tuple((key, f"{number}-{len(work)}-{place}") for place, (key, _) in enumerate(piece))
                    work.append(Rows(values, tuple(time for _, time in piece)))
            for each in (quick, general):
                each.step({0: work})
            assert seen(quick) == seen(general)
        for each in (quick, general):
            each.end_of_input()
        assert seen(quick) == seen(general)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_sessions_continue_from_a_savepoint_of_the_general_operator(backend):
    with harness(Early(), "elements") as before, harness(EventTimeTrigger(), "elements", backend) as after:
        before.process_all([("a", 1), ("a", 2), ("b", 3)], [0, 20, 5])
        after.restore(before.snapshot(), 2)
        after.watermark(8)
        after.process_all([("a", 4), ("b", 5)], [10, 40])
        after.watermark(60)
        found = {(key, window, tuple(value for _, value in values)) for key, window, _, values in after.values()}
        assert found == {
            ("a", TimeWindow(0, 30), (1, 2, 4)),
            ("b", TimeWindow(5, 15), (3,)),
            ("b", TimeWindow(40, 50), (5,)),
        }
        assert after.timers() == []


def test_a_session_that_ends_at_the_end_of_time_is_emitted_at_the_end():
    with harness(EventTimeTrigger(), "elements") as tested:
        tested.process_all([("a", 1), ("a", 2)], [5, MAX_WATERMARK - 10])
        tested.end_of_input()
        last = TimeWindow(MAX_WATERMARK - 10, MAX_WATERMARK)
        assert [window for _, window, _, _ in tested.values()] == [TimeWindow(5, 15), last]


def test_a_record_without_a_time_is_refused():
    with (
        harness(EventTimeTrigger(), "elements") as tested,
        pytest.raises(UserFunctionFailed, match="without a timestamp"),
    ):
        tested.process_all([("a", 1), ("a", 2)], [5, None])


def test_windows_in_the_form_of_an_earlier_release_are_read():
    first, second = TimeWindow(0, 10), TimeWindow(20, 30)
    assert mapping_of([(first, first), (second, first)]) == {first: first, second: first}
    assert mapping_of(stored_form({first: second})) == {first: second}
