"""AsyncDataStream.unordered_wait gives the elements of all calls, in any order."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, DataStream, StreamExecutionEnvironment

ORDER = "none"
WATERMARKS = "final"


class Lookup(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep((value * 7 % 5) / 1000)
        return [value * 10] * (value % 3)


def define(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_collection(list(range(20)), type_info=Types.INT())
    return AsyncDataStream.unordered_wait(numbers, Lookup(), Time.seconds(10), 4, Types.INT())
