"""What is done with matches: Flink's function classes.

Promises: every kind of function becomes one object that the operator can call.
Does not know: operators, streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from millstream.errors import UserError
from millstream.functions import Function
from millstream.runtime.operators.cep import MatchContext
from millstream.state_descriptors.output_tag import OutputTag

Match = dict[str, list[Any]]


class PatternProcessFunction(Function):
    """Is called with every match; what it yields are the results."""

    Context = MatchContext

    @abstractmethod
    def process_match(self, match: Match, ctx: MatchContext) -> Iterable[Any] | None:
        """The results of a match; `match` has the events by the names of the steps."""


class TimedOutPartialMatchHandler(ABC):
    """For a PatternProcessFunction that also wants partial matches whose time is over."""

    @abstractmethod
    def process_timed_out_match(self, match: Match, ctx: MatchContext) -> Iterable[Any] | None:
        """A partial match; send what is to be told of it with `ctx.output(tag, value)`."""


class PatternSelectFunction(Function):
    """One result per match."""

    @abstractmethod
    def select(self, match: Match) -> Any:
        """The result."""


class PatternFlatSelectFunction(Function):
    """Any number of results per match."""

    @abstractmethod
    def flat_select(self, match: Match) -> Iterable[Any] | None:
        """The results."""


class PatternTimeoutFunction(Function):
    """One result per partial match whose time is over."""

    @abstractmethod
    def timeout(self, match: Match, timeout_timestamp: int) -> Any:
        """The result for the side output."""


class PatternFlatTimeoutFunction(Function):
    """Any number of results per partial match whose time is over."""

    @abstractmethod
    def timeout(self, match: Match, timeout_timestamp: int) -> Iterable[Any] | None:
        """The results for the side output."""


class Selecting(Function):
    """select or flat_select, without timeouts."""

    def __init__(self, function: Any, method: str, *, flat: bool) -> None:
        self._function = function
        self._select = _callable(function, method)
        self._flat = flat

    def open(self, runtime_context: Any) -> None:
        """Open the user's function."""
        if isinstance(self._function, Function):
            self._function.open(runtime_context)

    def close(self) -> None:
        """Close the user's function."""
        if isinstance(self._function, Function):
            self._function.close()

    def process_match(self, match: Match, ctx: MatchContext) -> Iterable[Any] | None:
        """The results of a match."""
        found = self._select(match)
        return found if self._flat else (found,)


class SelectingWithTimeout(Selecting):
    """select or flat_select, with partial matches to a side output."""

    def __init__(self, function: Any, method: str, tag: OutputTag, timeout: Any, *, flat: bool) -> None:
        super().__init__(function, method, flat=flat)
        self._tag, self._timeout_function = tag, timeout
        self._timeout = _callable(timeout, "timeout")

    def open(self, runtime_context: Any) -> None:
        """Open both functions."""
        super().open(runtime_context)
        if isinstance(self._timeout_function, Function):
            self._timeout_function.open(runtime_context)

    def close(self) -> None:
        """Close both functions."""
        super().close()
        if isinstance(self._timeout_function, Function):
            self._timeout_function.close()

    def process_timed_out_match(self, match: Match, ctx: MatchContext) -> None:
        """Send what the timeout function says to the side output."""
        found = self._timeout(match, ctx.timestamp())
        for value in (found or ()) if self._flat else (found,):
            ctx.output(self._tag, value)


def _callable(function: Any, method: str) -> Callable[..., Any]:
    found = getattr(function, method, function)
    if not callable(found):
        msg = f"{function!r} cannot be called with a match"
        raise UserError(msg, hint=f"give a function, or an object with a method '{method}'")
    return found  # type: ignore[no-any-return]
