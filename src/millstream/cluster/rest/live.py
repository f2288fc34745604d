"""REST resources of the web UI, under /jobs/ID/millstream: the graph of a job with its load, its epochs, its dropped
records, log lines and options.

Promises: one response contains everything that one page shows. Flink has no such resources, so the names are those of
millstream.
Does not know: how the UI draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from typing_extensions import TypedDict

from millstream.cluster.dispatcher import DispatchedJob
from millstream.cluster.job_statistics import EpochSample, Statistics, Timed
from millstream.cluster.metrics.metric import Value
from millstream.cluster.metrics.task_metrics import operator_metrics, task_metrics
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.paths import JobPath, VertexPath
from millstream.cluster.rest.vertices import find_vertex
from millstream.config.secrets import mask_secret
from millstream.graph.execution_plan import ExecutionPlan, PlannedVertex
from millstream.graph.stream_graph import StreamNode
from millstream.option_keys import ignored_keys, option_of

_SHOWN_METRICS = 200


class LiveOperator(TypedDict):
    """An operator of a chain. `kind` is source, sink or operator."""

    id: str
    name: str
    kind: str


class Load(TypedDict):
    """What a subtask, or all subtasks of a vertex, did since the job was started, and how busy they were in the last
    minute, from 0 to 1. Watermarks are milliseconds since 1970."""

    recordsIn: int
    recordsOut: int
    recordsInPerSecond: float
    recordsOutPerSecond: float
    bytesIn: int
    bytesOut: int
    busy: float
    backpressured: float
    watermark: int
    stateBytes: int


class LiveVertex(TypedDict):
    """A vertex with the sums over its subtasks; `busiest` is the load of the busiest subtask, and `pendingRecords` is
    what a source has not read yet, if it knows that."""

    id: str
    name: str
    level: int
    parallelism: int
    maxParallelism: int
    operators: list[LiveOperator]
    load: Load
    busiest: float
    pendingRecords: int | None


class LiveEdge(TypedDict):
    """An exchange between two vertices."""

    source: str
    target: str
    partitioner: str


class Graph(TypedDict):
    """The graph of a job at one time."""

    now: int
    slots: int
    vertices: list[LiveVertex]
    edges: list[LiveEdge]


class OperatorMetrics(TypedDict):
    """The metrics of an operator: numbers and texts of each subtask, by name."""

    id: str
    name: str
    metrics: dict[str, list[Value]]


class HotKey(TypedDict):
    """A key with many records, and its estimated share of the records of the vertex, from 0 to 1."""

    key: str
    subtask: int
    share: float


class LiveSubtasks(TypedDict):
    """The subtasks of a vertex, the metrics of its operators, and the keys with most records."""

    subtasks: list[Load]
    operators: list[OperatorMetrics]
    hotKeys: list[HotKey]


class Dropped(TypedDict):
    """A record that an operator dropped, as text; `time` is milliseconds since 1970."""

    operator: str
    time: int
    reason: str
    key: str | None
    value: str


class Line(TypedDict):
    """A line of the log of a process. `time` is milliseconds since 1970; the source of what tasks print is `tasks`."""

    number: int
    time: int
    level: str
    source: str
    text: str


class VertexTime(TypedDict):
    """How long the subtasks of a vertex worked in an epoch: the longest one, its index, and their average."""

    longest: float
    subtask: int
    average: float


class Epoch(TypedDict):
    """An accepted epoch. `time` is its end; durations are in milliseconds; `vertices` are by id."""

    epoch: int
    time: int
    duration: float
    records: int
    lag: int | None
    watermark: int
    vertices: dict[str, VertexTime]


class Epochs(TypedDict):
    """The newest epochs, oldest first, and the number of all."""

    total: int
    averageDuration: float
    epochs: list[Epoch]


class LiveOption(TypedDict):
    """An option that is set; `ignored` is the reason if it has no effect."""

    key: str
    value: str
    description: str
    ignored: str | None


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of the UI's own resources."""
    router = APIRouter(prefix="/jobs/{job_id}/millstream", tags=["millstream"])
    dispatcher, clock = context.dispatcher, context.clock

    @router.get("/graph")
    def get_graph(job_id: JobPath) -> Graph:
        """Return the vertices and exchanges of a job, with their load."""
        job = dispatcher.job(job_id)
        plan, statistics, now = job.plan(), job.statistics(), clock.now()
        return {
            "now": now,
            "slots": plan.slots,
            "vertices": [_describe_vertex(planned, statistics, now) for planned in plan.vertices],
            "edges": _list_edges(plan),
        }

    @router.get("/vertices/{vertex_id}")
    def get_subtasks(job_id: JobPath, vertex_id: VertexPath) -> LiveSubtasks:
        """Return the subtasks of a vertex, the metrics of its operators, and the keys with most records."""
        job = dispatcher.job(job_id)
        planned, statistics, now = find_vertex(job, vertex_id), job.statistics(), clock.now()
        return {
            "subtasks": _list_loads(planned, statistics, now),
            "operators": [_describe_operator(planned, node, statistics, now) for node in planned.vertex.nodes],
            "hotKeys": [
                {"key": hot.key, "subtask": hot.subtask, "share": hot.share}
                for hot in job.samples.hot_keys.of(planned.vertex.nodes[0].operator)
            ],
        }

    @router.get("/vertices/{vertex_id}/dropped")
    def list_dropped(job_id: JobPath, vertex_id: VertexPath) -> list[Dropped]:
        """Return some of the newest records that operators of a vertex dropped: late ones, and those that could not be
        decoded."""
        job = dispatcher.job(job_id)
        return [
            {
                "operator": node.name,
                "time": record.time,
                "reason": record.reason,
                "key": record.key,
                "value": record.value,
            }
            for node in find_vertex(job, vertex_id).vertex.nodes
            for record in job.samples.dropped_records.of(node.operator)
        ]

    @router.get("/log")
    def list_log_lines(
        job_id: JobPath,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=5_000)] = 1_000,
    ) -> list[Line]:
        """Return the newest log lines of the process of a job, and what its tasks printed, after the line of a
        number."""
        dispatcher.job(job_id)
        return [
            {"number": line.number, "time": line.time, "level": line.level, "source": line.source, "text": line.text}
            for line in context.log_lines.after(after, limit)
        ]

    @router.get("/epochs")
    def list_epochs(job_id: JobPath) -> Epochs:
        """Return the newest epochs of a job."""
        job = dispatcher.job(job_id)
        statistics = job.statistics()
        return {
            "total": statistics.epochs,
            "averageDuration": statistics.epoch_ms / statistics.epochs if statistics.epochs else 0.0,
            "epochs": [_describe_epoch(sample) for sample in job.epoch_samples()],
        }

    @router.get("/options")
    def list_options(job_id: JobPath) -> list[LiveOption]:
        """Return the options of a job, those without an effect included; secrets are hidden."""
        return _list_options(dispatcher.job(job_id))

    return router


