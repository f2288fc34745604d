"""The interface of aggregate functions, and their registry.

Promises: an accumulator is a list of plain values, so it can be state. Adding and retracting the same values in any
order leaves the accumulator as it was. NULLs are ignored unless the function says otherwise.
Does not know: groups, windows, state; the functions themselves, which `aggregates` imports.

`retracts` says whether values can be retracted: only then MIN, MAX and others keep all values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.spark import SparkAggregate
from millstream.sql.types import data_types as t

Accumulator = list[Any]


class Aggregation(ABC):
    """An aggregate call with its logic."""

    name: ClassVar[str]
    doc: ClassVar[str]
    syntax: ClassVar[str] = ""

    def __init__(self, call: AggregateCall, *, retracts: bool) -> None:
        self.call = call
        self.retracts = retracts

    @classmethod
    @abstractmethod
    def result_type(cls, arg_types: Sequence[t.DataType]) -> t.DataType | None:
        """Return the type of the result; None if the arguments do not fit."""

    @classmethod
    def spark(cls, _call: SparkAggregate) -> str | None:
        """Spell a call in Spark SQL; None if Spark does not compute what Flink computes."""
        return None

    @abstractmethod
    def create(self) -> Accumulator:
        """Return an empty accumulator."""

    @abstractmethod
    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Add the argument values of one row."""

    @abstractmethod
    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Retract the argument values of one row."""

    @abstractmethod
    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Merge another accumulator into this one."""

    @abstractmethod
    def value(self, acc: Accumulator) -> Any:
        """Return the result of the aggregate function."""


AGGREGATES: dict[str, type[Aggregation]] = {}


def aggregate(cls: type[Aggregation]) -> type[Aggregation]:
    """Declare an aggregate function: add the class to `AGGREGATES`."""
    AGGREGATES[cls.name] = cls
    return cls
