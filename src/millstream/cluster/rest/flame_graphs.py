"""REST resource of flame graphs: where the tasks of a vertex spend their time.

Promises: Flink's path and fields. A request starts sampling of the vertex for some seconds; the first response says
that there are no samples yet, and clients repeat the request.
Does not know: how stacks are sampled."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from typing_extensions import TypedDict

from millstream.cluster.flame_graphs import FlameNode
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.errors import NotFound
from millstream.cluster.rest.paths import JobPath, VertexPath
from millstream.cluster.rest.vertices import find_vertex
from millstream.errors import UserError

_TERMINATED, _DISABLED, _WAITING = -1, -2, -3  # values of `endTimestamp` without data, as in Flink
_KINDS = {"full": ("on", "off"), "on_cpu": ("on",), "off_cpu": ("off",)}


class FlameGraphAnswer(TypedDict):
    """A flame graph. Without data, `endTimestamp` is -1 if the job has ended, -2 if flame graphs are disabled, and -3
    before the first sample. A node of `data` has a name, a value and children."""

    endTimestamp: int
    data: dict[str, Any] | None


class UnknownType(UserError):
    """There is no such type of flame graph."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no type of flame graph '{name}'", hint="use full, on_cpu or off_cpu")


class NoSuchSubtask(NotFound):
    """The vertex has no subtask of this index."""

    def __init__(self, subtask: int, parallelism: int) -> None:
        super().__init__(f"there is no subtask {subtask}: the parallelism is {parallelism}")


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of flame graphs."""
    router = APIRouter(tags=["vertices"])
    dispatcher = context.dispatcher

    @router.get("/jobs/{job_id}/vertices/{vertex_id}/flamegraph")
    def get_flame_graph(
        job_id: JobPath,
        vertex_id: VertexPath,
        type: Annotated[str, Query(max_length=20)] = "full",
        subtaskindex: Annotated[int | None, Query(ge=0, le=1_000_000)] = None,
    ) -> FlameGraphAnswer:
        """Return the flame graph of a vertex, or of one subtask."""
        job = dispatcher.job(job_id)
        planned = find_vertex(job, vertex_id)
        kinds = _KINDS.get(type.lower())
        if kinds is None:
            raise UnknownType(type)
        if subtaskindex is not None and subtaskindex >= planned.task.parallelism:
            raise NoSuchSubtask(subtaskindex, planned.task.parallelism)
        if not job.samples.flame_graphs.enabled:
            return {"endTimestamp": _DISABLED, "data": None}
        if job.statistics().status.is_globally_terminal_state():
            return {"endTimestamp": _TERMINATED, "data": None}
        job.samples.flame_graphs.request(vertex_id)
        graph = job.samples.flame_graphs.get(vertex_id, subtaskindex, kinds)
        if graph is None:
            return {"endTimestamp": _WAITING, "data": None}
        return {"endTimestamp": graph.time, "data": _describe(graph.root)}

    return router


def _describe(node: FlameNode) -> dict[str, Any]:
    return {"name": node.name, "value": node.value, "children": [_describe(child) for child in node.children]}
