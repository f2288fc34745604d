"""Conditions as data: comparisons of fields, joined by and, or and not.

    {"field": "amount", "op": ">", "value": 1000}
    {"and": [{"field": "kind", "op": "in", "value": ["card", "cash"]}, {"not": {"condition": "trusted"}}]}
    {"field": "amount", "op": ">", "value": {"of": "small", "field": "amount", "function": "avg", "factor": 10}}

Promises: reading one executes nothing; what is not an expression is an `InvalidExpression` that says where. A field
that an event lacks, or whose value cannot be compared, makes a comparison false.
Does not know: patterns; conditions by name are looked up by whoever compiles."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.cep.columns import comparisons
from millstream.errors import UserError
from millstream.runtime.nfa.conditions import Both, Condition, Either, Negation, Predicate

MAX_DEPTH = 32
MAX_TERMS = 256

_Lookup = Callable[[str], Condition]
_SCALARS = (str, int, float, bool, type(None))


class InvalidExpression(UserError):
    """Data that is not an expression, or not one that makes sense."""

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(f"{problem} at {where}")


class Expression(ABC):
    """A condition as data."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The expression as plain values."""

    @abstractmethod
    def condition(self, lookup: _Lookup) -> Condition:
        """The expression as a condition of the automaton; `lookup` finds the named ones."""

    def __and__(self, other: Expression) -> Expression:
        return Joined("and", (self, other))

    def __or__(self, other: Expression) -> Expression:
        return Joined("or", (self, other))

    def __invert__(self) -> Expression:
        return Not(self)


@dataclass(frozen=True)
class Earlier:
    """A value from events taken before: a function of a field of the events of a step, times a factor."""

    of: str
    field: str
    function: str = "last"
    factor: float = 1

    def to_json(self) -> dict[str, Any]:
        """The value as plain values."""
        plain = {"of": self.of, "field": self.field, "function": self.function}
        return plain if self.factor == 1 else {**plain, "factor": self.factor}

    def value(self, context: Any) -> Any:
        """The value for the partial match at hand; None when it has no such event."""
        values = [_get(event, self.field) for event in context.get_events_for_pattern(self.of)]
        if self.function == "count":
            return len(values) * self.factor
        values = [value for value in values if value is not None]
        if not values:
            return None
        try:
            found = _FUNCTIONS[self.function](values)
            return found if self.factor == 1 else found * self.factor
        except TypeError:  # values that cannot be added or compared
            return None


_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "min": min,
    "max": max,
    "sum": sum,
    "avg": lambda values: sum(values) / len(values),
    "count": len,
}

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, values: value in values,
}


@dataclass(frozen=True)
class Comparison(Expression):
    """A field compared with a value."""

    field: str
    op: str
    value: Any

    def to_json(self) -> dict[str, Any]:
        """The expression as plain values."""
        value = self.value
        if isinstance(value, Earlier):
            value = value.to_json()
        elif isinstance(value, tuple):
            value = list(value)
        return {"field": self.field, "op": self.op, "value": value}

    def condition(self, lookup: _Lookup) -> Condition:
        """The comparison as a condition."""
        field, op, compare, value = self.field, self.op, _OPERATORS[self.op], self.value
        if isinstance(value, Earlier):
            return Predicate(lambda event, context: _compare(compare, _get(event, field), value.value(context)), True)
        return Predicate(
            lambda event: _compare(compare, _get(event, field), value),
            column=lambda batch: comparisons(batch, field, op, value),
        )


@dataclass(frozen=True)
class Joined(Expression):
    """Expressions joined by "and" or "or"."""

    word: str
    parts: tuple[Expression, ...]

    def to_json(self) -> dict[str, Any]:
        """The expression as plain values."""
        return {self.word: [part.to_json() for part in self.parts]}

    def condition(self, lookup: _Lookup) -> Condition:
        """The parts, joined."""
        join = Both if self.word == "and" else Either
        found, *rest = [part.condition(lookup) for part in self.parts]
        for each in rest:
            found = join(found, each)
        return found


@dataclass(frozen=True)
class Not(Expression):
    """The opposite of an expression."""

    of: Expression

    def to_json(self) -> dict[str, Any]:
        """The expression as plain values."""
        return {"not": self.of.to_json()}

    def condition(self, lookup: _Lookup) -> Condition:
        """The opposite."""
        return Negation(self.of.condition(lookup))


@dataclass(frozen=True)
class Named(Expression):
    """A condition that the program registered under a name."""

    name: str

    def to_json(self) -> dict[str, Any]:
        """The expression as plain values."""
        return {"condition": self.name}

    def condition(self, lookup: _Lookup) -> Condition:
        """The condition of that name."""
        return lookup(self.name)


