"""REST resources of jobs: lists, details, plan, configuration, exceptions, result and cancellation.

Promises: Flink's fields. A vertex is RUNNING from the start of the job to its end, because its subtasks run in every
epoch.
Does not know: checkpoints and subtasks, see `checkpoints` and `vertices`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Query, status
from typing_extensions import TypedDict

from millstream import options
from millstream.cluster.dispatcher import DispatchedJob
from millstream.cluster.job_statistics import Failure, Timed
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.job_plan import JobPlan, describe_plan
from millstream.cluster.rest.job_times import count_states, duration, end_time, execution_state, start_time
from millstream.cluster.rest.paths import JobPath
from millstream.cluster.rest.vertices import VertexOverview, describe_vertex
from millstream.config.secrets import mask_secret
from millstream.job.job_status import JobStatus


class JobId(TypedDict):
    """A job and its status."""

    id: str
    status: str


class JobIds(TypedDict):
    """The jobs and their statuses."""

    jobs: list[JobId]


JobOverview = TypedDict(
    "JobOverview",
    {
        "jid": str,
        "name": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "state": str,
        "last-modification": int,
        "tasks": dict[str, int],
        "pending-operators": int,
        "job-type": str,
        "schedulerType": str,
        "waiting": str | None,
    },
)


class JobOverviews(TypedDict):
    """The jobs with times and numbers of tasks."""

    jobs: list[JobOverview]


JobDetails = TypedDict(
    "JobDetails",
    {
        "jid": str,
        "name": str,
        "isStoppable": bool,
        "state": str,
        "job-type": str,
        "schedulerType": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "maxParallelism": int,
        "now": int,
        "timestamps": dict[str, int],
        "vertices": list[VertexOverview],
        "status-counts": dict[str, int],
        "plan": JobPlan,
        "pending-operators": int,
    },
)


class StatusAnswer(TypedDict):
    """The status of a job."""

    status: str


class PlanAnswer(TypedDict):
    """The plan of a job."""

    plan: JobPlan


ExecutionConfiguration = TypedDict(
    "ExecutionConfiguration",
    {
        "restart-strategy": str,
        "job-parallelism": int,
        "object-reuse-mode": bool,
        "user-config": dict[str, str],
    },
)

JobConfiguration = TypedDict("JobConfiguration", {"jid": str, "name": str, "execution-config": ExecutionConfiguration})


class ExceptionEntry(TypedDict):
    """A failure of a job."""

    exceptionName: str
    stacktrace: str
    timestamp: int
    failureLabels: dict[str, str]
    taskName: str | None
    endpoint: str | None
    taskManagerId: str | None
    concurrentExceptions: list[Any]


class ExceptionHistory(TypedDict):
    """Failures, newest first."""

    entries: list[ExceptionEntry]
    truncated: bool


class Exceptions(TypedDict):
    """The failures of a job."""

    exceptionHistory: ExceptionHistory


class KeyValue(TypedDict):
    """An option."""

    key: str
    value: str


JobExecutionResult = TypedDict(
    "JobExecutionResult",
    {
        "id": str,
        "name": str,
        "application-status": str,
        "net-runtime": int,
        "accumulator-results": dict[str, Any],
        "start-time": int,
        "end-time": int,
    },
)

ExecutionResultAnswer = TypedDict(
    "ExecutionResultAnswer", {"status": dict[str, str], "job-execution-result": JobExecutionResult | None}
)


class UserAccumulator(TypedDict):
    """The value of an accumulator as text."""

    name: str
    type: str
    value: str


Accumulators = TypedDict(
    "Accumulators",
    {
        "job-accumulators": list[Any],
        "user-task-accumulators": list[UserAccumulator],
        "serialized-user-task-accumulators": dict[str, Any],
    },
)


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of jobs."""
    router = APIRouter(tags=["jobs"])
    dispatcher = context.dispatcher

    @router.get("/jobs")
    def list_jobs() -> JobIds:
        """Return the ids and statuses of all jobs."""
        return {"jobs": [{"id": job.id, "status": job.statistics().status.name} for job in dispatcher.jobs()]}

    @router.get("/jobs/overview")
    def list_job_overviews() -> JobOverviews:
        """Return all jobs with times and numbers of tasks."""
        return {"jobs": [_describe_overview(job, context.clock.now()) for job in dispatcher.jobs()]}

    @router.get("/jobs/{job_id}")
    def get_job(job_id: JobPath) -> JobDetails:
        """Return the details of a job."""
        return _describe_job(dispatcher.job(job_id), context.clock.now())

    @router.get("/jobs/{job_id}/status")
    def get_status(job_id: JobPath) -> StatusAnswer:
        """Return the status of a job."""
        return {"status": dispatcher.job(job_id).statistics().status.name}

    @router.get("/jobs/{job_id}/plan")
    def get_plan(job_id: JobPath) -> PlanAnswer:
        """Return the graph of a job."""
        job = dispatcher.job(job_id)
        return {"plan": describe_plan(job.id, job.plan())}

    @router.get("/jobs/{job_id}/config")
    def get_job_configuration(job_id: JobPath) -> JobConfiguration:
        """Return the execution configuration of a job."""
        return _describe_configuration(dispatcher.job(job_id))

    @router.get("/jobs/{job_id}/jobmanager/config")
    def list_options(job_id: JobPath) -> list[KeyValue]:
        """Return the options of a job; values of options with secrets are hidden."""
        settings = dispatcher.job(job_id).configuration.to_dict()
        return [{"key": key, "value": str(mask_secret(key, value))} for key, value in sorted(settings.items())]

    @router.get("/jobs/{job_id}/exceptions")
    def list_exceptions(job_id: JobPath, max_exceptions: int = Query(20, alias="maxExceptions", ge=0)) -> Exceptions:
        """Return the newest failures of a job."""
        failures = dispatcher.job(job_id).statistics().failures
        newest = list(reversed(failures))[:max_exceptions]
        return {
            "exceptionHistory": {
                "entries": [_describe_failure(failure) for failure in newest],
                "truncated": len(newest) < len(failures),
            }
        }

    @router.get("/jobs/{job_id}/execution-result")
    def get_execution_result(job_id: JobPath) -> ExecutionResultAnswer:
        """Return the result of a job that has ended."""
        return _describe_result(dispatcher.job(job_id), context.clock.now())

    @router.get("/jobs/{job_id}/accumulators")
    def list_accumulators(job_id: JobPath) -> Accumulators:
        """Return accumulators and user metrics of a job, as text."""
        values = dispatcher.job(job_id).accumulators()
        return {
            "job-accumulators": [],
            "user-task-accumulators": [
                {"name": name, "type": type(value).__name__, "value": str(value)} for name, value in values.items()
            ],
            "serialized-user-task-accumulators": {},
        }

    @router.patch("/jobs/{job_id}", status_code=status.HTTP_202_ACCEPTED)
    def cancel_job(job_id: JobPath) -> dict[str, Any]:
        """Cancel a job."""
        dispatcher.job(job_id).cancel()
        return {}

    @router.get("/jobs/{job_id}/yarn-cancel", status_code=status.HTTP_202_ACCEPTED, include_in_schema=False)
    def cancel_job_from_dashboard(job_id: JobPath) -> dict[str, Any]:
        """Cancel a job, as the button of Flink's dashboard does."""
        dispatcher.job(job_id).cancel()
        return {}

    @router.patch("/jobs/{job_id}/clientHeartbeat", status_code=status.HTTP_202_ACCEPTED)
    def accept_heartbeat(job_id: JobPath) -> dict[str, Any]:
        """Accept the heartbeat of a client, without effect: a job continues without its clients."""
        dispatcher.job(job_id)
        return {}

    return router


