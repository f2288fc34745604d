"""A rewrite applied to every node, inputs first.

Promises: a node is rebuilt only when an input changed; a plan that is used twice stays one plan.
Does not know: rewrites."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.logical.nodes import Plan


def everywhere(plan: Plan, rewrite: Callable[[Plan], Plan], done: dict[int, tuple[Plan, Plan]] | None = None) -> Plan:
    """The plan with `rewrite` applied from the bottom up."""
    done = {} if done is None else done
    known = done.get(id(plan))
    if known is not None:
        return known[1]
    inputs = plan.inputs()
    made = tuple(everywhere(each, rewrite, done) for each in inputs)
    same = all(one is other for one, other in zip(made, inputs, strict=True))
    result = rewrite(plan if same else plan.with_inputs(made))
    done[id(plan)] = (plan, result)
    return result
