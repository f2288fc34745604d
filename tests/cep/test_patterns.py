"""Invalid patterns are refused by the method that makes them invalid; patterns can be written as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from millstream.cep import (
    AfterMatchSkipStrategy,
    ConditionRegistry,
    InvalidPatternJson,
    MalformedPatternException,
    NotACondition,
    NotData,
    Pattern,
    WithinType,
    earlier,
    field,
)
from millstream.common import Duration
from millstream.errors import UserError
from millstream.runtime.nfa.compile import compile_pattern
from millstream.runtime.nfa.match import Matcher


def _begin_pattern() -> Pattern:
    return Pattern.begin("a").where(lambda event: True)


MALFORMED: dict[str, Callable[[], Pattern]] = {
    "used twice": lambda: _begin_pattern().next("b").next("a"),
    "needs a time limit": lambda: _begin_pattern().not_followed_by("b"),
    "is not a looping step": lambda: _begin_pattern().until(lambda event: True),
    "already has an until": lambda: _begin_pattern().one_or_more().until(lambda event: True).until(lambda event: True),
    "cannot be optional": lambda: _begin_pattern().not_next("b").optional(),
    "follow an optional step": lambda: _begin_pattern().optional().not_next("b"),
    "cannot be optional after the greedy": lambda: _begin_pattern().one_or_more().greedy().next("b").optional(),
    "allows combinations": lambda: _begin_pattern().one_or_more().allow_combinations().greedy(),
    "occurs once, so greedy": lambda: _begin_pattern().followed_by_any("b").greedy(),
    "occurs once, so consecutive": lambda: _begin_pattern().consecutive(),
    "cannot occur 0 times": lambda: _begin_pattern().times(0),
    "from 0 to 0": lambda: _begin_pattern().times(0, 0),
    "from 3 to 2": lambda: _begin_pattern().times(3, 2),
    "cannot occur -1 times": lambda: _begin_pattern().times_or_more(-1),
    "already has a quantifier": lambda: _begin_pattern().times(2).one_or_more(),
    "cannot occur several": lambda: _begin_pattern().not_next("b").one_or_more(),
    "cannot be negative: -1 ms": lambda: _begin_pattern().within(-1),
    "longer than that of the whole": lambda: (
        _begin_pattern().next("b").within(5, WithinType.PREVIOUS_AND_CURRENT).within(Duration.of_millis(3))
    ),
    "not a step of the pattern": lambda: Pattern.begin("a", AfterMatchSkipStrategy.skip_to_first("x")),
    "where cannot be called on a group": lambda: Pattern.begin(_begin_pattern()).where(lambda event: True),
    "is a group": lambda: Pattern.begin(_begin_pattern()).one_or_more().greedy(),
    "loop without consuming": lambda: Pattern.begin("s").next(_begin_pattern().optional()).one_or_more(),
    "before a negated step are optional": lambda: Pattern.begin(_begin_pattern().optional()).not_next("b").next("c"),
    "not a valid name": lambda: Pattern.begin(""),
}


@pytest.mark.parametrize("reason", MALFORMED)
def test_an_invalid_pattern_is_refused(reason: str) -> None:
    with pytest.raises(MalformedPatternException, match=reason):
        compile_pattern(MALFORMED[reason]().plan())


@pytest.mark.parametrize("condition", [7, int, lambda: True, lambda a, b, c: True])
def test_a_value_that_cannot_be_called_with_an_event_is_refused_as_a_condition(condition: Any) -> None:
    with pytest.raises(NotACondition):
        Pattern.begin("a").where(condition)


def _find_matches(pattern: Pattern, events: list[dict[str, Any]]) -> list[dict[str, list[Any]]]:
    matcher = Matcher(compile_pattern(pattern.plan()))
    live = matcher.initial()
    return [match for time, event in enumerate(events) for match in matcher.process(live, event, time)]


def test_or_and_where_are_combined_in_the_order_of_their_calls() -> None:
    pattern = Pattern.begin("a").where(field("x") > 1).or_(field("x") == 0).where(field("y") == 1)
    matches = _find_matches(pattern, [{"x": 0, "y": 1}, {"x": 2, "y": 0}, {"x": 5, "y": 1}, {"x": 1, "y": 1}])
    assert [match["a"][0]["x"] for match in matches] == [0, 5]


def _create_pattern(registry: ConditionRegistry) -> Pattern:
    group = Pattern.begin("c").where(field("v").is_in([1, 2])).followed_by("d").optional()
    return (
        Pattern.begin("a", AfterMatchSkipStrategy.skip_to_last("b").throw_exception_on_miss())
        .where((field("v") > 3) & ~(field("k") == "x"))
        .followed_by_any("b")
        .where(registry["large"])
        .times(2, 4, 50)
        .allow_combinations()
        .next(group)
        .one_or_more()
        .until(field("v") == 0)
        .followed_by("e")
        .where(field("v") >= earlier("a", "v", "avg", factor=2))
        .within(100, WithinType.PREVIOUS_AND_CURRENT)
        .not_followed_by("f")
        .where(field("v") != 9)
        .within(1_000)
    )


def test_a_pattern_is_read_as_it_was_written() -> None:
    registry = ConditionRegistry(large=lambda event: event["v"] > 100)
    written = json.dumps(_create_pattern(registry).to_json())
    assert json.dumps(Pattern.from_json(written, registry).to_json()) == written


def test_expressions_read_earlier_events_and_are_false_for_events_without_the_field() -> None:
    pattern = Pattern.begin("a").followed_by("b").where(field("v") > earlier("a", "v", "sum", factor=2))
    matches = _find_matches(pattern, [{"v": 2}, {}, {"v": None}, {"v": "text"}, {"v": 5}])
    assert {"a": [{"v": 2}], "b": [{"v": 5}]} in matches
    assert all(match["b"] == [{"v": 5}] for match in matches)


def test_a_python_function_cannot_be_written_as_json() -> None:
    with pytest.raises(NotData, match="'a'"):
        _begin_pattern().to_json()


BAD_JSON = {
    "not JSON": "{",
    "at pattern": [],
    "at steps": {"steps": []},
    "a name or a group": {"steps": [{}]},
    "no field 'exec'": {"steps": [{"name": "a", "exec": "import os"}]},
    "is not one of ==": {"steps": [{"name": "a", "where": {"field": "v", "op": "~", "value": 1}}]},
    "a name was expected": {"steps": [{"name": "a", "where": {"field": "__class__", "op": "==", "value": 1}}]},
    "no condition 'os.system' is registered": {"steps": [{"name": "a", "where": {"condition": "os.system"}}]},
    "is not possible": {"steps": [{"name": "a", "contiguity": "any"}]},
    "an integer was expected": {"steps": [{"name": "a", "times": {"from": 1.5}}]},
    "exceed the maximum of 10000": {"steps": [{"name": "a", "times": {"from": 10**9}}]},
    "true or false": {"steps": [{"name": "a", "optional": 1}]},
    "at most 64 steps": {"steps": [{"name": f"s{i}"} for i in range(65)]},
    "is not a looping step": {"steps": [{"name": "a", "until": {"field": "v", "op": "==", "value": 1}}]},
    "SKIP_TO_NEXT has no other": {"steps": [{"name": "a"}], "skip": {"strategy": "SKIP_TO_NEXT", "pattern": "a"}},
}


@pytest.mark.parametrize("reason", BAD_JSON)
def test_invalid_json_is_refused(reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        Pattern.from_json(BAD_JSON[reason])  # type: ignore[arg-type]


def test_deeply_nested_json_is_refused() -> None:
    deep: dict[str, Any] = {"field": "v", "op": "==", "value": 1}
    for _ in range(500):
        deep = {"not": deep}
    with pytest.raises(InvalidPatternJson, match="levels"):
        Pattern.from_json({"steps": [{"name": "a", "where": deep}]})
