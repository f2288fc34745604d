"""A trigger written by the user: its state per window, early firing, purging, timers, clear() at the end."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ReducingStateDescriptor
from pyflink.datastream.window import TimeWindow, Trigger, TriggerResult, TumblingEventTimeWindows

ORDER = "key"
WATERMARKS = "final"


class ByField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class EarlyOnSum(Trigger):
    """Fires when the values since the last firing sum up to a limit; purges at values that say so; fires at the end."""

    def __init__(self, limit):
        self.limit = limit
        self.descriptor = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())

    def on_element(self, element, timestamp: int, window: TimeWindow, ctx: "Trigger.TriggerContext") -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        total = ctx.get_partitioned_state(self.descriptor)
        total.add(element[2])
        if total.get() < self.limit:
            return TriggerResult.CONTINUE
        total.clear()
        return TriggerResult.FIRE_AND_PURGE if element[2] % 2 else TriggerResult.FIRE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: "Trigger.TriggerContext") -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: "Trigger.TriggerContext") -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, ctx: "Trigger.OnMergeContext") -> None:
        ctx.merge_partitioned_state(self.descriptor)

    def clear(self, window: TimeWindow, ctx: "Trigger.TriggerContext") -> None:
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.get_partitioned_state(self.descriptor).clear()


class Contents(ProcessWindowFunction):
    def process(self, key, context: "ProcessWindowFunction.Context", elements):
        yield key, context.window().start, [e[2] for e in elements]


def define(env: StreamExecutionEnvironment) -> DataStream:
    data = [("kl"[i % 3 % 2], i * 17 % 100, i * 5 % 9) for i in range(40)]
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(ByField())
    return (
        env.from_collection(data)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda e: e[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        .trigger(EarlyOnSum(12))
        .process(Contents())
    )
