"""Planning of lookup joins: temporal joins in processing time with a table that can be looked up.

Promises: the table is looked up by the columns that the join compares; projections and filters of the query on the
table are applied to the looked-up rows. LOOKUP hints are those of Flink; invalid ones are refused.
Does not know: connectors, how rows are joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.connector.lookup import Lookup
from millstream.sql.connector.lookup_reload import Reload
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.connectors.registry import find_connector
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import (
    Expression,
    Ref,
    combine_conjuncts,
    find_references,
    shift_references,
    split_conjuncts,
    substitute,
)
from millstream.sql.logical import nodes as l
from millstream.sql.operators.join.lookup_join import LookupJoinSpec, Retry
from millstream.sql.physical.nodes import FORWARD, LookupOrigin, Operation, distribute_by_hash
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis
from millstream.sql_options import ASYNC_LOOKUP_CAPACITY, ASYNC_LOOKUP_TIMEOUT

_HINTS = (
    "table", "async", "output-mode", "capacity", "timeout", "retry-predicate", "retry-strategy", "fixed-delay",
    "max-attempts", "shuffle",
)  # fmt: skip
_RETRY = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")

Contexts = Callable[[tuple[str, ...], TableDefinition, tuple[tuple[str, str], ...]], TableContext]


def plan_lookup_join(
    node: l.TemporalJoin, left: Operation, context_of: Contexts, options: Callable[[str], str | None], zone: str
) -> Operation | None:
    """Plan a lookup join; None if the right side is not a table that can be looked up."""
    below = _find_scan(node.right)
    if below is None:
        return None
    scan, exprs, condition = below
    context = context_of(scan.name, scan.table, scan.options)
    connector = find_connector(context)
    keys = [exprs[i] for i in node.right_keys]
    if connector.lookup is None or not all(isinstance(key, Ref) for key in keys):
        return None
    names = tuple(scan.schema.names[key.index] for key in keys if isinstance(key, Ref))
    if len(set(names)) < len(names):
        message = "a lookup join can compare each column of the table only once"
        raise SqlValidationError(message, hint="put the other comparison into WHERE")
    table = connector.lookup(context, names)
    if table is None:
        return None
    asynchronous, retry, timeout, capacity = _read_hint(dict(node.hint), table.asynchronous, options)
    lookup, schema, exprs, condition, kept = _project_lookup(table.lookup, scan.schema, exprs, condition)
    is_plain = condition is None and exprs == l.Values(schema, ()).refs()
    spec = LookupJoinSpec(
        left.schema, node.right.schema, node.schema, node.kind, node.left_keys,
        replace(table, lookup=lookup, schema=schema, asynchronous=asynchronous), condition, None if is_plain else exprs,
        node.condition, retry, timeout, capacity, zone,
    )  # fmt: skip
    detail = [f"table=[{'.'.join(scan.name)}]", f"joinType=[{'LeftOuterJoin' if node.kind == 'left' else 'InnerJoin'}]"]
    pairs = [f"{name}={left.schema.names[index]}" for name, index in zip(names, node.left_keys, strict=True)]
    detail.append(f"lookup=[{', '.join(pairs)}]")
    detail += ["cache=[FULL]"] if isinstance(table.cache, Reload) else []
    detail += ["async=[true]"] if asynchronous else []
    detail += [] if retry is None else [f"retry=[lookup_miss, fixed_delay, {retry.delay}ms, {retry.attempts}]"]
    distribution = (
        distribute_by_hash(node.left_keys) if dict(node.hint).get("shuffle", "").lower() == "true" else FORWARD
    )
    return Operation(
        "LookupJoin", ", ".join(detail), node.schema, (left,), (distribution,), spec, mode=left.mode,
        upsert_keys=left.upsert_keys if set(names) >= set(scan.table.primary_key or ("",)) else frozenset(),
        origin=LookupOrigin(scan.name, scan.table, scan.options, names, kept),
    )  # fmt: skip


def _project_lookup(
    lookup: Lookup, schema: t.RowType, exprs: tuple[Expression, ...], condition: Expression | None
) -> tuple[Lookup, t.RowType, tuple[Expression, ...], Expression | None, tuple[int, ...] | None]:
    """Project the lookup to the columns that are used, if its connector supports it, and return their indexes."""
    kept = sorted(set().union(*(find_references(expr) for expr in (*exprs, *split_conjuncts(condition)))))
    projected = lookup.project(tuple(kept)) if 0 < len(kept) < len(schema) else None
    if projected is None:
        return lookup, schema, exprs, condition, None
    mapping = {old: new for new, old in enumerate(kept)}
    row = t.row_of([schema.names[i] for i in kept], [schema.types[i] for i in kept], null=False)
    mapped_exprs = tuple(shift_references(expr, mapping) for expr in exprs)
    return (
        projected,
        row,
        mapped_exprs,
        None if condition is None else shift_references(condition, mapping),
        tuple(kept),
    )


def _find_scan(plan: l.Plan) -> tuple[l.Scan, tuple[Expression, ...], Expression | None] | None:
    """Return the scan below projections and filters, the columns as expressions over it, and the condition on its
    rows."""
    match plan:
        case l.Scan():
            return (plan, plan.refs(), None) if isinstance(plan.table, TableDefinition) else None
        case l.WatermarkAssigner():
            return _find_scan(plan.input)
        case l.Project() | l.Filter():
            below = _find_scan(plan.input)
            if below is None:
                return None
            scan, exprs, condition = below
            if isinstance(plan, l.Project):
                return scan, tuple(substitute(expr, exprs) for expr in plan.exprs), condition
            added = substitute(plan.condition, exprs)
            return scan, exprs, combine_conjuncts([*split_conjuncts(condition), *split_conjuncts(added)])
    return None


def _read_hint(
    hint: dict[str, str], asynchronous: bool, options: Callable[[str], str | None]
) -> tuple[bool, Retry | None, int, int]:
    """Read a LOOKUP hint: whether lookups are asynchronous, retries, the timeout, and the capacity."""
    for key in hint:
        if key not in _HINTS:
            message = f"the LOOKUP hint has no option '{key}'"
            raise SqlValidationError(message, hint=nearest(key, _HINTS))
    asynchronous = _read_choice(hint, "async", ("true", "false"), str(asynchronous).lower()) == "true"
    _read_choice(hint, "output-mode", ("ordered", "allow_unordered"), "ordered")
    _read_choice(hint, "shuffle", ("true", "false"), "false")
    capacity = _read_number(
        {"capacity": options(ASYNC_LOOKUP_CAPACITY.key) or str(ASYNC_LOOKUP_CAPACITY.default), **hint}, "capacity"
    )
    timeout = hint.get("timeout") or options(ASYNC_LOOKUP_TIMEOUT.key)
    limit = parse_duration_millis(timeout) if timeout else ASYNC_LOOKUP_TIMEOUT.default.to_milliseconds()
    retry_options = [key for key in _RETRY if key in hint]
    if not retry_options:
        return asynchronous, None, limit, capacity
    if len(retry_options) < len(_RETRY):
        missing = ", ".join(key for key in _RETRY if key not in hint)
        message = f"the LOOKUP hint enables retries, but {missing} is missing"
        raise SqlValidationError(message, hint=f"set all of {', '.join(_RETRY)}")
    _read_choice(hint, "retry-predicate", ("lookup_miss",), "")
    _read_choice(hint, "retry-strategy", ("fixed_delay",), "")
    retry = Retry(parse_duration_millis(hint["fixed-delay"]), _read_number(hint, "max-attempts"))
    return asynchronous, retry, limit, capacity


def _read_choice(hint: dict[str, str], key: str, choices: tuple[str, ...], default: Any) -> str:
    text = hint.get(key, default).lower()
    if text not in choices:
        message = f"option '{key}' of the LOOKUP hint must be {' or '.join(choices)}, not '{text}'"
        raise SqlValidationError(message)
    return str(text)


def _read_number(hint: dict[str, str], key: str) -> int:
    text = hint[key]
    if not text.isdigit() or int(text) < 1:
        message = f"option '{key}' of the LOOKUP hint must be a number above 0, not '{text}'"
        raise SqlValidationError(message)
    return int(text)
