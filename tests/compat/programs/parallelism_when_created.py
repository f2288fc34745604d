"""An operator has the parallelism that the environment had when the operator was created."""

from pyflink.common import Types
from pyflink.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment

ORDER = "none"
WATERMARKS = "final"


class Parallelism(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.subtasks = runtime_context.get_number_of_parallel_subtasks()

    def map(self, value):
        return (*value, self.subtasks)


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection([(i,) for i in range(6)])
    env.set_parallelism(3)
    three = numbers.map(Parallelism())
    env.set_parallelism(2)
    two = three.map(Parallelism())
    own = two.map(Parallelism()).set_parallelism(4)
    env.set_parallelism(1)
    one = own.key_by(lambda value: value[0], Types.INT()).map(Parallelism())
    env.set_parallelism(5)
    return one
