"""Random patterns and inputs, as data.

Promises: the same seed gives the same case; patterns are valid JSON patterns, though not all make sense.
Does not know: who matches them."""

from __future__ import annotations

import random
from typing import Any

CONTIGUITIES = ("strict", "relaxed", "relaxed", "any")


def case(seed: int, *, groups: bool = True, nots: bool = True, exotic: bool = True) -> dict[str, Any]:
    """A pattern, events and the time at which the input ends. Without `exotic`: no gaps, until, skip, or greed."""
    chance = random.Random(seed)
    names = iter("abcdefghij")
    steps = _steps(chance, names, chance.randint(1, 4), depth=0, groups=groups, nots=nots, exotic=exotic)
    if chance.random() < 0.5 or steps[-1].get("contiguity") == "not_followed_by":
        steps[-1]["within_ms"] = chance.choice((3, 5, 8))
    pattern: dict[str, Any] = {"steps": steps}
    if exotic and chance.random() < 0.45:
        pattern["skip"] = _skip(chance, [step["name"] for step in steps if "name" in step] or ["a"])
    events = []
    time = 0
    for number in range(chance.randint(3, 9)):
        time += chance.choice((0, 1, 1, 1, 2, 4))
        events.append({"id": number, "ts": time, "k": chance.choice("aabbc"), "v": chance.randint(0, 4)})
    return {"seed": seed, "pattern": pattern, "events": events, "end": time + chance.choice((0, 2, 50))}


def _steps(
    chance: random.Random, names: Any, count: int, *, depth: int, groups: bool, nots: bool, exotic: bool
) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for index in range(count):
        step: dict[str, Any] = {}
        unwanted = nots and index > 0 and "optional" not in steps[-1] and chance.random() < 0.18
        before = steps[-1] if steps else {}
        zero = before.get("times", {}).get("from") == 0
        if unwanted and not zero:
            step = {"name": next(names), "contiguity": chance.choice(("not_next", "not_followed_by"))}
            step["where"] = _where(chance, [], exotic=False)
            steps.append(step)
            continue
        if groups and depth == 0 and chance.random() < 0.15:
            step["group"] = _steps(chance, names, chance.randint(1, 2), depth=1, groups=False, nots=nots, exotic=exotic)
            step["group"][0].pop("optional", None)  # a group that can be empty makes Flink hang, or go deaf
        else:
            step["name"] = next(names)
            if chance.random() < 0.93:
                step["where"] = _where(chance, [each["name"] for each in steps if "name" in each], exotic=exotic)
        if index:
            step["contiguity"] = chance.choice(CONTIGUITIES)
        _quantify(chance, step, before, exotic=exotic)
        steps.append(step)
    return steps


def _quantify(chance: random.Random, step: dict[str, Any], before: dict[str, Any], *, exotic: bool) -> None:
    if chance.random() < 0.5:
        least = chance.choice((1, 1, 2, 3))
        step["times"] = {"from": least, "to": chance.choice((None, None, least, least + 1, least + 2))}
        if exotic and chance.random() < 0.15:
            step["times"]["window_ms"] = chance.choice((1, 2, 3))
        inner = chance.choice((None, None, "consecutive", "combinations"))
        if inner:
            step["inner"] = inner
        if exotic and "group" not in step and inner != "combinations" and chance.random() < 0.35:
            step["greedy"] = True
        if exotic and step["times"]["to"] is None and chance.random() < 0.25:
            step["until"] = _where(chance, [], exotic=False)
    if chance.random() < 0.25 and "greedy" not in before:
        step["optional"] = True
    if exotic and chance.random() < 0.1:
        step["within_previous_ms"] = chance.choice((1, 2, 3))


def _where(chance: random.Random, earlier: list[str], *, exotic: bool) -> dict[str, Any]:
    if exotic and earlier and chance.random() < 0.2:
        of = chance.choice(earlier)
        function = chance.choice(("last", "sum", "count"))
        return {"field": "v", "op": ">=", "value": {"of": of, "field": "v", "function": function}}
    pick = chance.random()
    if pick < 0.7:
        return {"field": "k", "op": "==", "value": chance.choice("aabbc")}
    if pick < 0.9:
        return {"field": "v", "op": chance.choice(("<", ">=")), "value": chance.randint(1, 3)}
    return {"or": [{"field": "k", "op": "==", "value": "a"}, {"not": {"field": "v", "op": "<", "value": 3}}]}


def _skip(chance: random.Random, names: list[str]) -> dict[str, Any]:
    kind = chance.choice(
        ("SKIP_TO_NEXT", "SKIP_PAST_LAST_EVENT", "SKIP_PAST_LAST_EVENT", "SKIP_TO_FIRST", "SKIP_TO_LAST")
    )
    if kind in ("SKIP_TO_NEXT", "SKIP_PAST_LAST_EVENT"):
        return {"strategy": kind}
    skip = {"strategy": kind, "pattern": chance.choice(names)}
    return {**skip, "throw_exception_on_miss": True} if chance.random() < 0.2 else skip
