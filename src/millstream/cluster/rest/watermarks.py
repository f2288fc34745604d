"""REST resource of watermarks: which source split holds the event time of each vertex back.

Promises: a vertex is traced to the upstream vertex with the least watermark, up to a source, and there to the split
with the least watermark; idle splits hold nothing back. The number of splits in an answer is bounded.
Does not know: how watermarks are generated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter
from typing_extensions import TypedDict

from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.paths import JobPath
from millstream.cluster.split_progress import SplitProgress
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.graph.execution_plan import ExecutionPlan

_SHOWN_SPLITS = 200


class Split(TypedDict):
    """A source split. `watermark` is None if the split is idle; `activeAt` is when it was last read."""

    split: str
    subtask: int
    watermark: int | None
    activeAt: int


class SourceSplits(TypedDict):
    """The splits of a source with the least watermarks, and how many it has."""

    operator: str
    name: str
    vertex: str
    total: int
    splits: list[Split]


class Holder(TypedDict):
    """What holds the event time of a vertex back; `split` is None if the source has no splits with watermarks."""

    vertex: str
    name: str
    split: Split | None


class VertexWatermark(TypedDict):
    """The least watermark of a vertex, and what holds it back: None if it has no watermark, or has reached the end."""

    id: str
    name: str
    level: int
    watermark: int
    heldBy: Holder | None


class Watermarks(TypedDict):
    """The watermarks of a job at one moment."""

    now: int
    sources: list[SourceSplits]
    vertices: list[VertexWatermark]


def create_router(context: RestContext) -> APIRouter:
    """Return the route of watermarks."""
    router = APIRouter(prefix="/jobs/{job_id}/millstream", tags=["millstream"])

    @router.get("/watermarks")
    def list_watermarks(job_id: JobPath) -> Watermarks:
        """Return the watermarks of a job, and what holds them back."""
        job = context.dispatcher.job(job_id)
        plan, splits = job.plan(), job.splits()
        reached = {
            vertex: min(subtask.watermark for subtask in subtasks)
            for vertex, subtasks in job.statistics().subtasks.items()
        }
        return {
            "now": context.clock.now(),
            "sources": _list_sources(plan, splits),
            "vertices": [
                {
                    "id": planned.task.vertex,
                    "name": planned.task.name,
                    "level": planned.level,
                    "watermark": reached.get(planned.task.vertex, MIN_WATERMARK),
                    "heldBy": find_holder(plan, reached, splits, planned.task.vertex),
                }
                for planned in plan.vertices
            ],
        }

    return router


def find_holder(
    plan: ExecutionPlan, reached: Mapping[str, int], splits: Mapping[str, Sequence[SplitProgress]], vertex: str
) -> Holder | None:
    """Return the source, and its split, that holds a vertex back. `reached` are the watermarks of vertices by id."""
    if not MIN_WATERMARK < reached.get(vertex, MIN_WATERMARK) < MAX_WATERMARK:
        return None
    source = vertex
    while upstream := [edge.upstream for edge in plan.job.edges if edge.downstream == source]:
        source = min(upstream, key=lambda upstream_id: reached.get(upstream_id, MIN_WATERMARK))
    node = plan.job.vertex(source).nodes[0]
    active = [split for split in splits.get(node.operator, ()) if split.watermark is not None]
    slowest = min(active, key=lambda split: split.watermark or 0, default=None)
    return {"vertex": source, "name": node.name, "split": None if slowest is None else _describe_split(slowest)}


def _list_sources(plan: ExecutionPlan, splits: Mapping[str, Sequence[SplitProgress]]) -> list[SourceSplits]:
    sources: list[SourceSplits] = []
    for vertex in plan.job.vertices:
        node = vertex.nodes[0]
        if node.operator in splits:
            slowest_first = sorted(splits[node.operator], key=_watermark_order)
            sources.append(
                {
                    "operator": node.operator,
                    "name": node.name,
                    "vertex": vertex.id,
                    "total": len(slowest_first),
                    "splits": [_describe_split(split) for split in slowest_first[:_SHOWN_SPLITS]],
                }
            )
    return sources


def _watermark_order(split: SplitProgress) -> tuple[bool, int]:
    """Return the sort key of a split: the least watermark first, idle splits last."""
    return split.watermark is None, split.watermark or 0


def _describe_split(split: SplitProgress) -> Split:
    return {
        "split": split.split,
        "subtask": split.subtask,
        "watermark": split.watermark,
        "activeAt": split.active_at,
    }
