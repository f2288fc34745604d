"""What execute_and_collect gives for FLOAT: the digits that Java prints."""

from pyflink.common import Types

ORDER = "none"
WATERMARKS = "final"


def define(env):
    numbers = [1.1, 0.1, 16777217.0, 3.4e38]
    streams = [
        env.from_collection(numbers, Types.FLOAT()),
        env.from_collection(numbers, Types.FLOAT()).map(lambda x: x / 3, Types.FLOAT()),
        env.from_collection([(x, x) for x in numbers], Types.ROW([Types.FLOAT(), Types.DOUBLE()])),
        env.from_collection([(x, "a") for x in numbers], Types.TUPLE([Types.FLOAT(), Types.STRING()])),
    ]
    return [element for stream in streams for element in stream.execute_and_collect()]
