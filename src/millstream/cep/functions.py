"""Functions that process matches: Flink's function classes.

Promises: the operator calls all classes of functions through the same methods.
Does not know: operators and streams."""

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
    """A function that is called with every match and yields results; it can use side outputs.

    To process timed out partial matches as well, extend `TimedOutPartialMatchHandler` too.

    Example:
        >>> from millstream.cep import CEP, Pattern
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> class Names(PatternProcessFunction):
        ...     def process_match(self, match, ctx):
        ...         yield [event["name"] for event in match["first"]]
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> events = env.from_collection([{"name": "ann"}])
        >>> names = CEP.pattern(events, Pattern.begin("first")).in_processing_time().process(Names())

    """

    Context = MatchContext

    @abstractmethod
    def process_match(self, match: Match, ctx: MatchContext) -> Iterable[Any] | None:
        """Process a match.

        Args:
            match: The events by the names of the steps, in the order of the steps.
            ctx: The timestamp of the match, the processing time, and `output(tag, value)` for side outputs.

        Returns:
            The results, in an iterable or as a generator; None for none.

        """


class TimedOutPartialMatchHandler(ABC):
    """A mix-in for a `PatternProcessFunction` that also processes partial matches that timed out.

    Example:
        >>> from millstream.datastream import OutputTag
        >>> UNPAID = OutputTag("unpaid")
        >>> class Payments(PatternProcessFunction, TimedOutPartialMatchHandler):
        ...     def process_match(self, match, ctx):
        ...         yield match["payment"][0]
        ...     def process_timed_out_match(self, match, ctx):
        ...         ctx.output(UNPAID, match["order"][0])

    """

    @abstractmethod
    def process_timed_out_match(self, match: Match, ctx: MatchContext) -> Iterable[Any] | None:
        """Process a partial match that timed out; emit results with `ctx.output(tag, value)`.

        Args:
            match: The events that were accepted so far, by the names of the steps.
            ctx: The timestamp of the timeout, the processing time, and `output(tag, value)` for side outputs.

        """


class PatternSelectFunction(Function):
    """A function that returns one result for each match.

    Example:
        >>> class Amount(PatternSelectFunction):
        ...     def select(self, match):
        ...         return sum(event["amount"] for event in match["orders"])
        >>> Amount().select({"orders": [{"amount": 3}, {"amount": 4}]})
        7

    """

    @abstractmethod
    def select(self, match: Match) -> Any:
        """Return the result of a match.

        Args:
            match: The events by the names of the steps.

        """


class PatternFlatSelectFunction(Function):
    """A function that returns any number of results for each match.

    Example:
        >>> class Orders(PatternFlatSelectFunction):
        ...     def flat_select(self, match):
        ...         yield from match["orders"]
        >>> list(Orders().flat_select({"orders": ["a", "b"]}))
        ['a', 'b']

    """

    @abstractmethod
    def flat_select(self, match: Match) -> Iterable[Any] | None:
        """Return or yield the results of a match.

        Args:
            match: The events by the names of the steps.

        """


class PatternTimeoutFunction(Function):
    """A function that returns one result for each partial match that timed out.

    Example:
        >>> class Unpaid(PatternTimeoutFunction):
        ...     def timeout(self, match, timeout_timestamp):
        ...         return match["order"][0], timeout_timestamp
        >>> Unpaid().timeout({"order": ["a"]}, 60_000)
        ('a', 60000)

    """

    @abstractmethod
    def timeout(self, match: Match, timeout_timestamp: int) -> Any:
        """Return the result for the side output.

        Args:
            match: The events that were accepted so far, by the names of the steps.
            timeout_timestamp: When the partial match timed out, in milliseconds.

        """


class PatternFlatTimeoutFunction(Function):
    """A function that returns any number of results for each partial match that timed out.

    Example:
        >>> class Unpaid(PatternFlatTimeoutFunction):
        ...     def timeout(self, match, timeout_timestamp):
        ...         yield from match["order"]
        >>> list(Unpaid().timeout({"order": ["a"]}, 60_000))
        ['a']

    """

    @abstractmethod
    def timeout(self, match: Match, timeout_timestamp: int) -> Iterable[Any] | None:
        """Return or yield the results for the side output.

        Args:
            match: The events that were accepted so far, by the names of the steps.
            timeout_timestamp: When the partial match timed out, in milliseconds.

        """


class SelectAdapter(Function):
    """Calls a select or flat-select function with matches."""

    def __init__(self, function: Any, method: str, *, flat: bool) -> None:
        self._function = function
        self._select = _find_callable(function, method)
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
        """Return the results of a match."""
        selected = self._select(match)
        return selected if self._flat else (selected,)


class SelectWithTimeoutAdapter(SelectAdapter):
    """Calls a select or flat-select function with matches, and a timeout function with partial matches."""

    def __init__(self, function: Any, method: str, tag: OutputTag, timeout: Any, *, flat: bool) -> None:
        super().__init__(function, method, flat=flat)
        self._tag, self._timeout_function = tag, timeout
        self._timeout = _find_callable(timeout, "timeout")

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
        """Emit the results of the timeout function to the side output."""
        results = self._timeout(match, ctx.timestamp())
        for value in (results or ()) if self._flat else (results,):
            ctx.output(self._tag, value)


def _find_callable(function: Any, method: str) -> Callable[..., Any]:
    target = getattr(function, method, function)
    if not callable(target):
        msg = f"{function!r} cannot be called with a match"
        raise UserError(msg, hint=f"give a function, or an object with a method '{method}'")
    return target  # type: ignore[no-any-return]
