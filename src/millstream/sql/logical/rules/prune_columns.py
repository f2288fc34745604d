"""Columns that nobody reads are not carried.

Promises: the same rows in the same columns at the top; joins, ranks and aggregates keep in state only what is used.
Does not know: connectors; what a scan reads is decided by its connector."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.expressions.nodes import Expression, Lit, Ref, references, shifted
from millstream.sql.logical import nodes as l
from millstream.sql.types import data_types as t


def prune_columns(plan: l.Plan) -> l.Plan:
    """The rewrite; a plan that is used twice is left as it is, so that it stays one plan."""
    seen: dict[int, int] = {}
    _count(plan, seen)
    shared = {key for key, count in seen.items() if count > 1}
    made, mapping = _pruned(plan, set(range(len(plan.schema))), shared)
    return made if list(mapping.values()) == list(range(len(plan.schema))) else plan


def _count(plan: l.Plan, seen: dict[int, int]) -> None:
    seen[id(plan)] = seen.get(id(plan), 0) + 1
    if seen[id(plan)] == 1:
        for each in plan.inputs():
            _count(each, seen)


Pruned = tuple[l.Plan, dict[int, int]]  # the plan, and where each column that was kept is now


def _same(plan: l.Plan) -> dict[int, int]:
    return {i: i for i in range(len(plan.schema))}


def _pruned(plan: l.Plan, wanted: set[int], shared: set[int]) -> Pruned:
    if id(plan) in shared and not isinstance(plan, l.Scan):
        return _whole(plan, shared)
    match plan:
        case l.Project():
            return _project(plan, wanted, shared)
        case l.Filter():
            below, mapping = _pruned(plan.input, wanted | references(plan.condition), shared)
            return l.Filter(below.schema, below, shifted(plan.condition, mapping)), mapping
        case l.Join():
            return _join(plan, wanted, shared)
        case l.TemporalJoin():
            return _temporal(plan, wanted, shared)
        case l.Aggregate():
            return _aggregate(plan, wanted, shared)
        case l.Rank():
            return _rank(plan, wanted, shared)
        case l.WindowTable():
            return _window(plan, wanted, shared)
        case l.SetOperation() if plan.operator == "UNION":
            return _union(plan, wanted, shared)
    return _whole(plan, shared)


def _whole(plan: l.Plan, shared: set[int]) -> Pruned:
    """All columns of a node are kept; below it, only what each input's own columns need."""
    inputs = []
    for each in plan.inputs():
        below, mapping = _pruned(each, set(range(len(each.schema))), shared)
        inputs.append(below if len(mapping) == len(each.schema) else each)
    same = all(one is other for one, other in zip(inputs, plan.inputs(), strict=True))
    return (plan if same else plan.with_inputs(tuple(inputs))), _same(plan)


def _some(wanted: set[int]) -> list[int]:
    return sorted(wanted)


def _project(plan: l.Project, wanted: set[int], shared: set[int]) -> Pruned:
    kept = _some(wanted)
    exprs = [plan.exprs[i] for i in kept]
    needed = set().union(*(references(each) for each in exprs)) if exprs else set()
    below, mapping = _pruned(plan.input, needed, shared)
    schema = t.row_of([plan.schema.names[i] for i in kept], [plan.schema.types[i] for i in kept], null=False)
    made = l.Project(schema, below, tuple(shifted(each, mapping) for each in exprs))
    return made, {old: new for new, old in enumerate(kept)}


def narrowed(plan: l.Plan, mapping: dict[int, int], wanted: list[int]) -> l.Plan:
    """Only these columns of a plan, given where each is."""
    places = [mapping[i] for i in wanted]
    if places == list(range(len(plan.schema))):
        return plan
    refs = [Ref(plan.schema.types[i], i) for i in places]
    return l.project(plan, refs, [plan.schema.names[i] for i in places])


def _join(plan: l.Join, wanted: set[int], shared: set[int]) -> Pruned:
    width = len(plan.left.schema)
    used = wanted | (references(plan.condition) if plan.condition is not None else set())
    lefts = _some({i for i in used if i < width})
    rights = _some({i - width for i in used if i >= width})
    left, left_map = _pruned(plan.left, set(lefts), shared)
    right, right_map = _pruned(plan.right, set(rights), shared)
    left, right = narrowed(left, left_map, lefts), narrowed(right, right_map, rights)
    mapping = {old: new for new, old in enumerate(lefts)}
    mapping.update({old + width: len(lefts) + new for new, old in enumerate(rights)})
    condition = None if plan.condition is None else shifted(plan.condition, mapping)
    semi = plan.kind in ("semi", "anti")
    chosen = lefts if semi else [*lefts, *(i + width for i in rights)]
    names = [plan.schema.names[i] for i in chosen]
    schema = t.row_of(names, [plan.schema.types[i] for i in chosen], null=False)
    made = l.Join(schema, left, right, plan.kind, condition, plan.null_aware, plan.ttl)
    return made, {i: mapping[i] for i in chosen}


