"""The engine contract on Spark.

Promises: one Spark job an epoch; a worker or executor that dies is Spark's to replace, what cannot be replaced comes
back as `SparkFailed` with the reason in one sentence.
Does not know: plans, checkpoints, programs' meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from millstream.engine.contract import Deployment, EpochRequest, EpochResult
from millstream.engine.packing import packed
from millstream.engine.slot import level_requests
from millstream.engine.slot_tasks import collect_results
from millstream.engine.spark.batch_job import batch_job
from millstream.engine.spark.catalyst import OPTIMIZING_JVM, query_failure, relational_sources
from millstream.engine.spark.cleaning import clean_hosts
from millstream.engine.spark.epoch_job import epoch_job
from millstream.engine.spark.placement import Anchor, Laid, running_slots
from millstream.engine.spark.session import spark_context, warm_up
from millstream.engine.spark.stage import Parts
from millstream.engine.spark.stages import Stages, destroy
from millstream.engine.spark.tasks_job import tasks_job
from millstream.errors import ExternalError, MillstreamError
from millstream.model.slot_task import SlotTask
from millstream.runtime import block as blocks
from millstream.runtime.block import BlockKind

_MEMORY = (
    "Python worker exited unexpectedly",
    "OutOfMemoryError",
    "MemoryError",
    "ExecutorLostFailure",
    "exceeding memory limits",
    "spark.driver.maxResultSize",
)


class SparkFailed(ExternalError):
    """Spark could not finish an epoch."""

    hint = "see the Spark log; the job restarts from its last checkpoint if its restart strategy allows"

    @property
    def out_of_memory(self) -> bool:
        """Whether a lack of memory may be the reason: processes that the kernel killed for it only disappear."""
        return any(sign in self.message for sign in _MEMORY)


class SparkEngine:
    """Runs epochs on one Spark context."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self._context: Any = None
        self._deployment: Deployment | None = None
        self._parts: Parts | None = None
        self._stages: Stages | None = None
        self._anchor: Anchor | None = None
        self._bundle: Any = None

    def prepare(self) -> None:
        """Start a JVM and warm it up; no Spark runs in it yet."""
        warm_up(self._settings)

    def deploy(self, deployment: Deployment) -> None:
        """Broadcast the program."""
        pickled = packed(deployment)
        slots = deployment.plan.slots
        relational = {**OPTIMIZING_JVM, **self._settings} if relational_sources(deployment) else self._settings
        self._context = spark_context(relational, slots)
        if self._parts is not None:
            destroy(self._parts.program)
        if deployment.dependencies is not None and self._bundle is None:
            self._bundle = self._context.broadcast(deployment.dependencies.read())
        program = self._context.broadcast(pickled)
        self._parts = Parts(deployment.id, program, deployment.dependencies, self._bundle)
        if not deployment.plan.batch:
            self._stages = Stages(self._context, slots, self._parts.broadcasts)
            if self._anchor is None or self._anchor.slots != slots:
                self._let_go_of_anchor()
                self._anchor = Anchor(self._context, slots)
        self._deployment = deployment

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        """One Spark job."""
        deployment = self._deployment
        assert deployment is not None, "deploy first"
        assert self._parts is not None
        self._context.setJobGroup(deployment.id, f"{deployment.plan.job.name}: epoch {request.epoch}", True)
        requests = level_requests(deployment, request)
        try:
            if deployment.plan.batch:
                found = batch_job(self._context, self._parts, deployment, requests, request.now)
            else:
                assert self._anchor is not None
                assert self._stages is not None
                found = epoch_job(self._stages, self._anchor.laid(self._stages), self._parts, requests)
        except _SPARK_PROBLEMS as problem:
            raise _failure(problem) from None
        kinds = [(blocks.header(data).kind, data) for data in found]
        return EpochResult(
            reports=tuple(blocks.unpack_report(data) for kind, data in kinds if kind is BlockKind.REPORT),
            failures=tuple(blocks.unpack_failure(data) for kind, data in kinds if kind is BlockKind.FAILURE),
        )

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """One Spark job with one stage."""
        deployment, parts = self._deployment, self._parts
        assert deployment is not None, "deploy first"
        assert parts is not None
        self._context.setJobGroup(deployment.id, f"{deployment.plan.job.name}: {len(tasks)} tasks", True)
        try:
            stages = self._stages or Stages(self._context, deployment.plan.slots, parts.broadcasts)
            laid = self._anchor.laid(stages) if self._anchor is not None else Laid.anywhere(stages)
            return collect_results(tasks_job(stages, laid, parts, tasks), len(tasks))
        except _SPARK_PROBLEMS as problem:
            raise _failure(problem) from None

    def slots(self) -> int | None:
        """The tasks that the executors of now can run at once."""
        return running_slots(self._context) if self._context is not None else None

    def cancel(self) -> None:
        """Cancel the running job."""
        if self._context is not None and self._deployment is not None:
            self._context.cancelJobGroup(self._deployment.id)

    def close(self) -> None:
        """Forget the program; the Spark context stays for the next one."""
        for broadcast in self._parts.broadcasts if self._parts is not None else ():
            destroy(broadcast)
        self._let_go_of_anchor()
        self._deployment = self._parts = self._stages = self._bundle = None

    def clean_hosts(self, scratch: str) -> None:
        """One small job over all executors."""
        active = SparkContext._active_spark_context
        if active is not None and active is self._context:
            clean_hosts(active, scratch)

    def _let_go_of_anchor(self) -> None:
        if self._anchor is not None:
            self._anchor.close()
        self._anchor = None


_SPARK_PROBLEMS = (Py4JError, PySparkException, OSError, EOFError)


def _failure(problem: Exception) -> MillstreamError:
    """The error to raise for a failed job."""
    broken = f"the connection to Spark broke: {problem}"
    reason = _reason(problem) if isinstance(problem, Py4JJavaError) else broken
    return query_failure(problem) or SparkFailed(reason)


def _reason(problem: Any) -> str:
    """The sentence in a Java stack trace that says what happened."""
    lines = [line.strip() for line in str(problem.java_exception).splitlines() if line.strip()]
    python = [
        line for line in lines if line.startswith(("Python worker exited", "org.apache.spark.SparkException: Python"))
    ]
    first = next((line for line in lines if "SparkException" in line or "Job" in line), lines[0] if lines else "")
    return (python[0] if python else first).removeprefix("org.apache.spark.SparkException: ")[:500]
