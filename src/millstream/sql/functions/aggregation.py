"""What an aggregate function is, and the table in which each is declared once.

Promises: an accumulator is a list of plain values, so it can be state; adding and taking back the same values in
any order leaves what never was. NULLs do not count unless the function says so.
Does not know: groups, windows, state; the functions themselves, which `aggregates` loads.

Who makes one says whether values will ever be taken back: MIN, MAX and their kin remember all values only then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.spark import SparkAggregate
from millstream.sql.types import data_types as t

Accumulator = list[Any]


class Aggregation(ABC):
    """One aggregate call, ready to compute."""

    name: ClassVar[str]
    doc: ClassVar[str]
    syntax: ClassVar[str] = ""
    retractable: ClassVar[bool] = True

    def __init__(self, call: AggregateCall, *, retracts: bool) -> None:
        self.call = call
        self.retracts = retracts

    @classmethod
    @abstractmethod
    def result_type(cls, kinds: Sequence[t.DataType]) -> t.DataType | None:
        """The type of the result, None when the arguments do not fit."""

    @classmethod
    def spark(cls, _call: SparkAggregate) -> str | None:
        """Spell a call in Spark SQL; None if Spark does not compute what Flink computes."""
        return None

    @abstractmethod
    def create(self) -> Accumulator:
        """The accumulator of nothing."""

    @abstractmethod
    def add(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Take values in."""

    @abstractmethod
    def retract(self, acc: Accumulator, values: tuple[Any, ...]) -> None:
        """Take values back."""

    @abstractmethod
    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        """Take another accumulator in."""

    @abstractmethod
    def value(self, acc: Accumulator) -> Any:
        """The result."""


AGGREGATES: dict[str, type[Aggregation]] = {}


def aggregate(cls: type[Aggregation]) -> type[Aggregation]:
    """Declare an aggregate function."""
    AGGREGATES[cls.name] = cls
    return cls