class field:
    """A field of the event, to be compared: `where(field("amount") > 1000)`."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self._name = name

    def _compared(self, op: str, value: Any) -> Expression:
        plain = value.to_json() if isinstance(value, Earlier) else list(value) if op == "in" else value
        return parse({"field": self._name, "op": op, "value": plain})

    def __eq__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compared("==", value)

    def __ne__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compared("!=", value)

    def __lt__(self, value: Any) -> Expression:
        return self._compared("<", value)

    def __le__(self, value: Any) -> Expression:
        return self._compared("<=", value)

    def __gt__(self, value: Any) -> Expression:
        return self._compared(">", value)

    def __ge__(self, value: Any) -> Expression:
        return self._compared(">=", value)

    def is_in(self, values: Any) -> Expression:
        """Whether the field is one of some values."""
        return self._compared("in", values)


def earlier(of: str, field: str, function: str = "last", factor: float = 1) -> Earlier:
    """A value from the events that the step `of` took: first, last, min, max, sum, avg or count of a field."""
    found = _value(Earlier(of, field, function, factor).to_json(), "earlier", ">")
    assert isinstance(found, Earlier)
    return found


def parse(data: Any, where: str = "condition") -> Expression:
    """The expression that plain data describes."""
    terms = [0]
    return _parse(data, where, 0, terms)


def _parse(data: Any, where: str, depth: int, terms: list[int]) -> Expression:
    terms[0] += 1
    if depth > MAX_DEPTH or terms[0] > MAX_TERMS:
        raise InvalidExpression(where=where, problem=f"more than {MAX_DEPTH} levels or {MAX_TERMS} terms")
    if not isinstance(data, dict):
        raise InvalidExpression(where=where, problem=f"an object was expected, not {data!r:.80}")
    keys = set(data)
    if keys in ({"and"}, {"or"}):
        word = "and" if "and" in keys else "or"
        parts = data[word]
        if not isinstance(parts, list) or not parts:
            raise InvalidExpression(where=f"{where}.{word}", problem="a list of at least one expression was expected")
        return Joined(
            word, tuple(_parse(part, f"{where}.{word}[{i}]", depth + 1, terms) for i, part in enumerate(parts))
        )
    if keys == {"not"}:
        return Not(_parse(data["not"], f"{where}.not", depth + 1, terms))
    if keys == {"condition"}:
        return Named(_text(data["condition"], f"{where}.condition"))
    if keys == {"field", "op", "value"}:
        op = data["op"]
        if not isinstance(op, str) or op not in _OPERATORS:
            raise InvalidExpression(where=f"{where}.op", problem=f"{op!r:.80} is not one of {', '.join(_OPERATORS)}")
        return Comparison(_text(data["field"], f"{where}.field"), op, _value(data["value"], f"{where}.value", op))
    names = ", ".join(sorted(map(str, keys)))[:80]
    raise InvalidExpression(
        where=where, problem=f"field/op/value, and, or, not or condition was expected, not ({names})"
    )


def _value(data: Any, where: str, op: str) -> Any:
    if op == "in":
        if not isinstance(data, list) or not all(isinstance(each, _SCALARS) for each in data):
            raise InvalidExpression(where=where, problem="a list of plain values was expected")
        return tuple(data)
    if isinstance(data, _SCALARS):
        return data
    if not isinstance(data, dict) or not {"of", "field"} <= set(data) <= {"of", "field", "function", "factor"}:
        raise InvalidExpression(
            where=where, problem=f"a plain value, or of/field/function/factor was expected, not {data!r:.80}"
        )
    function, factor = data.get("function", "last"), data.get("factor", 1)
    if not isinstance(function, str) or function not in _FUNCTIONS:
        raise InvalidExpression(
            where=f"{where}.function", problem=f"{function!r:.80} is not one of {', '.join(_FUNCTIONS)}"
        )
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise InvalidExpression(where=f"{where}.factor", problem=f"a number was expected, not {factor!r:.80}")
    return Earlier(_text(data["of"], f"{where}.of"), _text(data["field"], f"{where}.field"), function, factor)


def _text(data: Any, where: str) -> str:
    if not isinstance(data, str) or not data or data.startswith("_"):
        raise InvalidExpression(where=where, problem=f"a name was expected, not {data!r:.80}")
    return data


def _get(event: Any, name: str) -> Any:
    """A field of a row, dict, object or tuple (by position); None where there is none."""
    try:
        return event[int(name)] if isinstance(event, tuple) and name.isdigit() else _named(event, name)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):  # a Row raises the last one
        return None


def _named(event: Any, name: str) -> Any:
    if isinstance(event, dict):
        return event.get(name)
    return getattr(event, name) if hasattr(event, name) else event[name]


def _compare(compare: Callable[[Any, Any], Any], one: Any, other: Any) -> bool:
    if one is None or (other is None and compare not in (operator.eq, operator.ne)):
        return compare is operator.eq and one is other
    try:
        return bool(compare(one, other))
    except TypeError:
        return False
