"""Fixtures of SQL plans: they are read, planned, and formatted as text.

A fixture of a rule has `rule` and `sql`; `before` is the logical plan that the rule gets and `after` its result.
A fixture of a physical decision has `decision` and `sql`; `before` is the logical plan after all rules and `after` the
physical plan. `otherwise` is a query, or options, for which the decision is different."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from millstream.sql.connectors.simple import register_values
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rules import RULES
from millstream.sql.logical.rules.split_distinct import split_distinct
from millstream.sql.physical import explain
from millstream.sql.physical.nodes import Operation
from millstream.sql.physical.planning.placement import Placements
from millstream.sql.syntax.parse import parse_statement
from millstream.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parent
RULE_FILES = sorted((HERE / "rules").glob("*.yaml"))
PHYSICAL_FILES = sorted((HERE / "physical").glob("*.yaml"))

Rule = Callable[[l.Plan], l.Plan]


def load(path: Path) -> dict[str, Any]:
    """Read a fixture."""
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    return content


def environment(options: dict[str, str]) -> TableEnvironment:
    """Return a session with the tables of `tables.yaml`."""
    batch = options.get("execution.runtime-mode") == "batch"
    settings = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    env = TableEnvironment.create(settings)
    for key, value in options.items():
        env.get_config().set(key, str(value))
    for name in ("orders", "payments", "stock", "prices", "rates", "customers"):
        register_values(name, [])
    for statement in load(HERE / "tables.yaml")["tables"]:
        env.execute_sql(statement)
    return env


def plan_rule(fixture: dict[str, Any]) -> tuple[str, str]:
    """Return the plan before and after the rule of a fixture, as text."""
    env = environment(fixture.get("options", {}))
    (plan,) = env._bind_statement(parse_statement(fixture["sql"]))
    for rule in RULES:
        if rule.__name__ == fixture["rule"]:
            return format_logical(plan), format_logical(rule(plan))
        plan = rule(plan)
    assert fixture["rule"] == "split_distinct", f"there is no rule {fixture['rule']}"
    split = split_distinct(_first_aggregate(plan), buckets=16)
    return format_logical(_first_aggregate(plan)), "unchanged\n" if split is None else format_logical(split)


def plan_physical(fixture: dict[str, Any]) -> tuple[str, str]:
    """Return the logical plan after all rules and the physical plan of a fixture, as text."""
    env = environment(fixture.get("options", {}))
    planner = env._planner()
    plans = env._bind_statement(parse_statement(fixture["sql"]))
    before = "".join(format_logical(planner.optimize(plan), reads=False) for plan in plans)
    placements = None if planner.settings.batch else Placements()
    return before, "".join(format_physical(each, placements) for each in planner.plan(plans))


def _first_aggregate(plan: l.Plan) -> l.Aggregate:
    while not isinstance(plan, l.Aggregate):
        (plan,) = plan.inputs()
    return plan


# --------------------------------------------------------------------------------------------------------------- texts


def format_logical(plan: l.Plan, *, reads: bool = True) -> str:
    """Format a logical plan with the columns of each node and those that a scan reads; shared subplans have numbers."""
    uses: dict[int, int] = {}

    def count(node: l.Plan) -> None:
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1:
            for each in node.inputs():
                count(each)

    count(plan)
    numbers: dict[int, int] = {}

    def lines(node: l.Plan, depth: int) -> list[str]:
        indent = "  " * depth
        if id(node) in numbers:
            return [f"{indent}again #{numbers[id(node)]}"]
        text = explain._explain_logical(node).removeprefix("Logical")
        if isinstance(node, l.Aggregate):
            text += f" {', '.join(map(_format_call, node.calls))}"
        if reads and isinstance(node, l.Scan) and node.wanted is not None:
            text += f" reads {_format_selection(node.wanted, node.schema)}"
        if uses[id(node)] > 1:
            numbers[id(node)] = len(numbers) + 1
            text += f" #{numbers[id(node)]}"
        text_lines = [f"{indent}{text} -> {', '.join(node.schema.names)}"]
        return [*text_lines, *(line for each in node.inputs() for line in lines(each, depth + 1))]

    return _shorten("\n".join(lines(plan, 0)) + "\n")


def _shorten(text: str) -> str:
    return text.replace("[default_catalog, default_database, ", "[").replace("default_catalog.default_database.", "")


def _format_call(call: Any) -> str:
    return f"{call.function}({'DISTINCT ' if call.distinct else ''}{', '.join(f'${i}' for i in call.args)})"


def _format_selection(wanted: Any, row: Any) -> str:
    parts = []
    for column_index, inner in wanted:
        name = row.names[column_index]
        parts.append(name if inner is None else f"{name}{_format_selection(inner, row.types[column_index])}")
    return f"[{', '.join(parts)}]"


def format_physical(operation: Operation, placements: Placements | None, depth: int = 0) -> str:
    """Format a physical plan with its exchanges, and with the changelog mode and the spec of each operator."""
    indent = "  " * depth
    spec: Any = operation.spec
    spec_text = ""
    if spec is not None:
        flags = [each.name for each in dataclasses.fields(spec) if getattr(spec, each.name) is True]
        spec_text = f" {type(spec).__name__}({', '.join(flags)})"
    lines = [f"{indent}{operation.name}({operation.detail}) {operation.mode.value}{spec_text}\n"]
    for side, (each, where) in enumerate(zip(operation.inputs, operation.distributions, strict=True)):
        in_place = placements is not None and placements.in_place(operation, side)
        if where.kind == "forward":
            lines.append(format_physical(each, placements, depth + 1))
        else:
            keys = ", ".join(each.schema.names[i] for i in where.keys)
            how = f"{where.kind}[{keys}]" if where.kind == "hash" else where.kind
            lines.append(f"{indent}  {'in place' if in_place else 'exchange'} {how}\n")
            lines.append(format_physical(each, placements, depth + 2))
    return _shorten("".join(lines))
