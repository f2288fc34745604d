"""Watermark strategies: where timestamps come from and how watermarks are generated.

Promises: a `WatermarkStrategy` is frozen, comparable and picklable. The runtime reads its attributes, so a built-in
strategy on a named field calls no Python function for each record.
Does not know: sources, splits, and how the watermarks of several inputs are combined."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from millstream.errors import UserError
from millstream.times import EPOCH, MILLISECOND, Duration, Time, millis
from millstream.types.fields import read_field

MIN_WATERMARK = -(2**63)
"""The smallest watermark; also the timestamp of a record without a timestamp."""
MAX_WATERMARK = 2**63 - 1
"""The largest watermark, which is emitted at the end of the input."""
DEFAULT_ALIGNMENT_INTERVAL = 1000


class InvalidWatermarkStrategy(UserError, ValueError):
    """A part of a watermark strategy is not valid."""

    def __init__(self, part: str, value: object, expected: str) -> None:
        self.part, self.value, self.expected = part, value, expected
        super().__init__(f"{part} must be {expected}, not {value!r}")


@dataclass(frozen=True, slots=True, order=True)
class Watermark:
    """Declares that no records with this or an earlier timestamp are expected any more."""

    timestamp: int


class TimestampAssigner(ABC):
    """Extracts the event timestamp of a record.

    Example:
        >>> class TimeOfOrder(TimestampAssigner):
        ...     def extract_timestamp(self, value, record_timestamp):
        ...         return value["time"]
        >>> TimeOfOrder().extract_timestamp({"time": 12_000}, -1)
        12000

    """

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the timestamp in milliseconds since 1970-01-01 UTC.

        Args:
            value: The record.
            record_timestamp: The timestamp that the record already has, for example from Kafka; -2**63 if it has none.

        """


@dataclass(frozen=True)
class CallableTimestampAssigner(TimestampAssigner):
    """Calls a function of the record, or of the record and its current timestamp."""

    function: Callable[..., int]
    argument_count: int

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Call the function."""
        return self.function(value) if self.argument_count == 1 else self.function(value, record_timestamp)


@dataclass(frozen=True)
class FieldTimestampAssigner(TimestampAssigner):
    """Reads a field of the record: milliseconds, or a datetime, which is in UTC if it has no time zone."""

    field: str | int

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the value of the field in milliseconds."""
        time = read_field(value, self.field)
        if isinstance(time, datetime):
            aware = time if time.tzinfo else time.replace(tzinfo=UTC)
            return (aware - EPOCH) // MILLISECOND
        return int(time)


class WatermarkOutput(ABC):
    """Receives the watermarks of a generator."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark; it also marks the stream as active."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Mark the stream as idle: watermarks downstream do not wait for it."""

    @abstractmethod
    def mark_active(self) -> None:
        """Mark the stream as active again."""


class WatermarkGenerator(ABC):
    """Generates watermarks from the records it observes."""

    @abstractmethod
    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Observe a record; a watermark can be emitted.

        Args:
            event: The record.
            timestamp: Its timestamp.
            output: Where watermarks are emitted.

        """

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit a watermark; it is called at the auto-watermark interval."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Generates watermarks that are a fixed time behind the largest timestamp."""

    def __init__(self, max_out_of_orderness: int) -> None:
        self.bound = max_out_of_orderness
        self.max_timestamp = MIN_WATERMARK + max_out_of_orderness + 1

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Update the largest timestamp."""
        self.max_timestamp = max(self.max_timestamp, timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit the largest timestamp minus the bound minus 1."""
        output.emit_watermark(Watermark(self.max_timestamp - self.bound - 1))


class NoWatermarks(WatermarkGenerator):
    """Generates no watermarks."""

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Do nothing."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class BoundedOutOfOrderness:
    """Describes generators whose watermark is the largest timestamp minus `millis` minus 1."""

    millis: int

    def __call__(self) -> WatermarkGenerator:
        """Create a generator."""
        return BoundedOutOfOrdernessWatermarks(self.millis)


@dataclass(frozen=True)
class Monotonous(BoundedOutOfOrderness):
    """Describes generators for ascending timestamps: `BoundedOutOfOrderness` of 0."""

    millis: int = 0


@dataclass(frozen=True)
class WatermarkAlignment:
    """Describes watermark alignment.

    A source is paused if its watermark is ahead of that of its group by more than `max_drift` milliseconds.
    """

    group: str
    max_drift: int
    update_interval: int = DEFAULT_ALIGNMENT_INTERVAL


