"""Patterns on streams: time, keys, late events, restarts, cutting."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from millstream.cep import (
    CEP,
    AfterMatchSkipStrategy,
    Pattern,
    PatternProcessFunction,
    RichIterativeCondition,
    TimedOutPartialMatchHandler,
)
from millstream.datastream import DataStream, OutputTag, RuntimeContext
from millstream.errors import UserError
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.testing import OperatorHarness
from millstream.types.type_hints import find_type_of_hint

LATE, OVER = OutputTag("late"), OutputTag("over")


@dataclass(frozen=True)
class Payment:
    user: str
    amount: int


class Tell(PatternProcessFunction, TimedOutPartialMatchHandler):
    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterator[Any]:
        yield _told(match), ctx.timestamp()

    def process_timed_out_match(self, match: dict[str, list[Any]], ctx: Any) -> None:
        ctx.output(OVER, (_told(match), ctx.timestamp()))


def _told(match: dict[str, list[Any]]) -> str:
    return " ".join(f"{name}:{'+'.join(str(event[1]) for event in events)}" for name, events in match.items())


def _small_then_large() -> Pattern:
    small = Pattern.begin("small").where(lambda event: event[1] < 10)
    return small.followed_by("large").where(lambda event: event[1] >= 100).within(20)


def _harness(pattern: Pattern, **options: Any) -> OperatorHarness:
    def define(stream: DataStream) -> DataStream:
        keyed = stream.key_by(lambda event: event[0])
        return CEP.pattern(keyed, pattern).side_output_late_data(LATE).process(Tell())

    return OperatorHarness(define, side_outputs=[LATE, OVER], **options)


def test_events_are_matched_by_time_and_not_by_arrival() -> None:
    with _harness(_small_then_large()) as harness:
        harness.process_all([("k", 100), ("k", 1), ("k", 200)], [5, 3, 1])
        assert harness.values() == []
        harness.watermark(10)
        assert harness.take_output() == [(("small:1 large:100", 5), 5)]


def test_equal_times_keep_their_arrival_unless_a_comparator_says_otherwise() -> None:
    pattern = Pattern.begin("one").next("two")

    def define(stream: DataStream) -> DataStream:
        found = CEP.pattern(stream.key_by(lambda event: event[0]), pattern, lambda one, other: one[1] - other[1])
        return found.process(Tell())

    with _harness(pattern) as plain, OperatorHarness(define) as sorting:
        for harness in (plain, sorting):
            harness.process_all([("k", 3), ("k", 1), ("k", 2)], [4, 4, 4])
            harness.watermark(4)
        assert [value for value, _ in plain.values()] == ["one:3 two:1", "one:1 two:2"]
        assert [value for value, _ in sorting.values()] == ["one:1 two:2", "one:2 two:3"]


def test_an_event_behind_the_watermark_is_late() -> None:
    with _harness(_small_then_large()) as harness:
        harness.watermark(10)
        harness.process_all([("k", 1), ("k", 2)], [10, 11])
        assert [record.value for record in harness.side_output(LATE)] == [("k", 1)]


def test_late_events_without_a_side_output_are_counted() -> None:
    def define(stream: DataStream) -> DataStream:
        return CEP.pattern(stream.key_by(lambda event: event[0]), _small_then_large()).process(Tell())

    with OperatorHarness(define) as harness:
        harness.watermark(10)
        harness.process(("k", 1), 3)
        assert harness.counter("numLateRecordsDropped") == 1


def test_a_partial_match_times_out_at_its_deadline_without_another_event() -> None:
    with _harness(_small_then_large()) as harness:
        harness.process(("k", 1), 5)
        harness.watermark(24)
        assert harness.side_output(OVER) == []
        harness.watermark(25)
        assert harness.side_output(OVER) == [(("small:1", 25), 25)]


def test_what_did_not_come_is_a_match_when_its_time_is_over() -> None:
    pattern = Pattern.begin("order").where(lambda event: event[1] == 1)
    pattern = pattern.not_followed_by("payment").where(lambda event: event[1] == 2).within(10)
    with _harness(pattern) as harness:
        harness.process_all([("paid", 1), ("paid", 2), ("open", 1)], [1, 5, 3])
        harness.end_of_input()
        assert harness.take_output() == [(("order:1", 13), 13)]


def test_processing_time_matches_at_once_and_times_out_by_the_clock() -> None:
    def define(stream: DataStream) -> DataStream:
        return (
            CEP.pattern(stream.key_by(lambda event: event[0]), _small_then_large()).in_processing_time().process(Tell())
        )

    with OperatorHarness(define, side_outputs=[OVER]) as harness:
        harness.processing_time(1_000)
        harness.process_all([("k", 1), ("k", 100), ("j", 2)])
        assert harness.take_output() == [(("small:1 large:100", 1_000), None)]
        harness.processing_time(1_020)
        assert [record.value for record in harness.side_output(OVER)] == [("small:2", 1_020)]


def test_a_restart_and_a_new_parallelism_in_the_middle_of_a_match_do_not_show() -> None:
    chance = random.Random(7)
    events = [((f"key{chance.randint(0, 5)}", chance.choice((1, 50, 100))), time) for time in range(120)]

    def results(cut: int, *, restart: bool) -> tuple[list[Any], list[Any]]:
        with _harness(_small_then_large()) as harness:
            for at in range(0, len(events), cut):
                part = events[at : at + cut]
                harness.process_all([event for event, _ in part], [time for _, time in part])
                harness.watermark(part[-1][1] - 3)
                if restart:
                    harness.restore(harness.snapshot(), 1 + at % 3)
            harness.end_of_input()
            return sorted(harness.take_output()), sorted(harness.side_output(OVER))

    whole = results(len(events), restart=False)
    assert whole[0]
    assert whole[1]
    assert results(7, restart=False) == whole
    assert results(5, restart=True) == whole


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_declared_classes_wait_in_state(backend: str) -> None:
    def define(stream: DataStream) -> DataStream:
        pattern = Pattern.begin("small").where(lambda payment: payment.amount < 10)
        pattern = pattern.followed_by("large").where(lambda payment: payment.amount > 100)
        return CEP.pattern(stream.key_by(lambda payment: payment.user), pattern).select(
            lambda match: (match["small"][0].amount, match["large"][0].amount)
        )

    stream_type = _type_of(Payment)
    with OperatorHarness(define, input_types=[stream_type], backend=backend) as harness:
        harness.process(Payment("ada", 1), 1)
        harness.watermark(1)
        harness.restore(harness.snapshot(), 2)
        harness.process(Payment("ada", 500), 2)
        harness.watermark(2)
        assert harness.values() == [(1, 500)]


def _type_of(cls: type) -> Any:
    return find_type_of_hint(cls)


def test_state_is_bounded_by_the_window_and_gone_when_nothing_is_open() -> None:
    pattern = Pattern.begin("a").where(lambda event: event[1] < 10)
    pattern = pattern.followed_by_any("b").where(lambda event: event[1] < 10).followed_by("never")
    pattern = pattern.where(lambda event: False).within(10)
    sizes = []
    with _harness(pattern, compact=lambda _: 0) as harness:  # every epoch writes all state there is
        for time in range(0, 300, 5):
            harness.process_all([("k", time % 7)] * 2, [time, time + 2])
            harness.watermark(time + 2)
            sizes.append(sum(map(len, harness.snapshot().files.values())))
        assert max(sizes[20:]) <= max(sizes[:20]) * 1.1
        assert len(harness.state("cep/matches")["k"][2]) <= 5  # events that are held: those of the last 10 ms
        harness.watermark(10_000)
        assert harness.state("cep/matches") == harness.state("cep/queue") == harness.state("cep/wakeups") == {}


def test_a_condition_that_fails_names_key_and_event() -> None:
    pattern = Pattern.begin("a").where(lambda event: 1 / event[1] > 0)
    with _harness(pattern) as harness:
        harness.process(("k", 0), 1)
        with pytest.raises(UserFunctionFailed, match=r"(?s)ZeroDivisionError.*key 'k', record \('k', 0\)"):
            harness.watermark(1)


def test_a_skip_that_misses_fails_when_it_was_asked_to() -> None:
    skip = AfterMatchSkipStrategy.skip_to_first("b").throw_exception_on_miss()
    pattern = Pattern.begin("a", skip).where(lambda event: event[1] == 1).next("b").where(lambda event: event[1] == 2)
    pattern = pattern.optional().next("c").where(lambda event: event[1] == 3)
    with _harness(pattern) as harness:
        harness.process_all([("k", 1), ("k", 3)], [1, 2])
        with pytest.raises(UserFunctionFailed, match="could not skip to 'b'"):
            harness.watermark(2)


def test_events_without_timestamps_are_refused_in_event_time() -> None:
    with (
        _harness(_small_then_large()) as harness,
        pytest.raises(UserFunctionFailed, match="needs records with timestamps"),
    ):
        harness.process(("k", 1))


def test_a_rich_condition_is_opened() -> None:
    class Above(RichIterativeCondition):
        limit = -1

        def open(self, runtime_context: RuntimeContext) -> None:
            self.limit = 5

        def filter(self, value: Any, ctx: Any) -> bool:
            return bool(value[1] > self.limit > 0)

    with _harness(Pattern.begin("a").where(Above())) as harness:
        harness.process_all([("k", 4), ("k", 6)], [1, 2])
        harness.watermark(2)
        assert [value for value, _ in harness.values()] == ["a:6"]


def test_partial_matches_of_another_pattern_are_refused() -> None:
    one = Pattern.begin("a").where(lambda event: event[1] == 1).next("b").next("c")
    other = Pattern.begin("a").where(lambda event: event[1] == 1).one_or_more().next("b").next("c")
    with _harness(one) as before, _harness(other) as after:
        before.process(("k", 1), 1)
        before.watermark(1)
        after.restore(before.snapshot())
        with pytest.raises(UserError, match="another pattern"):
            after.watermark(2)
