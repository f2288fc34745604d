"""Asynchronous functions in whole jobs: order, capacity, timeouts, retries, failures, restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from millstream.common import Configuration, Time, Types, WatermarkStrategy
from millstream.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from millstream.datastream.async_retry_predicates import empty_result_predicate
from millstream.datastream.state import ValueStateDescriptor
from millstream.errors import UserError

BOTH = pytest.mark.parametrize("wait", [AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait])


class Slowest(AsyncFunction[int, int]):
    """The first record of every four takes longest."""

    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep((4 - value % 4) / 500)
        return [value] * (value % 3)


class Forever(AsyncFunction[int, int]):
    """Does not come back for odd values, and does not let itself be cancelled."""

    async def async_invoke(self, value: int) -> list[int]:
        while value % 2:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(0.001)
        return [value]


class Patient(Forever):
    def timeout(self, value: int) -> list[int]:
        return [-value]


class Counting(AsyncFunction[int, int]):
    """How many calls were under way when this one was."""

    def __init__(self, wanted: int) -> None:
        self.running, self.wanted, self.reached = 0, wanted, False

    async def async_invoke(self, value: int) -> list[int]:
        self.running += 1
        while not self.reached:
            self.reached = self.running >= self.wanted
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)
        seen, self.running = self.running, self.running - 1
        return [seen]


class Gives(AsyncFunction[Any, Any]):
    def __init__(self, result: Any) -> None:
        self.result = result

    async def async_invoke(self, value: Any) -> Any:
        return self.result


class Breaks(AsyncFunction[int, int]):
    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0)
        if value == 7:
            raise LookupError("no such city")
        return [value]


class Flaky(AsyncFunction[int, int]):
    """Works from the third try of each value on."""

    def __init__(self, *, raises: bool) -> None:
        self.raises = raises
        self.tries: dict[int, int] = {}

    async def async_invoke(self, value: int) -> list[int]:
        self.tries[value] = self.tries.get(value, 0) + 1
        if self.tries[value] >= 3:
            return [value * 10 + self.tries[value]]
        if self.raises:
            raise ConnectionError("try again")
        return []


class Stamps(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp()


def collected(stream: Any) -> list[Any]:
    return list(stream.execute_and_collect())


def numbers(env: StreamExecutionEnvironment, count: int = 20) -> Any:
    return env.from_collection(list(range(count)), Types.INT())


def test_ordered_keeps_the_order_of_the_records(env: StreamExecutionEnvironment) -> None:
    out = AsyncDataStream.ordered_wait(numbers(env.set_parallelism(1)), Slowest(), Time.seconds(60), 4, Types.INT())
    assert collected(out) == [n for n in range(20) for _ in range(n % 3)]


def test_unordered_results_have_the_order_in_which_calls_end(env: StreamExecutionEnvironment) -> None:
    out = AsyncDataStream.unordered_wait(numbers(env.set_parallelism(1)), Slowest(), Time.seconds(60), 4, Types.INT())
    found = collected(out)
    assert sorted(found) == [n for n in range(20) for _ in range(n % 3)]
    assert found != sorted(found)


@BOTH
def test_a_result_has_the_timestamp_of_its_record(env: StreamExecutionEnvironment, wait: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value * 10)
    stamped = numbers(env).assign_timestamps_and_watermarks(strategy)
    found = collected(wait(stamped, Slowest(), Time.seconds(60), 7).process(Stamps()))
    assert sorted(found) == [(n, n * 10) for n in range(20) for _ in range(n % 3)]


@BOTH
@pytest.mark.parametrize("capacity", [1, 5])
def test_capacity_bounds_the_calls_under_way(env: StreamExecutionEnvironment, wait: Any, capacity: int) -> None:
    found = collected(wait(numbers(env.set_parallelism(1)), Counting(capacity), Time.seconds(60), capacity))
    assert max(found) == capacity


@BOTH
def test_it_works_after_key_by_and_over_several_epochs(env: StreamExecutionEnvironment, wait: Any) -> None:
    env._configuration.set_string("millstream.epoch.max-records", "3")
    keyed = numbers(env.set_parallelism(3)).key_by(lambda n: n % 5, Types.INT())
    assert sorted(collected(wait(keyed, Slowest(), Time.seconds(60)))) == [n for n in range(20) for _ in range(n % 3)]


@BOTH
def test_a_call_that_never_returns_is_a_timeout(env: StreamExecutionEnvironment, wait: Any) -> None:
    with pytest.raises(
        UserError, match=r"(?s)TimeoutError.*has timed out for input: 1; the timeout is 0\.25 s.*record 1"
    ):
        collected(wait(numbers(env, 4), Forever(), Time.milliseconds(250), 1))


@BOTH
def test_the_timeout_method_returns_the_result_of_calls_that_never_return(
    env: StreamExecutionEnvironment, wait: Any
) -> None:
    found = collected(wait(numbers(env.set_parallelism(1), 6), Patient(), Time.milliseconds(250), 2))
    assert sorted(found) == [-5, -3, -1, 0, 2, 4]


@pytest.mark.parametrize("result", [None, 7, "text", {"a": 1}])
def test_a_result_that_is_not_a_list_is_named(env: StreamExecutionEnvironment, result: Any) -> None:
    with pytest.raises(UserError, match=r"(?s)The result of AsyncFunction .*: async_invoke\(\) returned .*record 0"):
        collected(AsyncDataStream.ordered_wait(numbers(env, 1), Gives(result), Time.seconds(60)))


def test_a_failure_names_operator_key_and_record_and_begins_in_the_function(env: StreamExecutionEnvironment) -> None:
    keyed = numbers(env).key_by(lambda n: n % 5, Types.INT())
    with pytest.raises(UserError, match=r"(?s)LookupError: no such city\n.*'cities', key 2, record 7") as caught:
        collected(AsyncDataStream.unordered_wait(keyed, Breaks(), Time.seconds(60)).name("cities"))
    assert str(caught.value).splitlines()[1].endswith("in async_invoke")


@pytest.mark.parametrize("raises", [True, False])
def test_a_call_is_retried_as_its_predicate_says(env: StreamExecutionEnvironment, raises: bool) -> None:
    predicates: tuple[Any, Any] = (None, lambda e: isinstance(e, ConnectionError))
    strategy = AsyncRetryStrategy.fixed_delay(3, 1, *(predicates if raises else (empty_result_predicate, None)))
    out = AsyncDataStream.ordered_wait_with_retry(numbers(env, 3), Flaky(raises=raises), Time.seconds(60), strategy)
    assert sorted(collected(out)) == [3, 13, 23]


def test_the_last_attempt_decides_the_outcome(env: StreamExecutionEnvironment) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(1, 1, empty_result_predicate, lambda _: True)
    out = AsyncDataStream.unordered_wait_with_retry(numbers(env, 3), Flaky(raises=False), Time.seconds(60), strategy)
    assert collected(out) == []
    out = AsyncDataStream.unordered_wait_with_retry(numbers(env, 3), Flaky(raises=True), Time.seconds(60), strategy)
    with pytest.raises(UserError, match="ConnectionError: try again"):
        collected(out)


def test_the_timeout_covers_all_attempts(env: StreamExecutionEnvironment) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(1000, 20, empty_result_predicate, None)
    out = AsyncDataStream.ordered_wait_with_retry(numbers(env, 1), Gives([]), Time.milliseconds(60), strategy)
    with pytest.raises(UserError, match="has timed out for input"):
        collected(out)


def test_keyed_state_is_refused(env: StreamExecutionEnvironment) -> None:
    class Stateful(Slowest):
        def open(self, runtime_context: Any) -> None:
            runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    keyed = numbers(env).key_by(lambda n: n % 5, Types.INT())
    with pytest.raises(UserError, match="keyed state 'seen', but it calls its function for several keys at once"):
        collected(AsyncDataStream.ordered_wait(keyed, Stateful(), Time.seconds(60)))


class FailsOnce(Slowest):
    """Fails the job once, in the middle of its calls."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0.001)
        if value == 11 and not self.marker.exists():
            self.marker.touch()
            raise RuntimeError("once")
        return [value]


