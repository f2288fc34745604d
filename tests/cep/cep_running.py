"""Runs a case on the automaton without an operator, as the recorder does with Flink's automaton."""

from __future__ import annotations

from typing import Any

from millstream.cep.pattern import Pattern
from millstream.errors import UserError
from millstream.runtime.nfa.compile import compile_pattern
from millstream.runtime.nfa.match import Matcher


def to_ids(match: dict[str, list[Any]]) -> dict[str, list[int]]:
    """Return a match with the ids of its events."""
    return {name: [event["id"] for event in events] for name, events in match.items()}


def run(case: dict[str, Any], *, precomputed: bool = False) -> list[list[Any]]:
    """Return the results of a case, in order: ["match", ids] and ["timeout", ids, time].

    With `precomputed`, the conditions of an event are evaluated before the event is matched, if they read only the
    event."""
    matcher = Matcher(compile_pattern(Pattern.from_json(case["pattern"]).plan()))
    live = matcher.initial()
    tests = matcher.transitions.tests

    def process(event: dict[str, Any]) -> list[dict[str, list[Any]]]:
        if not precomputed or not matcher.transitions.event_alone:
            return matcher.process(live, event, event["ts"])
        bitmask = sum(bool(test.function(event)) << bit for bit, test in enumerate(tests))
        return matcher.process_with_bitmask(live, event, event["ts"], bitmask)

    results: list[list[Any]] = []
    last = None

    def advance(time: int) -> None:
        matches, timeouts = matcher.advance(live, time)
        results.extend(["match", to_ids(match)] for match in matches)
        results.extend(["timeout", to_ids(match), end] for match, end in timeouts)

    for event in case["events"]:
        if event["ts"] != last:
            advance(event["ts"])
            last = event["ts"]
        results.extend(["match", to_ids(match)] for match in process(event))
    advance(case["end"])
    return results


def is_valid(pattern: dict[str, Any]) -> bool:
    """Return whether the pattern can be compiled."""
    try:
        compile_pattern(Pattern.from_json(pattern).plan())
    except UserError:
        return False
    return True
