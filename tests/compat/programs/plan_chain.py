"""Three operators in one chain after a source: also recorded as an execution plan."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "all"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    return (
        env.from_collection(list(range(20)), type_info=Types.INT())
        .map(lambda n: n + 1, output_type=Types.INT())
        .name("add one")
        .uid("add-one")
        .filter(lambda n: n % 3 != 0)
        .name("not by three")
        .flat_map(lambda n: range(n % 3), output_type=Types.INT())
        .name("count up")
        .uid("count-up")
    )
