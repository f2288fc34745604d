"""The programs of the regression guard: a dozen small jobs, each of which makes one part of the system work.

Promises: no Spark, no threads but the job's own, epochs of a fixed size; the same input each time.
Does not know: how their cost is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.jobs.payments_source import PaymentsSource
from benchmarks.nexmark import files, program
from benchmarks.nexmark.generator import Nexmark

from millstream.cep import CEP, Pattern, field
from millstream.client import local
from millstream.client.job_client import JobClient
from millstream.cluster import entrypoint
from millstream.common import Configuration, Time, Types, WatermarkStrategy
from millstream.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.aggregations import Aggregations, Count, Sum
from millstream.datastream.connectors import NumberSequenceSource
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.state import ValueState, ValueStateDescriptor
from millstream.datastream.window import TumblingEventTimeWindows
from millstream.table import DataTypes, EnvironmentSettings, TableEnvironment
from millstream.table.udf import udf
from millstream.testing.inline_engine import InlineEngine

EPOCH_RECORDS = 50_000
_SETTINGS = {
    "parallelism.default": "2",
    "millstream.epoch.max-records": str(EPOCH_RECORDS),
    "millstream.epoch.target-duration": "1 h",
    "millstream.sql.batch-engine": "operators",
}


def _run_inline(graph: Any, configuration: Any, name: str, listeners: Any = ()) -> JobClient:
    job = entrypoint.submit(graph, configuration, name, engine=InlineEngine(), listeners=listeners)
    return JobClient(local.LocalHandle(job))


def use_inline_engine() -> None:
    """Run all jobs of this process without Spark."""
    local.submit = _run_inline  # type: ignore[assignment]


def _stream(**settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration.from_dict({**_SETTINGS, **settings})
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def _finish(env: StreamExecutionEnvironment, stream: DataStream) -> None:
    stream.sink_to(BlackHoleSink())
    env.execute("guard")


def _sql(query: str, columns: str, records: int, keys: int, **settings: str) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in {**_SETTINGS, "table.exec.mini-batch.enabled": "true", **settings}.items():
        env.get_config().set(name, value)
    env.create_temporary_function("f", udf(lambda v: v * 3 + 1, result_type=DataTypes.BIGINT()))
    for table in ("t", "u"):
        env.execute_sql(
            f"CREATE TABLE {table} (i BIGINT, k AS MOD(i * CAST(2654435761 AS BIGINT), CAST({keys} AS BIGINT)), "
            "v AS MOD(i, CAST(100 AS BIGINT)), ts AS TO_TIMESTAMP_LTZ(i, 3), WATERMARK FOR ts AS ts) WITH ("
            "'connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.i.kind' = 'sequence', "
            f"'fields.i.start' = '0', 'fields.i.end' = '{records - 1}')"
        )
    env.execute_sql(f"CREATE TABLE nowhere ({columns}) WITH ('connector' = 'blackhole')")
    env.execute_sql(f"INSERT INTO nowhere {query}").wait()


def group_by(_: Path) -> None:
    """Group few keys, in epochs."""
    query = "SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k"
    _sql(query, "k BIGINT, n BIGINT, s BIGINT", 2_000_000, 10_000)


def group_by_many(_: Path) -> None:
    """Group many keys, in mini-batches of a fixed size."""
    query = "SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k"
    _sql(query, "k BIGINT, n BIGINT, s BIGINT", 600_000, 300_000, **{"table.exec.mini-batch.size": "20000"})


def count_distinct(_: Path) -> None:
    """Count distinct values by key."""
    _sql("SELECT k, COUNT(DISTINCT v) FROM t GROUP BY k", "k BIGINT, n BIGINT", 400_000, 5_000)


def sql_window(_: Path) -> None:
    """Aggregate tumbling windows."""
    tvf = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '60' SECOND))"
    query = f"SELECT k, window_start, SUM(v) FROM {tvf} GROUP BY k, window_start, window_end"
    _sql(query, "k BIGINT, w TIMESTAMP(3), s BIGINT", 1_500_000, 10_000)


def join(_: Path) -> None:
    """Join two tables with all rows in state."""
    _sql("SELECT t.i, u.i FROM t JOIN u ON t.k = u.k", "a BIGINT, b BIGINT", 300_000, 300_000)


def top_n(_: Path) -> None:
    """Keep the first rows of each key."""
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t"
    _sql(f"SELECT k, i, v FROM ({ranked}) WHERE n <= 3", "k BIGINT, i BIGINT, v BIGINT", 500_000, 10_000)


def scalar_function(_: Path) -> None:
    """Call a Python function for each row."""
    _sql("SELECT i, f(v) FROM t", "i BIGINT, v BIGINT", 800_000, 1_000)


class CountAndSum(KeyedProcessFunction):
    """Running count and sum of a key."""

    state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.state = runtime_context.get_state(ValueStateDescriptor("totals", pair))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        count, total = self.state.value() or (0, 0)
        self.state.update((count + 1, total + value))
        yield total


def _keyed(env: StreamExecutionEnvironment, records: int, keys: int) -> None:
    numbers = env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
    by_key = numbers.key_by(lambda number: number % keys, key_type=Types.LONG())
    _finish(env, by_key.process(CountAndSum(), output_type=Types.LONG()))


def keyed_state(_: Path) -> None:
    """Update state in Python, in memory."""
    _keyed(_stream(), 300_000, 20_000)


def keyed_state_on_disk(folder: Path) -> None:
    """Update state in Python, on disk, with checkpoints."""
    checkpoints = {"execution.checkpointing.interval": "1 ms", "execution.checkpointing.dir": (folder / "c").as_uri()}
    _keyed(_stream(**{"state.backend.type": "rocksdb"}, **checkpoints), 200_000, 20_000)


def stream_window(_: Path) -> None:
    """Aggregate windows of a DataStream on columns."""
    env = _stream()
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("i")
    payments = env.from_source(PaymentsSource(1_500_000, 10_000), by_time, "payments")
    windows = payments.key_by("key").window(TumblingEventTimeWindows.of(Time.seconds(60)))
    _finish(env, windows.aggregate(Aggregations(n=Count(), total=Sum("amount"))))


def pattern(_: Path) -> None:
    """Match a pattern of three."""
    env = _stream()
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("i")
    payments = env.from_source(PaymentsSource(400_000, 5_000), by_time, "payments")
    low, high = field("amount") < 20, field("amount") >= 60
    wanted = Pattern.begin("low").where(low).next("high").where(high).within(Time.seconds(60))
    matches = CEP.pattern(payments.key_by("key"), wanted)
    _finish(env, matches.select(lambda match: match["low"][0][1], output_type=Types.LONG()))


def read_json(folder: Path) -> None:
    """Read JSON lines, and filter them."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in _SETTINGS.items():
        env.get_config().set(name, value)
    program.create_tables(env, program.json_files(files.written(folder, Nexmark(), 200_000, 2)))
    *before, insert = program.statements("q0", {})
    for statement in before:
        env.execute_sql(statement)
    env.execute_sql(insert).wait()


PROGRAMS: dict[str, Callable[[Path], None]] = {
    each.__name__: each
    for each in (
        group_by,
        group_by_many,
        count_distinct,
        sql_window,
        join,
        top_n,
        scalar_function,
        keyed_state,
        keyed_state_on_disk,
        stream_window,
        pattern,
        read_json,
    )
}