def exception_name(cause: str) -> str:
    """Return the name of the exception at the end of a stack trace."""
    lines = [line for line in cause.splitlines() if line.strip()]
    return lines[-1].partition(":")[0] if lines else "Exception"


def _describe_overview(job: DispatchedJob, now: int) -> JobOverview:
    statistics, plan = job.statistics(), job.plan()
    subtasks = sum(planned.task.parallelism for planned in plan.vertices)
    states = count_states(execution_state(statistics.status), subtasks)
    return {
        "jid": job.id,
        "name": job.name,
        "start-time": start_time(statistics),
        "end-time": end_time(statistics),
        "duration": duration(statistics, now),
        "state": statistics.status.name,
        "last-modification": max(statistics.status_times.values()),
        "tasks": {"total": subtasks, **{name.lower(): count for name, count in states.items()}},
        "pending-operators": 0,
        "job-type": "BATCH" if plan.batch else "STREAMING",
        "schedulerType": _scheduler(job),
        "waiting": job.waiting_reason(),
    }


def _describe_job(job: DispatchedJob, now: int) -> JobDetails:
    statistics, plan = job.statistics(), job.plan()
    state = execution_state(statistics.status)
    return {
        "jid": job.id,
        "name": job.name,
        "isStoppable": not plan.batch,
        "state": statistics.status.name,
        "job-type": "BATCH" if plan.batch else "STREAMING",
        "schedulerType": _scheduler(job),
        "start-time": start_time(statistics),
        "end-time": end_time(statistics),
        "duration": duration(statistics, now),
        "maxParallelism": -1,
        "now": now,
        "timestamps": {
            "INITIALIZING": start_time(statistics),
            **{status.name: statistics.status_times.get(status, 0) for status in JobStatus},
        },
        "vertices": [describe_vertex(planned, statistics, now) for planned in plan.vertices],
        "status-counts": count_states(state, len(plan.vertices)),
        "plan": describe_plan(job.id, plan),
        "pending-operators": 0,
    }


