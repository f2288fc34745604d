"""Patterns as JSON.

    {"skip": {"strategy": "SKIP_PAST_LAST_EVENT"},
     "steps": [{"name": "small", "where": {"field": "amount", "op": "<", "value": 1}, "times": {"from": 3}},
               {"name": "large", "contiguity": "relaxed", "where": ..., "within_ms": 60000}]}

A step has `name` or `group` (a list of steps), and can have `contiguity` (strict, relaxed, any, not_next,
not_followed_by), `where`, `until`, `times` ({"from", "to", "window_ms"}; without "to" exactly `from` times, with null
without a maximum), `inner` (consecutive, combinations), `optional`, `greedy`, `within_ms`, `within_previous_ms`.

Promises: `read` returns the same pattern that `write` has written. Reading checks all fields and executes nothing.
Does not know: how patterns are matched."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millstream.cep.conditions import ConditionRegistry, PatternCondition, compile_expression
from millstream.cep.expressions import InvalidExpression, parse
from millstream.cep.skip import AfterMatchSkipStrategy
from millstream.errors import UserError
from millstream.runtime.nfa.pattern import Contiguity, Skip, SkipKind

if TYPE_CHECKING:
    from millstream.cep.pattern import Pattern

MAX_BYTES = 1 << 20
MAX_STEPS = 64
MAX_TIMES = 10_000
MAX_NUMBER = 10**15

_INNER_CONTIGUITIES = {Contiguity.STRICT: "consecutive", Contiguity.ANY: "combinations"}
_METHODS = {
    "strict": "next",
    "relaxed": "followed_by",
    "any": "followed_by_any",
    "not_next": "not_next",
    "not_followed_by": "not_followed_by",
}
_STEP_FIELDS = frozenset(
    "name group contiguity where until times inner optional greedy within_ms within_previous_ms".split()  # noqa: SIM905
)

CreateFirstStep = Callable[..., "Pattern"]


class InvalidPatternJson(UserError):
    """JSON does not describe a pattern."""

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(f"{problem} at {where}")


class NotData(UserError):
    """A pattern cannot be written as JSON, because a condition is a Python function."""

    def __init__(self, step: str) -> None:
        super().__init__(
            f"a condition of '{step}' is a Python function, which cannot be written as JSON",
            hint="use field(...) expressions, or register the function in a ConditionRegistry and use registry[name]",
        )


def write(pattern: Pattern) -> dict[str, Any]:
    """Return a pattern as JSON values."""
    data: dict[str, Any] = {"steps": [_write_step(step) for step in pattern.steps()]}
    skip = pattern._skip_strategy._skip
    if skip.kind is not SkipKind.NO_SKIP:
        data["skip"] = {"strategy": skip.kind.value}
        if skip.name is not None:
            data["skip"].update(pattern=skip.name, **({"throw_exception_on_miss": True} if skip.strict else {}))
    return data


def _write_step(step: Pattern) -> dict[str, Any]:
    plan = step._to_plan_step()
    data: dict[str, Any] = {"name": plan.name}
    if step._group is not None:
        data = {"group": [_write_step(nested) for nested in step._group.steps()]}
    if step._previous is not None:
        data["contiguity"] = plan.contiguity.value
    for key, condition in (("where", step._where), ("until", step._until)):
        if condition is not None:
            data[key] = _condition_to_json(condition, plan.name)
    if plan.times is not None:
        data["times"] = {"from": plan.times.least, "to": plan.times.most}
        if plan.times.gap is not None:
            data["times"]["window_ms"] = plan.times.gap
    if plan.inner in _INNER_CONTIGUITIES:
        data["inner"] = _INNER_CONTIGUITIES[plan.inner]
    data.update({key: True for key in ("optional", "greedy") if getattr(plan, key)})
    for key, length in (("within_ms", plan.within), ("within_previous_ms", plan.within_previous)):
        if length is not None:
            data[key] = length
    return data


def _condition_to_json(condition: PatternCondition, step: str) -> dict[str, Any]:
    if condition.json is None:
        raise NotData(step)
    return condition.json


def read(data: str | bytes | dict[str, Any], registry: ConditionRegistry | None, begin: CreateFirstStep) -> Pattern:
    """Return the pattern that JSON describes."""
    if isinstance(data, str | bytes):
        if len(data) > MAX_BYTES:
            raise InvalidPatternJson(where="pattern", problem=f"{len(data)} bytes are more than {MAX_BYTES}")
        try:
            data = json.loads(data)
        except (ValueError, RecursionError) as problem:
            raise InvalidPatternJson(where="pattern", problem=f"this is not JSON ({problem})") from None
    fields = _read_object(data, "pattern", frozenset({"steps", "skip"}))
    count = [0]
    return _read_steps(fields.get("steps"), "steps", registry, begin, _read_skip(fields.get("skip")), count)


def _read_skip(data: Any) -> AfterMatchSkipStrategy:
    if data is None:
        return AfterMatchSkipStrategy.no_skip()
    fields = _read_object(data, "skip", frozenset({"strategy", "pattern", "throw_exception_on_miss"}))
    names = [kind.value for kind in SkipKind]
    name = fields.get("strategy")
    if name not in names:
        raise InvalidPatternJson(where="skip.strategy", problem=f"{name!r:.80} is not one of {', '.join(names)}")
    kind = SkipKind(name)
    if kind not in (SkipKind.SKIP_TO_FIRST, SkipKind.SKIP_TO_LAST):
        if len(fields) > 1:
            raise InvalidPatternJson(where="skip", problem=f"{name} has no other fields")
        return AfterMatchSkipStrategy(Skip(kind))
    step = _read_name(fields.get("pattern"), "skip.pattern")
    is_first = kind is SkipKind.SKIP_TO_FIRST
    strategy = AfterMatchSkipStrategy.skip_to_first(step) if is_first else AfterMatchSkipStrategy.skip_to_last(step)
    return strategy.throw_exception_on_miss() if _read_flag(fields, "throw_exception_on_miss", "skip") else strategy


def _read_steps(
    data: Any,
    where: str,
    registry: ConditionRegistry | None,
    begin: CreateFirstStep,
    skip: AfterMatchSkipStrategy | None,
    count: list[int],
) -> Pattern:
    if not isinstance(data, list) or not data:
        raise InvalidPatternJson(where=where, problem="a list of at least one step was expected")
    pattern: Pattern | None = None
    for index, step in enumerate(data):
        here = f"{where}[{index}]"
        count[0] += 1
        if count[0] > MAX_STEPS:
            raise InvalidPatternJson(where=here, problem=f"a pattern has at most {MAX_STEPS} steps")
        fields = _read_object(step, here, _STEP_FIELDS)
        if ("name" in fields) == ("group" in fields):
            raise InvalidPatternJson(where=here, problem="a step has a name or a group")
        name_or_group: Any = (
            _read_steps(fields["group"], f"{here}.group", registry, begin, None, count)
            if "group" in fields
            else _read_name(fields["name"], f"{here}.name")
        )
        contiguity = fields.get("contiguity", "strict")
        if (
            not isinstance(contiguity, str)
            or contiguity not in _METHODS
            or (pattern is None and contiguity != "strict")
        ):
            raise InvalidPatternJson(where=f"{here}.contiguity", problem=f"{contiguity!r:.80} is not possible")
        if pattern is None:
            pattern = begin(name_or_group, skip)
        else:
            pattern = getattr(pattern, _METHODS[contiguity])(name_or_group)
        _read_options(pattern, fields, here, registry)
    assert pattern is not None
    return pattern


def _read_options(pattern: Pattern, fields: dict[str, Any], here: str, registry: ConditionRegistry | None) -> None:
    if "where" in fields:
        pattern.where(_read_condition(fields["where"], f"{here}.where", registry))
    if "times" in fields:
        _read_times(pattern, fields["times"], f"{here}.times")
    inner = fields.get("inner")
    if inner is not None:
        if inner not in _INNER_CONTIGUITIES.values():
            raise InvalidPatternJson(where=f"{here}.inner", problem=f"{inner!r:.80} is not consecutive or combinations")
        (pattern.consecutive if inner == "consecutive" else pattern.allow_combinations)()
    if _read_flag(fields, "greedy", here):
        pattern.greedy()
    if _read_flag(fields, "optional", here):
        pattern.optional()
    if "until" in fields:
        pattern.until(_read_condition(fields["until"], f"{here}.until", registry))
    if "within_ms" in fields:
        pattern.within(_read_number(fields["within_ms"], f"{here}.within_ms"))
    if "within_previous_ms" in fields:
        length = _read_number(fields["within_previous_ms"], f"{here}.within_previous_ms")
        pattern.within(length, "PREVIOUS_AND_CURRENT")


def _read_times(pattern: Pattern, data: Any, where: str) -> None:
    fields = _read_object(data, where, frozenset({"from", "to", "window_ms"}))
    least = _read_number(fields.get("from"), f"{where}.from")
    most = fields.get("to", least)
    window = None if "window_ms" not in fields else _read_number(fields["window_ms"], f"{where}.window_ms")
    if most is None:
        pattern.times_or_more(_check_times(least, where), window)
    else:
        pattern.times(_check_times(least, where), _check_times(_read_number(most, f"{where}.to"), where), window)


def _check_times(times: int, where: str) -> int:
    if times > MAX_TIMES:
        raise InvalidPatternJson(where=where, problem=f"{times} times exceed the maximum of {MAX_TIMES}")
    return times


def _read_condition(data: Any, where: str, registry: ConditionRegistry | None) -> PatternCondition:
    try:
        return compile_expression(parse(data, where), registry)
    except InvalidExpression as problem:
        raise InvalidPatternJson(where=problem.where, problem=problem.problem) from None


def _read_object(data: Any, where: str, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise InvalidPatternJson(where=where, problem=f"an object was expected, not {data!r:.80}")
    unknown = sorted(str(key) for key in data if key not in known)
    if unknown:
        raise InvalidPatternJson(
            where=where, problem=f"there is no field '{unknown[0]:.80}'; fields are {', '.join(sorted(known))}"
        )
    return data


def _read_name(data: Any, where: str) -> str:
    if not isinstance(data, str) or not data:
        raise InvalidPatternJson(where=where, problem=f"a name was expected, not {data!r:.80}")
    return data


def _read_number(data: Any, where: str) -> int:
    if isinstance(data, bool) or not isinstance(data, int) or abs(data) > MAX_NUMBER:
        raise InvalidPatternJson(where=where, problem=f"an integer was expected, not {data!r:.80}")
    return data


def _read_flag(fields: dict[str, Any], key: str, where: str) -> bool:
    value = fields.get(key, False)
    if not isinstance(value, bool):
        raise InvalidPatternJson(where=f"{where}.{key}", problem=f"true or false was expected, not {value!r:.80}")
    return value
