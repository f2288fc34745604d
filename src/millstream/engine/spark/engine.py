"""The engine contract on Spark.

Promises: an epoch is one Spark job. Spark replaces workers and executors that die; other failures raise `SparkFailed`
with the reason in one sentence. A Spark that is gone, stopped or does not answer is detected while an epoch waits for
it: the epoch raises `SparkLost`, and the next `deploy` starts another Spark.
Does not know: plans, checkpoints, what a program computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from pyspark import SparkContext

from millstream.config.configuration import Configuration
from millstream.connector.slot_task import SlotTask
from millstream.engine.contract import Deployment, EpochRequest, EpochResult
from millstream.engine.epoch_level import level_requests, without_cycle_collection
from millstream.engine.packing import pickle_deployment
from millstream.engine.slot_tasks import collect_results
from millstream.engine.spark.batch_job import run_batch_job
from millstream.engine.spark.broadcasts import release
from millstream.engine.spark.calls import Calls, try_within
from millstream.engine.spark.catalyst import OPTIMIZING_JVM, find_relational_sources
from millstream.engine.spark.cleaning import clean_hosts
from millstream.engine.spark.epoch_job import run_epoch_job
from millstream.engine.spark.failures import translate_errors
from millstream.engine.spark.health import SparkLost, Watch
from millstream.engine.spark.level_command import DeployedProgram
from millstream.engine.spark.placement import SlotAnchors, SlotPlacement, count_running_slots
from millstream.engine.spark.session import SparkNotStarted, kill, kill_starting, spark_context, warm_up
from millstream.engine.spark.shared import use_own_pool
from millstream.engine.spark.stages import Stages, create_stages
from millstream.engine.spark.task_resources import CPUS, create_profile
from millstream.engine.spark.tasks_job import run_tasks_job
from millstream.options import (
    ENGINE,
    EPOCH_DEADLINE,
    HEARTBEAT_INTERVAL,
    HEARTBEAT_TIMEOUT,
    SLOT_RESOURCES,
    SPARK_MASTER,
    SPARK_PUBLIC_API,
)
from millstream.runtime import block as blocks
from millstream.runtime.block import BlockKind
from millstream.runtime.report import unpack_failure, unpack_report

T = TypeVar("T")

_CANCEL_SECONDS = 5
_CLOSE_SECONDS = 20
_CLEAN_SECONDS = 60


class SparkEngine:
    """Runs epochs on one Spark context."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        configuration = Configuration.from_dict(self._settings)
        self._answer_seconds = configuration.get(HEARTBEAT_TIMEOUT).to_milliseconds() / 1000
        self._start_seconds = configuration.get(EPOCH_DEADLINE).to_milliseconds() / 1000
        self._check_interval = configuration.get(HEARTBEAT_INTERVAL).to_milliseconds() / 1000
        self._public_only = configuration.get(SPARK_PUBLIC_API)
        self._slot_resources = configuration.get(SLOT_RESOURCES)
        self._calls = Calls(self._check_interval)
        self._task_calls: list[Calls] = []  # those of `run_tasks` that are under way
        self._watch: Watch | None = None
        self._lost: dict[Any, SparkLost] = {}
        self._context: Any = None
        self._deployment: Deployment | None = None
        self._program: DeployedProgram | None = None
        self._stages: Stages | None = None
        self._anchors: SlotAnchors | None = None
        self._bundle: Any = None

    def prepare(self) -> None:
        """Start a JVM and load Spark's classes, without a Spark context."""
        self._run_start(lambda: warm_up(self._settings))

    def deploy(self, deployment: Deployment) -> None:
        """Broadcast the program."""
        if self._watch is not None and (problem := self._watch.find_problem()) is not None:
            self._lose(problem)
        context = self._run_start(lambda: self._get_spark_for(deployment))
        if context is not self._context:
            self._forget()
            self._context, self._lost = context, {}
            self._watch = Watch(context, context._gateway, self._answer_seconds)
        self._program, self._stages, self._anchors, self._bundle = self._run_start(lambda: self._broadcast(deployment))
        self._deployment = deployment

    def _get_spark_for(self, deployment: Deployment) -> Any:
        settings = {**OPTIMIZING_JVM, **self._settings} if find_relational_sources(deployment) else self._settings
        if deployment.plan.batch:
            settings = {**settings, ENGINE.key: "jobs"}  # a Spark for batch jobs has no task slots beside its cores
        return spark_context(settings, deployment.plan.slots, self._answer_seconds, self._lost)

    def _broadcast(self, deployment: Deployment) -> tuple[DeployedProgram, Stages | None, SlotAnchors | None, Any]:
        context, anchors, bundle, slots = self._context, self._anchors, self._bundle, deployment.plan.slots
        if self._program is not None:
            release(self._program.pickled)
        if deployment.dependencies is not None and bundle is None:
            bundle = context.broadcast(deployment.dependencies.read())
        pickled = context.broadcast(pickle_deployment(deployment))
        program = DeployedProgram(deployment.id, pickled, deployment.dependencies, bundle)
        if deployment.plan.batch:
            return program, None, None, bundle
        if anchors is None or anchors.slots != slots:
            if anchors is not None:
                anchors.close()
            anchors = SlotAnchors(context, slots)
        return program, self._create_stages(context, slots, program), anchors, bundle

    def _create_stages(self, context: Any, slots: int, program: DeployedProgram) -> Stages:
        profile = create_profile(context, self._slot_resources)
        return create_stages(context, slots, program.broadcasts, public_only=self._public_only, profile=profile)

    def _run_start(self, work: Callable[[], T]) -> T:
        """Call work that may start Spark; a JVM that hangs while it starts is killed."""

        def on_timeout() -> Exception:
            kill_starting()
            master = self._settings.get(SPARK_MASTER.key, str(SPARK_MASTER.default))
            return SparkNotStarted(master, f"it was not ready within {self._start_seconds:g} s")

        return self._calls.run(partial(translate_errors, work), lambda: None, self._start_seconds, on_timeout)

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        """Run one Spark job."""
        watch = self._watch
        assert watch is not None, "deploy first"
        try:
            received = self._calls.run(
                partial(translate_errors, lambda: self._run(request)), watch.find_problem, math.inf, _never
            )
        except SparkLost as problem:
            self._lose(problem)
            raise
        except Exception:  # a stopped context lacks attributes that PySpark reads
            if (lost := watch.find_problem()) is not None:
                self._lose(lost)
                raise lost from None
            raise
        watch.note_success()
        return create_epoch_result(received)

    def _run(self, request: EpochRequest) -> list[bytes]:
        deployment = self._deployment
        assert deployment is not None, "deploy first"
        assert self._program is not None
        use_own_pool(self._context)
        self._context.setJobGroup(deployment.id, f"{deployment.plan.job.name}: epoch {request.epoch}", True)
        requests = level_requests(deployment, request)
        if deployment.plan.batch:
            return run_batch_job(self._context, self._program, deployment, requests, request.now)
        assert self._anchors is not None
        assert self._stages is not None
        return run_epoch_job(self._stages, self._anchors.place(self._stages), self._program, requests)

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """Run one Spark job with one stage."""
        watch = self._watch
        assert watch is not None, "deploy first"
        calls = Calls(self._check_interval)  # a thread of its own: an epoch may run at the same time
        self._task_calls.append(calls)
        try:
            return calls.run(
                partial(translate_errors, lambda: self._run_tasks(tasks)), watch.find_problem, math.inf, _never
            )
        finally:
            self._task_calls.remove(calls)
            calls.close()

    def _run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        deployment, program = self._deployment, self._program
        assert deployment is not None, "deploy first"
        assert program is not None
        use_own_pool(self._context)
        self._context.setJobGroup(deployment.id, f"{deployment.plan.job.name}: {len(tasks)} tasks", True)
        stages = self._stages or self._create_stages(self._context, deployment.plan.slots, program)
        placement = self._anchors.place(stages) if self._anchors is not None else SlotPlacement.anywhere(stages)
        return collect_results(run_tasks_job(stages, placement, program, tasks), len(tasks))

    def slots(self) -> int | None:
        """Return how many tasks of this job the present executors can run at once."""
        context, watch = self._context, self._watch
        if context is None or watch is None:
            return None
        running = self._calls.run(
            partial(translate_errors, lambda: count_running_slots(context)), watch.find_problem, math.inf, _never
        )
        return running // int(self._slot_resources.get(CPUS, 1))

    def cancel(self) -> None:
        """Cancel the running job."""
        context, deployment = self._context, self._deployment
        if context is not None and deployment is not None:
            try_within("cancel a job", lambda: context.cancelJobGroup(deployment.id), _CANCEL_SECONDS)

    def abandon(self, reason: str) -> None:
        """Kill the JVM, if it was started here; calls that wait for it fail."""
        kill(self._context)
        for calls in (self._calls, *self._task_calls):
            calls.give_up(SparkLost(reason, jvm=True))

    def close(self) -> None:
        """Forget the program; the Spark context stays for the next one."""
        program, anchors = self._program, self._anchors
        self._forget()
        self._calls.close()

        def clean_up() -> None:
            for broadcast in program.broadcasts if program is not None else ():
                release(broadcast)
            if anchors is not None:
                anchors.close()

        try_within("clean up after a job", clean_up, _CLOSE_SECONDS)

    def clean_hosts(self, scratch: str) -> None:
        """Run a small job on all executors."""
        context, active = self._context, SparkContext._active_spark_context
        if active is not None and context is active:
            try_within("clean the hosts of a job", partial(clean_hosts, active, scratch), _CLEAN_SECONDS)

    def _lose(self, problem: SparkLost) -> None:
        """Discard a Spark that cannot be used any more."""
        if problem.jvm:
            kill(self._context)
        self._lost = {self._context: problem}
        self._forget()
        self._context = self._watch = None

    def _forget(self) -> None:
        """Discard what belongs to one context and one program."""
        self._deployment = self._program = self._stages = self._bundle = self._anchors = None


@without_cycle_collection()
def create_epoch_result(received: Iterable[bytes]) -> EpochResult:
    """Return the result of an epoch from the blocks that its last tasks have sent."""
    received_blocks = [(blocks.header(data).kind, data) for data in received]
    return EpochResult(
        reports=tuple(unpack_report(data) for kind, data in received_blocks if kind is BlockKind.REPORT),
        failures=tuple(unpack_failure(data) for kind, data in received_blocks if kind is BlockKind.FAILURE),
    )


def _never() -> Exception:
    raise AssertionError
