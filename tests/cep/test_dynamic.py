"""Patterns that come, change and go while the job runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from millstream.cep import CEP, ConditionRegistry, Pattern, PatternProcessFunction, field
from millstream.datastream import DataStream, OutputTag
from millstream.testing import OperatorHarness

REJECTED = OutputTag("rejected")


class Tell(PatternProcessFunction):
    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterator[Any]:
        events = [event["v"] for name in match for event in match[name]]
        yield f"{ctx.get_pattern_id()}@{ctx.get_pattern_version()}:{ctx.get_current_key()}:{events}"


def _harness(registry: ConditionRegistry | None = None, **options: Any) -> OperatorHarness:
    def define(events: DataStream, patterns: DataStream) -> DataStream:
        keyed = events.key_by(lambda event: event["key"])
        found = CEP.dynamic_patterns(keyed, patterns, registry).in_processing_time()
        return found.side_output_rejected_patterns(REJECTED).process(Tell())

    return OperatorHarness(define, input_types=[None, None], side_outputs=[REJECTED], **options)


def _pattern(first: int, second: int) -> dict[str, Any]:
    return Pattern.begin("a").where(field("v") == first).followed_by("b").where(field("v") == second).to_json()


def _bring(harness: OperatorHarness, name: str, version: int, pattern: dict[str, Any]) -> None:
    harness.process(json.dumps({"id": name, "version": version, "pattern": pattern}), side=1)


def _feed(harness: OperatorHarness, *values: int, key: str = "k") -> list[str]:
    harness.process_all([{"key": key, "v": value} for value in values])
    return sorted(harness.values())


def test_a_pattern_begins_when_it_comes_and_ends_when_it_goes() -> None:
    with _harness() as harness:
        assert _feed(harness, 1, 2) == []
        _bring(harness, "p", 1, _pattern(1, 2))
        assert _feed(harness, 2, 1) == []  # what came before it does not count
        _bring(harness, "q", 1, _pattern(1, 3))
        assert _feed(harness, 1, 2, 3) == ["p@1:k:[1, 2]", "p@1:k:[1, 2]", "q@1:k:[1, 3]"]
        harness.process({"id": "p", "remove": True}, side=1)
        assert _feed(harness, 1, 2) == []


def test_a_changed_pattern_starts_afresh_and_one_that_comes_again_does_not() -> None:
    with _harness() as harness:
        _bring(harness, "p", 1, _pattern(1, 2))
        _feed(harness, 1)
        _bring(harness, "p", 1, _pattern(1, 2))
        assert _feed(harness, 2) == ["p@1:k:[1, 2]"]
        _feed(harness, 1)
        _bring(harness, "p", 2, _pattern(1, 2))
        assert _feed(harness, 2) == []
        assert _feed(harness, 1, 2) == ["p@2:k:[1, 2]"]


def test_a_pattern_that_is_removed_and_comes_back_has_forgotten() -> None:
    with _harness() as harness:
        _bring(harness, "p", 1, _pattern(1, 2))
        _feed(harness, 1)
        harness.process({"id": "p", "remove": True}, side=1)
        _bring(harness, "p", 1, _pattern(1, 2))
        assert _feed(harness, 2) == []


def test_patterns_and_partial_matches_survive_restart_and_rescale() -> None:
    with _harness() as harness:
        _bring(harness, "p", 1, _pattern(1, 2))
        for key in "abcdef":
            _feed(harness, 1, key=key)
        harness.restore(harness.snapshot(), 3)
        found = [value for key in "abcdef" for value in _feed(harness, 2, key=key)]
        assert found == [f"p@1:{key}:[1, 2]" for key in "abcdef"]


def test_a_record_that_makes_no_sense_is_told_and_changes_nothing() -> None:
    bad = [
        "{",
        "[]",
        {"id": "p"},
        {"id": "p", "version": "1", "pattern": _pattern(1, 2)},
        {"id": "p", "pattern": {"steps": [{"name": "a", "where": {"condition": "unknown"}}]}},
        {"id": "p", "pattern": {"steps": [{"name": "a"}, {"name": "a", "contiguity": "strict"}]}},
    ]
    with _harness(ConditionRegistry(large=lambda event: event["v"] > 100), parallelism=2) as harness:
        _bring(harness, "p", 1, {"steps": [{"name": "a", "where": {"condition": "large"}}]})
        harness.process_all(bad, side=1)
        assert len(harness.side_output(REJECTED)) == len(bad)
        assert harness.counter("numPatternsRejected") == 2 * len(bad)
        assert _feed(harness, 5, 500) == ["p@1:k:[500]"]


def test_patterns_in_event_time_see_events_the_watermark_has_not_passed() -> None:
    def define(events: DataStream, patterns: DataStream) -> DataStream:
        return CEP.dynamic_patterns(events.key_by(lambda event: event["key"]), patterns).process(Tell())

    with OperatorHarness(define, input_types=[None, None]) as harness:
        harness.process_all([{"key": "k", "v": 2}, {"key": "k", "v": 1}], [5, 3])
        _bring(harness, "p", 1, _pattern(1, 2))
        harness.watermark(10)
        assert harness.values() == ["p@1:k:[1, 2]"]
