"""Event-time timers: once per key and time, in time order, deletable, also when set from on_timer in the past."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

ORDER = "key"
WATERMARKS = "final"
MODE = "thread"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Alarm(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.fired = runtime_context.get_state(ValueStateDescriptor("fired", Types.INT()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        timers = ctx.timer_service()
        timers.register_event_time_timer(ctx.timestamp() // 100 * 100 + 100)
        timers.register_event_time_timer(ctx.timestamp() // 100 * 100 + 100)
        if value[1] % 3 == 0:
            timers.delete_event_time_timer(ctx.timestamp() // 100 * 100 + 100)
        timers.delete_event_time_timer(ctx.timestamp() + 7)
        yield ctx.get_current_key(), "element", ctx.timestamp(), timers.current_watermark()

    def on_timer(self, timestamp: int, ctx: "KeyedProcessFunction.OnTimerContext"):
        fired = (self.fired.value() or 0) + 1
        self.fired.update(fired)
        yield ctx.get_current_key(), "timer", timestamp, ctx.timestamp(), fired, str(ctx.time_domain())
        if fired <= 3:
            ctx.timer_service().register_event_time_timer(timestamp + 1000)
            ctx.timer_service().register_event_time_timer(timestamp + 50)


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("abcd"[i % 4], i * 47 % 1000) for i in range(24)]
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(ByField())
    return env.from_collection(data).assign_timestamps_and_watermarks(strategy).key_by(lambda e: e[0]).process(Alarm())