@dataclass(frozen=True)
class WatermarkStrategy:
    """Defines where timestamps come from and how watermarks are generated.

    Example:
        >>> from millstream.common import Duration, WatermarkStrategy
        >>> strategy = (
        ...     WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
        ...     .with_timestamp_assigner(lambda record, timestamp: record["time"])
        ...     .with_idleness(Duration.of_minutes(1))
        ... )

    Attributes:
        generator: None for no watermarks, a built-in description, or a callable that returns a `WatermarkGenerator`.
        timestamp_assigner: Extracts timestamps; None keeps those of the source.
        idle_timeout: The time in milliseconds after which a stream without records is idle.
        alignment: The alignment with other sources.

    """

    generator: Callable[[], WatermarkGenerator] | None = None
    timestamp_assigner: TimestampAssigner | None = None
    idle_timeout: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Create a strategy for timestamps that are ascending within each split of a source."""
        return WatermarkStrategy(Monotonous())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration | timedelta) -> WatermarkStrategy:
        """Create a strategy for records that are out of order by at most a fixed time.

        Args:
            max_out_of_orderness: The maximum time by which a record can arrive after a record with a later timestamp.

        Raises:
            InvalidWatermarkStrategy: If it is negative.

        """
        bound = millis(max_out_of_orderness)
        if bound < 0:
            raise InvalidWatermarkStrategy(part="the bound", value=max_out_of_orderness, expected="zero or positive")
        return WatermarkStrategy(BoundedOutOfOrderness(bound))

    @staticmethod
    def for_generator(generator_supplier: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Create a strategy with a user-defined generator.

        Args:
            generator_supplier: A callable without arguments that returns a generator; it is called for each split.

        Raises:
            InvalidWatermarkStrategy: If it is not callable.

        """
        _require_callable(generator_supplier)
        return WatermarkStrategy(generator_supplier)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Create a strategy without watermarks, for programs that use processing time only."""
        return WatermarkStrategy()

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[..., int] | str | int
    ) -> WatermarkStrategy:
        """Return the strategy with a timestamp assigner.

        Args:
            timestamp_assigner: A `TimestampAssigner`, a function of the record and optionally its current timestamp, or
                a field of the record by name or index.

        Raises:
            InvalidWatermarkStrategy: If it is none of these.

        """
        return replace(self, timestamp_assigner=as_timestamp_assigner(timestamp_assigner))

    def with_idleness(self, idle_timeout: Duration | Time | timedelta) -> WatermarkStrategy:
        """Return the strategy with idleness detection: watermarks do not wait for a split without records.

        Args:
            idle_timeout: How long a split must have no records to be idle.

        Raises:
            InvalidWatermarkStrategy: If the timeout is not positive.

        """
        timeout = millis(idle_timeout)
        if timeout <= 0:
            raise InvalidWatermarkStrategy(part="an idle timeout", value=idle_timeout, expected="positive")
        return replace(self, idle_timeout=timeout)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration | timedelta,
        update_interval: Duration | timedelta | None = None,
    ) -> WatermarkStrategy:
        """Return the strategy with watermark alignment: a source that is too far ahead of its group is paused.

        Args:
            watermark_group: The name of the group.
            max_allowed_watermark_drift: The maximum difference to the lowest watermark of the group.
            update_interval: How often the watermarks of the group are compared; the default is 1 second.

        """
        interval = DEFAULT_ALIGNMENT_INTERVAL if update_interval is None else millis(update_interval)
        alignment = WatermarkAlignment(watermark_group, millis(max_allowed_watermark_drift), interval)
        return replace(self, alignment=alignment)

    def create_watermark_generator(self) -> WatermarkGenerator:
        """Create a generator."""
        return NoWatermarks() if self.generator is None else self.generator()


def as_timestamp_assigner(assigner: TimestampAssigner | Callable[..., int] | str | int) -> TimestampAssigner:
    """Convert an argument of `with_timestamp_assigner` to a `TimestampAssigner`."""
    if isinstance(assigner, TimestampAssigner):
        return assigner
    if isinstance(assigner, (str, int)):
        return FieldTimestampAssigner(assigner)
    argument_count = None if not callable(assigner) or isinstance(assigner, type) else _count_arguments(assigner)
    if argument_count is None:
        expected = "a TimestampAssigner, a callable of the record and its timestamp, or a field name"
        raise InvalidWatermarkStrategy(part="a timestamp assigner", value=assigner, expected=expected)
    return CallableTimestampAssigner(assigner, argument_count)


def _require_callable(supplier: object) -> None:
    if not callable(supplier):
        expected = "a callable that returns a WatermarkGenerator"
        raise InvalidWatermarkStrategy(part="a generator supplier", value=supplier, expected=expected)


def _count_arguments(function: Callable[..., Any]) -> int | None:
    """Return 2 if the callable also accepts the current timestamp, else 1; None if it accepts neither."""
    signature = inspect.signature(function)
    for argument_count in (2, 1):
        try:
            signature.bind(*[None] * argument_count)
        except TypeError:
            continue
        return argument_count
    return None
