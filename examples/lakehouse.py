"""A lakehouse table as a sink: one commit for each checkpoint, exactly once, and every version can be read."""

import tempfile

from millstream.common import Configuration, Row, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors import NumberSequenceSource
from millstream.datastream.connectors.delta import DeltaSink, DeltaSource

READINGS = Types.ROW_NAMED(["sensor", "value"], [Types.STRING(), Types.LONG()])


def write_readings(table: str, first: int, last: int) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "1 ms")  # after every epoch
    configuration.set_integer("millstream.epoch.max-records", 500)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    readings = env.from_source(NumberSequenceSource(first, last), WatermarkStrategy.no_watermarks(), "numbers").map(
        lambda number: Row("north" if number % 2 else "south", number), READINGS
    )
    readings.sink_to(DeltaSink.for_row_data(table, READINGS).with_partition_columns("sensor").build())
    env.execute("write readings")


def count_rows(table: str, version: int | None = None) -> int:
    source = DeltaSource.for_bounded_row_data(table)
    if version is not None:
        source = source.version_as_of(version)
    env = StreamExecutionEnvironment.get_execution_environment()
    rows = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "readings")
    return sum(1 for _ in rows.execute_and_collect())


with tempfile.TemporaryDirectory() as directory:
    table = f"{directory}/readings"
    write_readings(table, 1, 2_000)
    print("rows after the first job:", count_rows(table))
    write_readings(table, 2_001, 3_000)
    print("rows after the second job:", count_rows(table))
    print("an earlier version has fewer rows:", count_rows(table, version=1) < 2_000)
