"""Without timestamps ctx.timestamp() is None; before any watermark the current one is the smallest long."""

from pyflink.datastream import DataStream, ProcessFunction, StreamExecutionEnvironment

ORDER = "all"
WATERMARKS = "final"


class Show(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def define(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([f"e{i}" for i in range(20)]).process(Show())
