"""Random patterns and inputs, as JSON values.

Promises: the same seed gives the same case; every pattern is a valid JSON pattern, but some are
refused when they are compiled.
Does not know: automata."""

from __future__ import annotations

import random
from typing import Any

CONTIGUITIES = ("strict", "relaxed", "relaxed", "any")


def create_case(seed: int, *, groups: bool = True, nots: bool = True, exotic: bool = True) -> dict[str, Any]:
    """Return a pattern, events, and the time at which the input ends.

    Without `exotic`, the pattern has no time between events, no until condition, no skip strategy, and is not
    greedy."""
    rng = random.Random(seed)
    names = iter("abcdefghij")
    steps = _create_steps(rng, names, rng.randint(1, 4), depth=0, groups=groups, nots=nots, exotic=exotic)
    if rng.random() < 0.5 or steps[-1].get("contiguity") == "not_followed_by":
        steps[-1]["within_ms"] = rng.choice((3, 5, 8))
    pattern: dict[str, Any] = {"steps": steps}
    if exotic and rng.random() < 0.45:
        pattern["skip"] = _create_skip(rng, [step["name"] for step in steps if "name" in step] or ["a"])
    events = []
    time = 0
    for number in range(rng.randint(3, 9)):
        time += rng.choice((0, 1, 1, 1, 2, 4))
        events.append({"id": number, "ts": time, "k": rng.choice("aabbc"), "v": rng.randint(0, 4)})
    return {"seed": seed, "pattern": pattern, "events": events, "end": time + rng.choice((0, 2, 50))}


def _create_steps(
    rng: random.Random, names: Any, count: int, *, depth: int, groups: bool, nots: bool, exotic: bool
) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for index in range(count):
        step: dict[str, Any] = {}
        is_negated = nots and index > 0 and "optional" not in steps[-1] and rng.random() < 0.18
        before = steps[-1] if steps else {}
        can_be_left_out = before.get("times", {}).get("from") == 0
        if is_negated and not can_be_left_out:
            step = {"name": next(names), "contiguity": rng.choice(("not_next", "not_followed_by"))}
            step["where"] = _create_condition(rng, [], exotic=False)
            steps.append(step)
            continue
        if groups and depth == 0 and rng.random() < 0.15:
            step["group"] = _create_steps(
                rng, names, rng.randint(1, 2), depth=1, groups=False, nots=nots, exotic=exotic
            )
            step["group"][0].pop("optional", None)  # with a group that can be empty, Flink hangs or stops matching
        else:
            step["name"] = next(names)
            if rng.random() < 0.93:
                step["where"] = _create_condition(
                    rng, [other["name"] for other in steps if "name" in other], exotic=exotic
                )
        if index:
            step["contiguity"] = rng.choice(CONTIGUITIES)
        _add_quantifier(rng, step, before, exotic=exotic)
        steps.append(step)
    return steps


def _add_quantifier(rng: random.Random, step: dict[str, Any], before: dict[str, Any], *, exotic: bool) -> None:
    if rng.random() < 0.5:
        minimum = rng.choice((1, 1, 2, 3))
        step["times"] = {"from": minimum, "to": rng.choice((None, None, minimum, minimum + 1, minimum + 2))}
        if exotic and rng.random() < 0.15:
            step["times"]["window_ms"] = rng.choice((1, 2, 3))
        inner = rng.choice((None, None, "consecutive", "combinations"))
        if inner:
            step["inner"] = inner
        if exotic and "group" not in step and inner != "combinations" and rng.random() < 0.35:
            step["greedy"] = True
        if exotic and step["times"]["to"] is None and rng.random() < 0.25:
            step["until"] = _create_condition(rng, [], exotic=False)
    if rng.random() < 0.25 and "greedy" not in before:
        step["optional"] = True
    if exotic and rng.random() < 0.1:
        step["within_previous_ms"] = rng.choice((1, 2, 3))


def _create_condition(rng: random.Random, earlier: list[str], *, exotic: bool) -> dict[str, Any]:
    if exotic and earlier and rng.random() < 0.2:
        of = rng.choice(earlier)
        function = rng.choice(("last", "sum", "count"))
        return {"field": "v", "op": ">=", "value": {"of": of, "field": "v", "function": function}}
    pick = rng.random()
    if pick < 0.7:
        return {"field": "k", "op": "==", "value": rng.choice("aabbc")}
    if pick < 0.9:
        return {"field": "v", "op": rng.choice(("<", ">=")), "value": rng.randint(1, 3)}
    return {"or": [{"field": "k", "op": "==", "value": "a"}, {"not": {"field": "v", "op": "<", "value": 3}}]}


def _create_skip(rng: random.Random, names: list[str]) -> dict[str, Any]:
    strategy = rng.choice(
        ("SKIP_TO_NEXT", "SKIP_PAST_LAST_EVENT", "SKIP_PAST_LAST_EVENT", "SKIP_TO_FIRST", "SKIP_TO_LAST")
    )
    if strategy in ("SKIP_TO_NEXT", "SKIP_PAST_LAST_EVENT"):
        return {"strategy": strategy}
    skip = {"strategy": strategy, "pattern": rng.choice(names)}
    return {**skip, "throw_exception_on_miss": True} if rng.random() < 0.2 else skip
