"""Timers: an order that is not paid within a minute is reported.

One event registers the timer, another deletes it."""

from collections.abc import Iterator

from millstream.common import Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.state import ValueStateDescriptor

# (order, event, milliseconds)
EVENTS = [
    ("a1", "ordered", 0),
    ("b2", "ordered", 5_000),
    ("a1", "paid", 30_000),
    ("c3", "ordered", 40_000),
    ("b2", "paid", 90_000),  # too late
    ("c3", "paid", 95_000),
]


class Unpaid(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.deadline = runtime_context.get_state(ValueStateDescriptor("deadline", Types.LONG()))

    def process_element(self, event: tuple[str, str, int], ctx: KeyedProcessFunction.Context) -> None:
        if event[1] == "ordered":
            deadline = ctx.timestamp() + 60_000
            self.deadline.update(deadline)
            ctx.timer_service().register_event_time_timer(deadline)
        elif (deadline := self.deadline.value()) is not None and ctx.timestamp() <= deadline:
            ctx.timer_service().delete_event_time_timer(deadline)
            self.deadline.clear()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[str]:
        yield f"order {ctx.get_current_key()} was not paid by second {timestamp // 1000}"
        self.deadline.clear()


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[2])
(
    env.from_collection(EVENTS)
    .assign_timestamps_and_watermarks(strategy)
    .key_by(lambda event: event[0], Types.STRING())
    .process(Unpaid(), Types.STRING())
    .print()
)
env.execute("timers")
