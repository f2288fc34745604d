"""Patterns that are added, changed and removed while the job runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from millstream.cep import CEP, ConditionRegistry, Pattern, PatternProcessFunction, field
from millstream.datastream import DataStream, OutputTag
from millstream.testing import OperatorHarness

REJECTED = OutputTag("rejected")


class FormatMatch(PatternProcessFunction):
    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterator[Any]:
        events = [event["v"] for name in match for event in match[name]]
        yield f"{ctx.get_pattern_id()}@{ctx.get_pattern_version()}:{ctx.get_current_key()}:{events}"


def _create_harness(registry: ConditionRegistry | None = None, **options: Any) -> OperatorHarness:
    def define(events: DataStream, patterns: DataStream) -> DataStream:
        keyed = events.key_by(lambda event: event["key"])
        matches = CEP.dynamic_patterns(keyed, patterns, registry).in_processing_time()
        return matches.side_output_rejected_patterns(REJECTED).process(FormatMatch())

    return OperatorHarness(define, input_types=[None, None], side_outputs=[REJECTED], **options)


def _create_pattern(first: int, second: int) -> dict[str, Any]:
    return Pattern.begin("a").where(field("v") == first).followed_by("b").where(field("v") == second).to_json()


def _add_pattern(harness: OperatorHarness, name: str, version: int, pattern: dict[str, Any]) -> None:
    harness.process(json.dumps({"id": name, "version": version, "pattern": pattern}), side=1)


def _process(harness: OperatorHarness, *values: int, key: str = "k") -> list[str]:
    harness.process_all([{"key": key, "v": value} for value in values])
    return sorted(harness.values())


def test_a_pattern_applies_from_its_addition_to_its_removal() -> None:
    with _create_harness() as harness:
        assert _process(harness, 1, 2) == []
        _add_pattern(harness, "p", 1, _create_pattern(1, 2))
        assert _process(harness, 2, 1) == []  # earlier events are not matched
        _add_pattern(harness, "q", 1, _create_pattern(1, 3))
        assert _process(harness, 1, 2, 3) == ["p@1:k:[1, 2]", "p@1:k:[1, 2]", "q@1:k:[1, 3]"]
        harness.process({"id": "p", "remove": True}, side=1)
        assert _process(harness, 1, 2) == []


def test_a_new_version_discards_partial_matches_and_an_equal_version_keeps_them() -> None:
    with _create_harness() as harness:
        _add_pattern(harness, "p", 1, _create_pattern(1, 2))
        _process(harness, 1)
        _add_pattern(harness, "p", 1, _create_pattern(1, 2))
        assert _process(harness, 2) == ["p@1:k:[1, 2]"]
        _process(harness, 1)
        _add_pattern(harness, "p", 2, _create_pattern(1, 2))
        assert _process(harness, 2) == []
        assert _process(harness, 1, 2) == ["p@2:k:[1, 2]"]


def test_removing_a_pattern_discards_its_partial_matches() -> None:
    with _create_harness() as harness:
        _add_pattern(harness, "p", 1, _create_pattern(1, 2))
        _process(harness, 1)
        harness.process({"id": "p", "remove": True}, side=1)
        _add_pattern(harness, "p", 1, _create_pattern(1, 2))
        assert _process(harness, 2) == []


def test_patterns_and_partial_matches_survive_restart_and_rescale() -> None:
    with _create_harness() as harness:
        _add_pattern(harness, "p", 1, _create_pattern(1, 2))
        for key in "abcdef":
            _process(harness, 1, key=key)
        harness.restore(harness.snapshot(), 3)
        results = [value for key in "abcdef" for value in _process(harness, 2, key=key)]
        assert results == [f"p@1:{key}:[1, 2]" for key in "abcdef"]


def test_an_invalid_record_is_reported_and_changes_nothing() -> None:
    invalid_records = [
        "{",
        "[]",
        {"id": "p"},
        {"id": "p", "version": "1", "pattern": _create_pattern(1, 2)},
        {"id": "p", "pattern": {"steps": [{"name": "a", "where": {"condition": "unknown"}}]}},
        {"id": "p", "pattern": {"steps": [{"name": "a"}, {"name": "a", "contiguity": "strict"}]}},
    ]
    with _create_harness(ConditionRegistry(large=lambda event: event["v"] > 100), parallelism=2) as harness:
        _add_pattern(harness, "p", 1, {"steps": [{"name": "a", "where": {"condition": "large"}}]})
        harness.process_all(invalid_records, side=1)
        assert len(harness.side_output(REJECTED)) == len(invalid_records)
        assert harness.counter("numPatternsRejected") == 2 * len(invalid_records)
        assert _process(harness, 5, 500) == ["p@1:k:[500]"]


def test_a_pattern_in_event_time_matches_events_that_wait_for_the_watermark() -> None:
    def define(events: DataStream, patterns: DataStream) -> DataStream:
        return CEP.dynamic_patterns(events.key_by(lambda event: event["key"]), patterns).process(FormatMatch())

    with OperatorHarness(define, input_types=[None, None]) as harness:
        harness.process_all([{"key": "k", "v": 2}, {"key": "k", "v": 1}], [5, 3])
        _add_pattern(harness, "p", 1, _create_pattern(1, 2))
        harness.watermark(10)
        assert harness.values() == ["p@1:k:[1, 2]"]
