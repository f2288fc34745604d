"""Watermarks: how a stream tells how far event time has come.

Promises: a `WatermarkStrategy` is frozen, comparable and picklable; the runtime reads its attributes, so built-in
strategies over a named field never call Python per record.
Does not know: sources, splits, or how watermarks of several inputs combine."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from millstream.errors import UserError
from millstream.times import Duration, Time, millis
from millstream.types.fields import field_of

MIN_WATERMARK = -(2**63)
"""Before any time; also the timestamp of a record that has none."""
MAX_WATERMARK = 2**63 - 1
"""After all time: sent when input has ended."""
DEFAULT_ALIGNMENT_INTERVAL = 1000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class InvalidWatermarkStrategy(UserError, ValueError):
    """A part of a watermark strategy that cannot work."""

    def __init__(self, part: str, given: object, taken: str) -> None:
        self.part, self.given, self.taken = part, given, taken
        super().__init__(f"{part} must be {taken}, not {given!r}")


@dataclass(frozen=True, slots=True, order=True)
class Watermark:
    """The promise that no record with this timestamp or an earlier one follows."""

    timestamp: int


class TimestampAssigner(ABC):
    """Takes the event time out of a record."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Milliseconds since 1970 in UTC; `record_timestamp` is the one the record has, or -2**63."""


@dataclass(frozen=True)
class CallableTimestampAssigner(TimestampAssigner):
    """A callable of the record, or of the record and its present timestamp."""

    function: Callable[..., int]
    arity: int

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """What the callable returns."""
        return self.function(value) if self.arity == 1 else self.function(value, record_timestamp)


@dataclass(frozen=True)
class FieldTimestampAssigner(TimestampAssigner):
    """A field of the record: whole milliseconds, or a datetime (in UTC where it names no zone)."""

    field: str | int

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The value of the field."""
        time = field_of(value, self.field)
        if isinstance(time, datetime):
            aware = time if time.tzinfo else time.replace(tzinfo=UTC)
            return (aware - _EPOCH) // _MILLISECOND
        return int(time)


class WatermarkOutput(ABC):
    """Where a generator puts its watermarks."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark; it also ends idleness."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Do not wait for this stream any more."""

    @abstractmethod
    def mark_active(self) -> None:
        """Wait for this stream again."""


class WatermarkGenerator(ABC):
    """Makes watermarks from the records seen."""

    @abstractmethod
    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        """A record passes by."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Time to emit, as often as the auto-watermark interval says."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Follows the largest timestamp at a distance."""

    def __init__(self, max_out_of_orderness: int) -> None:
        self.bound = max_out_of_orderness
        self.max_timestamp = MIN_WATERMARK + max_out_of_orderness + 1

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Remember the largest timestamp."""
        self.max_timestamp = max(self.max_timestamp, timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """The largest timestamp, less the bound, less one."""
        output.emit_watermark(Watermark(self.max_timestamp - self.bound - 1))


class NoWatermarks(WatermarkGenerator):
    """Emits nothing."""

    def on_event(self, event: Any, timestamp: int, output: WatermarkOutput) -> None:
        """Nothing."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Nothing."""


@dataclass(frozen=True)
class BoundedOutOfOrderness:
    """Watermarks of the largest timestamp less `millis` less one."""

    millis: int

    def __call__(self) -> WatermarkGenerator:
        """A generator that has seen nothing."""
        return BoundedOutOfOrdernessWatermarks(self.millis)


@dataclass(frozen=True)
class Monotonous(BoundedOutOfOrderness):
    """`BoundedOutOfOrderness` of 0: timestamps only rise."""

    millis: int = 0


@dataclass(frozen=True)
class WatermarkAlignment:
    """Sources of one group do not run ahead of one another by more than `max_drift` milliseconds."""

    group: str
    max_drift: int
    update_interval: int = DEFAULT_ALIGNMENT_INTERVAL


@dataclass(frozen=True)
class WatermarkStrategy:
    """Where timestamps come from and how watermarks follow them.

    `generator` is None for no watermarks, a built-in description, or any callable that makes a
    `WatermarkGenerator`; `idle_timeout` is in milliseconds."""

    generator: Callable[[], WatermarkGenerator] | None = None
    timestamp_assigner: TimestampAssigner | None = None
    idle_timeout: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """For timestamps that only rise, within each split of a source."""
        return WatermarkStrategy(Monotonous())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration | timedelta) -> WatermarkStrategy:
        """For records that come at most that much later than a newer one."""
        bound = millis(max_out_of_orderness)
        if bound < 0:
            raise InvalidWatermarkStrategy(part="the bound", given=max_out_of_orderness, taken="zero or positive")
        return WatermarkStrategy(BoundedOutOfOrderness(bound))

    @staticmethod
    def for_generator(generator_supplier: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """For a generator of the program's own; the supplier is called once for each split."""
        _require_callable(generator_supplier)
        return WatermarkStrategy(generator_supplier)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """For programs that use processing time only."""
        return WatermarkStrategy()

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[..., int] | str | int
    ) -> WatermarkStrategy:
        """The same strategy with timestamps from an assigner, a callable, or a field by name or position."""
        return replace(self, timestamp_assigner=as_timestamp_assigner(timestamp_assigner))

    def with_idleness(self, idle_timeout: Duration | Time | timedelta) -> WatermarkStrategy:
        """The same strategy, that does not wait for a stream which has been silent for so long."""
        timeout = millis(idle_timeout)
        if timeout <= 0:
            raise InvalidWatermarkStrategy(part="an idle timeout", given=idle_timeout, taken="positive")
        return replace(self, idle_timeout=timeout)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration | timedelta,
        update_interval: Duration | timedelta | None = None,
    ) -> WatermarkStrategy:
        """The same strategy, that pauses a source ahead of its group by more than the drift allowed."""
        interval = DEFAULT_ALIGNMENT_INTERVAL if update_interval is None else millis(update_interval)
        alignment = WatermarkAlignment(watermark_group, millis(max_allowed_watermark_drift), interval)
        return replace(self, alignment=alignment)

    def create_watermark_generator(self) -> WatermarkGenerator:
        """A generator that has seen nothing."""
        return NoWatermarks() if self.generator is None else self.generator()


def as_timestamp_assigner(given: TimestampAssigner | Callable[..., int] | str | int) -> TimestampAssigner:
    """What `with_timestamp_assigner` accepts, as a `TimestampAssigner`."""
    if isinstance(given, TimestampAssigner):
        return given
    if isinstance(given, (str, int)):
        return FieldTimestampAssigner(given)
    arity = None if not callable(given) or isinstance(given, type) else _arity(given)
    if arity is None:
        taken = "a TimestampAssigner, a callable of the record and its timestamp, or a field name"
        raise InvalidWatermarkStrategy(part="a timestamp assigner", given=given, taken=taken)
    return CallableTimestampAssigner(given, arity)


def _require_callable(supplier: object) -> None:
    if not callable(supplier):
        taken = "a callable that returns a WatermarkGenerator"
        raise InvalidWatermarkStrategy(part="a generator supplier", given=supplier, taken=taken)


def _arity(function: Callable[..., Any]) -> int | None:
    """2 where the callable takes the present timestamp too, else 1; None where neither fits."""
    signature = inspect.signature(function)
    for arity in (2, 1):
        try:
            signature.bind(*[None] * arity)
        except TypeError:
            continue
        return arity
    return None
