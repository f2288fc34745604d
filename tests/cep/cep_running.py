"""Runs a case on the automaton alone, as the recorder runs it on Flink's."""

from __future__ import annotations

from typing import Any

from millstream.cep.pattern import Pattern
from millstream.errors import UserError
from millstream.runtime.nfa.compile import compile_pattern
from millstream.runtime.nfa.match import Matcher


def ids(match: dict[str, list[Any]]) -> dict[str, list[int]]:
    """A match with the numbers of its events."""
    return {name: [event["id"] for event in events] for name, events in match.items()}


def run(given: dict[str, Any], *, answered: bool = False) -> list[list[Any]]:
    """What the automaton makes of a case: ["match", ids] and ["timeout", ids, time], in order.

    With `answered` all tests of an event are answered before it is matched, where they are of the event alone."""
    matcher = Matcher(compile_pattern(Pattern.from_json(given["pattern"]).plan()))
    live = matcher.initial()
    tests = matcher.transitions.tests

    def process(event: dict[str, Any]) -> list[dict[str, list[Any]]]:
        if not answered or not matcher.transitions.event_alone:
            return matcher.process(live, event, event["ts"])
        answers = sum(bool(test.function(event)) << bit for bit, test in enumerate(tests))
        return matcher.process_with_bitmask(live, event, event["ts"], answers)

    out: list[list[Any]] = []
    last = None

    def advance(time: int) -> None:
        matches, late = matcher.advance(live, time)
        out.extend(["match", ids(match)] for match in matches)
        out.extend(["timeout", ids(match), end] for match, end in late)

    for event in given["events"]:
        if event["ts"] != last:
            advance(event["ts"])
            last = event["ts"]
        out.extend(["match", ids(match)] for match in process(event))
    advance(given["end"])
    return out


def makes_sense(pattern: dict[str, Any]) -> bool:
    """Whether the pattern is one, and not refused as such."""
    try:
        compile_pattern(Pattern.from_json(pattern).plan())
    except UserError:
        return False
    return True
