"""Parameters of stages: typed, with defaults and checks, by Flink ML's names.

Promises: a value that a stage cannot use is refused when it is set.
Does not know: which stage has which parameter; see `common/param.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from millstream.errors import InvalidArgument, InvalidArgumentType

T = TypeVar("T")


@dataclass(frozen=True)
class Check:
    """A condition on the value of a parameter, and its description in messages."""

    is_met: Callable[[Any], bool]
    text: str


ANYTHING = Check(lambda _: True, "any value")
NOT_EMPTY = Check(bool, "not empty")


def greater_than(bound: float) -> Check:
    """Return the condition that a number is greater than another."""
    return Check(lambda value: value > bound, f"greater than {bound}")


def at_least(bound: float) -> Check:
    """Return the condition that a number is at least another."""
    return Check(lambda value: value >= bound, f"at least {bound}")


def between(low: float, high: float) -> Check:
    """Return the condition that a number is between two others, or equal to one of them."""
    return Check(lambda value: low <= value <= high, f"from {low} to {high}")


def one_of(*values: str) -> Check:
    """Return the condition that a value is one of some."""
    return Check(lambda value: value in values, f"one of {', '.join(values)}")


@dataclass(frozen=True, eq=False)
class Param(Generic[T]):
    """A parameter of a stage.

    Attributes:
        name: The name, as in `set_<name>`.
        value_type: The class of its values; `tuple` stands for a tuple of texts.
        default: The value if none is set; None if there is none.
        check: The condition on its values.
        optional: Whether None is a value.

    Example:
        >>> from millstream.ml import KMeans
        >>> KMeans.K.name, KMeans.K.default
        ('k', 2)

    """

    name: str
    value_type: type
    default: T
    check: Check = ANYTHING
    optional: bool = False

    def conform(self, value: Any) -> Any:
        """Return a value as the parameter keeps it.

        Args:
            value: The value.

        Raises:
            InvalidArgument: The parameter cannot have it.

        """
        if value is None and self.optional:
            return None
        if self.value_type is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if self.value_type is tuple and isinstance(value, list):
            value = tuple(value)
        fits = isinstance(value, self.value_type) and (self.value_type is bool or not isinstance(value, bool))
        if self.value_type is tuple and fits:
            fits = all(isinstance(item, str) for item in value)
        if not fits:
            expected = "texts" if self.value_type is tuple else self.value_type.__name__
            msg = f"{self.name} is {value!r}"
            raise InvalidArgumentType(msg, hint=f"use a value of type {expected}")
        if not self.check.is_met(value):
            msg = f"{self.name} is {value!r}"
            raise InvalidArgument(msg, hint=f"it must be {self.check.text}")
        return value


class WithParams:
    """The base of everything that has parameters.

    Example:
        >>> from millstream.ml import KMeans
        >>> KMeans().set(KMeans.K, 3).get_k()
        3

    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def set(self, param: Param[Any], value: Any) -> Self:
        """Set a parameter.

        Args:
            param: The parameter, a constant of the class such as `KMeans.K`.
            value: The value.

        Raises:
            InvalidArgument: The stage has no such parameter, or the value is not possible.

        """
        if param not in self._params().values():
            msg = f"{type(self).__name__} has no parameter '{param.name}'"
            raise InvalidArgument(msg, hint=f"it has {', '.join(sorted(self._params()))}")
        self._values[param.name] = param.conform(value)
        return self

    def get(self, param: Param[T]) -> T:
        """Return the value of a parameter.

        Args:
            param: The parameter.

        """
        return self._values.get(param.name, param.default)  # type: ignore[no-any-return]

    def get_param(self, name: str) -> Param[Any] | None:
        """Return the parameter with a name, None if there is none.

        Args:
            name: The name.

        """
        return self._params().get(name)

    def get_param_map(self) -> dict[Param[Any], Any]:
        """Return all parameters with their values."""
        return {param: self.get(param) for param in self._params().values()}

    @classmethod
    def _params(cls) -> Mapping[str, Param[Any]]:
        constants = (vars(base).values() for base in cls.__mro__)
        return {item.name: item for values in constants for item in values if isinstance(item, Param)}

    def _copy_params(self, source: WithParams) -> Self:
        """Take over the values of the parameters that both have."""
        self._values.update({name: value for name, value in source._values.items() if name in self._params()})
        return self
