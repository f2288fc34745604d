"""Split a distinct aggregate into two: by group and bucket of the value, then by group.

Promises: the same results; the buckets of a large group, and their state, are spread over subtasks.
Does not know: options; the caller reads table.optimizer.distinct-agg.split.enabled.

It is not in RULES, because rules are functions of a plan alone, and this one needs options of the session. The planner
calls it for streaming queries when it plans an aggregate, so that no other rule sees the two aggregates."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.expressions.nodes import AggregateCall, Apply, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.window_columns import find_window_edges
from millstream.sql.types import data_types as t

_BUCKET = "$BUCKET"
_FINAL_FUNCTION = {"COUNT": "$SUM0", "$SUM0": "$SUM0", "SUM": "SUM", "MIN": "MIN", "MAX": "MAX"}


def split_distinct(plan: l.Aggregate, buckets: int) -> l.Aggregate | None:
    """Return an aggregate over the results of an aggregate by buckets; None if the aggregate cannot be split."""
    args = {call.args for call in plan.calls if _is_split(call)}
    if len(args) != 1 or any(call.function not in _FINAL_FUNCTION or call.user is not None for call in plan.calls):
        return None
    if {"start", "end"} <= {part for i, (part, *_) in find_window_edges(plan.input).items() if i in plan.keys}:
        return None
    if isinstance(plan.input, l.Project) and _is_bucket(plan.input.exprs[-1]):
        return None
    (columns,) = args
    source, width, count = plan.input, len(plan.input.schema), len(plan.keys)
    values = tuple(Ref(source.schema.types[i], i) for i in columns)
    bucket_type = t.BIGINT.not_null()
    bucket = Apply(bucket_type, _BUCKET, (Lit(bucket_type, buckets), *values))
    with_bucket = l.project(source, [*source.refs(), bucket], [*source.schema.names, "$bucket"])
    results = [call.type for call in plan.calls]
    names = l.make_names_unique(
        [*(source.schema.names[i] for i in plan.keys), "$bucket", *(f"$d{i}" for i in range(len(results)))]
    )
    data_types = [*(source.schema.types[i] for i in plan.keys), bucket_type, *results]
    inner = l.Aggregate(t.row_of(names, data_types, null=False), with_bucket, (*plan.keys, width), plan.calls, plan.ttl)
    calls = tuple(_merge_call(call, count + 1 + i) for i, call in enumerate(plan.calls))
    return replace(plan, input=inner, keys=tuple(range(count)), calls=calls)


def _is_split(call: AggregateCall) -> bool:
    return call.distinct and call.function not in ("MIN", "MAX")


def _is_bucket(expression: Expression) -> bool:
    return isinstance(expression, Apply) and expression.function == _BUCKET


def _merge_call(call: AggregateCall, column_index: int) -> AggregateCall:
    """Return the call that merges the results of the buckets."""
    return AggregateCall(_FINAL_FUNCTION[call.function], (column_index,), call.type, (call.type,))
