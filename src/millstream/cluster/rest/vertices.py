"""REST resources of vertices: their subtasks, watermarks and load.

Promises: Flink's fields. The busy time of a subtask is the time that it worked in epochs, its backpressured time the
time that it waited in them for subtasks downstream, its idle time all other time since the job began to run.
Does not know: jobs as a whole, see `jobs`."""

from __future__ import annotations

from statistics import median
from typing import Any

from fastapi import APIRouter
from typing_extensions import TypedDict

from millstream.cluster.dispatcher import DispatchedJob
from millstream.cluster.job_statistics import Statistics, SubtaskTotals
from millstream.cluster.metrics.task_metrics import task_metrics
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.distributions import summarize_numbers
from millstream.cluster.rest.errors import NotFound
from millstream.cluster.rest.job_times import count_states, end_time, execution_state
from millstream.cluster.rest.paths import JobPath, VertexPath
from millstream.graph.execution_plan import PlannedVertex
from millstream.job.job_status import JobStatus

_LOW, _HIGH = 0.1, 0.5  # ratios of backpressured time, as in Flink
_QUANTILES = {"p25": 0.25, "p75": 0.75, "p95": 0.95}
_STATE_DURATIONS = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")

VertexMetrics = TypedDict(
    "VertexMetrics",
    {
        "read-bytes": int,
        "read-bytes-complete": bool,
        "write-bytes": int,
        "write-bytes-complete": bool,
        "read-records": int,
        "read-records-complete": bool,
        "write-records": int,
        "write-records-complete": bool,
        "accumulated-backpressured-time": int,
        "accumulated-idle-time": int,
        "accumulated-busy-time": float,
    },
)

VertexOverview = TypedDict(
    "VertexOverview",
    {
        "id": str,
        "slotSharingGroupId": str,
        "name": str,
        "maxParallelism": int,
        "parallelism": int,
        "status": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "tasks": dict[str, int],
        "metrics": VertexMetrics,
    },
)

Subtask = TypedDict(
    "Subtask",
    {
        "subtask": int,
        "status": str,
        "attempt": int,
        "endpoint": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "metrics": VertexMetrics,
        "taskmanager-id": str,
        "status-duration": dict[str, int],
    },
)


class VertexDetails(TypedDict):
    """A vertex with its subtasks."""

    id: str
    name: str
    parallelism: int
    maxParallelism: int
    now: int
    subtasks: list[Subtask]
    aggregated: dict[str, Any]


VertexTaskManager = TypedDict(
    "VertexTaskManager",
    {
        "endpoint": str,
        "status": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "metrics": VertexMetrics,
        "status-counts": dict[str, int],
        "taskmanager-id": str,
        "aggregated": dict[str, Any],
    },
)


class VertexTaskManagers(TypedDict):
    """A vertex by task manager, of which there is one."""

    id: str
    name: str
    now: int
    taskmanagers: list[VertexTaskManager]


class MetricValue(TypedDict):
    """A metric and its value as text."""

    id: str
    value: str


SubtaskLoad = TypedDict(
    "SubtaskLoad",
    {
        "subtask": int,
        "attempt-number": int,
        "ratio": float,
        "idleRatio": float,
        "busyRatio": float,
        "backpressure-level": str,
    },
)

Backpressure = TypedDict(
    "Backpressure",
    {
        "status": str,
        "backpressureLevel": str,
        "backpressure-level": str,
        "end-timestamp": int,
        "subtasks": list[SubtaskLoad],
    },
)


