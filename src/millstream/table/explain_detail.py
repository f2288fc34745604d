"""ExplainDetail: what EXPLAIN can show in addition to the plans.

Promises: PyFlink's names.
Does not know: plans."""

from __future__ import annotations

from enum import Enum


class ExplainDetail(Enum):
    """Details that EXPLAIN shows in addition to the plans.

    `CHANGELOG_MODE` shows which row kinds each operator emits, `JSON_EXECUTION_PLAN` the stream graph as JSON,
    `PLAN_ADVICE` warnings, and `ESTIMATED_COST` estimated row counts.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> numbers = t_env.from_elements([(1,)], ["n"])
        >>> "changelogMode" in numbers.explain(ExplainDetail.CHANGELOG_MODE)
        True

    """

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3
