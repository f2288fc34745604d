"""A distinct aggregate with few groups and many values is computed in two steps, by parts of its values.

Promises: the same results; each part of a group's values can be in another subtask, and so can its state.
Does not know: who asks for it; the option table.optimizer.distinct-agg.split.enabled does.

It is not in RULES: those are functions of a plan alone, and this one needs settings of the session. It applies to
streams only, and when an aggregate is planned, so that no other rule sees the two aggregates."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.expressions.nodes import AggregateCall, Apply, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.window_columns import window_edges
from millstream.sql.types import data_types as t

_BUCKET = "$BUCKET"
_AGAIN = {"COUNT": "$SUM0", "$SUM0": "$SUM0", "SUM": "SUM", "MIN": "MIN", "MAX": "MAX"}


def split_distinct(plan: l.Aggregate, buckets: int) -> l.Aggregate | None:
    """The aggregate over an aggregate by parts; None where it is to stay as it is."""
    args = {call.args for call in plan.calls if _distinct(call)}
    if len(args) != 1 or any(call.function not in _AGAIN or call.user is not None for call in plan.calls):
        return None
    if {"start", "end"} <= {part for i, (part, *_) in window_edges(plan.input).items() if i in plan.keys}:
        return None
    if isinstance(plan.input, l.Project) and _is_bucket(plan.input.exprs[-1]):
        return None
    (columns,) = args
    source, width, count = plan.input, len(plan.input.schema), len(plan.keys)
    values = tuple(Ref(source.schema.types[i], i) for i in columns)
    kind = t.BIGINT.not_null()
    bucket = Apply(kind, _BUCKET, (Lit(kind, buckets), *values))
    numbered = l.project(source, [*source.refs(), bucket], [*source.schema.names, "$bucket"])
    results = [call.type for call in plan.calls]
    names = l.unique(
        [*(source.schema.names[i] for i in plan.keys), "$bucket", *(f"$d{i}" for i in range(len(results)))]
    )
    kinds = [*(source.schema.types[i] for i in plan.keys), kind, *results]
    inner = l.Aggregate(t.row_of(names, kinds, null=False), numbered, (*plan.keys, width), plan.calls, plan.ttl)
    calls = tuple(_again(call, count + 1 + i) for i, call in enumerate(plan.calls))
    return replace(plan, input=inner, keys=tuple(range(count)), calls=calls)


def _distinct(call: AggregateCall) -> bool:
    return call.distinct and call.function not in ("MIN", "MAX")


def _is_bucket(expression: Expression) -> bool:
    return isinstance(expression, Apply) and expression.function == _BUCKET


def _again(call: AggregateCall, place: int) -> AggregateCall:
    """The aggregate of the results of the parts."""
    return AggregateCall(_AGAIN[call.function], (place,), call.type, (call.type,))
