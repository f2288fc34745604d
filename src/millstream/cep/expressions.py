"""Conditions as JSON: comparisons of fields, combined with and, or and not.

    {"field": "amount", "op": ">", "value": 1000}
    {"and": [{"field": "kind", "op": "in", "value": ["card", "cash"]}, {"not": {"condition": "trusted"}}]}
    {"field": "amount", "op": ">", "value": {"of": "small", "field": "amount", "function": "avg", "factor": 10}}

Promises: parsing an expression executes nothing. Invalid JSON raises an `InvalidExpression` with the path of the
problem. A comparison is false if the event lacks the field, or if the values cannot be compared.
Does not know: patterns. The caller resolves conditions by name."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.cep.columns import compare_column
from millstream.errors import UserError
from millstream.runtime.nfa.conditions import Both, Condition, Either, Negation, Predicate

MAX_DEPTH = 32
MAX_TERMS = 256

_FindCondition = Callable[[str], Condition]
_SCALARS = (str, int, float, bool, type(None))


class InvalidExpression(UserError):
    """JSON does not describe an expression."""

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(f"{problem} at {where}")


class Expression(ABC):
    """A condition that can be written as JSON; combined with `&`, `|` and `~`."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the expression as JSON values."""

    @abstractmethod
    def condition(self, lookup: _FindCondition) -> Condition:
        """Return the condition of the automaton.

        Args:
            lookup: Returns the condition that is registered under a name.

        """

    def __and__(self, other: Expression) -> Expression:
        return Combination("and", (self, other))

    def __or__(self, other: Expression) -> Expression:
        return Combination("or", (self, other))

    def __invert__(self) -> Expression:
        return Not(self)


@dataclass(frozen=True)
class Earlier:
    """A value computed from the events that a step has accepted: a function of a field, multiplied by a factor."""

    of: str
    field: str
    function: str = "last"
    factor: float = 1

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON values."""
        data = {"of": self.of, "field": self.field, "function": self.function}
        return data if self.factor == 1 else {**data, "factor": self.factor}

    def value(self, context: Any) -> Any:
        """Return the value for a partial match; None if the step has no event with the field."""
        values = [_get(event, self.field) for event in context.get_events_for_pattern(self.of)]
        if self.function == "count":
            return len(values) * self.factor
        values = [value for value in values if value is not None]
        if not values:
            return None
        try:
            result = _FUNCTIONS[self.function](values)
            return result if self.factor == 1 else result * self.factor
        except TypeError:  # the values cannot be added or compared
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
    """A comparison of a field with a value."""

    field: str
    op: str
    value: Any

    def to_json(self) -> dict[str, Any]:
        """Return the expression as JSON values."""
        value = self.value
        if isinstance(value, Earlier):
            value = value.to_json()
        elif isinstance(value, tuple):
            value = list(value)
        return {"field": self.field, "op": self.op, "value": value}

    def condition(self, lookup: _FindCondition) -> Condition:
        """Return the comparison as a condition, which is evaluated for whole batches where columns allow it."""
        field, op, compare, value = self.field, self.op, _OPERATORS[self.op], self.value
        if isinstance(value, Earlier):
            return Predicate(lambda event, context: _compare(compare, _get(event, field), value.value(context)), True)
        return Predicate(
            lambda event: _compare(compare, _get(event, field), value),
            column=lambda batch: compare_column(batch, field, op, value),
        )


@dataclass(frozen=True)
class Combination(Expression):
    """Expressions that are combined with "and" or "or"."""

    connective: str
    parts: tuple[Expression, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the expression as JSON values."""
        return {self.connective: [part.to_json() for part in self.parts]}

    def condition(self, lookup: _FindCondition) -> Condition:
        """Return the combined condition."""
        combine = Both if self.connective == "and" else Either
        combined, *rest = [part.condition(lookup) for part in self.parts]
        for condition in rest:
            combined = combine(combined, condition)
        return combined


@dataclass(frozen=True)
class Not(Expression):
    """The negation of an expression."""

    of: Expression

    def to_json(self) -> dict[str, Any]:
        """Return the expression as JSON values."""
        return {"not": self.of.to_json()}

    def condition(self, lookup: _FindCondition) -> Condition:
        """Return the negated condition."""
        return Negation(self.of.condition(lookup))


@dataclass(frozen=True)
class Named(Expression):
    """A condition that the program has registered under a name."""

    name: str

    def to_json(self) -> dict[str, Any]:
        """Return the expression as JSON values."""
        return {"condition": self.name}

    def condition(self, lookup: _FindCondition) -> Condition:
        """Return the registered condition."""
        return lookup(self.name)


