"""GlobalWindows with PurgingTrigger around CountTrigger: each firing starts with an empty window."""

from pyflink.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import CountTrigger, GlobalWindows, PurgingTrigger

ORDER = "key"
WATERMARKS = "final"


class Contents(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield key, [e[1] for e in elements]


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("abc"[i * i % 5 % 3], i) for i in range(40)]
    return (
        env.from_collection(data)
        .key_by(lambda e: e[0])
        .window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(3)))
        .process(Contents())
    )
