"""REST resources of the cluster: its configuration for clients, and the numbers of jobs and slots.

Promises: Flink's fields.
Does not know: single jobs, see `jobs`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from typing_extensions import TypedDict

from millstream import options
from millstream.cluster.rest.context import RestContext
from millstream.job.job_status import JobStatus

_FLINK_VERSION = "2.3.0"  # whose paths and fields are served; clients read it
_REFRESH_MS = 3_000

ClusterConfiguration = TypedDict(
    "ClusterConfiguration",
    {
        "refresh-interval": int,
        "timezone-name": str,
        "timezone-offset": int,
        "flink-version": str,
        "flink-revision": str,
        "features": dict[str, bool],
    },
)

ClusterOverview = TypedDict(
    "ClusterOverview",
    {
        "taskmanagers": int,
        "slots-total": int,
        "slots-available": int,
        "jobs-running": int,
        "jobs-finished": int,
        "jobs-cancelled": int,
        "jobs-failed": int,
        "flink-version": str,
        "flink-commit": str,
    },
)


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of the cluster."""
    router = APIRouter(tags=["cluster"])

    @router.get("/config")
    def get_configuration() -> ClusterConfiguration:
        """Return what the dashboard needs to know before anything else."""
        local_time = datetime.fromtimestamp(context.clock.now() / 1000).astimezone()
        offset, setting = local_time.utcoffset(), context.configuration.get
        return {
            "refresh-interval": _REFRESH_MS,
            "timezone-name": local_time.strftime("%Z"),
            "timezone-offset": 0 if offset is None else round(offset.total_seconds() * 1000),
            "flink-version": _FLINK_VERSION,
            "flink-revision": "millstream",
            "features": {
                "web-submit": context.session is not None and setting(options.WEB_SUBMIT),
                "web-cancel": setting(options.WEB_CANCEL),
                "web-rescale": setting(options.WEB_RESCALE),
                "web-history": False,
            },
        }

    @router.get("/overview")
    def get_overview() -> ClusterOverview:
        """Return the numbers of jobs and slots. A running job has as many slots as it uses: none are free."""
        statistics = [(job, job.statistics()) for job in context.dispatcher.jobs()]
        slots = sum(job.plan().slots for job, statistic in statistics if not statistic.status.is_terminal_state())
        return describe_cluster(Counter(statistic.status for _, statistic in statistics), slots, 0)

    @router.get("/datasets")
    def list_datasets() -> dict[str, list[dict[str, Any]]]:
        """Return no cached intermediate results of batch jobs: there are none."""
        return {"dataSets": []}

    return router


def describe_cluster(statuses: Counter[JobStatus], slots: int, free_slots: int) -> ClusterOverview:
    """Return the numbers of jobs by status, and of slots."""
    ended = statuses[JobStatus.FINISHED] + statuses[JobStatus.CANCELED] + statuses[JobStatus.FAILED]
    return {
        "taskmanagers": 1 if slots else 0,
        "slots-total": slots,
        "slots-available": free_slots,
        "jobs-running": statuses.total() - ended,
        "jobs-finished": statuses[JobStatus.FINISHED],
        "jobs-cancelled": statuses[JobStatus.CANCELED],
        "jobs-failed": statuses[JobStatus.FAILED],
        "flink-version": _FLINK_VERSION,
        "flink-commit": "millstream",
    }
