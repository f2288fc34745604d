"""count_window(n, m): what PyFlink gives for sliding count windows of a key, the beginning and the end included."""

from pyflink.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


class Contents(ProcessWindowFunction):
    def __init__(self, label):
        self.label = label

    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield f"{self.label}-{key}", [e[1] for e in elements]


def define(env: StreamExecutionEnvironment) -> DataStream:
    keyed = env.from_collection([("ab"[i % 3 % 2], i) for i in range(36)]).key_by(lambda e: e[0])
    return keyed.count_window(5, 2).process(Contents("5/2")).union(keyed.count_window(2, 3).process(Contents("2/3")))
