"""Execution plans as text, JSON and Mermaid.

Promises: the same graph gives the same text; names are shown so that they cannot move a terminal's cursor or break out
of a diagram; the JSON is Flink's plan format, field for field.
Does not know: how a plan is drawn (picture.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.graph.execution_plan import ExecutionPlan, PlannedVertex
from millstream.graph.job_graph import JobEdge, JobVertex
from millstream.graph.loops import loops_of
from millstream.graph.stream_graph import StreamEdge, StreamGraph, StreamNode
from millstream.graph.transformations import DEFAULT_SLOT_GROUP
from millstream.runtime.operators.loop import HeadSpec, TailSpec
from millstream.runtime.partitioners import Hash

_RANGES_SHOWN = 8
_PLAIN_IN_MERMAID = frozenset(" _-(),:=/.'+*")


# --------------------------------------------------------------------------------------------- used by all forms


@dataclass(frozen=True)
class ChainRow:
    """One operator of a chain; `depth` grows where the chain forks, `tag` is the side output it reads."""

    node: StreamNode
    depth: int = 0
    tag: str | None = None


def printable(name: str) -> str:
    """Return a name on one line, with invisible characters escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in name
    )


def number_vertices(plan: ExecutionPlan) -> dict[str, int]:
    """Return a short number for each vertex, by level, for texts and pictures."""
    by_level = sorted(plan.vertices, key=lambda planned: planned.level)
    return {planned.vertex.id: number for number, planned in enumerate(by_level, 1)}


def describe_counts(plan: ExecutionPlan) -> list[str]:
    """Return the numbers of levels, vertices, exchanges and slots, as text."""
    return [
        _count(plan.levels, "level"),
        _count(len(plan.vertices), "vertex", "vertices"),
        _count(len(plan.job.edges), "exchange"),
        _count(plan.slots, "slot"),
    ]


def operator_category(node: StreamNode) -> str:
    """Return `source`, `sink`, `keyed`, or `head` or `tail` of an iteration; empty for other operators."""
    if isinstance(node.spec, HeadSpec | TailSpec):
        return "head" if isinstance(node.spec, HeadSpec) else "tail"
    if node.source is not None:
        return "source"
    if node.sink is not None:
        return "sink"
    return "keyed" if node.key_type is not None else ""


def chain_rows(vertex: JobVertex) -> list[ChainRow]:
    """Return the operators of a chain, each after its input."""
    nodes = {node.id: node for node in vertex.nodes}
    edges_below: dict[int, list[StreamEdge]] = {}
    for edge in vertex.inner:
        edges_below.setdefault(edge.upstream, []).append(edge)
    rows: list[ChainRow] = []
    pending = [ChainRow(vertex.nodes[0])]
    while pending:
        row = pending.pop()
        rows.append(row)
        edges = edges_below.get(row.node.id, ())
        depth = row.depth + (len(edges) > 1)
        pending += [ChainRow(nodes[edge.downstream], depth, edge.tag) for edge in reversed(edges)]
    return rows


def key_group_ranges(planned: PlannedVertex) -> str:
    """Return the key groups of each subtask; empty for a vertex without keys."""
    has_keyed_operator = any(node.key_type is not None for node in planned.vertex.nodes)
    if not has_keyed_operator and not any(isinstance(edge.partitioner, Hash) for edge in planned.task.inputs):
        return ""
    count = planned.task.parallelism
    subtasks = list(range(count)) if count <= _RANGES_SHOWN else [*range(_RANGES_SHOWN - 2), -1, count - 1]
    ranges = (planned.key_groups(subtask) if subtask >= 0 else None for subtask in subtasks)
    return " ".join("..." if key_groups is None else f"{key_groups.start}-{key_groups.end}" for key_groups in ranges)


@dataclass(frozen=True)
class Feedback:
    """The feedback edge from the tail of an iteration to its head, which is read in the next round."""

    loop: str
    tail: StreamNode
    head: StreamNode
    from_vertex: str
    to_vertex: str


def feedback_edges(plan: ExecutionPlan) -> list[Feedback]:
    """Return the feedback of all iterations of a plan."""
    nodes = {node.operator: (node, vertex.id) for vertex in plan.job.vertices for node in vertex.nodes}
    edges = []
    for loop in loops_of(plan):
        for head, tail in loop.pairs:
            (to, to_vertex), (come_from, from_vertex) = nodes[head], nodes[tail]
            edges.append(Feedback(loop.config.name, come_from, to, from_vertex, to_vertex))
    return edges


def exchange_label(edge: JobEdge) -> str:
    """Return the partitioner, with the side output of the exchange."""
    tag = edge.stream_edge.tag
    return edge.stream_edge.partitioner.name + ("" if tag is None else f" '{printable(tag)}'")


# ------------------------------------------------------------------------------------------------------------- text


def text(plan: ExecutionPlan) -> str:
    """Return the plan as text: levels, chains, and exchanges with their reasons."""
    numbers = number_vertices(plan)
    lines = [f"job '{printable(plan.job.name)}': {', '.join(describe_counts(plan))}"]
    for level in range(plan.levels):
        lines += ["", f"level {level}"]
        for planned in plan.at_level(level):
            lines += _vertex_lines(plan, planned, numbers)
    return "\n".join(lines) + "\n"


