"""GlobalWindows with CountTrigger: fires at every n-th element and keeps all; what is left at the end does not fire."""

from pyflink.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import CountTrigger, GlobalWindows

ORDER = "key"
WATERMARKS = "final"


class Contents(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield key, [e[1] for e in elements], context.window().max_timestamp()


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("abc"[i * i % 5 % 3], i) for i in range(40)]
    return (
        env.from_collection(data)
        .key_by(lambda e: e[0])
        .window(GlobalWindows.create())
        .trigger(CountTrigger.of(4))
        .process(Contents())
    )
