"""A keyed reduce emits once per element; the first element of a key comes out as it is, without a call."""

from pyflink.datastream import DataStream, ReduceFunction, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], f"({value1[1]}+{value2[1]})", max(value1[2], value2[2])


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("abc"[i * i % 3], str(i), i * 37 % 23) for i in range(20)]
    return env.from_collection(data).key_by(lambda e: e[0]).reduce(Longest())