class field:
    """A field of the event, for comparisons.

    Unlike a Python function, the comparison can be written as JSON and evaluated for whole batches.

    Example:
        >>> (field("amount") > 1000).to_json()
        {'field': 'amount', 'op': '>', 'value': 1000}

    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self._name = name

    def _compare_with(self, op: str, value: Any) -> Expression:
        data = value.to_json() if isinstance(value, Earlier) else list(value) if op == "in" else value
        return parse({"field": self._name, "op": op, "value": data})

    def __eq__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare_with("==", value)

    def __ne__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare_with("!=", value)

    def __lt__(self, value: Any) -> Expression:
        return self._compare_with("<", value)

    def __le__(self, value: Any) -> Expression:
        return self._compare_with("<=", value)

    def __gt__(self, value: Any) -> Expression:
        return self._compare_with(">", value)

    def __ge__(self, value: Any) -> Expression:
        return self._compare_with(">=", value)

    def is_in(self, values: Any) -> Expression:
        """Return the condition that the field equals one of some values.

        Args:
            values: The accepted values.

        """
        return self._compare_with("in", values)


def earlier(of: str, field: str, function: str = "last", factor: float = 1) -> Earlier:
    """Return a value computed from the events that a step has accepted, for comparisons with a `field`.

    Args:
        of: The name of the step.
        field: The field of its events.
        function: first, last, min, max, sum, avg or count.
        factor: A number by which the result is multiplied.

    Example:
        >>> condition = field("amount") > earlier("small", "amount", "avg", factor=10)

    """
    value = _read_value(Earlier(of, field, function, factor).to_json(), "earlier", ">")
    assert isinstance(value, Earlier)
    return value


def parse(data: Any, where: str = "condition") -> Expression:
    """Return the expression that JSON values describe.

    Args:
        data: The JSON values.
        where: The path of the values, for errors.

    Raises:
        InvalidExpression: If the values do not describe an expression.

    """
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
        name = "and" if "and" in keys else "or"
        parts = data[name]
        if not isinstance(parts, list) or not parts:
            raise InvalidExpression(where=f"{where}.{name}", problem="a list of at least one expression was expected")
        return Combination(
            name, tuple(_parse(part, f"{where}.{name}[{i}]", depth + 1, terms) for i, part in enumerate(parts))
        )
    if keys == {"not"}:
        return Not(_parse(data["not"], f"{where}.not", depth + 1, terms))
    if keys == {"condition"}:
        return Named(_read_name(data["condition"], f"{where}.condition"))
    if keys == {"field", "op", "value"}:
        op = data["op"]
        if not isinstance(op, str) or op not in _OPERATORS:
            raise InvalidExpression(where=f"{where}.op", problem=f"{op!r:.80} is not one of {', '.join(_OPERATORS)}")
        return Comparison(
            _read_name(data["field"], f"{where}.field"), op, _read_value(data["value"], f"{where}.value", op)
        )
    names = ", ".join(sorted(map(str, keys)))[:80]
    raise InvalidExpression(
        where=where, problem=f"field/op/value, and, or, not or condition was expected, not ({names})"
    )


def _read_value(data: Any, where: str, op: str) -> Any:
    if op == "in":
        if not isinstance(data, list) or not all(isinstance(item, _SCALARS) for item in data):
            raise InvalidExpression(where=where, problem="a list of scalar values was expected")
        return tuple(data)
    if isinstance(data, _SCALARS):
        return data
    if not isinstance(data, dict) or not {"of", "field"} <= set(data) <= {"of", "field", "function", "factor"}:
        raise InvalidExpression(
            where=where, problem=f"a scalar value, or of/field/function/factor was expected, not {data!r:.80}"
        )
    function, factor = data.get("function", "last"), data.get("factor", 1)
    if not isinstance(function, str) or function not in _FUNCTIONS:
        raise InvalidExpression(
            where=f"{where}.function", problem=f"{function!r:.80} is not one of {', '.join(_FUNCTIONS)}"
        )
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise InvalidExpression(where=f"{where}.factor", problem=f"a number was expected, not {factor!r:.80}")
    return Earlier(_read_name(data["of"], f"{where}.of"), _read_name(data["field"], f"{where}.field"), function, factor)


def _read_name(data: Any, where: str) -> str:
    if not isinstance(data, str) or not data or data.startswith("_"):
        raise InvalidExpression(where=where, problem=f"a name was expected, not {data!r:.80}")
    return data


def _get(event: Any, name: str) -> Any:
    """Return a field of a row, dict, object or tuple (by index); None if there is none."""
    try:
        return event[int(name)] if isinstance(event, tuple) and name.isdigit() else _get_by_name(event, name)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):  # a Row raises the last one
        return None


def _get_by_name(event: Any, name: str) -> Any:
    if isinstance(event, dict):
        return event.get(name)
    return getattr(event, name) if hasattr(event, name) else event[name]


def _compare(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
    if left is None or (right is None and compare not in (operator.eq, operator.ne)):
        return compare is operator.eq and left is right
    try:
        return bool(compare(left, right))
    except TypeError:
        return False
