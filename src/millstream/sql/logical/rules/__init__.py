"""Rewrite rules of logical plans, in the order in which they are applied."""

from collections.abc import Callable

from millstream.sql.logical.nodes import Plan
from millstream.sql.logical.rules.filter_into_join import filter_into_join
from millstream.sql.logical.rules.narrow_scans import narrow_scans
from millstream.sql.logical.rules.prune_columns import prune_columns
from millstream.sql.logical.rules.recognise_rank import recognise_rank
from millstream.sql.logical.rules.share_equal_plans import share_equal_plans

RULES: tuple[Callable[[Plan], Plan], ...] = (
    filter_into_join,
    recognise_rank,
    prune_columns,
    share_equal_plans,
    narrow_scans,
)


def apply_rules(plan: Plan) -> Plan:
    """Apply all rules to a plan."""
    for rule in RULES:
        plan = rule(plan)
    return plan


__all__ = ["RULES", "apply_rules"]