def _temporal(plan: l.TemporalJoin, wanted: set[int], shared: set[int]) -> Pruned:
    """As a join; keys and times of both sides stay."""
    width = len(plan.left.schema)
    used = wanted | (references(plan.condition) if plan.condition is not None else set())
    times = {i for i, kind in enumerate(plan.right.schema.types) if t.attribute_of(kind) == t.ROWTIME}
    lefts = _some({i for i in used if i < width} | {plan.time, *plan.left_keys})
    rights = _some({i - width for i in used if i >= width} | times | set(plan.right_keys))
    left, left_map = _pruned(plan.left, set(lefts), shared)
    right, right_map = _pruned(plan.right, set(rights), shared)
    mapping = {old: new for new, old in enumerate(lefts)}
    mapping.update({old + width: len(lefts) + new for new, old in enumerate(rights)})
    chosen = [*lefts, *(i + width for i in rights)]
    schema = t.row_of([plan.schema.names[i] for i in chosen], [plan.schema.types[i] for i in chosen], null=False)
    made = replace(
        plan,
        schema=schema,
        left=narrowed(left, left_map, lefts),
        right=narrowed(right, right_map, rights),
        time=mapping[plan.time],
        left_keys=tuple(mapping[i] for i in plan.left_keys),
        right_keys=tuple(rights.index(i) for i in plan.right_keys),
        condition=None if plan.condition is None else shifted(plan.condition, mapping),
    )
    return made, mapping


def _aggregate(plan: l.Aggregate, wanted: set[int], shared: set[int]) -> Pruned:
    width = len(plan.keys)
    calls = [i for i in range(len(plan.calls)) if width + i in wanted]
    if not calls and not plan.keys and plan.calls:
        calls = [0]
    kept = [*range(width), *(width + i for i in calls)]
    needed = set(plan.keys)
    for i in calls:
        needed.update(plan.calls[i].args)
        condition = plan.calls[i].filter
        needed.update(() if condition is None else (condition,))
    below, mapping = _pruned(plan.input, needed, shared)
    made_calls = tuple(
        replace(
            plan.calls[i],
            args=tuple(mapping[a] for a in plan.calls[i].args),
            filter=_moved(plan.calls[i].filter, mapping),
        )
        for i in calls
    )
    names, kinds = [plan.schema.names[i] for i in kept], [plan.schema.types[i] for i in kept]
    keys = tuple(mapping[i] for i in plan.keys)
    made = l.Aggregate(t.row_of(names, kinds, null=False), below, keys, made_calls, plan.ttl)
    return made, {old: new for new, old in enumerate(kept)}


def _moved(place: int | None, mapping: dict[int, int]) -> int | None:
    return None if place is None else mapping[place]


def _rank(plan: l.Rank, wanted: set[int], shared: set[int]) -> Pruned:
    width = len(plan.input.schema)
    place = width if plan.with_rank else None
    used = {i for i in wanted if i < width} | set(plan.partition) | {i for i, _, _ in plan.order}
    constant = plan.first == plan.last
    below, mapping = _pruned(plan.input, used, shared)
    kept = _some(used)
    below = narrowed(below, mapping, kept)
    mapping = {old: new for new, old in enumerate(kept)}
    ranked = place is not None and place in wanted
    with_rank = ranked and not constant
    names = [plan.input.schema.names[i] for i in kept]
    kinds = [plan.input.schema.types[i] for i in kept]
    tail = [(plan.schema.names[-1], plan.schema.types[-1])] if with_rank else []
    schema = t.row_of([*names, *(n for n, _ in tail)], [*kinds, *(k for _, k in tail)], null=False)
    order = tuple((mapping[i], a, n) for i, a, n in plan.order)
    partition = tuple(mapping[i] for i in plan.partition)
    made: l.Plan = l.Rank(schema, below, plan.function, partition, order, plan.first, plan.last, with_rank)
    if ranked:
        assert place is not None
        mapping[place] = len(kept)
        if constant:
            number: Expression = Lit(t.BIGINT.not_null(), plan.first)
            made = l.project(made, [*made.refs(), number], [*names, plan.schema.names[-1]])
    return made, mapping


def _window(plan: l.WindowTable, wanted: set[int], shared: set[int]) -> Pruned:
    width = len(plan.input.schema)
    used = {i for i in wanted if i < width} | {plan.window.time} | set(plan.window.partition)
    below, mapping = _pruned(plan.input, used, shared)
    kept = _some(used)
    below = narrowed(below, mapping, kept)
    mapping = {old: new for new, old in enumerate(kept)}
    tail = range(width, width + 3)
    names = [*(plan.schema.names[i] for i in kept), *(plan.schema.names[i] for i in tail)]
    kinds = [*(plan.schema.types[i] for i in kept), *(plan.schema.types[i] for i in tail)]
    window = replace(
        plan.window,
        time=mapping[plan.window.time],
        partition=tuple(mapping[i] for i in plan.window.partition),
    )
    for n, i in enumerate(tail):
        mapping[i] = len(kept) + n
    return l.WindowTable(t.row_of(names, kinds, null=False), below, window), mapping


def _union(plan: l.SetOperation, wanted: set[int], shared: set[int]) -> Pruned:
    kept = _some(wanted)
    parts = []
    for part in plan.parts:
        below, mapping = _pruned(part, wanted, shared)
        parts.append(narrowed(below, mapping, kept))
    names, kinds = [plan.schema.names[i] for i in kept], [plan.schema.types[i] for i in kept]
    made = l.SetOperation(t.row_of(names, kinds, null=False), plan.operator, plan.all, tuple(parts))
    return made, {old: new for new, old in enumerate(kept)}
