"""PyFlink's `datastream.time_domain`: which clock a timer follows."""

from millstream.event_time.timers import TimeDomain

__all__ = ["TimeDomain"]
