"""Stateless lambdas on untyped elements keep order; flat_map may give none, one or many elements."""

from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDER = "all"
WATERMARKS = "final"


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection(list(range(1, 41)))
    return (
        numbers.map(lambda n: n * 7 % 11)
        .flat_map(lambda n: [(n, i) for i in range(n % 4)])
        .filter(lambda pair: (pair[0] + pair[1]) % 3 != 0)
    )
