"""AsyncDataStream.ordered_wait keeps the order of input whichever call ends first."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, DataStream, StreamExecutionEnvironment

ORDER = "all"
WATERMARKS = "final"


class Lookup(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep((value * 7 % 5) / 1000)
        return [value * 10] * (value % 3)


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection(list(range(20)), type_info=Types.INT())
    return AsyncDataStream.ordered_wait(numbers, Lookup(), Time.seconds(10), 4, Types.INT())
