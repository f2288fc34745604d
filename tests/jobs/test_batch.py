"""Batch jobs: each key has one final result, keys are processed one by one, and streaming-only features are refused."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from millstream.cep import CEP, Pattern
from millstream.common import Configuration, Duration, Encoder, JobStatus, Row, Time, Types, WatermarkStrategy
from millstream.connectors.files.commit import FileCommitter
from millstream.datastream import (
    KeyedProcessFunction,
    OutputTag,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from millstream.datastream.aggregations import Aggregations, Avg, Count, Max, Sum
from millstream.datastream.connectors.datagen import DataGenSource, Sequence
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.data_stream_utils import DataStreamUtils
from millstream.datastream.functions import ProcessJoinFunction
from millstream.datastream.state import ListStateDescriptor, ValueStateDescriptor
from millstream.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from millstream.errors import UserError
from millstream.runtime import sorted_input, sorted_runs
from millstream.runtime.block_order import REPORT_SORT_KEY
from millstream.testing.inline_engine import InlineEngine

PAIR_OF_NUMBERS = Types.TUPLE([Types.LONG(), Types.LONG()])
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
ROW = Types.ROW_NAMED(["key", "at", "value"], [Types.LONG(), Types.LONG(), Types.LONG()])


def environment(mode: str = "BATCH", parallelism: int = 2, **settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.runtime-mode", mode)
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def numbers(env: StreamExecutionEnvironment, count: int):
    return env.from_source(NumberSequenceSource(0, count - 1), WatermarkStrategy.no_watermarks(), "numbers")


def by_time(position: int) -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda row, _: row[position])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, blocks and units of a few records, so that keys come in parts."""
    monkeypatch.setattr(sorted_runs, "_MIN_BLOCK_RECORDS", 2)
    monkeypatch.setattr(sorted_runs, "_ROW_BYTES", 1 << 22)
    monkeypatch.setattr(sorted_runs, "_ROW_OVERHEAD", 1 << 22)
    monkeypatch.setattr(sorted_input, "UNIT", 4)


