"""How the session wants aggregates to be computed: in one phase or two, distinct ones split or not.

Promises: Flink's options and defaults; a value that means nothing is refused.
Does not know: plans."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.errors import SqlValidationError

PHASES = "table.optimizer.agg-phase-strategy"
SPLIT = "table.optimizer.distinct-agg.split.enabled"
BUCKETS = "table.optimizer.distinct-agg.split.bucket-num"
_STRATEGIES = ("AUTO", "ONE_PHASE", "TWO_PHASE")


def two_phase_wanted(options: Callable[[str], str | None]) -> bool:
    """Whether rows are aggregated before they are dealt out, where that is possible."""
    strategy = (options(PHASES) or "AUTO").upper()
    if strategy not in _STRATEGIES:
        message = f"option '{PHASES}' must be one of {', '.join(_STRATEGIES)}, not '{strategy}'"
        raise SqlValidationError(message)
    return strategy != "ONE_PHASE"


def distinct_buckets(options: Callable[[str], str | None]) -> int | None:
    """Into how many parts the values of a distinct aggregate are split; None for not at all."""
    enabled = (options(SPLIT) or "false").lower()
    if enabled not in ("true", "false"):
        message = f"option '{SPLIT}' must be true or false, not '{enabled}'"
        raise SqlValidationError(message)
    number = options(BUCKETS) or "1024"
    if not number.isdigit() or int(number) < 1:
        message = f"option '{BUCKETS}' must be a whole number of at least 1, not '{number}'"
        raise SqlValidationError(message)
    return int(number) if enabled == "true" else None
