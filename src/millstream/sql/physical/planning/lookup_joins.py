"""A temporal join in processing time becomes a lookup join, where the table on its right can be looked up.

Promises: the table is asked by the columns that the join compares; what the query does to its rows before the join is
done to what was found. LOOKUP hints mean what they mean in Flink; one that is wrong is refused.
Does not know: connectors, how rows are joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.connector.lookup import Lookup
from millstream.sql.connector.lookup_reload import Reload
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.connectors.registry import connector_of
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Expression, Ref, conjunction, conjuncts, references, shifted, substituted
from millstream.sql.logical import nodes as l
from millstream.sql.operators.join.lookup_join import LookupJoinSpec, Retry
from millstream.sql.physical.nodes import FORWARD, LookupOrigin, Operation, by_hash
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import duration_millis
from millstream.sql_options import ASYNC_LOOKUP_CAPACITY, ASYNC_LOOKUP_TIMEOUT

_HINTS = (
    "table", "async", "output-mode", "capacity", "timeout", "retry-predicate", "retry-strategy", "fixed-delay",
    "max-attempts", "shuffle",
)  # fmt: skip
_RETRY = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")

Contexts = Callable[[tuple[str, ...], TableDefinition, tuple[tuple[str, str], ...]], TableContext]


def lookup_join(
    node: l.TemporalJoin, left: Operation, context_of: Contexts, options: Callable[[str], str | None], zone: str
) -> Operation | None:
    """The lookup join, or None where the right side is no table that can be looked up."""
    found = _unwound(node.right)
    if found is None:
        return None
    scan, exprs, condition = found
    context = context_of(scan.name, scan.table, scan.options)
    connector = connector_of(context)
    keys = [exprs[i] for i in node.right_keys]
    if connector.lookup is None or not all(isinstance(each, Ref) for each in keys):
        return None
    names = tuple(scan.schema.names[each.index] for each in keys if isinstance(each, Ref))
    if len(set(names)) < len(names):
        message = "a lookup join compares each column of the table once"
        raise SqlValidationError(message, hint="put the other comparison into WHERE")
    table = connector.lookup(context, names)
    if table is None:
        return None
    asynchronous, retry, timeout, capacity = _hinted(dict(node.hint), table.asynchronous, options)
    lookup, schema, exprs, condition, kept = _narrowed(table.lookup, scan.schema, exprs, condition)
    plain = condition is None and exprs == l.Values(schema, ()).refs()
    spec = LookupJoinSpec(
        left.schema, node.right.schema, node.schema, node.kind, node.left_keys,
        replace(table, lookup=lookup, schema=schema, asynchronous=asynchronous), condition, None if plain else exprs,
        node.condition, retry, timeout, capacity, zone,
    )  # fmt: skip
    detail = [f"table=[{'.'.join(scan.name)}]", f"joinType=[{'LeftOuterJoin' if node.kind == 'left' else 'InnerJoin'}]"]
    pairs = [f"{name}={left.schema.names[place]}" for name, place in zip(names, node.left_keys, strict=True)]
    detail.append(f"lookup=[{', '.join(pairs)}]")
    detail += ["cache=[FULL]"] if isinstance(table.cache, Reload) else []
    detail += ["async=[true]"] if asynchronous else []
    detail += [] if retry is None else [f"retry=[lookup_miss, fixed_delay, {retry.delay}ms, {retry.attempts}]"]
    where = by_hash(node.left_keys) if dict(node.hint).get("shuffle", "").lower() == "true" else FORWARD
    return Operation(
        "LookupJoin", ", ".join(detail), node.schema, (left,), (where,), spec, mode=left.mode,
        upsert_keys=left.upsert_keys if set(names) >= set(scan.table.primary_key or ("",)) else frozenset(),
        origin=LookupOrigin(scan.name, scan.table, scan.options, names, kept),
    )  # fmt: skip


def _narrowed(
    lookup: Lookup, schema: t.RowType, exprs: tuple[Expression, ...], condition: Expression | None
) -> tuple[Lookup, t.RowType, tuple[Expression, ...], Expression | None, tuple[int, ...] | None]:
    """The table with the columns that are used only, where its connector can leave columns out, and their places."""
    kept = sorted(set().union(*(references(each) for each in (*exprs, *conjuncts(condition)))))
    slim = lookup.narrowed(tuple(kept)) if 0 < len(kept) < len(schema) else None
    if slim is None:
        return lookup, schema, exprs, condition, None
    places = {old: new for new, old in enumerate(kept)}
    row = t.row_of([schema.names[i] for i in kept], [schema.types[i] for i in kept], null=False)
    moved = tuple(shifted(each, places) for each in exprs)
    return slim, row, moved, None if condition is None else shifted(condition, places), tuple(kept)


def _unwound(plan: l.Plan) -> tuple[l.Scan, tuple[Expression, ...], Expression | None] | None:
    """The scan below projections and filters, its columns as the plan shows them, and what rows must fulfil."""
    match plan:
        case l.Scan():
            return (plan, plan.refs(), None) if isinstance(plan.table, TableDefinition) else None
        case l.WatermarkAssigner():
            return _unwound(plan.input)
        case l.Project() | l.Filter():
            below = _unwound(plan.input)
            if below is None:
                return None
            scan, exprs, condition = below
            if isinstance(plan, l.Project):
                return scan, tuple(substituted(each, exprs) for each in plan.exprs), condition
            added = substituted(plan.condition, exprs)
            return scan, exprs, conjunction([*conjuncts(condition), *conjuncts(added)])
    return None


def _hinted(
    hint: dict[str, str], asynchronous: bool, options: Callable[[str], str | None]
) -> tuple[bool, Retry | None, int, int]:
    """What a LOOKUP hint asks for: questions side by side, keys asked for again, how long to wait, and for how many."""
    for key in hint:
        if key not in _HINTS:
            message = f"the LOOKUP hint has no option '{key}'"
            raise SqlValidationError(message, hint=nearest(key, _HINTS))
    asynchronous = _word(hint, "async", ("true", "false"), str(asynchronous).lower()) == "true"
    _word(hint, "output-mode", ("ordered", "allow_unordered"), "ordered")
    _word(hint, "shuffle", ("true", "false"), "false")
    capacity = _number(
        {"capacity": options(ASYNC_LOOKUP_CAPACITY.key) or str(ASYNC_LOOKUP_CAPACITY.default), **hint}, "capacity"
    )
    timeout = hint.get("timeout") or options(ASYNC_LOOKUP_TIMEOUT.key)
    limit = duration_millis(timeout) if timeout else ASYNC_LOOKUP_TIMEOUT.default.to_milliseconds()
    given = [key for key in _RETRY if key in hint]
    if not given:
        return asynchronous, None, limit, capacity
    if len(given) < len(_RETRY):
        missing = ", ".join(key for key in _RETRY if key not in hint)
        message = f"the LOOKUP hint asks for retries, but does not say {missing}"
        raise SqlValidationError(message, hint=f"give all of {', '.join(_RETRY)}")
    _word(hint, "retry-predicate", ("lookup_miss",), "")
    _word(hint, "retry-strategy", ("fixed_delay",), "")
    retry = Retry(duration_millis(hint["fixed-delay"]), _number(hint, "max-attempts"))
    return asynchronous, retry, limit, capacity


def _word(hint: dict[str, str], key: str, words: tuple[str, ...], default: Any) -> str:
    text = hint.get(key, default).lower()
    if text not in words:
        message = f"option '{key}' of the LOOKUP hint must be {' or '.join(words)}, not '{text}'"
        raise SqlValidationError(message)
    return str(text)


def _number(hint: dict[str, str], key: str) -> int:
    text = hint[key]
    if not text.isdigit() or int(text) < 1:
        message = f"option '{key}' of the LOOKUP hint must be a number above 0, not '{text}'"
        raise SqlValidationError(message)
    return int(text)
