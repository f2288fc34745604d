"""The graph of a job in the form of Flink's JSON plans.

Promises: a node for each vertex, with its inputs and the names of their partitioners.
Does not know: running jobs."""

from __future__ import annotations

from html import escape
from typing import Any

from typing_extensions import TypedDict

from millstream.graph.execution_plan import ExecutionPlan
from millstream.graph.job_graph import JobVertex


class PlanInput(TypedDict):
    """An exchange to a vertex."""

    num: int
    id: str
    ship_strategy: str
    exchange: str


class PlanNode(TypedDict):
    """A vertex of the graph."""

    id: str
    parallelism: int
    operator: str
    operator_strategy: str
    description: str
    inputs: list[PlanInput]
    optimizer_properties: dict[str, Any]


class JobPlan(TypedDict):
    """The graph of a job."""

    jid: str
    name: str
    type: str
    nodes: list[PlanNode]


def describe_plan(job_id: str, plan: ExecutionPlan) -> JobPlan:
    """Return the graph of a job."""
    return {
        "jid": job_id,
        "name": plan.job.name,
        "type": "BATCH" if plan.batch else "STREAMING",
        "nodes": [_describe_node(plan, vertex) for vertex in plan.job.vertices],
    }


def _describe_node(plan: ExecutionPlan, vertex: JobVertex) -> PlanNode:
    incoming = [edge for edge in plan.job.edges if edge.downstream == vertex.id]
    return {
        "id": vertex.id,
        "parallelism": vertex.parallelism,
        "operator": "",
        "operator_strategy": "",
        "description": "<br/>".join(escape(node.name) for node in vertex.nodes),
        "inputs": [
            {
                "num": number,
                "id": edge.upstream,
                "ship_strategy": edge.stream_edge.partitioner.name,
                "exchange": "blocking" if plan.batch else "pipelined_bounded",
            }
            for number, edge in enumerate(incoming)
        ],
        "optimizer_properties": {},
    }
