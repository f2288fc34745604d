"""Options of aggregates: one or two phases, and whether distinct aggregates are split.

Promises: Flink's options and defaults; invalid values are refused.
Does not know: plans."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.errors import SqlValidationError
from millstream.sql_options import AGG_PHASE_STRATEGY, DISTINCT_SPLIT_BUCKETS, DISTINCT_SPLIT_ENABLED


def wants_two_phases(options: Callable[[str], str | None]) -> bool:
    """Return whether rows are aggregated before they are partitioned, if that is possible."""
    strategy = (options(AGG_PHASE_STRATEGY.key) or AGG_PHASE_STRATEGY.default).upper()
    if strategy not in AGG_PHASE_STRATEGY.choices:
        choices = ", ".join(AGG_PHASE_STRATEGY.choices)
        message = f"option '{AGG_PHASE_STRATEGY.key}' must be one of {choices}, not '{strategy}'"
        raise SqlValidationError(message)
    return strategy != "ONE_PHASE"


def choose_distinct_buckets(options: Callable[[str], str | None]) -> int | None:
    """Return the number of buckets into which the values of a distinct aggregate are split; None for no split."""
    enabled = (options(DISTINCT_SPLIT_ENABLED.key) or str(DISTINCT_SPLIT_ENABLED.default)).lower()
    if enabled not in ("true", "false"):
        message = f"option '{DISTINCT_SPLIT_ENABLED.key}' must be true or false, not '{enabled}'"
        raise SqlValidationError(message)
    number = options(DISTINCT_SPLIT_BUCKETS.key) or str(DISTINCT_SPLIT_BUCKETS.default)
    if not number.isdigit() or int(number) < 1:
        message = f"option '{DISTINCT_SPLIT_BUCKETS.key}' must be an integer of at least 1, not '{number}'"
        raise SqlValidationError(message)
    return int(number) if enabled == "true" else None