def _scheduler(job: DispatchedJob) -> str:
    if job.plan().batch:
        return "AdaptiveBatch"
    return str(job.configuration.get(options.SCHEDULER))


def _describe_configuration(job: DispatchedJob) -> JobConfiguration:
    get = job.configuration.get
    parameters = get(options.GLOBAL_JOB_PARAMETERS) or {}
    return {
        "jid": job.id,
        "name": job.name,
        "execution-config": {
            "restart-strategy": str(get(options.RESTART_STRATEGY) or "default"),
            "job-parallelism": get(options.PARALLELISM),
            "object-reuse-mode": get(options.OBJECT_REUSE),
            "user-config": {key: str(mask_secret(key, value)) for key, value in parameters.items()},
        },
    }


def _describe_failure(failure: Timed[Failure]) -> ExceptionEntry:
    return {
        "exceptionName": exception_name(failure.event.cause),
        "stacktrace": failure.event.cause,
        "timestamp": failure.time,
        "failureLabels": {},
        "taskName": None,
        "endpoint": None,
        "taskManagerId": None,
        "concurrentExceptions": [],
    }


def _describe_result(job: DispatchedJob, now: int) -> ExecutionResultAnswer:
    statistics = job.statistics()
    if not statistics.status.is_terminal_state():
        return {"status": {"id": "IN_PROGRESS"}, "job-execution-result": None}
    names = {JobStatus.FINISHED: "SUCCEEDED", JobStatus.FAILED: "FAILED", JobStatus.CANCELED: "CANCELED"}
    return {
        "status": {"id": "COMPLETED"},
        "job-execution-result": {
            "id": job.id,
            "name": job.name,
            "application-status": names.get(statistics.status, "UNKNOWN"),
            "net-runtime": duration(statistics, now),
            "accumulator-results": {},
            "start-time": start_time(statistics),
            "end-time": end_time(statistics),
        },
    }
