"""Errors of bad input say what is wrong and how to fix it, before the job starts where possible."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from millstream.common import Configuration, Time, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, OutputTag, ProcessFunction, StreamExecutionEnvironment
from millstream.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from millstream.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from millstream.errors import ExternalError, MillstreamError, UserError


def refused(run, *words: str, kind: type[MillstreamError] = UserError) -> str:
    """Check that `run` fails with an error of that domain whose text has all the words."""
    with pytest.raises(kind) as caught:
        run()
    text = str(caught.value)
    for word in words:
        assert word in text, text
    return text


def numbers(env: StreamExecutionEnvironment):
    return env.from_collection(list(range(10)), Types.INT())


def with_options(env: StreamExecutionEnvironment, **options: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in options.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return env.configure(configuration)


def test_a_failing_function_shows_the_users_traceback_first_with_operator_and_record(env):
    def divide(value):
        return 1 // (value - 3)

    numbers(env).map(divide).name("divide").print()
    text = refused(env.execute, "ZeroDivisionError", "in operator 'divide'", "record 3", "return 1 // (value - 3)")
    assert text.startswith('Traceback (most recent call last):\n  File "' + __file__)


def test_a_failing_keyed_function_names_its_key(env):
    class Fails(KeyedProcessFunction):
        def process_element(self, value, ctx):
            raise LookupError(value)
            yield

    numbers(env).key_by(lambda v: f"k{v % 2}").process(Fails()).print()
    refused(env.execute, "LookupError", "key 'k", "record ")


def test_a_function_that_cannot_be_sent_to_workers(env):
    lock = threading.Lock()
    numbers(env).map(lambda v: (lock, v)).print()
    refused(env.execute, "operator 'Map' cannot be pickled", "open()")


def test_a_result_that_does_not_fit_its_output_type(env):
    numbers(env).map(lambda v: f"text {v}", Types.INT()).name("texts").print()
    text = refused(env.execute, "does not fit its output type", "text 0", "texts")
    assert "\nin operator 'texts'\nhint: return a value of the declared type" in text


def test_an_element_that_does_not_fit_the_type_of_the_collection(env):
    env.from_collection([1, "a"], Types.INT()).print()
    text = refused(env.execute, "a record of the source does not fit its type", "'a'", "declare their type (type_info)")
    assert "function" not in text


def test_an_unhashable_key(env):
    numbers(env).key_by(lambda v: {v}).reduce(lambda a, b: a).print()
    text = refused(env.execute, "set", "key")
    assert "\nin operator 'key_by of" in text
    assert text.count("hint:") == 1


def test_a_state_name_used_twice_for_different_things(env):
    class Twice(KeyedProcessFunction):
        def open(self, ctx):
            ctx.get_state(ValueStateDescriptor("seen", Types.INT()))
            ctx.get_list_state(ListStateDescriptor("seen", Types.INT()))

        def process_element(self, value, ctx):
            yield value

    numbers(env).key_by(lambda v: v).process(Twice()).print()
    refused(env.execute, "'seen' is used twice")


def test_keyed_state_and_timers_without_a_key(env):
    class State(ProcessFunction):
        def open(self, ctx):
            ctx.get_state(ValueStateDescriptor("s", Types.INT()))

        def process_element(self, value, ctx):
            yield value

    numbers(env).process(State()).print()
    refused(env.execute, "not keyed", "key_by")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda env: numbers(env).key_by(lambda v: v).window(TumblingEventTimeWindows.of(Time.seconds(0))), ["size"]),
        (
            lambda env: numbers(env).key_by(lambda v: v).window(EventTimeSessionWindows.with_gap(Time.seconds(-1))),
            ["0"],
        ),
        (
            lambda env: (
                numbers(env)
                .key_by(lambda v: v)
                .window(TumblingEventTimeWindows.of(Time.seconds(1)))
                .allowed_lateness(-1)
            ),
            ["lateness", "-1"],
        ),
        (lambda env: env.set_parallelism(0), ["parallelism", "0"]),
        (lambda env: env.set_max_parallelism(40000), ["max parallelism", "40000", "32768"]),
        (lambda env: numbers(env).map(Types), ["MapFunction"]),
        (lambda env: numbers(env).sink_to("here"), ["not a sink"]),
        (lambda env: numbers(env).key_by(lambda v: v).rebalance(), ["keyed stream"]),
        (lambda env: numbers(env).key_by("amount").reduce(lambda a, b: a), ["amount", "no fields"]),
        (lambda env: env.execute(), ["no operators"]),
    ],
)
def test_invalid_arguments_are_refused_while_the_program_is_built(env, build, words):
    refused(lambda: build(env), *words)


def test_parallelism_above_max_parallelism(env):
    numbers(env).map(lambda v: v).set_parallelism(4).set_max_parallelism(2).print()
    refused(env.execute, "4", "2", "parallelism")


def test_an_unknown_option_names_the_nearest_one(env):
    numbers(env).print()
    with_options(env, execution__checkpointing__intervall="1 s")
    refused(env.execute, "execution.checkpointing.intervall", "did you mean 'execution.checkpointing.interval'")


def test_a_malformed_option_value(env):
    numbers(env).print()
    with_options(env, execution__checkpointing__interval="soon")
    refused(env.execute, "execution.checkpointing.interval", "soon")


def test_a_checkpoint_directory_that_is_a_file(env, tmp_path: Path):
    numbers(env).print()
    (tmp_path / "file").touch()
    with_options(env, execution__checkpointing__dir=str(tmp_path / "file"), execution__checkpointing__interval="1 s")
    refused(env.execute, "file", kind=MillstreamError)


def test_a_recovery_path_that_is_not_a_checkpoint(env, tmp_path: Path):
    numbers(env).print()
    with_options(env, execution__state_recovery__path=str(tmp_path))
    refused(env.execute, str(tmp_path), "_metadata")


def test_a_function_that_calls_sys_exit(env):
    numbers(env).map(lambda v: sys.exit(7) if v == 4 else v).print()
    refused(env.execute, "SystemExit", "record 4")


def test_a_function_whose_result_is_not_iterable(env):
    numbers(env).flat_map(lambda v: v).name("spread").print()
    refused(env.execute, "not iterable", "spread", "record 0")


def test_a_function_that_prints_megabytes_does_not_flood_the_driver(env, capsys):
    numbers(env).map(lambda v: print("x" * 1_000_000) or v).filter(lambda v: False).print()
    env.execute()
    shown = capsys.readouterr().out
    assert "more characters were printed and dropped" in shown
    assert len(shown) < 2_000_000


def test_event_time_windows_without_timestamps(env):
    numbers(env).key_by(lambda v: v).window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(lambda a, b: a).print()
    refused(env.execute, "timestamp", "assign_timestamps_and_watermarks")


def test_a_timestamp_assigner_that_does_not_return_an_integer(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v, t: "now")
    numbers(env).assign_timestamps_and_watermarks(strategy).print()
    refused(env.execute, "must return an int", "'now'")


def test_an_undeclared_class_in_untyped_state(env):
    class Basket:
        pass

    class Keep(KeyedProcessFunction):
        def open(self, ctx):
            self.state = ctx.get_map_state(MapStateDescriptor("baskets", Types.STRING(), Types.PICKLED_BYTE_ARRAY()))

        def process_element(self, value, ctx):
            self.state.put("basket", Basket())
            yield value

    numbers(env).key_by(lambda v: v).process(Keep()).print()
    refused(env.execute, "Basket", "register_type")


def test_a_custom_partitioner_out_of_range(env):
    numbers(env).partition_custom(lambda key, n: n, lambda v: v).map(lambda v: v).print()
    refused(env.execute, "subtask 2 of 2")


def test_a_side_output_of_the_wrong_type(env):
    tag = OutputTag("side", Types.INT())

    class Sides(ProcessFunction):
        def process_element(self, value, ctx):
            yield tag, "text"

    stream = numbers(env).process(Sides())
    stream.get_side_output(tag).print()
    refused(env.execute, "output type", "'text'")


def test_a_full_disk_fails_the_job_and_loses_nothing_committed(env, tmp_path: Path, monkeypatch):
    from millstream.files.local import LocalFileSystem

    write = LocalFileSystem.write_bytes

    def full(self, path, data, sync):
        if "chk-" in path:
            raise OSError(28, "No space left on device")
        write(self, path, data, sync)

    monkeypatch.setattr(LocalFileSystem, "write_bytes", full)
    numbers(env).print()
    with_options(
        env,
        execution__checkpointing__dir=str(tmp_path),
        execution__checkpointing__interval="1 ms",
        restart_strategy__type="none",
    )
    refused(env.execute, "no space left on device", str(tmp_path), kind=ExternalError)


def test_a_checkpoint_whose_storage_stalls_expires(env, tmp_path: Path, monkeypatch):
    from millstream.files.local import LocalFileSystem

    write, stalled = LocalFileSystem.write_bytes, threading.Event()

    def stall(self, path, data, sync):
        if "chk-" in path:
            stalled.wait(60)
        write(self, path, data, sync)

    monkeypatch.setattr(LocalFileSystem, "write_bytes", stall)
    numbers(env).print()
    with_options(
        env,
        execution__checkpointing__dir=str(tmp_path),
        execution__checkpointing__interval="10 ms",
        execution__checkpointing__timeout="200 ms",
        restart_strategy__type="none",
    )
    refused(env.execute, "checkpoint 1 expired after 0.2 s", "execution.checkpointing.timeout", kind=ExternalError)
    stalled.set()
