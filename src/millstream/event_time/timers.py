"""Timers as user code sees them: two domains of time, and the service that sets and deletes.

Promises: a timer is one key, one domain and one time; setting it twice is setting it once.
Does not know: how timers are kept or when they fire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum


class TimeDomain(Enum):
    """Which clock a timer follows."""

    EVENT_TIME = 0
    """The watermark: time as the records tell it."""
    PROCESSING_TIME = 1
    """The time of the machine, which stands still within an epoch."""


class TimerService(ABC):
    """Reads time, and sets timers for the current key. Times are milliseconds since 1970 in UTC."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Processing time."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The watermark the operator has seen; -2**63 before the first."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` when processing time reaches `timestamp`."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` when the watermark reaches `timestamp`."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget that timer; nothing happens where there is none."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget that timer; nothing happens where there is none."""