# ---------------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("combine", ["false", "true"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_reduce_emits_one_result_for_each_key(request: pytest.FixtureRequest, combine: str, cut: bool) -> None:
    if cut:
        request.getfixturevalue("small")
    env = environment(millstream__pre_aggregation__enabled=combine)
    pairs = numbers(env, 200).map(lambda n: (f"k{n * n % 7}", n), output_type=PAIR)
    found = list(pairs.key_by(lambda e: e[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).execute_and_collect())
    expected: Counter[str] = Counter()
    for n in range(200):
        expected[f"k{n * n % 7}"] += n
    assert dict(found) == expected
    assert len(found) == len(expected)


class Sightings(KeyedProcessFunction):
    """Collects the records of a key, and emits them when the key is finished."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        self.seen.add(value[1])
        ctx.timer_service().register_event_time_timer(10_000)
        ctx.timer_service().register_processing_time_timer(1)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.time_domain().name, list(self.seen.get())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_key_in_several_units_has_one_result(parallelism: int) -> None:
    env = environment(parallelism=parallelism)
    data = [("hot" if n % 5 else f"k{n % 3}", n * 37 % 101) for n in range(150)]
    stream = env.from_collection(data, PAIR).assign_timestamps_and_watermarks(by_time(1))
    found = sorted(stream.key_by(lambda e: e[0]).process(Sightings()).execute_and_collect())
    by_key: dict[str, list[int]] = {}
    for key, at in sorted(data, key=lambda pair: pair[1]):
        by_key.setdefault(key, []).append(at)
    assert found == sorted((k, d, at) for k, at in by_key.items() for d in ("EVENT_TIME", "PROCESSING_TIME"))


@pytest.mark.parametrize("mode", ["BATCH", "AUTOMATIC"])
@pytest.mark.parametrize(
    "windows",
    [
        TumblingEventTimeWindows.of(Time.milliseconds(30)),
        SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(25)),
        EventTimeSessionWindows.with_gap(Time.milliseconds(9)),
    ],
    ids=["tumbling", "sliding", "session"],
)
def test_built_in_aggregates_are_those_of_the_stream(mode: str, windows: Any) -> None:
    def run(mode: str) -> list[str]:
        env = environment(mode)
        rows = [Row(n % 5, n * 3, n) for n in range(120)]
        stream = env.from_collection(rows, ROW).assign_timestamps_and_watermarks(by_time(1))
        aggregates = Aggregations(n=Count(), total=Sum("value"), top=Max("value"), mean=Avg("value"))
        return sorted(map(str, stream.key_by("key").window(windows).aggregate(aggregates).execute_and_collect()))

    assert run(mode) == run("STREAMING")


def test_windows_of_processing_time_fire_at_the_end_of_the_key() -> None:
    env = environment()
    pairs = numbers(env, 100).map(lambda n: (f"k{n % 4}", 1), output_type=PAIR)
    windows = TumblingProcessingTimeWindows.of(Time.days(1))
    counts = pairs.key_by(lambda e: e[0]).window(windows).reduce(lambda a, b: (a[0], a[1] + b[1]))
    assert sorted(counts.execute_and_collect()) == [(f"k{k}", 25) for k in range(4)]


def test_a_stream_reinterpreted_as_keyed_is_sorted_too() -> None:
    env = environment()
    pairs = numbers(env, 60).map(lambda n: (f"k{n % 4}", n), output_type=PAIR)
    first = pairs.key_by(lambda e: e[0]).map(lambda e: (e[0], e[1] % 7), output_type=PAIR)
    again = DataStreamUtils.reinterpret_as_keyed_stream(first, lambda e: e[0]).sum(1)
    expected: Counter[str] = Counter()
    for n in range(60):
        expected[f"k{n % 4}"] += n % 7
    assert dict(again.execute_and_collect()) == expected


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[0], left[1], right[1]


def test_joins_find_all_pairs() -> None:
    def run() -> list[Any]:
        env = environment()
        left = env.from_collection([(f"k{n % 3}", n * 7 % 50) for n in range(40)], PAIR)
        right = env.from_collection([(f"k{n % 4}", n * 11 % 50) for n in range(40)], PAIR)
        one, two = (s.assign_timestamps_and_watermarks(by_time(1)) for s in (left, right))
        keyed = one.key_by(lambda e: e[0]).interval_join(two.key_by(lambda e: e[0]))
        near = keyed.between(Time.milliseconds(-3), Time.milliseconds(2)).process(Pair())
        windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
        same = one.join(two).where(lambda e: e[0]).equal_to(lambda e: e[0]).window(windows)
        return sorted(map(str, near.union(same.apply(lambda a, b: (a, b))).execute_and_collect()))

    found = run()
    lefts = [(f"k{n % 3}", n * 7 % 50) for n in range(40)]
    rights = [(f"k{n % 4}", n * 11 % 50) for n in range(40)]
    near = [(a[0], a[1], b[1]) for a in lefts for b in rights if a[0] == b[0] and -3 <= b[1] - a[1] <= 2]
    same = [(a, b) for a in lefts for b in rights if a[0] == b[0] and a[1] // 10 == b[1] // 10]
    assert found == sorted(map(str, [*near, *same]))


@pytest.mark.usefixtures("small")
def test_patterns_are_found_as_in_the_stream() -> None:
    def run(mode: str) -> list[Any]:
        env = environment(mode)
        logins = [(f"u{n % 3}", "fail" if n * n % 5 else "ok", n) for n in range(90)]
        stream = env.from_collection(logins).assign_timestamps_and_watermarks(by_time(2))
        failed = Pattern.begin("failed").where(lambda login: login[1] == "fail").times(2).consecutive()
        pattern = failed.not_followed_by("ok").where(lambda login: login[1] == "ok").within(Duration.of_millis(7))
        matches = CEP.pattern(stream.key_by(lambda login: login[0], Types.STRING()), pattern)
        return sorted(matches.select(lambda match: [event[2] for event in match["failed"]]).execute_and_collect())

    assert run("BATCH") == run("STREAMING") != []


class Ticking(KeyedProcessFunction):
    """Would run forever."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(1)
        ctx.timer_service().register_event_time_timer(1)

    def on_timer(self, timestamp, ctx):
        ctx.timer_service().register_processing_time_timer(timestamp + 1)
        ctx.timer_service().register_event_time_timer(timestamp + 1)
        yield ctx.get_current_key()


def test_a_timer_set_at_the_end_of_a_key_is_dropped() -> None:
    found = numbers(environment(), 10).key_by(lambda n: n % 3, Types.LONG()).process(Ticking()).execute_and_collect()
    assert sorted(found) == [0, 0, 1, 1, 2, 2]


def test_side_outputs_several_sinks_and_counters_work(tmp_path: Path) -> None:
    odd = OutputTag("odd", Types.LONG())

    class Split(KeyedProcessFunction):
        def open(self, runtime_context):
            self.counter = runtime_context.get_long_counter("seen")

        def process_element(self, value, ctx):
            self.counter.add(1)
            yield (odd, value) if value % 2 else value

    env = environment()
    split = numbers(env, 50).key_by(lambda n: n % 5, Types.LONG()).process(Split(), Types.LONG())
    for name, stream in (("even", split), ("odd", split.get_side_output(odd))):
        sink = FileSink.for_row_format(str(tmp_path / name), Encoder.simple_string_encoder()).build()
        stream.map(str, Types.STRING()).sink_to(sink)
    result = env.execute("split")
    assert result.get_accumulator_result("seen") == 50
    assert [e["records"] for e in result.get_accumulator_result("millstream.epochs")] == [50]
    assert sorted(map(int, lines_of(tmp_path / "even"))) == list(range(0, 50, 2))
    assert sorted(map(int, lines_of(tmp_path / "odd"))) == list(range(1, 50, 2))


def lines_of(directory: Path) -> list[str]:
    files = [file for file in directory.rglob("*") if file.is_file() and not any(p.startswith(".") for p in file.parts)]
    return [line for file in files for line in file.read_text().splitlines()]


# --------------------------------------------------------------------------------------------------------- failures

RETRIES = {
    "restart_strategy__type": "fixed-delay",
    "restart_strategy__fixed_delay__attempts": "3",
    "restart_strategy__fixed_delay__delay": "1 ms",
}


def test_after_a_failure_the_job_runs_again_and_writes_its_output_once(tmp_path: Path) -> None:
    marker = tmp_path / "failed"

    def fragile(pair: tuple[str, int]) -> tuple[str, int]:
        if pair[1] > 100 and not marker.exists():
            marker.touch()
            raise RuntimeError("once")
        return pair

    env = environment(**RETRIES)
    sums = numbers(env, 100).map(lambda n: (f"k{n % 3}", n), output_type=PAIR).key_by(lambda e: e[0]).sum(1)
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    sums.map(fragile, PAIR).map(str, Types.STRING()).sink_to(sink)
    result = env.execute("fragile")
    assert result.get_accumulator_result("millstream.restarts") == 1
    assert sorted(lines_of(tmp_path / "out")) == ["('k0', 1683)", "('k1', 1617)", "('k2', 1650)"]


def test_a_failed_commit_is_repeated_without_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    commit = FileCommitter.commit

    def flaky(self, checkpoint, committables):
        calls.append("commit")
        commit(self, checkpoint, committables)
        if len(calls) == 1:
            raise OSError("the disk was away")

    monkeypatch.setattr(FileCommitter, "commit", flaky)
    runs = tmp_path / "runs"

    def counted(n: int) -> str:
        with runs.open("a") as file:
            file.write(".")
        return str(n)

    env = environment(parallelism=1, **RETRIES)
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    numbers(env, 20).map(counted, Types.STRING()).sink_to(sink)
    env.execute("flaky")
    assert len(calls) == 2
    assert runs.read_text() == "." * 20, "the records are processed once"
    assert sorted(map(int, lines_of(tmp_path / "out"))) == list(range(20))


def test_a_failure_names_its_key_and_record() -> None:
    def bad(one: tuple[str, int], other: tuple[str, int]) -> tuple[str, int]:
        if other[1] == 33:
            raise ValueError("thirty-three")
        return one

    env = environment()
    pairs = numbers(env, 50).map(lambda n: (f"k{n % 4}", n), output_type=PAIR)
    with pytest.raises(UserError, match=r"thirty-three(.|\n)*key 'k1', record \('k1', 33\)"):
        list(pairs.key_by(lambda e: e[0]).reduce(bad).execute_and_collect())


def test_a_batch_job_reports_progress_and_finishes() -> None:
    env = environment()
    sums = numbers(env, 10).key_by(lambda n: n % 2, Types.LONG()).sum()
    sums.print()
    client = env.execute_async("watched")
    assert client.get_job_execution_result().result().get_job_id() == client.get_job_id()
    assert client.get_job_status().result() is JobStatus.FINISHED


# ---------------------------------------------------------------------------------------------------------- refused


def test_a_source_that_never_ends_is_refused_by_name() -> None:
    env = environment()
    endless = DataGenSource({"n": Sequence()})
    env.from_source(endless, WatermarkStrategy.no_watermarks(), "ticks").print()
    with pytest.raises(UserError, match=r"every source must be bounded, but 'Source: ticks' is unbounded"):
        env.execute()


def test_automatic_mode_is_streaming_if_a_source_is_unbounded() -> None:
    env = environment("AUTOMATIC")
    bounded = DataGenSource({"n": Sequence()}, count=3)
    endless = DataGenSource({"n": Sequence()})
    for name, source in (("three", bounded), ("ticks", endless)):
        env.from_source(source, WatermarkStrategy.no_watermarks(), name).print()
    assert not env._graph().batch
    env._program.clear()
    env.from_source(bounded, WatermarkStrategy.no_watermarks(), "three").print()
    assert env._graph().batch


def test_checkpoints_are_off_and_a_savepoint_cannot_be_restored(tmp_path: Path) -> None:
    settings = {"execution__checkpointing__interval": "1 ms", "execution__checkpointing__dir": str(tmp_path)}
    env = environment(**settings)
    numbers(env, 1000).print()
    assert env.execute().get_accumulator_result("millstream.checkpoints") == []
    assert list(tmp_path.iterdir()) == []
    env = environment(execution__state_recovery__path=str(tmp_path))
    numbers(env, 10).print()
    with pytest.raises(UserError, match="a batch job has no state to restore"):
        env.execute()


class Remembers(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value, ctx):
        self.last.update(value)
        yield len(self.last._live)


def test_state_is_that_of_a_few_keys_at_a_time(small: None) -> None:
    found = list(
        numbers(environment(parallelism=1), 500)
        .key_by(lambda n: n, Types.LONG())
        .process(Remembers())
        .execute_and_collect()
    )
    assert len(found) == 500
    assert max(found) <= 40


def test_the_mode_can_be_set_as_in_pyflink() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert list(numbers(env, 5).key_by(lambda n: 0, Types.LONG()).sum().execute_and_collect()) == [10]


def test_mixed_attempts_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first time, each stage reads two attempts of the one before it, as if map output had been lost on Spark."""
    once, runs = InlineEngine._attempt_batch, []

    def mixed(engine: InlineEngine, deployment: Any, index: int, inbox: Any, asked: Any) -> list[Any]:
        made = list(once(engine, deployment, index, inbox, asked))
        if len(runs) > 1:
            return made
        other = list(once(engine, deployment, index, inbox, asked))
        last = all(place == REPORT_SORT_KEY for _, place, _ in made)
        return made if last else [each for each in made if each[0]] + [each for each in other if not each[0]]

    def run_epoch(engine: InlineEngine, request: Any) -> Any:
        runs.append(request.epoch)
        return run_once(engine, request)

    run_once = InlineEngine.run_epoch
    monkeypatch.setattr(InlineEngine, "run_epoch", run_epoch)
    monkeypatch.setattr(InlineEngine, "_attempt_batch", mixed)
    salted = numbers(environment(), 500).map(lambda value: (random.randrange(8), value), PAIR_OF_NUMBERS)
    out = salted.key_by(lambda pair: pair[0], Types.LONG()).map(lambda pair: pair[1], Types.LONG())
    assert sorted(out.execute_and_collect()) == list(range(500))
    assert runs == [1, 1]
