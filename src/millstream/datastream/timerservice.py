"""PyFlink's `datastream.timerservice`: reads time and sets timers."""

from millstream.event_time.timers import TimerService

__all__ = ["TimerService"]
