"""EXPLAIN: plans as text.

Promises: three trees in Flink's order: the plan as written, the optimized plan, the physical plan; with the
requested details.
Does not know: environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millstream.sql.logical import estimates
from millstream.sql.logical import nodes as l
from millstream.sql.physical.nodes import Operation, Origin, walk
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.physical.planning.placement import Placements
from millstream.sql.physical.planning.texts import describe_expression, format_window
from millstream.sql.types import data_types as t

_UNBOUNDED_STATE = frozenset(("Deduplicate", "GroupAggregate", "Join", "OverAggregate", "Rank", "SetOperation"))


def explain_plans(
    plans: Sequence[l.Plan],
    optimised: Sequence[l.Plan],
    operations: Sequence[Operation],
    details: set[str],
    settings: Settings | None = None,
    graph: Callable[[], str] | None = None,
) -> str:
    """Return the text of EXPLAIN; `graph` returns the JSON of the program, for JSON_EXECUTION_PLAN."""
    parts = ["== Abstract Syntax Tree =="]
    parts += [_explain_tree(plan) for plan in plans]
    parts.append("== Optimized Logical Plan ==")
    parts += [_explain_tree(plan, costs="ESTIMATED_COST" in details) for plan in optimised]
    parts.append(explain_operations(operations, details, settings, graph))
    return "\n".join(parts)


def explain_operations(
    operations: Sequence[Operation],
    details: set[str],
    settings: Settings | None = None,
    graph: Callable[[], str] | None = None,
) -> str:
    """Return the part of EXPLAIN about physical plans."""
    parts = ["== Optimized Execution Plan =="]
    placements = None if settings is not None and settings.batch else Placements()  # batch jobs sort in every exchange
    parts += [_list_operations(operation, "CHANGELOG_MODE" in details, placements) for operation in operations]
    if "PLAN_ADVICE" in details:
        parts.append("== Plan Advice ==")
        advices = find_advice(operations, settings or Settings())
        parts += [f"advice[{number}]: {text}" for number, text in enumerate(advices, 1)] or ["no advice"]
        parts.append("")
    if "JSON_EXECUTION_PLAN" in details and graph is not None:
        parts += ["== Physical Execution Plan ==", graph(), ""]
    return "\n".join(parts)


def find_advice(operations: Sequence[Operation], settings: Settings) -> list[str]:
    """Return advice on a plan, for PLAN_ADVICE."""
    names = {node.name for operation in operations for node in walk(operation)}
    stateful = sorted(names & _UNBOUNDED_STATE)
    messages: list[str] = [] if settings.batch else find_warnings(operations)
    if stateful and settings.ttl is None and not settings.batch:
        messages.append(
            f"the state of {', '.join(stateful)} grows with its keys: set 'table.exec.state.ttl' to delete old ones"
        )
    if "GroupAggregate" in names and not (settings.mini_batch or settings.batch):
        messages.append(
            "GroupAggregate emits every change: "
            "with 'table.exec.mini-batch.enabled' = 'true' it emits one per key and epoch"
        )
    return messages


def find_warnings(operations: Sequence[Operation]) -> list[str]:
    """Return warnings about plans that are allowed on a stream but rarely intended: joins without an equality."""
    joins = {
        id(node): node
        for operation in operations
        for node in walk(operation)
        if node.name == "Join" and all(distribution.kind == "single" for distribution in node.distributions)
    }
    messages = []
    for node in joins.values():
        if not any(() in side.upsert_keys or _is_constant(side) for side in node.inputs):
            left, right = map(_list_tables, node.inputs)
            messages.append(
                f"the join of {left} with {right} has no equality: all rows stay in state, and each is paired with "
                "every row of the other side, in one subtask"
            )
    return messages


def _list_tables(operation: Operation) -> str:
    """Return the names of the tables that an operation reads; the columns if no table has a name."""
    names = [node.origin.name[-1] for node in walk(operation) if isinstance(node.origin, Origin)]
    return " and ".join(dict.fromkeys(names)) or f"({', '.join(operation.schema.names)})"


def _is_constant(operation: Operation) -> bool:
    """Return whether rows are computed from constants only, so that their number is bounded."""
    return all(isinstance(node.source, l.Values) for node in walk(operation) if not node.inputs)


def _explain_tree(plan: l.Plan, depth: int = 0, *, costs: bool = False) -> str:
    lines = [f"{_format_indent(depth)}{_explain_logical(plan)}{estimates.estimate_text(plan) if costs else ''}"]
    lines += [_explain_tree(input_plan, depth + 1, costs=costs) for input_plan in plan.inputs()]
    return "\n".join(lines) + ("\n" if depth == 0 else "")


def _format_indent(depth: int) -> str:
    return "" if depth == 0 else "   " * (depth - 1) + "+- "


def _explain_logical(plan: l.Plan) -> str:
    name = f"Logical{type(plan).__name__}"
    match plan:
        case l.Scan(name=path):
            return f"LogicalTableScan(table=[[{', '.join(path)}]])"
        case l.Project(input=inner, exprs=exprs):
            text = ", ".join(
                f"{name_of_column}=[{describe_expression(e, inner.schema)}]"
                for e, name_of_column in zip(exprs, plan.schema.names, strict=True)
            )
            return f"{name}({text})"
        case l.Filter(input=inner, condition=condition):
            return f"{name}(condition=[{describe_expression(condition, inner.schema)}])"
        case l.Join(kind=join_type, condition=condition):
            text = "true" if condition is None else describe_expression(condition, _join_schemas(plan))
            return f"{name}(condition=[{text}], joinType=[{join_type}])"
        case l.Aggregate(input=inner, keys=keys):
            return f"{name}(group=[{{{', '.join(inner.schema.names[i] for i in keys)}}}])"
        case l.WindowTable(input=inner, window=window):
            return f"{name}({format_window(window, inner.schema)})"
        case l.Sort(input=inner, order=order, limit=limit):
            keys_text = ", ".join(f"{inner.schema.names[i]} {'ASC' if up else 'DESC'}" for i, up, _ in order)
            return f"{name}(sort=[{keys_text}]{f', fetch=[{limit}]' if limit is not None else ''})"
        case l.Rank(first=first, last=last):
            return f"{name}(range=[{first}..{last}])"
        case l.ToChangelog(codes=codes):
            return f"{name}(op_mapping=[{', '.join(f'{l.ROW_KINDS[join_type]}={code}' for join_type, code in codes)}])"
        case l.FromChangelog(codes=codes):
            return f"{name}(op_mapping=[{', '.join(f'{code}={l.ROW_KINDS[join_type]}' for code, join_type in codes)}])"
        case l.Sink(name=path):
            return f"LogicalSink(table=[{'.'.join(path)}], fields=[{', '.join(plan.schema.names)}])"
    return name


def _join_schemas(join: l.Join) -> t.RowType:
    return l.join_schemas(join.left.schema, join.right.schema, "inner")


def _list_operations(operation: Operation, modes: bool, placements: Placements | None, depth: int = 0) -> str:
    text = operation.detail
    if modes:
        text += f"{', ' if text else ''}changelogMode=[{operation.mode.value}]"
    lines = [f"{_format_indent(depth)}{operation.name}({text})"]
    for side, (input_operation, distribution) in enumerate(zip(operation.inputs, operation.distributions, strict=True)):
        if distribution.kind == "forward" or (placements is not None and placements.in_place(operation, side)):
            lines.append(_list_operations(input_operation, modes, placements, depth + 1))
        else:
            keys = ", ".join(input_operation.schema.names[i] for i in distribution.keys)
            distribution_text = f"hash[{keys}]" if distribution.kind == "hash" else "single"
            lines.append(f"{_format_indent(depth + 1)}Exchange(distribution=[{distribution_text}])")
            lines.append(_list_operations(input_operation, modes, placements, depth + 2))
    return "\n".join(lines) + ("\n" if depth == 0 else "")