@BOTH
def test_a_restart_neither_loses_nor_duplicates_a_result(
    env: StreamExecutionEnvironment, wait: Any, tmp_path: Path
) -> None:
    env.enable_checkpointing(10).configure(_restarting())
    env._configuration.set_string("millstream.epoch.max-records", "4")
    found = collected(wait(numbers(env), FailsOnce(tmp_path / "failed"), Time.seconds(60)))
    assert (tmp_path / "failed").exists()
    assert sorted(found) == list(range(20))


def _restarting() -> Any:
    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
    return configuration


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Slowest(), Time.seconds(1), 0), "the capacity of Slowest must be an int of at least 1, not 0"),
        ((Slowest(), 10), "must be a Time or a Duration"),
        ((lambda value: [value], Time.seconds(1)), "an AsyncFunction is taken"),
        ((type("Plain", (Slowest,), {"async_invoke": lambda self, value: []})(), Time.seconds(1)), "'async def'"),
    ],
)
def test_invalid_arguments_are_refused_while_the_program_is_built(
    env: StreamExecutionEnvironment, arguments: Any, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        AsyncDataStream.ordered_wait(numbers(env), *arguments)


def test_retries_need_a_timeout(env: StreamExecutionEnvironment) -> None:
    strategy = AsyncRetryStrategy.fixed_delay(1, 1, empty_result_predicate, None)
    with pytest.raises(UserError, match="but no timeout"):
        AsyncDataStream.ordered_wait_with_retry(numbers(env), Slowest(), Time.seconds(0), strategy)
