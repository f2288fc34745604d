"""Conditions of patterns: classes with Flink's names, plain functions, and expressions as data.

Promises: whatever a pattern's `where`, `or_` and `until` accept becomes one condition of the automaton, with its JSON
where it has one.
Does not know: patterns, automata."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.cep.expressions import Expression, parse
from millstream.errors import UserError
from millstream.functions import Function
from millstream.runtime.nfa.conditions import Both, Condition, Either, MatchContext, Negation, Predicate


class NotACondition(UserError):
    """Something that cannot be asked about an event was given as a condition."""

    def __init__(self, value: object, reason: str) -> None:
        super().__init__(
            f"{value!r} is not a condition: {reason}",
            hint="give a function of the event, of the event and the context, a condition object, or an expression",
        )


class IterativeCondition(ABC):
    """A condition that may look at the events matched so far."""

    @abstractmethod
    def filter(self, value: Any, ctx: MatchContext) -> bool:
        """Whether the event is taken; `ctx.get_events_for_pattern(name)` are the events taken before."""


class RichIterativeCondition(IterativeCondition, Function):
    """An iterative condition that is opened and closed with its operator."""


class SimpleCondition(ABC):
    """A condition on the event alone."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether the event is taken."""

    @staticmethod
    def of(function: Callable[[Any], bool]) -> SimpleCondition:
        """A function as a condition."""
        return _FunctionCondition(function)


class _FunctionCondition(SimpleCondition):
    def __init__(self, function: Callable[[Any], bool]) -> None:
        self._function = function

    def filter(self, value: Any) -> bool:
        return self._function(value)


@dataclass(frozen=True)
class Given:
    """A condition of the automaton, and its JSON where it has one."""

    condition: Condition
    json: dict[str, Any] | None = None

    def and_(self, other: Given) -> Given:
        """Both."""
        joined = None if self.json is None or other.json is None else {"and": [self.json, other.json]}
        return Given(Both(self.condition, other.condition), joined)

    def or_(self, other: Given) -> Given:
        """One of both."""
        joined = None if self.json is None or other.json is None else {"or": [self.json, other.json]}
        return Given(Either(self.condition, other.condition), joined)


class ConditionRegistry:
    """Conditions by name: what patterns as data may refer to.

    registry = ConditionRegistry(suspicious=lambda event: event.amount > 1000)
    Pattern.begin("start").where(registry["suspicious"])
    """

    def __init__(self, **conditions: Any) -> None:
        self._conditions: dict[str, Given] = {}
        for name, condition in conditions.items():
            self.register(name, condition)

    def register(self, name: str, condition: Any) -> ConditionRegistry:
        """Let patterns use a condition by this name."""
        self._conditions[name] = Given(as_given(condition).condition, {"condition": name})
        return self

    def __getitem__(self, name: str) -> Given:
        """The condition of a name, for `where`, `or_` and `until`."""
        if name not in self._conditions:
            msg = f"there is no condition '{name}'"
            raise UserError(msg, hint=f"registered are {', '.join(sorted(self._conditions)) or 'none'}")
        return self._conditions[name]


def as_given(value: Any, registry: ConditionRegistry | None = None) -> Given:
    """What `where` was given as a condition."""
    match value:
        case Given():
            return value
        case IterativeCondition():
            return Given(Predicate(value.filter, iterative=True))
        case SimpleCondition():
            return Given(Predicate(value.filter))
        case Expression():
            return value_of(value, registry)
        case dict():
            return value_of(parse(value), registry)
    if isinstance(value, type):
        raise NotACondition(value, "it is a class; pass an instance")
    if not callable(value):
        raise NotACondition(value, f"it is of type {type(value).__name__}")
    return Given(Predicate(value, iterative=_arity(value) == 2))


def value_of(expression: Expression, registry: ConditionRegistry | None) -> Given:
    """An expression as a condition; the names in it are those of the registry."""
    known = registry or ConditionRegistry()
    return Given(expression.condition(lambda name: known[name].condition), expression.to_json())


def _arity(function: Callable[..., Any]) -> int:
    """1 for a function of the event, 2 for one that wants the context too."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return 1
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = [each for each in positional if each.default is each.empty]
    variadic = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if len(required) > 2 or (not positional and not variadic):
        raise NotACondition(function, f"it takes {len(required)} arguments")
    return 2 if len(required) == 2 else 1


def rich_conditions(condition: Condition) -> Iterator[RichIterativeCondition]:
    """The conditions in a tree that want to be opened."""
    match condition:
        case Predicate(function=function):
            owner = getattr(function, "__self__", None)
            if isinstance(owner, RichIterativeCondition):
                yield owner
        case Negation(of=of):
            yield from rich_conditions(of)
        case Both(one=one, other=other) | Either(one=one, other=other):
            yield from rich_conditions(one)
            yield from rich_conditions(other)
