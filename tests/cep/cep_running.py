"""Runs a case on the automaton alone, as the recorder runs it on Flink's."""

from __future__ import annotations

from typing import Any

from millstream.errors import UserError
from millstream.libraries.cep.pattern import Pattern
from millstream.runtime.nfa.compile import automaton
from millstream.runtime.nfa.match import Matcher


def ids(match: dict[str, list[Any]]) -> dict[str, list[int]]:
    """A match with the numbers of its events."""
    return {name: [event["id"] for event in events] for name, events in match.items()}


def run(given: dict[str, Any]) -> list[list[Any]]:
    """What the automaton makes of a case: ["match", ids] and ["timeout", ids, time], in order."""
    matcher = Matcher(automaton(Pattern.from_json(given["pattern"]).plan()))
    live = matcher.initial()
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
        out.extend(["match", ids(match)] for match in matcher.process(live, event, event["ts"]))
    advance(given["end"])
    return out


def makes_sense(pattern: dict[str, Any]) -> bool:
    """Whether the pattern is one, and not refused as such."""
    try:
        automaton(Pattern.from_json(pattern).plan())
    except UserError:
        return False
    return True
