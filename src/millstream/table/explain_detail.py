"""What EXPLAIN may show beside the plan.

Promises: PyFlink's names.
Does not know: plans."""

from __future__ import annotations

from enum import Enum


class ExplainDetail(Enum):
    """A detail of EXPLAIN."""

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3
