"""NumberSequenceSource gives both bounds; with one reader, in order."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

ORDER = "all"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(-3, 60), WatermarkStrategy.no_watermarks(), "numbers", type_info=Types.LONG()
    )
    return numbers.map(lambda n: n * 3, output_type=Types.LONG()).filter(lambda n: n % 2 == 0)
