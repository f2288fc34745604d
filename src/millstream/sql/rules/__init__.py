"""Rewrites of logical plans, in the order in which they are made."""

from collections.abc import Callable

from millstream.sql.logical import Plan
from millstream.sql.rules.filter_into_join import filter_into_join
from millstream.sql.rules.prune_columns import prune_columns
from millstream.sql.rules.recognise_rank import recognise_rank

RULES: tuple[Callable[[Plan], Plan], ...] = (filter_into_join, recognise_rank, prune_columns)


def rewritten(plan: Plan) -> Plan:
    """The plan after all rules."""
    for rule in RULES:
        plan = rule(plan)
    return plan


__all__ = ["RULES", "rewritten"]
