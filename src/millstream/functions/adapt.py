"""Adapts a user's argument to the function class that an operator calls.

Promises: the result is an instance of the function class. Operators call a plain callable directly, without a wrapper
call. Any other argument is refused; the error names what was passed and what is accepted.
Does not know: which operator uses the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from millstream.errors import UserError
from millstream.functions.base import Function
from millstream.functions.elements import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
)
from millstream.functions.join import CoGroupFunction, JoinFunction

F = TypeVar("F", bound=Function)


class WrongFunctionType(UserError, TypeError):
    """An argument is not a function of the required class."""

    def __init__(self, given: object, function_class: type[Function], *, reason: str, hint: str) -> None:
        self.given, self.function_class = given, function_class
        adapter = ADAPTERS.get(function_class)
        callables = f" or a callable of {_arguments(adapter.arity)}" if adapter else ""
        accepted = f"{_article(function_class.__name__)} {function_class.__name__}{callables}"
        super().__init__(f"{accepted} is taken, but {reason}", hint=hint)


class CallableFunction:
    """A callable that is the only method of a function class."""

    method: ClassVar[str]
    arity: ClassVar[int]

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        setattr(self, self.method, function)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.function))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.function, '__qualname__', self.function)})"


class CallableMap(CallableFunction, MapFunction):
    """A callable as a `MapFunction`."""

    method, arity = "map", 1

    def map(self, value: Any) -> Any:
        """Return the result of the callable."""
        return self.function(value)


class CallableFlatMap(CallableFunction, FlatMapFunction):
    """A callable as a `FlatMapFunction`."""

    method, arity = "flat_map", 1

    def flat_map(self, value: Any) -> Any:
        """Return the result of the callable."""
        return self.function(value)


class CallableFilter(CallableFunction, FilterFunction):
    """A callable as a `FilterFunction`."""

    method, arity = "filter", 1

    def filter(self, value: Any) -> Any:
        """Return the result of the callable."""
        return self.function(value)


class CallableReduce(CallableFunction, ReduceFunction):
    """A callable as a `ReduceFunction`."""

    method, arity = "reduce", 2

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Return the result of the callable."""
        return self.function(value1, value2)


class CallableKeySelector(CallableFunction, KeySelector):
    """A callable as a `KeySelector`."""

    method, arity = "get_key", 1

    def get_key(self, value: Any) -> Any:
        """Return the result of the callable."""
        return self.function(value)


class CallablePartitioner(CallableFunction, Partitioner):
    """A callable as a `Partitioner`."""

    method, arity = "partition", 2

    def partition(self, key: Any, num_partitions: int) -> Any:
        """Return the result of the callable."""
        return self.function(key, num_partitions)


class CallableJoin(CallableFunction, JoinFunction):
    """A callable as a `JoinFunction`."""

    method, arity = "join", 2

    def join(self, first: Any, second: Any) -> Any:
        """Return the result of the callable."""
        return self.function(first, second)


class CallableCoGroup(CallableFunction, CoGroupFunction):
    """A callable as a `CoGroupFunction`."""

    method, arity = "co_group", 2

    def co_group(self, first: Any, second: Any) -> Any:
        """Return the result of the callable."""
        return self.function(first, second)


_ONE_RESULT: dict[type[Function], str] = {
    MapFunction: "map",
    FilterFunction: "filter",
    ReduceFunction: "reduce",
    KeySelector: "get_key",
}
ADAPTERS: dict[type[Function], type[CallableFunction]] = {
    MapFunction: CallableMap,
    FlatMapFunction: CallableFlatMap,
    FilterFunction: CallableFilter,
    ReduceFunction: CallableReduce,
    KeySelector: CallableKeySelector,
    Partitioner: CallablePartitioner,
    JoinFunction: CallableJoin,
    CoGroupFunction: CallableCoGroup,
}


def as_function(value: object, function_class: Callable[..., F]) -> F:
    """Return `value` as an instance of a function class: itself, or a wrapped callable if the class has one method.

    as_function(lambda v: v + 1, MapFunction).map(1)
    """
    # the parameter is typed as a constructor, because mypy refuses abstract classes for type[F]
    return cast(F, _as_function(value, cast("type[Function]", function_class)))


def _as_function(value: object, function_class: type[Function]) -> object:
    if isinstance(value, function_class):
        _refuse_generator(value, getattr(value, _ONE_RESULT.get(function_class, ""), None), function_class)
        return value
    if isinstance(value, type) and issubclass(value, Function):
        reason = f"the class {value.__name__} itself was given"
        raise WrongFunctionType(value, function_class, reason=reason, hint=f"pass an instance: {value.__name__}()")
    if isinstance(value, Function):
        reason = f"{_article(_class_name(value))} {_class_name(value)} was given"
        raise WrongFunctionType(
            value, function_class, reason=reason, hint=f"subclass {function_class.__name__}, or call another operation"
        )
    adapter = ADAPTERS.get(function_class)
    if adapter is None or not callable(value):
        reason = f"{value!r} of type {type(value).__name__} was given"
        raise WrongFunctionType(
            value, function_class, reason=reason, hint=f"subclass {function_class.__name__} and pass an instance"
        )
    if not _accepts_arguments(value, adapter.arity):
        reason = f"{getattr(value, '__qualname__', repr(value))} cannot be called with {_arguments(adapter.arity)}"
        raise WrongFunctionType(value, function_class, reason=reason, hint="change its parameters")
    _refuse_generator(value, value, function_class)
    return adapter(value)


def _refuse_generator(value: object, function: object, function_class: type[Function]) -> None:
    """Refuse a function with `yield` where one result is needed: its result would be a generator."""
    if function_class in _ONE_RESULT and inspect.isgeneratorfunction(function):
        reason = f"{getattr(function, '__qualname__', repr(value))} has a yield, so it returns a generator"
        hint = "write return instead of yield, or use flat_map, which takes any number of results"
        raise WrongFunctionType(value, function_class, reason=reason, hint=hint)


def _accepts_arguments(function: Callable[..., Any], arity: int) -> bool:
    """Return whether it can be called with so many positional arguments; True if that is unknown."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have no signature
        return True
    try:
        signature.bind(*[None] * arity)
    except TypeError:
        return False
    return True


def _class_name(function: Function) -> str:
    """Return the name of the nearest base class that millstream defines."""
    return next(cls.__name__ for cls in type(function).__mro__ if cls.__module__.startswith("millstream."))


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _article(noun: str) -> str:
    return "an" if noun[0] in "AEIOU" else "a"