def _describe_vertex(planned: PlannedVertex, statistics: Statistics, now: int) -> LiveVertex:
    loads = _list_loads(planned, statistics, now)
    lags = {} if statistics.last_epoch is None else statistics.last_epoch.event.source_lags
    pending = [lags[node.operator] for node in planned.vertex.nodes if node.operator in lags]
    return {
        "id": planned.task.vertex,
        "name": planned.task.name,
        "level": planned.level,
        "parallelism": planned.task.parallelism,
        "maxParallelism": planned.task.max_parallelism,
        "operators": [{"id": node.operator, "name": node.name, "kind": _kind(node)} for node in planned.vertex.nodes],
        "load": _combine(loads),
        "busiest": max(load["busy"] for load in loads),
        "pendingRecords": sum(pending) if pending else None,
    }


def _kind(node: StreamNode) -> str:
    return "source" if node.source is not None else "sink" if node.sink is not None else "operator"


def _list_edges(plan: ExecutionPlan) -> list[LiveEdge]:
    return [
        {"source": edge.upstream, "target": edge.downstream, "partitioner": edge.stream_edge.partitioner.name}
        for edge in plan.job.edges
    ]


def _list_loads(planned: PlannedVertex, statistics: Statistics, now: int) -> list[Load]:
    subtasks = range(planned.task.parallelism)
    return [_describe_load(task_metrics(planned, statistics, subtask, now)) for subtask in subtasks]


def _describe_load(metrics: Mapping[str, Value]) -> Load:
    return {
        "recordsIn": int(metrics["numRecordsIn"]),
        "recordsOut": int(metrics["numRecordsOut"]),
        "recordsInPerSecond": float(metrics["numRecordsInPerSecond"]),
        "recordsOutPerSecond": float(metrics["numRecordsOutPerSecond"]),
        "bytesIn": int(metrics["numBytesIn"]),
        "bytesOut": int(metrics["numBytesOut"]),
        "busy": float(metrics["busyTimeMsPerSecond"]) / 1000,
        "backpressured": float(metrics["backPressuredTimeMsPerSecond"]) / 1000,
        "watermark": int(metrics["currentInputWatermark"]),
        "stateBytes": int(metrics["stateSizeBytes"]),
    }


def _combine(loads: Sequence[Load]) -> Load:
    """Return sums over subtasks, averages of shares of time, and the least watermark."""
    return {
        "recordsIn": sum(load["recordsIn"] for load in loads),
        "recordsOut": sum(load["recordsOut"] for load in loads),
        "recordsInPerSecond": sum(load["recordsInPerSecond"] for load in loads),
        "recordsOutPerSecond": sum(load["recordsOutPerSecond"] for load in loads),
        "bytesIn": sum(load["bytesIn"] for load in loads),
        "bytesOut": sum(load["bytesOut"] for load in loads),
        "busy": sum(load["busy"] for load in loads) / len(loads),
        "backpressured": sum(load["backpressured"] for load in loads) / len(loads),
        "watermark": min(load["watermark"] for load in loads),
        "stateBytes": sum(load["stateBytes"] for load in loads),
    }


def _describe_operator(planned: PlannedVertex, node: StreamNode, statistics: Statistics, now: int) -> OperatorMetrics:
    subtasks = range(planned.task.parallelism)
    metrics = [operator_metrics(planned, node, statistics, subtask, now) for subtask in subtasks]
    names = sorted({name for values in metrics for name in values})[:_SHOWN_METRICS]
    by_name = {name: [values.get(name, 0) for values in metrics] for name in names}
    return {"id": node.operator, "name": node.name, "metrics": by_name}


def _describe_epoch(sample: Timed[EpochSample]) -> Epoch:
    epoch = sample.event
    return {
        "epoch": epoch.epoch,
        "time": sample.time,
        "duration": epoch.duration_ms,
        "records": epoch.records,
        "lag": epoch.lag,
        "watermark": epoch.watermark,
        "vertices": {
            vertex: {"longest": time.longest_ms, "subtask": time.subtask, "average": time.average_ms}
            for vertex, time in epoch.vertices.items()
        },
    }


def _list_options(job: DispatchedJob) -> list[LiveOption]:
    reasons = dict(ignored_keys(job.configuration))
    described: list[LiveOption] = []
    for key, value in sorted(job.configuration.to_dict().items()):
        option = option_of(key)
        described.append(
            {
                "key": key,
                "value": str(mask_secret(key, value)),
                "description": "" if option is None else option.description,
                "ignored": reasons.get(key),
            }
        )
    return described
