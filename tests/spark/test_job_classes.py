"""Classes that a program registers are known to the workers of its job."""

from __future__ import annotations

from typing import Any

from millstream.common import Types
from millstream.datastream import StreamExecutionEnvironment


class Basket:
    """A class that no annotation names."""

    def __init__(self, number: int) -> None:
        self.number = number


def test_registered_classes_reach_the_workers(spark_context: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.register_type(Basket)
    numbers = env.from_collection(list(range(10)), type_info=Types.LONG()).key_by(lambda n: n % 2, Types.LONG())
    baskets = numbers.map(Basket, output_type=Types.PICKLED_BYTE_ARRAY())
    added = baskets.key_by(lambda each: each.number % 2, Types.LONG()).reduce(lambda a, b: Basket(a.number + b.number))
    with added.map(lambda each: each.number, output_type=Types.LONG()).execute_and_collect() as rows:
        assert max(rows) == 25
