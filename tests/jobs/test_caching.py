"""Streams that are cached for later jobs, and functions that return records to the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millstream.common import Configuration, Duration, Types, WatermarkStrategy
from millstream.datastream import MapFunction, ProcessFunction, SinkFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSource, StreamFormat
from millstream.errors import UserError


class Noted(MapFunction):
    """Writes a line for every call."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def map(self, value: int) -> int:
        with self.notes.open("a") as file:
            file.write(f"{value}\n")
        return value * 10


class Stamps(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp()


def calls(notes: Path) -> int:
    return len(notes.read_text().splitlines()) if notes.exists() else 0


def test_the_second_job_reads_what_the_first_computed(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    env._configuration.set_string("millstream.epoch.max-records", "3")
    cached = env.from_collection(list(range(10)), Types.INT()).rebalance().map(Noted(notes), Types.INT()).cache()
    assert sorted(cached.execute_and_collect()) == [n * 10 for n in range(10)]
    assert calls(notes) == 10
    assert sorted(cached.map(lambda v: v + 1, Types.INT()).execute_and_collect()) == [n * 10 + 1 for n in range(10)]
    assert sorted(cached.filter(lambda v: v > 50).execute_and_collect()) == [60, 70, 80, 90]
    assert calls(notes) == 10


def test_untyped_records_keep_their_timestamps_and_their_order(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
    rows: list[Any] = [("a", 1), ("b", 2), (None, 3)]
    cached = env.set_parallelism(1).from_collection(rows).assign_timestamps_and_watermarks(strategy).cache()
    expected = [(row, row[1]) for row in rows]
    for _ in range(2):
        assert list(cached.process(Stamps()).execute_and_collect()) == expected


def test_an_invalidated_cache_is_computed_again(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    cached = env.from_collection([1, 2], Types.INT()).map(Noted(notes), Types.INT()).cache()
    for wanted in (2, 4, 4):
        assert sorted(cached.execute_and_collect()) == [10, 20]
        assert calls(notes) == wanted
        if wanted == 2:
            cached.invalidate()


def test_a_failed_job_fills_no_cache(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    cached = env.from_collection([1, 2], Types.INT()).map(Noted(tmp_path / "notes"), Types.INT()).cache()
    with pytest.raises(UserError, match="ZeroDivisionError"):
        list(cached.map(lambda v: v // 0).execute_and_collect())
    assert sorted(cached.execute_and_collect()) == [10, 20]
    assert calls(tmp_path / "notes") == 4


def test_two_users_in_one_job_compute_it_once(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    cached = env.from_collection([1, 2], Types.INT()).map(Noted(tmp_path / "notes"), Types.INT()).cache()
    both = cached.map(lambda v: v + 1, Types.INT()).union(cached.map(lambda v: v + 2, Types.INT()))
    assert sorted(both.execute_and_collect()) == [11, 12, 21, 22]
    assert calls(tmp_path / "notes") == 2


def test_a_restart_does_not_change_a_cache(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    configuration.set_string("millstream.epoch.max-records", "2")
    env.configure(configuration).enable_checkpointing(10)
    marker = tmp_path / "failed"

    def once(value: int) -> int:
        if value == 5 and not marker.exists():
            marker.touch()
            raise RuntimeError("once")
        return value

    cached = env.from_collection(list(range(8)), Types.INT()).map(once, Types.INT()).cache()
    for _ in range(2):
        assert sorted(cached.execute_and_collect()) == list(range(8))


def test_closing_the_environment_deletes_cached_records(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env._configuration.set_string("io.tmp.dirs", str(tmp_path))
    cached = env.from_collection([1, 2], Types.INT()).cache()
    assert sorted(cached.execute_and_collect()) == [1, 2]
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    env.close()
    assert not any(path.exists() for path in kept)


def test_an_unbounded_stream_is_not_cached(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    source = lines.monitor_continuously(Duration.of_seconds(1)).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    with pytest.raises(UserError, match="a stream of 'Source: lines' cannot be cached, because it is unbounded"):
        stream.cache()


def test_unsupported_operations_of_cached_and_keyed_streams_are_refused(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1], Types.INT())
    with pytest.raises(UserError, match="not possible on a cached stream"):
        stream.cache().set_parallelism(3)
    with pytest.raises(UserError, match="not possible on a keyed stream"):
        stream.key_by(lambda v: v).cache()


class Writes(SinkFunction):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def open(self, runtime_context: Any) -> None:
        self.file = self.path.open("a")

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.file.write(f"{value} {context.timestamp()}\n")

    def close(self) -> None:
        self.file.close()


@pytest.mark.parametrize("keyed", [True, False])
def test_a_sink_function_gets_every_record(env: StreamExecutionEnvironment, tmp_path: Path, keyed: bool) -> None:
    stream: Any = env.set_parallelism(1).from_collection([3, 1, 2], Types.INT())
    stream = stream.key_by(lambda v: v, Types.INT()) if keyed else stream
    stream.add_sink(Writes(tmp_path / "out")).name("writes")
    env.execute()
    assert sorted((tmp_path / "out").read_text().splitlines()) == ["1 None", "2 None", "3 None"]


def test_a_sink_function_that_fails_names_its_record(env: StreamExecutionEnvironment) -> None:
    env.from_collection([3, 0, 2], Types.INT()).add_sink(lambda v: 1 // v)
    with pytest.raises(UserError, match=r"(?s)ZeroDivisionError.*'Sink: Unnamed', record 0"):
        env.execute()


def test_a_value_that_is_not_a_sink_function_is_refused(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(UserError):
        env.from_collection([1]).add_sink(Noted(Path("x")))  # type: ignore[arg-type]
    with pytest.raises(UserError):
        env.from_collection([1]).add_sink(7)  # type: ignore[arg-type]
