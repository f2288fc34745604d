"""PyFlink's module of this name: Duration, Instant and Time, from `millstream.times`."""

from __future__ import annotations

from millstream.times import Duration, Instant, Time

__all__ = ["Duration", "Instant", "Time"]