class NoSuchVertex(NotFound):
    """The job has no vertex of this id."""

    def __init__(self, vertex: str) -> None:
        super().__init__(f"the job has no vertex {vertex}")


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of vertices."""
    router = APIRouter(tags=["vertices"])
    dispatcher = context.dispatcher

    @router.get("/jobs/{job_id}/vertices/{vertex_id}")
    def get_vertex(job_id: JobPath, vertex_id: VertexPath) -> VertexDetails:
        """Return the subtasks of a vertex."""
        job, now = dispatcher.job(job_id), context.clock.now()
        planned, statistics = find_vertex(job, vertex_id), job.statistics()
        subtasks = describe_subtasks(planned, statistics, now)
        return {
            "id": vertex_id,
            "name": planned.task.name,
            "parallelism": planned.task.parallelism,
            "maxParallelism": planned.task.max_parallelism,
            "now": now,
            "subtasks": subtasks,
            "aggregated": _aggregate(subtasks),
        }

    @router.get("/jobs/{job_id}/vertices/{vertex_id}/taskmanagers")
    def list_vertex_task_managers(job_id: JobPath, vertex_id: VertexPath) -> VertexTaskManagers:
        """Return a vertex by task manager: the executors of Spark are one."""
        job, now = dispatcher.job(job_id), context.clock.now()
        planned, statistics = find_vertex(job, vertex_id), job.statistics()
        described = describe_vertex(planned, statistics, now)
        subtasks = describe_subtasks(planned, statistics, now)
        executors: VertexTaskManager = {
            "endpoint": "spark",
            "status": described["status"],
            "start-time": described["start-time"],
            "end-time": described["end-time"],
            "duration": described["duration"],
            "metrics": described["metrics"],
            "status-counts": described["tasks"],
            "taskmanager-id": "spark",
            "aggregated": _aggregate(subtasks),
        }
        return {"id": vertex_id, "name": planned.task.name, "now": now, "taskmanagers": [executors]}

    @router.get("/jobs/{job_id}/vertices/{vertex_id}/watermarks")
    def list_watermarks(job_id: JobPath, vertex_id: VertexPath) -> list[MetricValue]:
        """Return the watermark of each subtask."""
        job = dispatcher.job(job_id)
        return [
            {"id": f"{index}.currentInputWatermark", "value": str(totals.watermark)}
            for index, totals in _totals(find_vertex(job, vertex_id), job.statistics())
        ]

    @router.get("/jobs/{job_id}/vertices/{vertex_id}/backpressure")
    def get_backpressure(job_id: JobPath, vertex_id: VertexPath) -> Backpressure:
        """Return how busy and how backpressured each subtask is."""
        job, now = dispatcher.job(job_id), context.clock.now()
        planned, statistics = find_vertex(job, vertex_id), job.statistics()
        loads = [_describe_load(planned, statistics, index, now) for index in range(planned.task.parallelism)]
        level = max((load["backpressure-level"] for load in loads), key=("ok", "low", "high").index, default="ok")
        return {
            "status": "ok",
            "backpressureLevel": level,
            "backpressure-level": level,
            "end-timestamp": now,
            "subtasks": loads,
        }

    return router


def describe_vertex(planned: PlannedVertex, statistics: Statistics, now: int) -> VertexOverview:
    """Return a vertex with the sums over its subtasks."""
    begin, end = _running_times(statistics)
    state = execution_state(statistics.status)
    task = planned.task
    return {
        "id": task.vertex,
        "slotSharingGroupId": task.vertex,
        "name": task.name,
        "maxParallelism": task.max_parallelism,
        "parallelism": task.parallelism,
        "status": state,
        "start-time": begin,
        "end-time": end,
        "duration": _elapsed(begin, end, now),
        "tasks": count_states(state, task.parallelism),
        "metrics": _describe_metrics(statistics, [totals for _, totals in _totals(planned, statistics)], now),
    }


def describe_subtasks(planned: PlannedVertex, statistics: Statistics, now: int) -> list[Subtask]:
    """Return the subtasks of a vertex."""
    return [_describe_subtask(statistics, totals, index, now) for index, totals in _totals(planned, statistics)]


def find_vertex(job: DispatchedJob, vertex: str) -> PlannedVertex:
    """Return a vertex of a job.

    Raises:
        NoSuchVertex: The job has none of this id.

    """
    for planned in job.plan().vertices:
        if planned.task.vertex == vertex:
            return planned
    raise NoSuchVertex(vertex)


def _totals(planned: PlannedVertex, statistics: Statistics) -> list[tuple[int, SubtaskTotals]]:
    """The totals of each subtask; those of a subtask that has not reported yet are zero."""
    known = statistics.subtasks.get(planned.task.vertex, ())
    nothing = SubtaskTotals()
    return [(index, known[index] if index < len(known) else nothing) for index in range(planned.task.parallelism)]


def _running_times(statistics: Statistics) -> tuple[int, int]:
    return statistics.status_times.get(JobStatus.RUNNING, -1), end_time(statistics)


def _elapsed(begin: int, end: int, now: int) -> int:
    return 0 if begin < 0 else max(0, (now if end < 0 else end) - begin)


def _describe_metrics(statistics: Statistics, totals: list[SubtaskTotals], now: int) -> VertexMetrics:
    elapsed = _elapsed(*_running_times(statistics), now)
    busy = sum(subtask.busy_ms for subtask in totals)
    waited = sum(subtask.backpressured_ms for subtask in totals)
    return {
        "read-bytes": sum(subtask.bytes_in for subtask in totals),
        "read-bytes-complete": True,
        "write-bytes": sum(subtask.bytes_out for subtask in totals),
        "write-bytes-complete": True,
        "read-records": sum(subtask.records_in for subtask in totals),
        "read-records-complete": True,
        "write-records": sum(subtask.records_out for subtask in totals),
        "write-records-complete": True,
        "accumulated-backpressured-time": round(waited),
        "accumulated-idle-time": max(0, round(elapsed * len(totals) - busy - waited)),
        "accumulated-busy-time": busy,
    }


def _describe_subtask(statistics: Statistics, totals: SubtaskTotals, index: int, now: int) -> Subtask:
    begin, end = _running_times(statistics)
    elapsed = _elapsed(begin, end, now)
    durations = dict.fromkeys(_STATE_DURATIONS, 0) | {"RUNNING": elapsed}
    return {
        "subtask": index,
        "status": execution_state(statistics.status),
        "attempt": statistics.restarts,
        "endpoint": "localhost",
        "start-time": begin,
        "end-time": end,
        "duration": elapsed,
        "metrics": _describe_metrics(statistics, [totals], now),
        "taskmanager-id": "spark",
        "status-duration": durations,
    }


def _describe_load(planned: PlannedVertex, statistics: Statistics, index: int, now: int) -> SubtaskLoad:
    metrics = task_metrics(planned, statistics, index, now)
    busy = float(metrics["busyTimeMsPerSecond"]) / 1000
    backpressured = float(metrics["backPressuredTimeMsPerSecond"]) / 1000
    return {
        "subtask": index,
        "attempt-number": statistics.restarts,
        "ratio": backpressured,
        "idleRatio": 1.0 - busy - backpressured,
        "busyRatio": busy,
        "backpressure-level": "high" if backpressured > _HIGH else "low" if backpressured > _LOW else "ok",
    }


def _aggregate(subtasks: list[Subtask]) -> dict[str, Any]:
    """Return the distribution of each number over the subtasks."""
    metrics = {
        name: _distribution([float(subtask["metrics"][name]) for subtask in subtasks])  # type: ignore[literal-required]
        for name in VertexMetrics.__annotations__
        if not name.endswith("-complete")
    }
    durations = {
        state: _distribution([float(subtask["status-duration"][state]) for subtask in subtasks])
        for state in _STATE_DURATIONS
    }
    return {"metrics": metrics, "status-duration": durations}


def _distribution(values: list[float]) -> dict[str, float]:
    return {**summarize_numbers(values, _QUANTILES), "sum": sum(values), "median": median(values)}
