"""PyFlink's `datastream.timerservice`: reads time and sets timers."""

from millstream.model.timers import TimerService

__all__ = ["TimerService"]
