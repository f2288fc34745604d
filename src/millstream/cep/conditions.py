"""Conditions of patterns: classes with Flink's names, Python functions, and expressions.

Promises: every value that `where`, `or_` and `until` of a pattern accept becomes a condition of the automaton, with its
JSON form if it has one.
Does not know: patterns and automata."""

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
    """A value that is not a condition was given as one."""

    def __init__(self, value: object, reason: str) -> None:
        super().__init__(
            f"{value!r} is not a condition: {reason}",
            hint="give a function of the event, of the event and the context, a condition object, or an expression",
        )


class IterativeCondition(ABC):
    """A condition that can read the events that the partial match has accepted so far.

    Example:
        >>> from millstream.cep import Pattern
        >>> class Rising(IterativeCondition):
        ...     def filter(self, value, ctx):
        ...         return all(earlier < value for earlier in ctx.get_events_for_pattern("rise"))
        >>> pattern = Pattern.begin("rise").where(Rising()).one_or_more()

    """

    @abstractmethod
    def filter(self, value: Any, ctx: MatchContext) -> bool:
        """Return whether the step accepts an event.

        Args:
            value: The event.
            ctx: `ctx.get_events_for_pattern(name)` returns the events that a step has accepted.

        """


class RichIterativeCondition(IterativeCondition, Function):
    """An iterative condition with `open` and `close`, which are called with those of its operator.

    Example:
        >>> class Expensive(RichIterativeCondition):
        ...     def open(self, runtime_context):
        ...         self.limit = int(runtime_context.get_job_parameter("limit", "100"))
        ...     def filter(self, value, ctx):
        ...         return value["price"] > self.limit

    """


class SimpleCondition(ABC):
    """A condition on the event alone.

    Example:
        >>> SimpleCondition.of(lambda event: event > 3).filter(5)
        True

    """

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return whether the step accepts an event.

        Args:
            value: The event.

        """

    @staticmethod
    def of(function: Callable[[Any], bool]) -> SimpleCondition:
        """Create a condition from a function of the event.

        Args:
            function: Returns whether an event is accepted.

        """
        return _FunctionCondition(function)


class _FunctionCondition(SimpleCondition):
    def __init__(self, function: Callable[[Any], bool]) -> None:
        self._function = function

    def filter(self, value: Any) -> bool:
        return self._function(value)


@dataclass(frozen=True)
class PatternCondition:
    """A condition of the automaton with its JSON form, which is None for a Python function."""

    condition: Condition
    json: dict[str, Any] | None = None

    def and_(self, other: PatternCondition) -> PatternCondition:
        """Return the conjunction of two conditions."""
        json = None if self.json is None or other.json is None else {"and": [self.json, other.json]}
        return PatternCondition(Both(self.condition, other.condition), json)

    def or_(self, other: PatternCondition) -> PatternCondition:
        """Return the disjunction of two conditions."""
        json = None if self.json is None or other.json is None else {"or": [self.json, other.json]}
        return PatternCondition(Either(self.condition, other.condition), json)


class ConditionRegistry:
    """Conditions by name, to which patterns in JSON can refer.

    Example:
        >>> from millstream.cep import Pattern
        >>> registry = ConditionRegistry(suspicious=lambda event: event.amount > 1000)
        >>> Pattern.begin("start").where(registry["suspicious"]).to_json()
        {'steps': [{'name': 'start', 'where': {'condition': 'suspicious'}}]}

    """

    def __init__(self, **conditions: Any) -> None:
        self._conditions: dict[str, PatternCondition] = {}
        for name, condition in conditions.items():
            self.register(name, condition)

    def register(self, name: str, condition: Any) -> ConditionRegistry:
        """Register a condition.

        Args:
            name: The name by which patterns refer to it.
            condition: Any value that `Pattern.where` accepts.

        Returns:
            This registry.

        """
        self._conditions[name] = PatternCondition(to_pattern_condition(condition).condition, {"condition": name})
        return self

    def __getitem__(self, name: str) -> PatternCondition:
        """Return a registered condition, for `where`, `or_` and `until`."""
        if name not in self._conditions:
            msg = f"no condition '{name}' is registered"
            raise UserError(msg, hint=f"registered conditions: {', '.join(sorted(self._conditions)) or 'none'}")
        return self._conditions[name]


def to_pattern_condition(value: Any, registry: ConditionRegistry | None = None) -> PatternCondition:
    """Convert an argument of `where`, `or_` or `until` to a condition."""
    match value:
        case PatternCondition():
            return value
        case IterativeCondition():
            return PatternCondition(Predicate(value.filter, iterative=True))
        case SimpleCondition():
            return PatternCondition(Predicate(value.filter))
        case Expression():
            return compile_expression(value, registry)
        case dict():
            return compile_expression(parse(value), registry)
    if isinstance(value, type):
        raise NotACondition(value, "it is a class; pass an instance")
    if not callable(value):
        raise NotACondition(value, f"it is of type {type(value).__name__}")
    return PatternCondition(Predicate(value, iterative=_count_arguments(value) == 2))


def compile_expression(expression: Expression, registry: ConditionRegistry | None) -> PatternCondition:
    """Compile an expression to a condition; names in it refer to the registry."""
    conditions = registry or ConditionRegistry()
    return PatternCondition(expression.condition(lambda name: conditions[name].condition), expression.to_json())


def _count_arguments(function: Callable[..., Any]) -> int:
    """Return 1 for a function of the event, 2 for a function of the event and the context."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return 1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    is_variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) > 2 or (not positional and not is_variadic):
        raise NotACondition(function, f"it takes {len(required)} arguments")
    return 2 if len(required) == 2 else 1


def find_rich_conditions(condition: Condition) -> Iterator[RichIterativeCondition]:
    """Yield the conditions in a tree that must be opened and closed."""
    match condition:
        case Predicate(function=function):
            owner = getattr(function, "__self__", None)
            if isinstance(owner, RichIterativeCondition):
                yield owner
        case Negation(of=of):
            yield from find_rich_conditions(of)
        case Both(one=one, other=other) | Either(one=one, other=other):
            yield from find_rich_conditions(one)
            yield from find_rich_conditions(other)
