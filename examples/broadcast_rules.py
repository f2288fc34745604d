"""Broadcast state: rules that change while the job runs.

Every subtask has all rules and applies them to its own keys. As in Flink, rules and records arrive in no defined order,
so a record waits for its timer before it is checked."""

from collections.abc import Iterator

from millstream.common import Types, WatermarkStrategy
from millstream.datastream import KeyedBroadcastProcessFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.state import ListStateDescriptor, MapStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
PAYMENTS = [("ada", 10), ("bob", 900), ("ada", 600), ("eve", 5_000)]
CHANGES = [("large", 500), ("huge", 1_000), ("large", 800)]  # a rule and its limit; the last one counts


class Check(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_element(
        self, payment: tuple[str, int], ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterator[str]:
        self.waiting.add(payment[1])
        ctx.timer_service().register_event_time_timer(1)
        yield from ()

    def process_broadcast_element(
        self, change: tuple[str, int], ctx: KeyedBroadcastProcessFunction.Context
    ) -> Iterator[str]:
        ctx.get_broadcast_state(RULES).put(*change)
        yield from ()

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[str]:
        for amount in self.waiting.get():
            broken = [name for name, limit in ctx.get_broadcast_state(RULES).items() if amount > limit]
            yield f"{ctx.get_current_key()} paid {amount}: {' and '.join(sorted(broken)) or 'fine'}"


env = StreamExecutionEnvironment.get_execution_environment()
timed = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda record, _: 0)
payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(timed)
rules = env.from_collection(CHANGES).assign_timestamps_and_watermarks(timed).broadcast(RULES)
payments.key_by(lambda payment: payment[0], Types.STRING()).connect(rules).process(Check(), Types.STRING()).print()
env.execute("broadcast rules")
