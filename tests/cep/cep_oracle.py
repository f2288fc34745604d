"""An independent matcher: it enumerates subsequences by the definitions of contiguity, and knows no automaton.

The definitions, as the documentation gives them. Between an event and the one taken before it lies, when the step is
strict: nothing; relaxed: nothing that fits the step; any: whatever. A repeated step applies its inner contiguity from
one occurrence to the next, and may end after each number of times it allows. An optional step may be left out. What
not_followed_by names must not be among the events between the last one taken and the next one taken; after
a step that occurs several times it must not come between its events, either. What not_next names must not be the very
next event.

Promises: all matches of patterns for which `covers` is true, each once, without skip strategies.
Does not know: order of matches, timeouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Step = dict[str, Any]
Event = dict[str, Any]


class Path(NamedTuple):
    """Events taken so far: (name, index) pairs, what must not come next, and what must not come at all."""

    taken: tuple[tuple[str, int], ...]
    nexts: tuple[Step, ...] = ()
    nots: tuple[Step, ...] = ()

    @property
    def last(self) -> int | None:
        return self.taken[-1][1] if self.taken else None


def covers(pattern: dict[str, Any]) -> bool:
    """Whether the definitions say all about a pattern; at these corners they leave it to the implementation."""
    steps = pattern["steps"]
    for before, step in zip([{}, *steps], steps, strict=False):
        unwanted = str(step.get("contiguity", "")).startswith("not_")
        often = before.get("times", {"from": 1, "to": 1})
        if unwanted and often["from"] != often["to"]:  # what ends such a step and what the not forbids is one event
            return False
        if unwanted and ("group" in before or before.get("contiguity") == "not_followed_by"):
            return False
        if before.get("contiguity") == "not_next" and unwanted:
            return False
        if "group" in step:
            inner = step["group"]
            head = inner[0]
            times = step.get("times", {"from": 1, "to": 1})
            if times["from"] != times["to"]:
                return False
            if "optional" in head or "times" in head:
                return False
            if any(str(each.get("contiguity", "")).startswith("not_") for each in inner):
                return False
    for index, step in enumerate(steps[:-1]):  # a pattern may end before it is known what must not be
        if str(step.get("contiguity", "")).startswith("not_") and all(
            "optional" in each for each in steps[index + 1 :]
        ):
            return False
    return not any("within_ms" in step for step in steps[:-1])


class _Open(Exception):
    """An event is what a step wants and what a not before it forbids: the definitions leave open what becomes of it."""


def find(given: dict[str, Any]) -> list[dict[str, list[int]]] | None:
    """All matches of a case, as ids by name; None where the definitions leave them open."""
    try:
        return list(_Search(given).matches())
    except _Open:
        return None


class _Search:
    def __init__(self, given: dict[str, Any]) -> None:
        self._steps: list[Step] = given["pattern"]["steps"]
        self._events: list[Event] = given["events"]
        self._end: int = given["end"]
        self._within: int | None = self._steps[-1].get("within_ms")

    def matches(self) -> Iterator[dict[str, list[int]]]:
        for path in self._sequence(self._steps, Path(())):
            if path.taken and self._finished(path):
                found: dict[str, list[int]] = {}
                for name, index in path.taken:
                    found.setdefault(name, []).append(self._events[index]["id"])
                yield found

    def _finished(self, path: Path) -> bool:
        first = self._events[path.taken[0][1]]["ts"]
        last = path.last
        assert last is not None
        until = last
        if path.nexts:  # the next event must be there, to be seen not to be what must not come
            until = last + 1
            if until >= len(self._events) or any(self._fits(step, until) for step in path.nexts):
                return False
        if self._within and self._events[until]["ts"] - first >= self._within:
            return False
        if path.nots:
            assert self._within is not None
            if self._end - first < self._within:
                return False
            rest = [i for i in range(last + 1, len(self._events)) if self._events[i]["ts"] - first < self._within]
            return not any(self._fits(step, i) for step in path.nots for i in rest)
        return True

    def _sequence(self, steps: list[Step], path: Path, head: str | None = None) -> Iterator[Path]:
        if not steps:
            yield path
            return
        step, rest = steps[0], steps[1:]
        contiguity = head or step.get("contiguity", "strict")
        if contiguity == "not_next":
            yield from self._sequence(rest, path._replace(nexts=(*path.nexts, step)))
        elif contiguity == "not_followed_by":
            yield from self._sequence(rest, path._replace(nots=(*path.nots, step)))
        else:
            if "optional" in step:
                yield from self._sequence(rest, path)
            following = rest[:1] if rest and rest[0].get("contiguity") == "not_followed_by" else []
            for after in self._repeated(step, contiguity, path, tuple(following)):
                yield from self._sequence(rest, after)

    def _repeated(self, step: Step, contiguity: str, path: Path, following: tuple[Step, ...]) -> Iterator[Path]:
        times = step.get("times", {"from": 1, "to": 1})
        inner = {"consecutive": "strict", "combinations": "any"}.get(step.get("inner", ""), "relaxed")
        waiting = [(0, path)]
        while waiting:
            count, before = waiting.pop()
            if count >= max(times["from"], 1):
                yield before
            if times["to"] is not None and count >= times["to"]:
                continue
            if count:
                before = before._replace(nots=following)
            how = inner if count else contiguity
            if "group" in step:
                rounds = self._sequence(step["group"], before, how)
            else:
                rounds = (self._take(step, before, index) for index in self._candidates(step, how, before))
            waiting.extend((count + 1, after) for after in rounds if after.last != before.last)

    @staticmethod
    def _take(step: Step, path: Path, index: int) -> Path:
        return Path((*path.taken, (step["name"], index)))

    def _candidates(self, step: Step, contiguity: str, path: Path) -> list[int]:
        last = path.last
        fitting = [i for i in range(0 if last is None else last + 1, len(self._events)) if self._fits(step, i)]
        if last is not None and contiguity == "strict":
            fitting = [i for i in fitting if i == last + 1]
        elif last is not None and contiguity == "relaxed":
            fitting = fitting[:1]
        return [i for i in fitting if last is None or self._allowed(path, last, i)]

    def _allowed(self, path: Path, last: int, index: int) -> bool:
        if any(self._fits(step, last + 1) for step in path.nexts):
            return False
        if any(self._fits(step, i) for step in path.nots for i in range(last + 1, index)):
            return False
        if any(self._fits(step, index) for step in path.nots):
            raise _Open
        return True

    def _fits(self, step: Step, index: int) -> bool:
        return "where" not in step or _holds(step["where"], self._events[index])


def _holds(where: dict[str, Any], event: Event) -> bool:
    if "and" in where:
        return all(_holds(part, event) for part in where["and"])
    if "or" in where:
        return any(_holds(part, event) for part in where["or"])
    if "not" in where:
        return not _holds(where["not"], event)
    value, other = event[where["field"]], where["value"]
    return {
        "==": value == other,
        "!=": value != other,
        "<": value < other,
        "<=": value <= other,
        ">": value > other,
        ">=": value >= other,
    }[where["op"]]
