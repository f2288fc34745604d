"""PyFlink's module of this name: restart strategies, from `millstream.model.restart_strategies`."""

from __future__ import annotations

from millstream.model.restart_strategies import RestartStrategies, RestartStrategyConfiguration

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]
