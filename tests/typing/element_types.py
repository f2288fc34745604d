"""Element types as type checkers infer them. mypy reads this file; it is not run.

`tests/typing/test_element_types.py` checks it in strict mode: an `assert_type` that does not hold is an error,
and so is an `ignore` that is not needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_type

from millstream.common import Time, Types
from millstream.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from millstream.datastream.data_stream import WindowedStream
from millstream.datastream.state import ValueState, ValueStateDescriptor
from millstream.datastream.window import TumblingEventTimeWindows


class Length(MapFunction[str, int]):
    def map(self, value: str) -> int:
        return len(value)


class Untyped(MapFunction):
    def map(self, value: Any) -> Any:
        return value


class Longest(ReduceFunction[str]):
    def reduce(self, value1: str, value2: str) -> str:
        return max(value1, value2, key=len)


class Mean(AggregateFunction[str, list[int], float]):
    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: str, accumulator: list[int]) -> list[int]:
        return [*accumulator, len(value)]

    def get_result(self, accumulator: list[int]) -> float:
        return sum(accumulator) / len(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


class Seen(KeyedProcessFunction[int, str, tuple[int, str]]):
    count: ValueState[int]

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor[int]("count", Types.LONG()))
        assert_type(self.count.value(), int | None)

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context[int]) -> Iterable[tuple[int, str]]:
        assert_type(ctx.get_current_key(), int)
        yield ctx.get_current_key(), value


def program(env: StreamExecutionEnvironment) -> None:
    words = env.from_collection(["to", "be"])
    assert_type(words, DataStream[str])
    assert_type(words.map(len), DataStream[int])
    assert_type(words.map(Length()), DataStream[int])
    assert_type(words.map(Untyped()), DataStream[Any])
    assert_type(words.flat_map(lambda word: [ord(letter) for letter in word]), DataStream[int])
    assert_type(words.filter(lambda word: word != "be").rebalance(), DataStream[str])
    by_length = words.key_by(lambda word: len(word))
    assert_type(by_length, KeyedStream[int, str])
    assert_type(words.key_by("field"), KeyedStream[Any, str])
    assert_type(by_length.reduce(Longest()), DataStream[str])
    assert_type(by_length.process(Seen()), DataStream[tuple[int, str]])
    windows = by_length.window(TumblingEventTimeWindows.of(Time.seconds(5)))
    assert_type(windows.allowed_lateness(5), WindowedStream[int, str])
    windows.aggregate(Mean())
    words.map(lambda word: word + 1)  # type: ignore[operator]
    words.filter(len).map(Length())  # type: ignore[arg-type]
    words.map(len).map(Length())  # type: ignore[arg-type]
