"""The CEP operator: time, keys, late events, restarts, batch sizes."""

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

LATE, TIMED_OUT = OutputTag("late"), OutputTag("over")


@dataclass(frozen=True)
class Payment:
    user: str
    amount: int


class FormatMatch(PatternProcessFunction, TimedOutPartialMatchHandler):
    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterator[Any]:
        yield _format_match(match), ctx.timestamp()

    def process_timed_out_match(self, match: dict[str, list[Any]], ctx: Any) -> None:
        ctx.output(TIMED_OUT, (_format_match(match), ctx.timestamp()))


def _format_match(match: dict[str, list[Any]]) -> str:
    return " ".join(f"{name}:{'+'.join(str(event[1]) for event in events)}" for name, events in match.items())


def _create_pattern() -> Pattern:
    small = Pattern.begin("small").where(lambda event: event[1] < 10)
    return small.followed_by("large").where(lambda event: event[1] >= 100).within(20)


def _create_harness(pattern: Pattern, **options: Any) -> OperatorHarness:
    def define(stream: DataStream) -> DataStream:
        keyed = stream.key_by(lambda event: event[0])
        return CEP.pattern(keyed, pattern).side_output_late_data(LATE).process(FormatMatch())

    return OperatorHarness(define, side_outputs=[LATE, TIMED_OUT], **options)


def test_events_are_matched_in_the_order_of_their_timestamps() -> None:
    with _create_harness(_create_pattern()) as harness:
        harness.process_all([("k", 100), ("k", 1), ("k", 200)], [5, 3, 1])
        assert harness.values() == []
        harness.watermark(10)
        assert harness.take_output() == [(("small:1 large:100", 5), 5)]


def test_events_with_equal_timestamps_keep_their_order_unless_there_is_a_comparator() -> None:
    pattern = Pattern.begin("one").next("two")

    def define(stream: DataStream) -> DataStream:
        matches = CEP.pattern(stream.key_by(lambda event: event[0]), pattern, lambda left, right: left[1] - right[1])
        return matches.process(FormatMatch())

    with _create_harness(pattern) as by_arrival, OperatorHarness(define) as by_comparator:
        for harness in (by_arrival, by_comparator):
            harness.process_all([("k", 3), ("k", 1), ("k", 2)], [4, 4, 4])
            harness.watermark(4)
        assert [value for value, _ in by_arrival.values()] == ["one:3 two:1", "one:1 two:2"]
        assert [value for value, _ in by_comparator.values()] == ["one:1 two:2", "one:2 two:3"]


def test_an_event_that_is_not_after_the_watermark_is_late() -> None:
    with _create_harness(_create_pattern()) as harness:
        harness.watermark(10)
        harness.process_all([("k", 1), ("k", 2)], [10, 11])
        assert [record.value for record in harness.side_output(LATE)] == [("k", 1)]


def test_late_events_without_a_side_output_are_counted() -> None:
    def define(stream: DataStream) -> DataStream:
        return CEP.pattern(stream.key_by(lambda event: event[0]), _create_pattern()).process(FormatMatch())

    with OperatorHarness(define) as harness:
        harness.watermark(10)
        harness.process(("k", 1), 3)
        assert harness.counter("numLateRecordsDropped") == 1


def test_a_partial_match_times_out_at_its_deadline_without_another_event() -> None:
    with _create_harness(_create_pattern()) as harness:
        harness.process(("k", 1), 5)
        harness.watermark(24)
        assert harness.side_output(TIMED_OUT) == []
        harness.watermark(25)
        assert harness.side_output(TIMED_OUT) == [(("small:1", 25), 25)]


def test_a_negated_last_step_matches_when_the_time_limit_has_passed() -> None:
    pattern = Pattern.begin("order").where(lambda event: event[1] == 1)
    pattern = pattern.not_followed_by("payment").where(lambda event: event[1] == 2).within(10)
    with _create_harness(pattern) as harness:
        harness.process_all([("paid", 1), ("paid", 2), ("open", 1)], [1, 5, 3])
        harness.end_of_input()
        assert harness.take_output() == [(("order:1", 13), 13)]


def test_in_processing_time_events_are_matched_on_arrival_and_time_out_by_the_clock() -> None:
    def define(stream: DataStream) -> DataStream:
        return (
            CEP.pattern(stream.key_by(lambda event: event[0]), _create_pattern())
            .in_processing_time()
            .process(FormatMatch())
        )

    with OperatorHarness(define, side_outputs=[TIMED_OUT]) as harness:
        harness.processing_time(1_000)
        harness.process_all([("k", 1), ("k", 100), ("j", 2)])
        assert harness.take_output() == [(("small:1 large:100", 1_000), None)]
        harness.processing_time(1_020)
        assert [record.value for record in harness.side_output(TIMED_OUT)] == [("small:2", 1_020)]


