"""Bottom-up traversal of logical plans for rewrite rules.

Promises: a node is rebuilt only if an input changed; a plan that several nodes read stays one shared plan.
Does not know: rewrites."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.logical.nodes import Plan


def rewrite_bottom_up(
    plan: Plan, rewrite: Callable[[Plan], Plan], rewritten_plans: dict[int, tuple[Plan, Plan]] | None = None
) -> Plan:
    """Apply `rewrite` to every node of a plan, inputs first."""
    rewritten_plans = {} if rewritten_plans is None else rewritten_plans
    earlier = rewritten_plans.get(id(plan))
    if earlier is not None:
        return earlier[1]
    inputs = plan.inputs()
    rewritten_inputs = tuple(rewrite_bottom_up(input_plan, rewrite, rewritten_plans) for input_plan in inputs)
    is_unchanged = all(after is before for after, before in zip(rewritten_inputs, inputs, strict=True))
    result = rewrite(plan if is_unchanged else plan.with_inputs(rewritten_inputs))
    rewritten_plans[id(plan)] = (plan, result)
    return result
