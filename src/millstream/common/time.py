"""PyFlink's module of this name: Duration, Instant and Time, from `millstream.model.time`."""

from __future__ import annotations

from millstream.model.time import Duration, Instant, Time

__all__ = ["Duration", "Instant", "Time"]
