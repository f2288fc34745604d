"""window_all on global windows with a count trigger, reduced: the running result at every n-th element."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.window import CountTrigger, GlobalWindows, PurgingTrigger

ORDER = "key"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection([i * i % 23 for i in range(32)], type_info=Types.INT())
    text = Types.STRING()
    keep = numbers.window_all(GlobalWindows.create()).trigger(CountTrigger.of(5)).reduce(lambda a, b: a + b)
    purge = (
        numbers.window_all(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(5)))
        .reduce(lambda a, b: a + b)
    )
    return keep.map(lambda n: f"keep {n}", output_type=text).union(purge.map(lambda n: f"purge {n}", output_type=text))
