"""An independent matcher, which enumerates subsequences by the definitions of contiguity and uses no automaton.

The definitions are those of Flink's documentation. Between an event and the previous event of the match there is, if
the step is strict: no event; if it is relaxed: no event that matches the step; if it is any: any number of events. A
repeated step applies its inner contiguity from one occurrence to the next, and may end after each allowed number of
occurrences. An optional step may be left out. The step of not_followed_by must not match an event between the previous
and the next event of the match; after a repeated step, it must not match an event between the occurrences of that step
either. The step of not_next must not match the event that directly follows.

Promises: all matches of patterns for which `covers` is true, each once, without skip strategies.
Does not know: order of matches, timeouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Step = dict[str, Any]
Event = dict[str, Any]


class Path(NamedTuple):
    """A partial match: (name, index) pairs, the steps that the next event must not match, and the steps that no event
    up to the next accepted one may match."""

    accepted: tuple[tuple[str, int], ...]
    not_next: tuple[Step, ...] = ()
    not_followed: tuple[Step, ...] = ()

    @property
    def last(self) -> int | None:
        return self.accepted[-1][1] if self.accepted else None


def covers(pattern: dict[str, Any]) -> bool:
    """Return whether the definitions determine all matches of a pattern; some combinations depend on the
    implementation."""
    steps = pattern["steps"]
    for before, step in zip([{}, *steps], steps, strict=False):
        is_negated = str(step.get("contiguity", "")).startswith("not_")
        repetitions = before.get("times", {"from": 1, "to": 1})
        # One event could end the repeated step and be the negated one.
        if is_negated and repetitions["from"] != repetitions["to"]:
            return False
        if is_negated and ("group" in before or before.get("contiguity") == "not_followed_by"):
            return False
        if before.get("contiguity") == "not_next" and is_negated:
            return False
        if "group" in step:
            inner = step["group"]
            head = inner[0]
            times = step.get("times", {"from": 1, "to": 1})
            if times["from"] != times["to"]:
                return False
            if "optional" in head or "times" in head:
                return False
            if any(str(inner_step.get("contiguity", "")).startswith("not_") for inner_step in inner):
                return False
    for index, step in enumerate(steps[:-1]):  # if the following steps are left out, the negated step is the last one
        if str(step.get("contiguity", "")).startswith("not_") and all(
            "optional" in inner_step for inner_step in steps[index + 1 :]
        ):
            return False
    return not any("within_ms" in step for step in steps[:-1])


class _Undetermined(Exception):
    """An event matches a step and the negated step before it; the definitions do not say which of them counts."""


def find_matches(case: dict[str, Any]) -> list[dict[str, list[int]]] | None:
    """Return all matches of a case, as event ids by step name; None if the definitions do not determine them."""
    try:
        return list(_Search(case).matches())
    except _Undetermined:
        return None


class _Search:
    def __init__(self, case: dict[str, Any]) -> None:
        self._steps: list[Step] = case["pattern"]["steps"]
        self._events: list[Event] = case["events"]
        self._end: int = case["end"]
        self._within: int | None = self._steps[-1].get("within_ms")

    def matches(self) -> Iterator[dict[str, list[int]]]:
        for path in self._match_steps(self._steps, Path(())):
            if path.accepted and self._is_finished(path):
                match: dict[str, list[int]] = {}
                for name, index in path.accepted:
                    match.setdefault(name, []).append(self._events[index]["id"])
                yield match

    def _is_finished(self, path: Path) -> bool:
        first = self._events[path.accepted[0][1]]["ts"]
        last = path.last
        assert last is not None
        until = last
        if path.not_next:  # the match is complete only when the next event exists and does not match
            until = last + 1
            if until >= len(self._events) or any(self._matches(step, until) for step in path.not_next):
                return False
        if self._within and self._events[until]["ts"] - first >= self._within:
            return False
        if path.not_followed:
            assert self._within is not None
            if self._end - first < self._within:
                return False
            rest = [i for i in range(last + 1, len(self._events)) if self._events[i]["ts"] - first < self._within]
            return not any(self._matches(step, i) for step in path.not_followed for i in rest)
        return True

    def _match_steps(self, steps: list[Step], path: Path, head: str | None = None) -> Iterator[Path]:
        if not steps:
            yield path
            return
        step, rest = steps[0], steps[1:]
        contiguity = head or step.get("contiguity", "strict")
        if contiguity == "not_next":
            yield from self._match_steps(rest, path._replace(not_next=(*path.not_next, step)))
        elif contiguity == "not_followed_by":
            yield from self._match_steps(rest, path._replace(not_followed=(*path.not_followed, step)))
        else:
            if "optional" in step:
                yield from self._match_steps(rest, path)
            following = rest[:1] if rest and rest[0].get("contiguity") == "not_followed_by" else []
            for longer_path in self._repeat(step, contiguity, path, tuple(following)):
                yield from self._match_steps(rest, longer_path)

    def _repeat(self, step: Step, contiguity: str, path: Path, following: tuple[Step, ...]) -> Iterator[Path]:
        times = step.get("times", {"from": 1, "to": 1})
        inner = {"consecutive": "strict", "combinations": "any"}.get(step.get("inner", ""), "relaxed")
        unfinished = [(0, path)]
        while unfinished:
            count, before = unfinished.pop()
            if count >= max(times["from"], 1):
                yield before
            if times["to"] is not None and count >= times["to"]:
                continue
            if count:
                before = before._replace(not_followed=following)
            next_contiguity = inner if count else contiguity
            if "group" in step:
                rounds = self._match_steps(step["group"], before, next_contiguity)
            else:
                rounds = (
                    self._append(step, before, index) for index in self._find_candidates(step, next_contiguity, before)
                )
            unfinished.extend((count + 1, after) for after in rounds if after.last != before.last)

    @staticmethod
    def _append(step: Step, path: Path, index: int) -> Path:
        return Path((*path.accepted, (step["name"], index)))

    def _find_candidates(self, step: Step, contiguity: str, path: Path) -> list[int]:
        last = path.last
        candidates = [i for i in range(0 if last is None else last + 1, len(self._events)) if self._matches(step, i)]
        if last is not None and contiguity == "strict":
            candidates = [i for i in candidates if i == last + 1]
        elif last is not None and contiguity == "relaxed":
            candidates = candidates[:1]
        return [i for i in candidates if last is None or self._is_allowed(path, last, i)]

    def _is_allowed(self, path: Path, last: int, index: int) -> bool:
        if any(self._matches(step, last + 1) for step in path.not_next):
            return False
        if any(self._matches(step, i) for step in path.not_followed for i in range(last + 1, index)):
            return False
        if any(self._matches(step, index) for step in path.not_followed):
            raise _Undetermined
        return True

    def _matches(self, step: Step, index: int) -> bool:
        return "where" not in step or _evaluate(step["where"], self._events[index])


def _evaluate(where: dict[str, Any], event: Event) -> bool:
    if "and" in where:
        return all(_evaluate(part, event) for part in where["and"])
    if "or" in where:
        return any(_evaluate(part, event) for part in where["or"])
    if "not" in where:
        return not _evaluate(where["not"], event)
    value, other = event[where["field"]], where["value"]
    return {
        "==": value == other,
        "!=": value != other,
        "<": value < other,
        "<=": value <= other,
        ">": value > other,
        ">=": value >= other,
    }[where["op"]]
