"""The timer service of user functions.

Promises: a timer is identified by key, time domain and time; registering it again has no effect.
Does not know: how timers are stored and when they fire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum


class TimeDomain(Enum):
    """The time domain of a timer.

    Example:
        >>> TimeDomain.EVENT_TIME.name
        'EVENT_TIME'

    """

    EVENT_TIME = 0
    """Event time: the timer fires when the watermark reaches its time."""
    PROCESSING_TIME = 1
    """Processing time, which does not change during an epoch."""


class TimerService(ABC):
    """Reads the current time and registers timers for the current key. Times are milliseconds since 1970-01-01 UTC.

    Example:
        >>> from millstream.datastream import KeyedProcessFunction
        >>> from millstream.testing import harness_for
        >>> class Reminder(KeyedProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 60_000)
        ...     def on_timer(self, timestamp, ctx):
        ...         yield ctx.get_current_key(), timestamp
        >>> with harness_for(Reminder(), key=lambda name: name) as harness:
        ...     harness.process("ann", timestamp=1_000)
        ...     harness.watermark(70_000)
        ...     harness.values()
        [('ann', 61000)]

    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the current watermark of the operator; -2**63 before the first watermark."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a timer: `on_timer` is called when the processing time reaches `timestamp`.

        Args:
            timestamp: The time, in milliseconds since the epoch. A second timer of the key for the same time has no
                effect.

        """

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Register a timer: `on_timer` is called when the watermark reaches `timestamp`.

        Args:
            timestamp: The time, in milliseconds since the epoch. A second timer of the key for the same time has no
                effect.

        """

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a processing-time timer; without effect if it does not exist.

        Args:
            timestamp: The time of the timer, in milliseconds since the epoch.

        """

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete an event-time timer; without effect if it does not exist.

        Args:
            timestamp: The time of the timer, in milliseconds since the epoch.

        """
