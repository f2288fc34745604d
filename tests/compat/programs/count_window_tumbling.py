"""count_window(n): a result per n elements of a key; fewer than n left at the end give none."""

from pyflink.common import Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment, WindowFunction

ORDER = "key"
WATERMARKS = "final"


class Sum(WindowFunction):
    def apply(self, key, window, inputs):
        values = [e[1] for e in inputs]
        yield key, len(values), sum(values)


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("abcd"[i * i % 7 % 4], i) for i in range(50)]
    kind = Types.TUPLE([Types.STRING(), Types.INT()])
    return (
        env.from_collection(data, type_info=kind)
        .key_by(lambda e: e[0], key_type=Types.STRING())
        .count_window(3)
        .apply(Sum(), output_type=Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()]))
    )
