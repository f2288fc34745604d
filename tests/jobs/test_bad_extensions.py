"""User-defined extensions that misbehave: the error message, and the state of the job afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from millstream.cep import CEP, Pattern
from millstream.common import Configuration, Time, Types, WatermarkStrategy
from millstream.connector.source import (
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment
from millstream.datastream.window import CountTrigger, GlobalWindows, Trigger, TriggerResult
from millstream.errors import UserError

# ------------------------------------------------------------------------------------------ a source that goes back


class Turning(SplitEnumerator):
    """Plans the given ranges."""

    def __init__(self, plans: list[list[SplitRange]], position: int) -> None:
        self._plans, self._at = plans, position

    def plan(self, budget: Budget) -> list[SplitRange]:
        self._at += 1
        return self._plans[self._at - 1]

    def snapshot(self) -> int:
        return self._at

    def finished(self) -> bool:
        return self._at >= len(self._plans)

    def skip(self, done: SplitRange) -> None:
        self._at += 1


class Counting(SourceReader):
    def read(self, part: SplitRange) -> Iterator[Records]:
        yield Records(list(range(part.start, part.end)))


@dataclass(frozen=True)
class Planned(Source):
    plans: tuple[tuple[SplitRange, ...], ...]

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return Turning([list(plan) for plan in self.plans], state or 0)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return Counting()


def _run(env: StreamExecutionEnvironment, *plans: list[SplitRange]) -> list[int]:
    source = Planned(tuple(map(tuple, plans)))
    return list(env.from_source(source, WatermarkStrategy.no_watermarks(), "turning").execute_and_collect())


def test_a_source_that_plans_forward_is_read(env: StreamExecutionEnvironment) -> None:
    assert _run(env, [SplitRange("a", 0, 5)], [SplitRange("a", 5, 7), SplitRange("b", 0, 2)]) == [*range(7), 0, 1]


@pytest.mark.parametrize(
    ("plans", "reason"),
    [
        ([[SplitRange("a", 0, 5)], [SplitRange("a", 3, 7)]], "split 'a' from 3 to 7, but it has been read to 5"),
        ([[SplitRange("a", 5, 2)]], "ends before it starts"),
        ([[SplitRange("a", 0, 2), SplitRange("a", 2, 4)]], "has a range in this epoch already"),
    ],
)
def test_a_source_that_plans_backward_is_named(env: StreamExecutionEnvironment, plans: Any, reason: str) -> None:
    with pytest.raises(UserError, match=f"source 'turning'.*{reason}"):
        _run(env, *plans)


# ------------------------------------------------------------------------------------------- triggers and functions


class Nonsense(Trigger):
    """Returns an invalid value."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        return self.answer

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Any) -> None:
        """Do nothing."""

    def clear(self, window: Any, ctx: Any) -> None:
        """Do nothing."""


@pytest.mark.parametrize("answer", [None, True, "FIRE", 2])
def test_an_invalid_trigger_result_is_named_with_key_and_record(env: StreamExecutionEnvironment, answer: Any) -> None:
    windowed = env.from_collection([7], Types.INT()).key_by(lambda v: f"k{v}").window(GlobalWindows.create())
    windowed.trigger(Nonsense(answer)).reduce(lambda a, b: a).print()
    with pytest.raises(UserError, match=rf"(?s)returned {answer!r}.*key 'k7', record 7.*TriggerResult"):
        env.execute()


# ----------------------------------------------------------------------- the restart strategy decides what comes next


class Once:
    """Fails on the first call in any process."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __call__(self) -> bool:
        if self.marker.exists():
            return False
        self.marker.touch()
        return True


class RaisesOnce(AsyncFunction[int, int]):
    def __init__(self, first: Once) -> None:
        self.first = first

    async def async_invoke(self, value: int) -> list[int]:
        if value == 5 and self.first():
            raise LookupError(value)
        return [value]


class HangsOnce(RaisesOnce):
    async def async_invoke(self, value: int) -> list[int]:
        if value == 5 and self.first():
            await asyncio.sleep(3600)
        return [value]


class GivesNoListOnce(RaisesOnce):
    async def async_invoke(self, value: int) -> Any:
        return value if value == 5 and self.first() else [value]


class NonsenseOnce(Nonsense):
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        return "maybe" if element == 5 and self.answer() else TriggerResult.FIRE_AND_PURGE


def _async(function: type[RaisesOnce]) -> Callable[[Any, Once], Any]:
    return lambda stream, first: AsyncDataStream.ordered_wait(stream, function(first), Time.milliseconds(200), 4)


def _window(stream: Any, first: Once) -> Any:
    keyed = stream.key_by(lambda value: value)
    return keyed.window(GlobalWindows.create()).trigger(NonsenseOnce(first)).reduce(lambda a, b: a)


def _pattern(stream: Any, first: Once) -> Any:
    def fails(value: int) -> bool:
        return 1 // (0 if value == 5 and first() else 1) == 1

    found = CEP.pattern(stream.key_by(lambda value: value), Pattern.begin("any").where(fails)).in_processing_time()
    return found.select(lambda match: match["any"][0])


MISBEHAVE = {
    "an async function that raises": _async(RaisesOnce),
    "an async function that never returns": _async(HangsOnce),
    "an async function that returns no list": _async(GivesNoListOnce),
    "a trigger that answers nonsense": _window,
    "a condition that fails": _pattern,
}


@pytest.mark.parametrize("what", MISBEHAVE)
def test_the_job_recovers_as_its_restart_strategy_says(
    what: str, env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "2")
    configuration.set_string("millstream.epoch.max-records", "4")
    env.enable_checkpointing(10).configure(configuration)
    stream = env.from_collection(list(range(12)), Types.INT())
    found = list(MISBEHAVE[what](stream, Once(tmp_path / "failed")).execute_and_collect())
    assert (tmp_path / "failed").exists()
    assert sorted(found) == list(range(12))


@pytest.mark.parametrize("what", MISBEHAVE)
def test_the_job_fails_when_its_restart_strategy_says_so(
    what: str, env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "none")
    env.configure(configuration)
    stream = env.from_collection(list(range(12)), Types.INT())
    with pytest.raises(UserError, match=r"(?s)record 5|value.*5"):
        list(MISBEHAVE[what](stream, Once(tmp_path / "failed")).execute_and_collect())


def test_a_count_trigger_of_zero_is_refused() -> None:
    with pytest.raises(UserError, match="0"):
        CountTrigger.of(0)
