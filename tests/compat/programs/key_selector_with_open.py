"""A key selector is opened before its first record, with a runtime context."""

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.functions import KeySelector

ORDER = "key"
WATERMARKS = "final"


class Modulo(KeySelector):
    def open(self, runtime_context: RuntimeContext):
        self.modulus = 3 if runtime_context.get_task_name() else 0

    def get_key(self, value):
        return value % self.modulus


class KeyAndValue(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.get_current_key(), value


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection(list(range(12)), Types.INT())
    return numbers.key_by(Modulo(), Types.INT()).process(KeyAndValue())
