"""Functions over pairs and groups of two streams: window joins, co-groups and interval joins.

Promises: Flink's classes; a result is a record, or a pair (OutputTag, record) for a side output.
Does not know: how records of two streams find one another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from millstream.functions.base import Function


class TaggedUnion(NamedTuple):
    """A record of one of two streams that share windows: what assigners, triggers and evictors of a join see."""

    second: bool
    one: Any
    two: Any

    def is_one(self) -> bool:
        """Whether it is a record of the first stream."""
        return not self.second

    def is_two(self) -> bool:
        """Whether it is a record of the second stream."""
        return self.second

    def get_one(self) -> Any:
        """The record of the first stream, None for one of the second."""
        return self.one

    def get_two(self) -> Any:
        """The record of the second stream, None for one of the first."""
        return self.two


class JoinFunction(Function):
    """One record for each pair of a window."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The record that a pair amounts to."""


class FlatJoinFunction(Function):
    """Any number of records for each pair of a window."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """The records that follow from a pair."""


class CoGroupFunction(Function):
    """Any number of records for all that two streams have in a window under one key; either side may be empty."""

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """The records that follow from both groups."""


class JoinContext(ABC):
    """When a pair of an interval join happened."""

    @abstractmethod
    def get_left_timestamp(self) -> int:
        """Event time of the left record."""

    @abstractmethod
    def get_right_timestamp(self) -> int:
        """Event time of the right record."""

    @abstractmethod
    def get_timestamp(self) -> int:
        """Event time of the results: the later of both."""


class ProcessJoinFunction(Function):
    """Any number of records for each pair of an interval join."""

    Context: TypeAlias = JoinContext

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any] | None:
        """The records that follow from a pair."""
