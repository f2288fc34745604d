"""Collects all metrics of this process: of the cluster, of its jobs, and of their subtasks and operators.

Promises: values are computed on request; nothing is computed between two calls. Ended jobs have no metrics, as in
Flink.
Does not know: reporters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from millstream.cluster.dispatcher import DispatchedJob, Dispatcher
from millstream.cluster.job_statistics import Statistics
from millstream.cluster.metrics.job_metrics import job_metrics
from millstream.cluster.metrics.metric import Metric, Scope, ScopeType, Value
from millstream.cluster.metrics.process_metrics import process_metrics
from millstream.cluster.metrics.task_metrics import operator_metrics, task_metrics

HOST, TASK_MANAGER = "localhost", "spark"  # Spark's executors are one task manager


def collect_metrics(dispatcher: Dispatcher, now: int) -> Iterator[Metric]:
    """Yield every metric with its scope."""
    yield from _scoped(ScopeType.JOB_MANAGER, {"host": HOST}, jobmanager_metrics(dispatcher))
    task_manager = {"host": HOST, "tm_id": TASK_MANAGER}
    yield from _scoped(ScopeType.TASK_MANAGER, task_manager, taskmanager_metrics())
    for job in dispatcher.jobs():
        statistics = job.statistics()
        if not statistics.status.is_terminal_state():
            yield from _collect_job(job, statistics, now)


def jobmanager_metrics(dispatcher: Dispatcher) -> dict[str, Value]:
    """Return the metrics of the driver by name. A running job has exactly the slots that it uses, so no slots are
    free."""
    running = [job for job in dispatcher.jobs() if not job.statistics().status.is_terminal_state()]
    return {
        "taskSlotsTotal": sum(job.plan().slots for job in running),
        "taskSlotsAvailable": 0,
        "numRegisteredTaskManagers": 1 if running else 0,
        "numPendingTaskManagers": 0,
        "numRunningJobs": len(running),
        **process_metrics(),
    }


def taskmanager_metrics() -> dict[str, Value]:
    """Return the metrics of the task manager by name: those of the driver's process. Spark measures its executors."""
    return process_metrics()


def _collect_job(job: DispatchedJob, statistics: Statistics, now: int) -> Iterator[Metric]:
    variables = {"host": HOST, "job_id": job.id, "job_name": job.name}
    yield from _scoped(ScopeType.JOB, variables, job_metrics(statistics, now))
    for planned in job.plan().vertices:
        task = planned.task
        for subtask in range(task.parallelism):
            of_task = {
                **variables,
                "tm_id": TASK_MANAGER,
                "task_id": task.vertex,
                "task_name": task.name,
                "task_attempt_num": str(statistics.restarts),
                "subtask_index": str(subtask),
            }
            yield from _scoped(ScopeType.TASK, of_task, task_metrics(planned, statistics, subtask, now))
            for node in planned.vertex.nodes:
                of_operator = {**of_task, "operator_id": node.operator, "operator_name": node.name}
                values = operator_metrics(planned, node, statistics, subtask, now)
                yield from _scoped(ScopeType.OPERATOR, of_operator, values)


def _scoped(scope_type: ScopeType, variables: Mapping[str, str], values: Mapping[str, Value]) -> Iterator[Metric]:
    scope = Scope(scope_type, variables)
    return (Metric(scope, name, value) for name, value in values.items())
