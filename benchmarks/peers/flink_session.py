"""What the Flink peers share: settings, and a view of numbers that cost next to nothing to make.

Promises: object reuse, no checkpoints, state on the heap, Flink's defaults otherwise. Numbers come from Flink's
`NumberSequenceSource`, which computes them as they are read; the sequence of the datagen connector would put all of
them into memory first. No Python runs after planning.
Does not know: what a peer computes."""

from __future__ import annotations

from pyflink.common import Configuration, WatermarkStrategy
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.table import Schema, StreamTableEnvironment

from benchmarks import common


def environment(settings: dict[str, str] | None = None) -> StreamExecutionEnvironment:
    """A DataStream environment."""
    configuration = Configuration()
    for key, value in {"pipeline.object-reuse": "true", **(settings or {})}.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(common.PARALLELISM)
    return env


def session(env: StreamExecutionEnvironment, settings: dict[str, str] | None = None) -> StreamTableEnvironment:
    """A session for SQL."""
    tables = StreamTableEnvironment.create(env)
    for key, value in {"table.local-time-zone": "UTC", **(settings or {})}.items():
        tables.get_config().set(key, value)
    return tables


def number_session(records: int, settings: dict[str, str] | None = None) -> StreamTableEnvironment:
    """A session with the view `numbers`: `i` from 0 to `records` - 1, and `ts`, millisecond `i` of event time.

    The source gives each of two readers a half of the numbers, in order. Their event times take turns, so that time
    moves on evenly in both."""
    env = environment(settings)
    half = (records + 1) // common.PARALLELISM
    index = f"CASE WHEN f0 < {half} THEN 2 * f0 ELSE 2 * (f0 - {half}) + 1 END"
    tables = session(env, settings)
    schema = (
        Schema.new_builder()
        .column("f0", "BIGINT NOT NULL")
        .column_by_expression("ts", f"TO_TIMESTAMP_LTZ({index}, 3)")
        .watermark("ts", "ts")
        .build()
    )
    tables.create_temporary_view("sequence_numbers", tables.from_data_stream(numbers(env, records), schema))
    tables.execute_sql(f"CREATE TEMPORARY VIEW numbers AS SELECT {index} AS i, ts FROM sequence_numbers")
    return tables


def numbers(env: StreamExecutionEnvironment, records: int) -> DataStream:
    """The stream of 0 to `records` - 1, which each of two readers gets a half of."""
    return env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
