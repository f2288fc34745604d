"""Remove columns that no node above reads.

Promises: the rows and columns of the whole plan do not change; joins, ranks and aggregates keep only columns in state
that are read.
Does not know: connectors; a connector decides which columns a scan reads."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.expressions.nodes import Expression, Lit, Ref, find_references, shift_references
from millstream.sql.logical import nodes as l
from millstream.sql.types import data_types as t


def prune_columns(plan: l.Plan) -> l.Plan:
    """Prune unread columns. A plan that several nodes read is not changed, so that it stays one shared plan."""
    uses: dict[int, int] = {}
    _count(plan, uses)
    shared = {key for key, count in uses.items() if count > 1}
    pruned, mapping = _prune(plan, set(range(len(plan.schema))), shared)
    return pruned if list(mapping.values()) == list(range(len(plan.schema))) else plan


def _count(plan: l.Plan, uses: dict[int, int]) -> None:
    uses[id(plan)] = uses.get(id(plan), 0) + 1
    if uses[id(plan)] == 1:
        for input_plan in plan.inputs():
            _count(input_plan, uses)


Pruned = tuple[l.Plan, dict[int, int]]  # the plan, and the new column index of each kept column


def _map_identically(plan: l.Plan) -> dict[int, int]:
    return {i: i for i in range(len(plan.schema))}


def _prune(plan: l.Plan, wanted: set[int], shared: set[int]) -> Pruned:
    if id(plan) in shared and not isinstance(plan, l.Scan):
        return _keep_all(plan, shared)
    match plan:
        case l.Project():
            return _project(plan, wanted, shared)
        case l.Filter():
            below, mapping = _prune(plan.input, wanted | find_references(plan.condition), shared)
            return l.Filter(below.schema, below, shift_references(plan.condition, mapping)), mapping
        case l.Join():
            return _join(plan, wanted, shared)
        case l.TemporalJoin():
            return _prune_temporal(plan, wanted, shared)
        case l.Aggregate():
            return _aggregate(plan, wanted, shared)
        case l.Rank():
            return _rank(plan, wanted, shared)
        case l.WindowTable():
            return _prune_window(plan, wanted, shared)
        case l.SetOperation() if plan.operator == "UNION":
            return _prune_union(plan, wanted, shared)
    return _keep_all(plan, shared)


def _keep_all(plan: l.Plan, shared: set[int]) -> Pruned:
    """Keep all columns of a node, and prune within each of its inputs."""
    inputs = []
    for input_plan in plan.inputs():
        below, mapping = _prune(input_plan, set(range(len(input_plan.schema))), shared)
        inputs.append(below if len(mapping) == len(input_plan.schema) else input_plan)
    is_unchanged = all(after is before for after, before in zip(inputs, plan.inputs(), strict=True))
    return (plan if is_unchanged else plan.with_inputs(tuple(inputs))), _map_identically(plan)


def _project(plan: l.Project, wanted: set[int], shared: set[int]) -> Pruned:
    kept = sorted(wanted)
    exprs = [plan.exprs[i] for i in kept]
    needed = set().union(*(find_references(expr) for expr in exprs)) if exprs else set()
    below, mapping = _prune(plan.input, needed, shared)
    schema = t.row_of([plan.schema.names[i] for i in kept], [plan.schema.types[i] for i in kept], null=False)
    pruned = l.Project(schema, below, tuple(shift_references(expr, mapping) for expr in exprs))
    return pruned, {old: new for new, old in enumerate(kept)}


def select_columns(plan: l.Plan, mapping: dict[int, int], wanted: list[int]) -> l.Plan:
    """Project a plan to the wanted columns, given the current index of each column."""
    indices = [mapping[i] for i in wanted]
    if indices == list(range(len(plan.schema))):
        return plan
    refs = [Ref(plan.schema.types[i], i) for i in indices]
    return l.project(plan, refs, [plan.schema.names[i] for i in indices])


def _join(plan: l.Join, wanted: set[int], shared: set[int]) -> Pruned:
    width = len(plan.left.schema)
    used = wanted | (find_references(plan.condition) if plan.condition is not None else set())
    lefts = sorted({i for i in used if i < width})
    rights = sorted({i - width for i in used if i >= width})
    left, left_map = _prune(plan.left, set(lefts), shared)
    right, right_map = _prune(plan.right, set(rights), shared)
    left, right = select_columns(left, left_map, lefts), select_columns(right, right_map, rights)
    mapping = {old: new for new, old in enumerate(lefts)}
    mapping.update({old + width: len(lefts) + new for new, old in enumerate(rights)})
    condition = None if plan.condition is None else shift_references(plan.condition, mapping)
    is_semi = plan.kind in ("semi", "anti")
    chosen = lefts if is_semi else [*lefts, *(i + width for i in rights)]
    names = [plan.schema.names[i] for i in chosen]
    schema = t.row_of(names, [plan.schema.types[i] for i in chosen], null=False)
    pruned = l.Join(schema, left, right, plan.kind, condition, plan.null_aware, plan.ttl)
    return pruned, {i: mapping[i] for i in chosen}


def _prune_temporal(plan: l.TemporalJoin, wanted: set[int], shared: set[int]) -> Pruned:
    """Prune like a join; keys and time attributes of both sides stay."""
    width = len(plan.left.schema)
    used = wanted | (find_references(plan.condition) if plan.condition is not None else set())
    times = {i for i, data_type in enumerate(plan.right.schema.types) if t.get_time_attribute(data_type) == t.ROWTIME}
    lefts = sorted({i for i in used if i < width} | {plan.time, *plan.left_keys})
    rights = sorted({i - width for i in used if i >= width} | times | set(plan.right_keys))
    left, left_map = _prune(plan.left, set(lefts), shared)
    right, right_map = _prune(plan.right, set(rights), shared)
    mapping = {old: new for new, old in enumerate(lefts)}
    mapping.update({old + width: len(lefts) + new for new, old in enumerate(rights)})
    chosen = [*lefts, *(i + width for i in rights)]
    schema = t.row_of([plan.schema.names[i] for i in chosen], [plan.schema.types[i] for i in chosen], null=False)
    pruned = replace(
        plan,
        schema=schema,
        left=select_columns(left, left_map, lefts),
        right=select_columns(right, right_map, rights),
        time=mapping[plan.time],
        left_keys=tuple(mapping[i] for i in plan.left_keys),
        right_keys=tuple(rights.index(i) for i in plan.right_keys),
        condition=None if plan.condition is None else shift_references(plan.condition, mapping),
    )
    return pruned, mapping


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
    below, mapping = _prune(plan.input, needed, shared)
    kept_calls = tuple(
        replace(
            plan.calls[i],
            args=tuple(mapping[a] for a in plan.calls[i].args),
            filter=_map_index(plan.calls[i].filter, mapping),
        )
        for i in calls
    )
    names, data_types = [plan.schema.names[i] for i in kept], [plan.schema.types[i] for i in kept]
    keys = tuple(mapping[i] for i in plan.keys)
    pruned = replace(plan, schema=t.row_of(names, data_types, null=False), input=below, keys=keys, calls=kept_calls)
    return pruned, {old: new for new, old in enumerate(kept)}


def _map_index(index: int | None, mapping: dict[int, int]) -> int | None:
    return None if index is None else mapping[index]


def _rank(plan: l.Rank, wanted: set[int], shared: set[int]) -> Pruned:
    width = len(plan.input.schema)
    rank_index = width if plan.with_rank else None
    used = {i for i in wanted if i < width} | set(plan.partition) | {i for i, _, _ in plan.order}
    constant = plan.first == plan.last
    below, mapping = _prune(plan.input, used, shared)
    kept = sorted(used)
    below = select_columns(below, mapping, kept)
    mapping = {old: new for new, old in enumerate(kept)}
    rank_is_read = rank_index is not None and rank_index in wanted
    with_rank = rank_is_read and not constant
    names = [plan.input.schema.names[i] for i in kept]
    data_types = [plan.input.schema.types[i] for i in kept]
    tail = [(plan.schema.names[-1], plan.schema.types[-1])] if with_rank else []
    schema = t.row_of([*names, *(n for n, _ in tail)], [*data_types, *(k for _, k in tail)], null=False)
    order = tuple((mapping[i], a, n) for i, a, n in plan.order)
    partition = tuple(mapping[i] for i in plan.partition)
    pruned: l.Plan = l.Rank(schema, below, plan.function, partition, order, plan.first, plan.last, with_rank)
    if rank_is_read:
        assert rank_index is not None
        mapping[rank_index] = len(kept)
        if constant:
            number: Expression = Lit(t.BIGINT.not_null(), plan.first)
            pruned = l.project(pruned, [*pruned.refs(), number], [*names, plan.schema.names[-1]])
    return pruned, mapping


def _prune_window(plan: l.WindowTable, wanted: set[int], shared: set[int]) -> Pruned:
    width = len(plan.input.schema)
    used = {i for i in wanted if i < width} | {plan.window.time} | set(plan.window.partition)
    below, mapping = _prune(plan.input, used, shared)
    kept = sorted(used)
    below = select_columns(below, mapping, kept)
    mapping = {old: new for new, old in enumerate(kept)}
    tail = range(width, width + 3)
    names = [*(plan.schema.names[i] for i in kept), *(plan.schema.names[i] for i in tail)]
    data_types = [*(plan.schema.types[i] for i in kept), *(plan.schema.types[i] for i in tail)]
    window = replace(
        plan.window,
        time=mapping[plan.window.time],
        partition=tuple(mapping[i] for i in plan.window.partition),
    )
    for n, i in enumerate(tail):
        mapping[i] = len(kept) + n
    return l.WindowTable(t.row_of(names, data_types, null=False), below, window), mapping


def _prune_union(plan: l.SetOperation, wanted: set[int], shared: set[int]) -> Pruned:
    kept = sorted(wanted)
    parts = []
    for part in plan.parts:
        below, mapping = _prune(part, wanted, shared)
        parts.append(select_columns(below, mapping, kept))
    names, data_types = [plan.schema.names[i] for i in kept], [plan.schema.types[i] for i in kept]
    pruned = l.SetOperation(t.row_of(names, data_types, null=False), plan.operator, plan.all, tuple(parts))
    return pruned, {old: new for new, old in enumerate(kept)}