def test_restart_and_rescaling_during_a_match_do_not_change_the_results() -> None:
    rng = random.Random(7)
    events = [((f"key{rng.randint(0, 5)}", rng.choice((1, 50, 100))), time) for time in range(120)]

    def run(batch_size: int, *, restart: bool) -> tuple[list[Any], list[Any]]:
        with _create_harness(_create_pattern()) as harness:
            for start in range(0, len(events), batch_size):
                part = events[start : start + batch_size]
                harness.process_all([event for event, _ in part], [time for _, time in part])
                harness.watermark(part[-1][1] - 3)
                if restart:
                    harness.restore(harness.snapshot(), 1 + start % 3)
            harness.end_of_input()
            return sorted(harness.take_output()), sorted(harness.side_output(TIMED_OUT))

    expected = run(len(events), restart=False)
    assert expected[0]
    assert expected[1]
    assert run(7, restart=False) == expected
    assert run(5, restart=True) == expected


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_events_of_a_dataclass_are_stored_in_state(backend: str) -> None:
    def define(stream: DataStream) -> DataStream:
        pattern = Pattern.begin("small").where(lambda payment: payment.amount < 10)
        pattern = pattern.followed_by("large").where(lambda payment: payment.amount > 100)
        return CEP.pattern(stream.key_by(lambda payment: payment.user), pattern).select(
            lambda match: (match["small"][0].amount, match["large"][0].amount)
        )

    stream_type = _find_type(Payment)
    with OperatorHarness(define, input_types=[stream_type], backend=backend) as harness:
        harness.process(Payment("ada", 1), 1)
        harness.watermark(1)
        harness.restore(harness.snapshot(), 2)
        harness.process(Payment("ada", 500), 2)
        harness.watermark(2)
        assert harness.values() == [(1, 500)]


def _find_type(cls: type) -> Any:
    return find_type_of_hint(cls)


def test_state_is_bounded_by_the_time_limit_and_empty_without_partial_matches() -> None:
    pattern = Pattern.begin("a").where(lambda event: event[1] < 10)
    pattern = pattern.followed_by_any("b").where(lambda event: event[1] < 10).followed_by("never")
    pattern = pattern.where(lambda event: False).within(10)
    sizes = []
    with _create_harness(pattern, compact=lambda _: 0) as harness:  # every epoch writes a full base
        for time in range(0, 300, 5):
            harness.process_all([("k", time % 7)] * 2, [time, time + 2])
            harness.watermark(time + 2)
            sizes.append(sum(map(len, harness.snapshot().files.values())))
        assert max(sizes[20:]) <= max(sizes[:20]) * 1.1
        assert len(harness.state("cep/matches")["k"][2]) <= 5  # buffered events: those of the last 10 ms
        harness.watermark(10_000)
        assert harness.state("cep/matches") == harness.state("cep/queue") == harness.state("cep/wakeups") == {}


def test_an_error_of_a_condition_names_key_and_event() -> None:
    pattern = Pattern.begin("a").where(lambda event: 1 / event[1] > 0)
    with _create_harness(pattern) as harness:
        harness.process(("k", 0), 1)
        with pytest.raises(UserFunctionFailed, match=r"(?s)ZeroDivisionError.*key 'k', record \('k', 0\)"):
            harness.watermark(1)


def test_a_skip_strategy_without_its_step_fails_the_job_if_it_must_not_miss() -> None:
    skip = AfterMatchSkipStrategy.skip_to_first("b").throw_exception_on_miss()
    pattern = Pattern.begin("a", skip).where(lambda event: event[1] == 1).next("b").where(lambda event: event[1] == 2)
    pattern = pattern.optional().next("c").where(lambda event: event[1] == 3)
    with _create_harness(pattern) as harness:
        harness.process_all([("k", 1), ("k", 3)], [1, 2])
        with pytest.raises(UserFunctionFailed, match="could not skip to 'b'"):
            harness.watermark(2)


def test_events_without_timestamps_are_refused_in_event_time() -> None:
    with (
        _create_harness(_create_pattern()) as harness,
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

    with _create_harness(Pattern.begin("a").where(Above())) as harness:
        harness.process_all([("k", 4), ("k", 6)], [1, 2])
        harness.watermark(2)
        assert [value for value, _ in harness.values()] == ["a:6"]


def test_partial_matches_of_another_pattern_are_refused() -> None:
    first_pattern = Pattern.begin("a").where(lambda event: event[1] == 1).next("b").next("c")
    second_pattern = Pattern.begin("a").where(lambda event: event[1] == 1).one_or_more().next("b").next("c")
    with _create_harness(first_pattern) as before, _create_harness(second_pattern) as after:
        before.process(("k", 1), 1)
        before.watermark(1)
        after.restore(before.snapshot())
        with pytest.raises(UserError, match="another pattern"):
            after.watermark(2)
