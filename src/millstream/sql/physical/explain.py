"""EXPLAIN: plans as text.

Promises: three trees in Flink's order: as written, optimised, physical; with details where they are asked for.
Does not know: environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millstream.sql.logical import estimates
from millstream.sql.logical import nodes as l
from millstream.sql.physical.nodes import Operation, Origin, walk
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.physical.planning.placement import Placements
from millstream.sql.physical.planning.texts import described, window_text
from millstream.sql.types import data_types as t

_KEEPS_ALL = frozenset(("Deduplicate", "GroupAggregate", "Join", "OverAggregate", "Rank", "SetOperation"))


def explained(
    plans: Sequence[l.Plan],
    optimised: Sequence[l.Plan],
    operations: Sequence[Operation],
    details: set[str],
    settings: Settings | None = None,
    graph: Callable[[], str] | None = None,
) -> str:
    """The text of EXPLAIN; `graph` makes the JSON of the program, where it is asked for."""
    parts = ["== Abstract Syntax Tree =="]
    parts += [_tree(plan) for plan in plans]
    parts.append("== Optimized Logical Plan ==")
    parts += [_tree(plan, costs="ESTIMATED_COST" in details) for plan in optimised]
    parts.append(explained_operations(operations, details, settings, graph))
    return "\n".join(parts)


def explained_operations(
    operations: Sequence[Operation],
    details: set[str],
    settings: Settings | None = None,
    graph: Callable[[], str] | None = None,
) -> str:
    """The physical part of EXPLAIN."""
    parts = ["== Optimized Execution Plan =="]
    placements = None if settings is not None and settings.batch else Placements()  # a batch sorts in its exchanges
    parts += [_operations(each, "CHANGELOG_MODE" in details, placements) for each in operations]
    if "PLAN_ADVICE" in details:
        parts.append("== Plan Advice ==")
        found = advice(operations, settings or Settings())
        parts += [f"advice[{number}]: {text}" for number, text in enumerate(found, 1)] or ["no advice"]
        parts.append("")
    if "JSON_EXECUTION_PLAN" in details and graph is not None:
        parts += ["== Physical Execution Plan ==", graph(), ""]
    return "\n".join(parts)


def advice(operations: Sequence[Operation], settings: Settings) -> list[str]:
    """What may be done better."""
    named = {each.name for operation in operations for each in walk(operation)}
    growing = sorted(named & _KEEPS_ALL)
    made: list[str] = [] if settings.batch else warnings(operations)
    if growing and settings.ttl is None and not settings.batch:
        made.append(
            f"the state of {', '.join(growing)} grows with its keys: set 'table.exec.state.ttl' if old ones may go"
        )
    if "GroupAggregate" in named and not (settings.mini_batch or settings.batch):
        made.append("GroupAggregate tells every change: 'table.exec.mini-batch.enabled' = 'true' tells one an epoch")
    return made


def warnings(operations: Sequence[Operation]) -> list[str]:
    """What is allowed on a stream, and rarely meant: joins that pair every row with every other."""
    joins = {
        id(each): each
        for operation in operations
        for each in walk(operation)
        if each.name == "Join" and all(where.kind == "single" for where in each.distributions)
    }
    made = []
    for each in joins.values():
        if not any(() in side.upsert_keys or _constant(side) for side in each.inputs):
            one, other = map(_tables, each.inputs)
            made.append(
                f"the join of {one} with {other} has no equality: every row is kept for ever and paired with every row "
                "of the other side, in one subtask"
            )
    return made


def _tables(operation: Operation) -> str:
    """The tables whose rows come out of an operation; its columns where none has a name."""
    names = [each.origin.name[-1] for each in walk(operation) if isinstance(each.origin, Origin)]
    return " and ".join(dict.fromkeys(names)) or f"({', '.join(operation.schema.names)})"


def _constant(operation: Operation) -> bool:
    """Whether rows are made of constants alone: they do not grow."""
    return all(isinstance(each.source, l.Values) for each in walk(operation) if not each.inputs)


def _tree(plan: l.Plan, depth: int = 0, *, costs: bool = False) -> str:
    lines = [f"{_indent(depth)}{_logical(plan)}{estimates.text(plan) if costs else ''}"]
    lines += [_tree(each, depth + 1, costs=costs) for each in plan.inputs()]
    return "\n".join(lines) + ("\n" if depth == 0 else "")


def _indent(depth: int) -> str:
    return "" if depth == 0 else "   " * (depth - 1) + "+- "


def _logical(plan: l.Plan) -> str:
    name = f"Logical{type(plan).__name__}"
    match plan:
        case l.Scan(name=path):
            return f"LogicalTableScan(table=[[{', '.join(path)}]])"
        case l.Project(input=inner, exprs=exprs):
            shown = ", ".join(
                f"{n}=[{described(e, inner.schema)}]" for e, n in zip(exprs, plan.schema.names, strict=True)
            )
            return f"{name}({shown})"
        case l.Filter(input=inner, condition=condition):
            return f"{name}(condition=[{described(condition, inner.schema)}])"
        case l.Join(kind=kind, condition=condition):
            shown = "true" if condition is None else described(condition, _both(plan))
            return f"{name}(condition=[{shown}], joinType=[{kind}])"
        case l.Aggregate(input=inner, keys=keys):
            return f"{name}(group=[{{{', '.join(inner.schema.names[i] for i in keys)}}}])"
        case l.WindowTable(input=inner, window=window):
            return f"{name}({window_text(window, inner.schema)})"
        case l.Sort(input=inner, order=order, limit=limit):
            keys_text = ", ".join(f"{inner.schema.names[i]} {'ASC' if up else 'DESC'}" for i, up, _ in order)
            return f"{name}(sort=[{keys_text}]{f', fetch=[{limit}]' if limit is not None else ''})"
        case l.Rank(first=first, last=last):
            return f"{name}(range=[{first}..{last}])"
        case l.ToChangelog(codes=codes):
            return f"{name}(op_mapping=[{', '.join(f'{l.CHANGES[kind]}={code}' for kind, code in codes)}])"
        case l.FromChangelog(codes=codes):
            return f"{name}(op_mapping=[{', '.join(f'{code}={l.CHANGES[kind]}' for code, kind in codes)}])"
        case l.Sink(name=path):
            return f"LogicalSink(table=[{'.'.join(path)}], fields=[{', '.join(plan.schema.names)}])"
    return name


def _both(join: l.Join) -> t.RowType:
    return l.joined_schema(join.left.schema, join.right.schema, "inner")


def _operations(operation: Operation, modes: bool, placements: Placements | None, depth: int = 0) -> str:
    inside = operation.detail
    if modes:
        inside += f"{', ' if inside else ''}changelogMode=[{operation.mode.value}]"
    lines = [f"{_indent(depth)}{operation.name}({inside})"]
    for side, (each, where) in enumerate(zip(operation.inputs, operation.distributions, strict=True)):
        if where.kind == "forward" or (placements is not None and placements.in_place(operation, side)):
            lines.append(_operations(each, modes, placements, depth + 1))
        else:
            keys = ", ".join(each.schema.names[i] for i in where.keys)
            how = f"hash[{keys}]" if where.kind == "hash" else "single"
            lines.append(f"{_indent(depth + 1)}Exchange(distribution=[{how}])")
            lines.append(_operations(each, modes, placements, depth + 2))
    return "\n".join(lines) + ("\n" if depth == 0 else "")