def _vertex_lines(plan: ExecutionPlan, planned: PlannedVertex, numbers: dict[str, int]) -> list[str]:
    vertex = planned.vertex
    facts = [f"parallelism {vertex.parallelism} (at most {vertex.max_parallelism})"]
    ranges = key_group_ranges(planned)
    if ranges:
        facts.append(f"key groups {ranges}")
    if vertex.nodes[0].slot_group != DEFAULT_SLOT_GROUP:
        facts.append(f"slot sharing group '{printable(vertex.nodes[0].slot_group)}'")
    lines = [f"  [{numbers[vertex.id]}] {', '.join(facts)}"]
    rows = [
        (
            operator_category(row.node),
            "  " * row.depth
            + printable(row.node.name)
            + ("" if row.tag is None else f" (reads '{printable(row.tag)}')"),
            "" if row.node.uid is None else f"uid {printable(row.node.uid)}",
            row.node.operator,
        )
        for row in chain_rows(vertex)
    ]
    lines += [f"      {line}" for line in align_columns(rows)]
    names = {node.id: printable(node.name) for node in vertex.nodes}
    exchanges = [
        (
            f"-> [{numbers[edge.downstream]}]"
            + (f" input {edge.stream_edge.side + 1}" if edge.stream_edge.side else ""),
            exchange_label(edge),
            f"from {names[edge.stream_edge.upstream]}" if len(names) > 1 else "",
            edge.reason.value,
        )
        for edge in plan.job.edges
        if edge.upstream == vertex.id
    ]
    lines += [f"      {line}" for line in align_columns(exchanges)]
    lines += [
        f"      -> [{numbers[feedback.to_vertex]}]  FEEDBACK  from {printable(feedback.tail.name)}  in the next round"
        for feedback in feedback_edges(plan)
        if feedback.from_vertex == vertex.id
    ]
    return lines


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with columns of equal width; a column that is empty in all rows is left out."""
    used = [column for column in zip(*rows, strict=True) if any(column)]
    padded = ([cell.ljust(max(map(len, column))) for cell in column] for column in used)
    return ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]


def _count(count: int, singular: str, plural: str = "") -> str:
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


# ------------------------------------------------------------------------------------------------------------- JSON


def flink_json(graph: StreamGraph) -> str:
    """Return the plan in the form of Flink's `get_execution_plan()`: sinks last, every predecessor with side
    "second"."""
    ordered = sorted(graph.nodes, key=lambda node: (node.sink is not None, node.id))
    return json.dumps({"nodes": [_json_node(graph, node) for node in ordered]}, indent=2)


def _json_node(graph: StreamGraph, node: StreamNode) -> dict[str, Any]:
    pact = "Data Source" if node.source is not None else "Data Sink" if node.sink is not None else "Operator"
    description: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": pact,
        "contents": node.description or node.name,
        "parallelism": node.parallelism,
    }
    # Flink always writes "second" here, and its visualizer ignores the value.
    predecessors = [
        {"id": edge.upstream, "ship_strategy": edge.partitioner.name, "side": "second"}
        for edge in graph.inputs(node.id)
    ]
    return {**description, "predecessors": predecessors} if predecessors else description


# ---------------------------------------------------------------------------------------------------------- Mermaid


def mermaid(plan: ExecutionPlan) -> str:
    """Return the plan as a Mermaid flowchart: a box for each level, and in it a box for each chain."""
    numbers = number_vertices(plan)
    lines = ["flowchart LR"]
    for level in range(plan.levels):
        lines.append(f'  subgraph L{level}["level {level}"]')
        for planned in plan.at_level(level):
            lines += _mermaid_vertex(planned.vertex, numbers[planned.vertex.id])
        lines.append("  end")
    for edge in plan.job.edges:
        ends = edge.stream_edge
        lines.append(f'  N{ends.upstream} -->|"{_mermaid_text(exchange_label(edge))}"| N{ends.downstream}')
    lines += [f'  N{feedback.tail.id} -. "FEEDBACK" .-> N{feedback.head.id}' for feedback in feedback_edges(plan)]
    return "\n".join(lines) + "\n"


def _mermaid_vertex(vertex: JobVertex, number: int) -> Iterable[str]:
    shapes = {"source": ('(["', '"])'), "sink": ('[["', '"]]')}
    yield f'    subgraph V{number}["{number}: parallelism {vertex.parallelism}"]'
    for node in vertex.nodes:
        before, after = shapes.get(operator_category(node), ('["', '"]'))
        yield f"      N{node.id}{before}{_mermaid_text(printable(node.name))}{after}"
    for edge in vertex.inner:
        label = "" if edge.tag is None else f'|"{_mermaid_text(printable(edge.tag))}"|'
        yield f"      N{edge.upstream} -->{label} N{edge.downstream}"
    yield "    end"


def _mermaid_text(name: str) -> str:
    """Escape all but letters, digits and harmless punctuation as Mermaid's `#code;`."""
    return "".join(
        character if character.isalnum() or character in _PLAIN_IN_MERMAID else f"#{ord(character)};"
        for character in name
    )
