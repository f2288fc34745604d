"""PyFlink's module of this name: restart strategies, from `millstream.job.restart_strategies`."""

from __future__ import annotations

from millstream.job.restart_strategies import RestartStrategies, RestartStrategyConfiguration

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]
