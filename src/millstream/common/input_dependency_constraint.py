"""PyFlink's module of this name: InputDependencyConstraint.

Promises: the names of Flink's enum.
Does not know: scheduling. Spark starts a stage when all of its inputs are available."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """Which inputs must be available before a task can start.

    Example:
        >>> InputDependencyConstraint.ANY.name
        'ANY'

    """

    ANY = 0
    ALL = 1
