"""PyFlink's `datastream.time_domain`: which clock a timer follows."""

from millstream.model.timers import TimeDomain

__all__ = ["TimeDomain"]
