"""Fixtures of SQL plans: how they are read, planned and written as text.

A fixture of a rule has `rule` and `sql`; `before` is the logical plan that the rule gets and `after` its result.
A fixture of a physical decision has `decision` and `sql`; `before` is the logical plan after all rules and `after` the
physical plan. `otherwise` is the same with another query or other options, where the decision is not taken."""

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
    """A session that knows the tables of `tables.yaml`."""
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
    """The plan before and after the rule of a fixture, as text."""
    env = environment(fixture.get("options", {}))
    (plan,) = env._bind_statement(parse_statement(fixture["sql"]))
    for rule in RULES:
        if rule.__name__ == fixture["rule"]:
            return logical_text(plan), logical_text(rule(plan))
        plan = rule(plan)
    assert fixture["rule"] == "split_distinct", f"there is no rule {fixture['rule']}"
    split = split_distinct(_first_aggregate(plan), buckets=16)
    return logical_text(_first_aggregate(plan)), "unchanged\n" if split is None else logical_text(split)


def plan_physical(fixture: dict[str, Any]) -> tuple[str, str]:
    """The logical plan after all rules and the physical plan of a fixture, as text."""
    env = environment(fixture.get("options", {}))
    planner = env._planner()
    plans = env._bind_statement(parse_statement(fixture["sql"]))
    before = "".join(logical_text(planner.optimize(plan), reads=False) for plan in plans)
    placements = None if planner.settings.batch else Placements()
    return before, "".join(physical_text(each, placements) for each in planner.plan(plans))


def _first_aggregate(plan: l.Plan) -> l.Aggregate:
    while not isinstance(plan, l.Aggregate):
        (plan,) = plan.inputs()
    return plan


# --------------------------------------------------------------------------------------------------------------- texts


def logical_text(plan: l.Plan, *, reads: bool = True) -> str:
    """A logical plan with the columns of each node and those that a scan reads; a part that is used again is named by a
    number."""
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
            text += f" {', '.join(map(_call_text, node.calls))}"
        if reads and isinstance(node, l.Scan) and node.wanted is not None:
            text += f" reads {_wanted_text(node.wanted, node.schema)}"
        if uses[id(node)] > 1:
            numbers[id(node)] = len(numbers) + 1
            text += f" #{numbers[id(node)]}"
        made = [f"{indent}{text} -> {', '.join(node.schema.names)}"]
        return [*made, *(line for each in node.inputs() for line in lines(each, depth + 1))]

    return _shorten("\n".join(lines(plan, 0)) + "\n")


def _shorten(text: str) -> str:
    return text.replace("[default_catalog, default_database, ", "[").replace("default_catalog.default_database.", "")


def _call_text(call: Any) -> str:
    return f"{call.function}({'DISTINCT ' if call.distinct else ''}{', '.join(f'${i}' for i in call.args)})"


def _wanted_text(wanted: Any, row: Any) -> str:
    parts = []
    for place, inner in wanted:
        name = row.names[place]
        parts.append(name if inner is None else f"{name}{_wanted_text(inner, row.types[place])}")
    return f"[{', '.join(parts)}]"


def physical_text(operation: Operation, placements: Placements | None, depth: int = 0) -> str:
    """A physical plan with its exchanges, and with the changelog mode and the spec of each operator."""
    indent = "  " * depth
    spec: Any = operation.spec
    shown = ""
    if spec is not None:
        flags = [each.name for each in dataclasses.fields(spec) if getattr(spec, each.name) is True]
        shown = f" {type(spec).__name__}({', '.join(flags)})"
    lines = [f"{indent}{operation.name}({operation.detail}) {operation.mode.value}{shown}\n"]
    for side, (each, where) in enumerate(zip(operation.inputs, operation.distributions, strict=True)):
        in_place = placements is not None and placements.in_place(operation, side)
        if where.kind == "forward":
            lines.append(physical_text(each, placements, depth + 1))
        else:
            keys = ", ".join(each.schema.names[i] for i in where.keys)
            how = f"{where.kind}[{keys}]" if where.kind == "hash" else where.kind
            lines.append(f"{indent}  {'in place' if in_place else 'exchange'} {how}\n")
            lines.append(physical_text(each, placements, depth + 2))
    return _shorten("".join(lines))
