"""REST resources of metrics: ids, values, aggregates over subtasks and jobs, and the history of a job.

Promises: Flink's paths, ids and fields. Without `get` the ids are listed; an id that does not exist has no entry. A
request may name at most 1,000 ids.
Does not know: how metrics are computed, see `millstream.cluster.metrics`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from typing_extensions import TypedDict

from millstream.cluster.dispatcher import DispatchedJob
from millstream.cluster.job_statistics import Statistics
from millstream.cluster.metrics.collect import TASK_MANAGER, jobmanager_metrics, taskmanager_metrics
from millstream.cluster.metrics.job_metrics import job_metrics
from millstream.cluster.metrics.metric import Value
from millstream.cluster.metrics.task_metrics import operator_metrics, task_metrics
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.errors import NotFound
from millstream.cluster.rest.paths import JobPath, VertexPath
from millstream.errors import UserError
from millstream.graph.execution_plan import PlannedVertex

_AGGREGATIONS = ("min", "max", "avg", "sum", "skew")
_MAX_IDS = 1_000
_MAX_TEXT = 65_536
_NOT_IN_IDS = re.compile("[ .:,]")

Names = Annotated[str, Query(max_length=_MAX_TEXT)]


class VertexHistory(TypedDict):
    """Values of one vertex at the times of a history. Times of watermarks are milliseconds since 1970."""

    numRecordsIn: list[int | None]
    numRecordsOut: list[int | None]
    accumulateBusyTimeMs: list[float | None]
    accumulateBackPressuredTimeMs: list[float | None]
    currentInputWatermark: list[int | None]
    stateSizeBytes: list[int | None]


class History(TypedDict):
    """Samples of the vertices of a job, by id, oldest first; a vertex without a sample at a time has None there."""

    timestamps: list[int]
    vertices: dict[str, VertexHistory]


class TooManyIds(UserError):
    """A request names too many metrics."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} metrics are asked for at once, the limit is {_MAX_IDS}", hint="ask several times")


class UnknownAggregation(UserError):
    """The parameter `agg` has a value that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no aggregation {name!r}", hint=f"use {', '.join(_AGGREGATIONS)}")


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of metrics."""
    router = APIRouter(tags=["metrics"])
    dispatcher, clock = context.dispatcher, context.clock

    @router.get("/jobmanager/metrics")
    def get_jobmanager_metrics(get: Names = "") -> list[dict[str, str]]:
        """Return metrics of the driver."""
        return _select(jobmanager_metrics(dispatcher), get)

    @router.get("/taskmanagers/metrics")
    def aggregate_taskmanager_metrics(get: Names = "", agg: Names = "") -> list[dict[str, Any]]:
        """Return aggregates over task managers, of which there is one."""
        return _aggregate([taskmanager_metrics()], get, agg)

    @router.get("/taskmanagers/{taskmanager_id}/metrics")
    def get_taskmanager_metrics(taskmanager_id: str, get: Names = "") -> list[dict[str, str]]:
        """Return metrics of a task manager."""
        if taskmanager_id != TASK_MANAGER:
            msg = f"there is no task manager {taskmanager_id!r}"
            raise NotFound(msg)
        return _select(taskmanager_metrics(), get)

    @router.get("/jobs/metrics")
    def aggregate_job_metrics(get: Names = "", agg: Names = "", jobs: Names = "") -> list[dict[str, Any]]:
        """Return aggregates over jobs; `jobs` names some of them."""
        chosen = [dispatcher.job(job_id) for job_id in _split(jobs)] or dispatcher.jobs()
        return _aggregate([job_metrics(job.statistics(), clock.now()) for job in chosen], get, agg)

    @router.get("/jobs/{job_id}/metrics")
    def get_job_metrics(job_id: JobPath, get: Names = "") -> list[dict[str, str]]:
        """Return metrics of a job."""
        return _select(job_metrics(dispatcher.job(job_id).statistics(), clock.now()), get)

    @router.get("/jobs/{job_id}/metrics/history")
    def get_history(job_id: JobPath) -> History:
        """Return samples of the last hours; Flink has no such resource."""
        samples = dispatcher.job(job_id).history()
        names = dict.fromkeys(name for sample in samples for name in sample.event)
        return {
            "timestamps": [sample.time for sample in samples],
            "vertices": {name: _list_samples([sample.event.get(name) for sample in samples]) for name in names},
        }

    @router.get("/jobs/{job_id}/vertices/{vertex_id}/metrics")
    def get_vertex_metrics(job_id: JobPath, vertex_id: VertexPath, get: Names = "") -> list[dict[str, str]]:
        """Return metrics of all subtasks; ids begin with the index of the subtask."""
        values = _subtask_values(dispatcher.job(job_id), vertex_id, clock.now())
        by_id = {f"{index}.{name}": value for index, metrics in values.items() for name, value in metrics.items()}
        return _select(by_id, get)

    @router.get("/jobs/{job_id}/vertices/{vertex_id}/subtasks/metrics")
    def aggregate_subtask_metrics(
        job_id: JobPath, vertex_id: VertexPath, get: Names = "", agg: Names = "", subtasks: Names = ""
    ) -> list[dict[str, Any]]:
        """Return aggregates over the subtasks of a vertex; `subtasks` is a list such as `0,2-4`."""
        values = _subtask_values(dispatcher.job(job_id), vertex_id, clock.now())
        chosen = _parse_ranges(subtasks, len(values))
        return _aggregate([values[index] for index in values if index in chosen], get, agg)

    @router.get("/jobs/{job_id}/vertices/{vertex_id}/subtasks/{subtask}/metrics")
    def get_subtask_metrics(
        job_id: JobPath, vertex_id: VertexPath, subtask: int, get: Names = ""
    ) -> list[dict[str, str]]:
        """Return metrics of one subtask."""
        values = _subtask_values(dispatcher.job(job_id), vertex_id, clock.now())
        if subtask not in values:
            msg = f"the vertex has no subtask {subtask}; it has {len(values)}"
            raise NotFound(msg)
        return _select(values[subtask], get)

    @router.get("/jobs/{job_id}/vertices/{vertex_id}/jm-operator-metrics")
    def get_coordinator_metrics(job_id: JobPath, vertex_id: VertexPath) -> list[dict[str, str]]:
        """Return metrics of operator coordinators, which do not exist here."""
        _find_vertex(dispatcher.job(job_id), vertex_id)
        return []

    return router


