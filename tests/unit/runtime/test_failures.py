"""Errors of user functions name operator, key and record, and their traceback begins in the user's function."""

import sys

import pytest

from millstream.datastream.functions import (
    CoMapFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from millstream.datastream.window import TumblingEventTimeWindows
from millstream.errors import ExternalError, InternalError, UserError
from millstream.runtime import task as runtime_task
from millstream.runtime.rowwise import UserFunctionFailed, user_traceback
from millstream.state_descriptors.descriptors import ValueStateDescriptor
from millstream.testing import OperatorHarness, harness_for
from millstream.times import Time
from millstream.types.factory import Types
from millstream.windows.triggers import EventTimeTrigger


def refuse(value):
    if value[1] == 13:
        raise ValueError("thirteen")
    return value


class KeyedRefuse(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield refuse(value)


class Late(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        refuse((ctx.get_current_key(), timestamp))


class Both(CoMapFunction):
    def map1(self, value):
        return refuse(value)

    map2 = map1


class RefusingReduce(ReduceFunction):
    def reduce(self, value1, value2):
        return refuse(value2)


class RefusingTrigger(EventTimeTrigger):
    def on_element(self, element, timestamp, window, ctx):
        refuse(element)
        return super().on_element(element, timestamp, window, ctx)


class RefusingFlatMap(FlatMapFunction):
    def flat_map(self, value):
        yield refuse(value)


class RefusingProcess(ProcessFunction):
    def process_element(self, value, ctx):
        yield refuse(value)


class RefusingWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        for element in elements:
            yield refuse(element)


def windows(stream):
    windowed = stream.key_by(lambda value: value[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windowed.trigger(RefusingTrigger()).reduce(lambda one, _: one)


BY = {"key": lambda value: value[0]}
PIPELINES = {
    "map": (lambda: harness_for(refuse), False),
    "keyed map": (lambda: harness_for(refuse, **BY), True),
    "flat map": (lambda: harness_for(RefusingFlatMap()), False),
    "keyed flat map": (lambda: harness_for(RefusingFlatMap(), **BY), True),
    "filter": (lambda: OperatorHarness(lambda stream: stream.filter(refuse)), False),
    "process": (lambda: harness_for(RefusingProcess()), False),
    "keyed process": (lambda: harness_for(KeyedRefuse(), **BY), True),
    "co map": (lambda: harness_for(Both(), **BY), True),
    "reduce": (lambda: harness_for(RefusingReduce(), **BY), True),
    "trigger": (lambda: OperatorHarness(windows), True),
}


@pytest.mark.parametrize("untimed", [False, True])
@pytest.mark.parametrize("name", PIPELINES)
def test_a_failure_names_operator_key_and_record_and_begins_in_the_users_frame(name, untimed):
    make, keyed = PIPELINES[name]
    times = None if untimed and name != "trigger" else [1, 2, 3, 4]
    with make() as harness, pytest.raises(UserFunctionFailed) as caught:
        harness.process_all([("a", 1), ("b", 2), ("b", 13), ("a", 3)], times)
    failed = caught.value
    assert failed.record == "('b', 13)"
    assert failed.key == ("'b'" if keyed else None)
    assert failed.problem == "ValueError: thirteen"
    frames = [line for line in failed.trace.splitlines() if line.startswith("  File ")]
    assert all("test_failures.py" in frame for frame in frames), frames
    assert str(failed).startswith("Traceback (most recent call last):\n")
    assert failed.operator in str(failed)


def test_a_failing_timer_names_its_key():
    with harness_for(Late(), key=lambda value: value[0]) as harness:
        harness.process_all([("a", 5), ("b", 13)], [1, 1])
        with pytest.raises(UserFunctionFailed) as caught:
            harness.watermark(20)
    assert (caught.value.key, caught.value.record) == ("'b'", None)
    assert "in on_timer" in caught.value.trace


def test_a_failing_open_is_a_user_error():
    class Broken(MapFunction):
        def open(self, runtime_context):
            raise RuntimeError("no connection")

        def map(self, value):
            return value

    with harness_for(Broken()) as harness, pytest.raises(UserFunctionFailed, match="RuntimeError: no connection"):
        harness.process(1)


def test_code_outside_the_package_counts_as_user_code():
    """A folder whose name starts with that of the package is not the package."""
    package = runtime_task.__file__.replace("/runtime/task.py", "")
    scope = {}
    exec(compile("def mine():\n    raise KeyError('x')\n", f"{package}_jobs/job.py", "exec"), scope)
    exec(compile("def call(f):\n    f()\n", f"{package}/inner.py", "exec"), scope)
    with pytest.raises(KeyError) as caught:
        scope["call"](scope["mine"])
    inside = caught.value.__traceback__.tb_next  # without the frame of this test
    shown = user_traceback(caught.value.with_traceback(inside))
    assert "_jobs/job.py" in shown
    assert "inner.py" not in shown


@pytest.mark.parametrize("kind", ["map", "process", "keyed process"])
def test_sys_exit_fails_the_function_not_the_worker(kind):
    def leave(value):
        sys.exit(3)

    class Leave(KeyedProcessFunction if kind == "keyed process" else ProcessFunction):
        def process_element(self, value, ctx):
            sys.exit(3)

    key = {"key": lambda value: value} if kind == "keyed process" else {}
    with (
        harness_for(leave if kind == "map" else Leave(), **key) as harness,
        pytest.raises(UserFunctionFailed) as caught,
    ):
        harness.process(1)
    assert caught.value.problem == "SystemExit: the function called sys.exit(3)"


def test_a_record_that_cannot_be_shown_does_not_hide_the_failure():
    class Shy:
        def __repr__(self):
            raise RuntimeError

    def shy(value):
        raise ValueError("seen")

    with harness_for(shy) as harness, pytest.raises(UserFunctionFailed, match="ValueError: seen") as caught:
        harness.process_all([Shy()])
    assert caught.value.record == "<Shy whose repr raises RuntimeError>"


def test_a_result_that_does_not_fit_its_type_is_a_user_error():
    wrong = r"does not fit its output type: expected .* got 'x'"
    with (
        harness_for(lambda value: value, output_type=Types.LONG()) as harness,
        pytest.raises(UserFunctionFailed, match=wrong),
    ):
        harness.process("x")


def test_a_failed_step_has_no_effect():
    class Counting(KeyedProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
            self.seen = runtime_context.get_metrics_group().counter("seen")

        def process_element(self, value, ctx):
            self.seen.inc()
            self.count.update((self.count.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(10)
            yield refuse(value)[0], self.count.value()

        def on_timer(self, timestamp, ctx):
            yield "timer", self.count.value()

    with harness_for(Counting(), key=lambda value: value[0]) as harness:
        harness.process(("a", 1), 1)
        for _ in range(2):
            with pytest.raises(UserFunctionFailed):
                harness.process_all([("a", 2), ("b", 1), ("a", 13)], [1, 1, 1])
        harness.process(("a", 3), 1)
        harness.watermark(10)
        assert harness.values() == [("a", 1), ("a", 2), ("timer", 2)]
        assert harness.counter("user.seen") == 2, "what a failed attempt counted does not count"


def test_window_results_of_a_failed_attempt_are_not_emitted_later():
    def windowed(stream):
        keyed = stream.key_by(lambda value: value[0])
        return keyed.count_window(1).reduce(lambda one, _: one, RefusingWindow())

    with OperatorHarness(windowed) as harness:
        with pytest.raises(UserFunctionFailed):
            harness.process_all([("a", 1), ("a", 13)])
        harness.process(("a", 2))
        assert harness.values() == [("a", 2)]


@pytest.mark.parametrize(
    ("raised", "domain"),
    [(UserError("u"), UserFunctionFailed), (ExternalError("e"), ExternalError), (InternalError("i"), InternalError)],
)
def test_the_cause_of_a_failure_determines_its_domain(raised, domain, monkeypatch):
    with harness_for(lambda value: value) as harness:
        harness.process(1)

        def broken(*_):
            raise raised

        monkeypatch.setattr(runtime_task.Task, "_save", broken)
        with pytest.raises(domain, match=raised.message):
            harness.process(2)


def test_what_functions_print_is_captured_and_bounded():
    def chatty(value):
        print("x" * value)
        return value

    with harness_for(chatty) as harness:
        harness.process_all([3, 2])
        assert harness.printed == "xxx\nxx\n"
        harness.process_all([100_000] * 10)
        assert len(harness.printed) < 300_000
        assert harness.printed.endswith(" more characters were printed and dropped\n")
        harness.process(1)
        assert harness.printed.endswith("dropped\nx\n")
