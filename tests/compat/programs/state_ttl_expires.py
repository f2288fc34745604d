"""State with a short time-to-live is gone when that long has passed since the last write."""

import time

from pyflink.common import Configuration, Time, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor

ORDER = "key"
WATERMARKS = "final"


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("count", Types.INT())
        descriptor.enable_time_to_live(
            StateTtlConfig.new_builder(Time.milliseconds(400))
            .set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
            .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
            .build()
        )
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        if value[1] % 5 == 4:
            time.sleep(1.0)
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], value[1], count


def define(env: StreamExecutionEnvironment) -> DataStream:
    configuration = Configuration()
    configuration.set_integer("python.fn-execution.bundle.size", 1)
    configuration.set_integer("python.state.cache-size", 0)
    env.configure(configuration)
    return env.from_collection([("k", i) for i in range(20)]).key_by(lambda e: e[0]).process(Count())