def _find_vertex(job: DispatchedJob, vertex: str) -> PlannedVertex:
    for planned in job.plan().vertices:
        if planned.task.vertex == vertex:
            return planned
    msg = f"the job has no vertex {vertex}"
    raise NotFound(msg)


def _subtask_values(job: DispatchedJob, vertex: str, now: int) -> dict[int, dict[str, Value]]:
    """Return the metrics of each subtask; those of operators begin with the name of the operator, as in Flink."""
    planned, statistics = _find_vertex(job, vertex), job.statistics()
    return {subtask: _with_operators(planned, statistics, subtask, now) for subtask in range(planned.task.parallelism)}


def _with_operators(planned: PlannedVertex, statistics: Statistics, subtask: int, now: int) -> dict[str, Value]:
    values = task_metrics(planned, statistics, subtask, now)
    for node in planned.vertex.nodes:
        name = _NOT_IN_IDS.sub("_", node.name)
        of_operator = operator_metrics(planned, node, statistics, subtask, now)
        values.update({f"{name}.{metric}": value for metric, value in of_operator.items()})
    return values


def _split(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    if len(names) > _MAX_IDS:
        raise TooManyIds(len(names))
    return names


def _select(values: Mapping[str, Value], get: str) -> list[dict[str, str]]:
    """Return the ids of all metrics, or the values of those that are asked for."""
    if not get:
        return [{"id": name} for name in values]
    return [{"id": name, "value": _to_text(values[name])} for name in _split(get) if name in values]


def _to_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _aggregate(components: Sequence[Mapping[str, Value]], get: str, agg: str) -> list[dict[str, Any]]:
    """Return aggregates of numbers over components; all aggregates if none is named."""
    if not get:
        return [{"id": name} for name in dict.fromkeys(name for values in components for name in values)]
    wanted = _split(agg) or _AGGREGATIONS
    for name in wanted:
        if name not in _AGGREGATIONS:
            raise UnknownAggregation(name)
    aggregates = []
    for name in _split(get):
        values = [values[name] for values in components if name in values]
        numbers = [float(value) for value in values if not isinstance(value, str | bool)]
        if numbers and len(numbers) == len(values):
            computed = _compute(numbers)
            aggregates.append({"id": name, **{function: computed[function] for function in wanted}})
    return aggregates


def _compute(numbers: Sequence[float]) -> dict[str, float | str]:
    average = sum(numbers) / len(numbers)
    deviation = sum(abs(average - number) for number in numbers) / len(numbers)
    aggregates = {
        "min": min(numbers),
        "max": max(numbers),
        "avg": average,
        "sum": sum(numbers),
        "skew": min(100.0, deviation / average * 100) if average else 0.0,
    }
    return {name: number if math.isfinite(number) else str(number) for name, number in aggregates.items()}


def _parse_ranges(text: str, parallelism: int) -> set[int]:
    """Return the subtasks of a list of indexes and ranges; all of them if it is empty."""
    if not text:
        return set(range(parallelism))
    chosen: set[int] = set()
    for part in _split(text):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if match is None:
            msg = f"{part!r} is not an index of a subtask or a range of them"
            raise UserError(msg, hint="write subtasks as in 0,2-4")
        chosen.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return chosen


def _list_samples(samples: Iterable[Any]) -> VertexHistory:
    rows = list(samples)

    def column(field: str) -> list[Any]:
        return [None if row is None else getattr(row, field) for row in rows]

    return {
        "numRecordsIn": column("records_in"),
        "numRecordsOut": column("records_out"),
        "accumulateBusyTimeMs": column("busy_ms"),
        "accumulateBackPressuredTimeMs": column("backpressured_ms"),
        "currentInputWatermark": column("watermark"),
        "stateSizeBytes": column("state_bytes"),
    }
