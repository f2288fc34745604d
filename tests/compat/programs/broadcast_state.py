"""Broadcast state: written by the broadcast side, read by every key; timers at the end see all rules."""

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedBroadcastProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

ORDER = "key"
WATERMARKS = "final"

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class ApplyRules(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.INT()))

    def process_element(self, value, ctx: "KeyedBroadcastProcessFunction.ReadOnlyContext"):
        self.waiting.add(value[1])
        ctx.timer_service().register_event_time_timer(10)

    def process_broadcast_element(self, value, ctx: "KeyedBroadcastProcessFunction.Context"):
        rules = ctx.get_broadcast_state(RULES)
        name, factor = value
        if factor is None:
            rules.remove(name)
        else:
            rules.put(name, factor)

    def on_timer(self, timestamp: int, ctx: "KeyedBroadcastProcessFunction.OnTimerContext"):
        rules = ctx.get_broadcast_state(RULES)
        for n in self.waiting.get():
            for name in sorted(rules.keys()):
                if n % rules.get(name) == 0:
                    yield ctx.get_current_key(), timestamp, n, name, "half" in rules


def define(env: StreamExecutionEnvironment) -> DataStream:
    elements = env.from_collection([("efg"[i % 3], i) for i in range(24)])
    rules = env.from_collection([("half", 2), ("third", 3), ("fifth", 4), ("fifth", 5), ("third", None), ("tenth", 10)])
    return elements.key_by(lambda e: e[0]).connect(rules.broadcast(RULES)).process(ApplyRules())
