"""Functions over pairs and groups of two streams: window joins, co-groups and interval joins.

Promises: Flink's classes; a result is a record, or a pair (OutputTag, record) for a side output.
Does not know: how records of two streams are matched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from millstream.functions.base import Function


class TaggedUnion(NamedTuple):
    """A record of one of the two streams of a window join, in the form that assigners, triggers and evictors get.

    Example:
        >>> TaggedUnion(False, "a", None).get_one()
        'a'

    """

    second: bool
    one: Any
    two: Any

    def is_one(self) -> bool:
        """Return whether it is a record of the first stream."""
        return not self.second

    def is_two(self) -> bool:
        """Return whether it is a record of the second stream."""
        return self.second

    def get_one(self) -> Any:
        """Return the record of the first stream; None for a record of the second."""
        return self.one

    def get_two(self) -> Any:
        """Return the record of the second stream; None for a record of the first."""
        return self.two


class JoinFunction(Function):
    """A function that returns one record for each pair of a window.

    Example:
        >>> class Price(JoinFunction):
        ...     def join(self, first, second):
        ...         return first["amount"] * second["rate"]
        >>> Price().join({"amount": 10}, {"rate": 2})
        20

    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """Return the result of a pair.

        Args:
            first: The record of the first stream.
            second: The record of the second stream.

        """


class FlatJoinFunction(Function):
    """A function that returns any number of records for each pair of a window.

    Example:
        >>> class Cheaper(FlatJoinFunction):
        ...     def join(self, first, second):
        ...         if second["price"] < first["price"]:
        ...             yield first["name"]
        >>> list(Cheaper().join({"name": "tea", "price": 3}, {"price": 2}))
        ['tea']

    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """Return or yield the results of a pair.

        Args:
            first: The record of the first stream.
            second: The record of the second stream.

        """


class CoGroupFunction(Function):
    """A function of all records of a key in a window of both streams; the records of one stream may be empty.

    Example:
        >>> class Unmatched(CoGroupFunction):
        ...     def co_group(self, first, second):
        ...         return [] if list(second) else list(first)
        >>> Unmatched().co_group(["a"], [])
        ['a']

    """

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """Return or yield the results of both groups.

        Args:
            first: The records of the first stream with one key in one window; there may be none.
            second: Those of the second stream.

        """


class JoinContext(ABC):
    """The context of a pair of an interval join.

    Example:
        >>> class TimeBetween(ProcessJoinFunction):
        ...     def process_element(self, left, right, ctx):
        ...         yield ctx.get_right_timestamp() - ctx.get_left_timestamp()

    """

    @abstractmethod
    def get_left_timestamp(self) -> int:
        """Return the timestamp of the left record."""

    @abstractmethod
    def get_right_timestamp(self) -> int:
        """Return the timestamp of the right record."""

    @abstractmethod
    def get_timestamp(self) -> int:
        """Return the timestamp of the results: the later one of both."""


class ProcessJoinFunction(Function):
    """A function that returns any number of records for each pair of an interval join.

    Example:
        >>> from millstream.common import Time
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> class Pair(ProcessJoinFunction):
        ...     def process_element(self, left, right, ctx):
        ...         yield left, right
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> orders = env.from_collection([("a", 1)]).key_by(lambda order: order[0])
        >>> payments = env.from_collection([("a", 2)]).key_by(lambda payment: payment[0])
        >>> pairs = orders.interval_join(payments).between(Time.seconds(-5), Time.seconds(5)).process(Pair())

    """

    Context: TypeAlias = JoinContext

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any] | None:
        """Process a pair, and return or yield results.

        Args:
            left: The record of the first stream.
            right: The record of the second stream.
            ctx: The timestamps of both records, and side outputs.

        """
