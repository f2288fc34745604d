"""End of input: every event-time timer fires, up to the largest long; future processing-time timers do not."""

from pyflink.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment

ORDER = "key"
WATERMARKS = "final"

MAX = 2**63 - 1


class Wait(KeyedProcessFunction):
    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        timers = ctx.timer_service()
        for time in (-5, 0, value[1] * 1000, MAX - 1, MAX):
            timers.register_event_time_timer(time)
        timers.register_processing_time_timer(timers.current_processing_time() + 3_600_000)

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        yield ctx.get_current_key(), timestamp, ctx.timestamp(), str(ctx.time_domain())
        yield ctx.get_current_key(), "watermark", ctx.timer_service().current_watermark()


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("rst"[i % 3], i % 4) for i in range(20)]
    return env.from_collection(data).key_by(lambda e: e[0]).process(Wait())
