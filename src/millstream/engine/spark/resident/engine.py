"""The engine contract on resident slots, with Spark jobs for programs that do not fit.

Promises: a streaming job runs on resident slots if they fit and its options allow it, and so do its tasks between
epochs; batch jobs are Spark jobs. A slot that is lost ends its stage, and the epoch or the tasks run again in a new
stage, as often as Spark repeats a task; then `SlotLost` is raised. A Spark that is gone raises `SparkLost`, as with the
jobs engine.
Does not know: how slots exchange blocks."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from millstream.config.configuration import Configuration
from millstream.connector.slot_task import SlotTask
from millstream.engine.contract import Deployment, EpochRequest, EpochResult
from millstream.engine.epoch_level import level_requests
from millstream.engine.slot_tasks import collect_results
from millstream.engine.spark.engine import SparkEngine, create_epoch_result
from millstream.engine.spark.failures import translate_errors
from millstream.engine.spark.health import SparkLost
from millstream.engine.spark.resident.fit import find_context_setting, find_obstacle
from millstream.engine.spark.resident.stage import ResidentStage, SlotLost
from millstream.engine.spark.settings import TASK_FAILURES
from millstream.engine.spark.tasks_job import pack_tasks
from millstream.errors import ExternalError, UserError
from millstream.options import ENGINE, RESIDENT_MEMORY, SCHEDULER, SCHEDULER_MODE

_log = logging.getLogger("millstream.spark")

_START_SECONDS = 300.0  # many slots on few cores start one after another
_PATIENCE = 60.0  # seconds to wait for missing task slots of a cluster
_ATTEMPTS = int(TASK_FAILURES)
_stages: list[ResidentStage] = []  # those of this process that hold task slots
_lock = threading.Lock()


class ResidentRefused(UserError):
    """A program cannot run on resident slots with these settings."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the job cannot run on resident slots: {reason}", hint=f"set {ENGINE.key} to auto or jobs, or change this"
        )


class TooFewSlots(ExternalError):
    """Spark has too few free task slots for a resident stage."""

    hint = f"give Spark more cores, lower the parallelism, or set {ENGINE.key} to auto or jobs"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the job cannot run on resident slots: {reason}")


class ResidentEngine(SparkEngine):
    """Runs the epochs of streaming jobs on resident slots."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        configuration = Configuration.from_dict(dict(settings))
        self._is_required = configuration.get(ENGINE) == "resident"
        self._follows_slots = (
            configuration.get(SCHEDULER) == "Adaptive" or configuration.get(SCHEDULER_MODE) == "REACTIVE"
        )
        self._memory = int(configuration.get(RESIDENT_MEMORY))
        self._stage: ResidentStage | None = None
        self._is_resident = False
        self._numbers = itertools.count()
        self._replacing = threading.RLock()

    def deploy(self, deployment: Deployment) -> None:
        """Broadcast the program, and start its slots if they fit."""
        self._end_stage()
        super().deploy(deployment)
        obstacle = self._run_start(lambda: self._find_obstacle(deployment))
        self._is_resident = obstacle is None
        name = deployment.plan.job.name
        if obstacle is None:
            self._start_stage()
            _log.info("job '%s' runs on %s resident slots", name, deployment.plan.slots)
        elif not deployment.plan.batch:
            if self._is_required and find_context_setting(self._context) is not None:
                raise ResidentRefused(obstacle)
            if self._is_required and not self._follows_slots:  # an adaptive job will be rescaled to the slots there are
                raise TooFewSlots(obstacle)
            _log.info("job '%s' runs as Spark jobs, not on resident slots: %s", name, obstacle)

    def _find_obstacle(self, deployment: Deployment) -> str | None:
        with _lock:
            held = sum(stage.slots for stage in _stages if stage.context is self._context)
        patience = _PATIENCE if self._is_required and not self._follows_slots else 0.0
        return translate_errors(partial(find_obstacle, self._context, deployment, held, patience))

    def _start_stage(self) -> ResidentStage:
        deployment, program = self._deployment, self._program
        assert deployment is not None, "deploy first"
        assert program is not None
        group = f"{deployment.id}/resident/{next(self._numbers)}"
        name = f"{deployment.plan.job.name}: resident slots"
        stage = self._stage = ResidentStage(self._context, program, deployment.plan.slots, group, name)
        with _lock:
            _stages.append(stage)
        try:
            stage.start(self._memory, deployment.scratch or None, _START_SECONDS)
        except Exception:
            self._end_stage()
            raise
        return stage

    def _end_stage(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None:
            stage.close()
            with _lock:
                _stages.remove(stage)

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        """Run an epoch on the slots."""
        if not self._is_resident:
            return super().run_epoch(request)
        watch, deployment = self._watch, self._deployment
        assert watch is not None, "deploy first"
        assert deployment is not None
        requests = level_requests(deployment, request)
        try:
            received = self._run_on_stage(
                f"epoch {request.epoch} runs",
                lambda stage: stage.run(requests, watch.find_problem, self._check_interval),
            )
        except SparkLost as problem:
            self._lose(problem)
            raise
        watch.note_success()
        return create_epoch_result(received)

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """Run tasks on the slots, also while an epoch runs."""
        if not self._is_resident:
            return super().run_tasks(tasks)
        watch, deployment = self._watch, self._deployment
        assert watch is not None, "deploy first"
        assert deployment is not None
        packed = pack_tasks(tasks, deployment.plan.slots)
        outcomes = self._run_on_stage(
            f"{len(tasks)} tasks between epochs run",
            lambda stage: stage.run_tasks(packed, watch.find_problem, self._check_interval),
        )
        return collect_results(outcomes, len(tasks))

    def _run_on_stage(self, doing: str, work: Callable[[ResidentStage], list[bytes]]) -> list[bytes]:
        """Do something on the stage; in a new one if a slot is lost."""
        watch = self._watch
        assert watch is not None
        for attempt in itertools.count(1):
            stage: ResidentStage | None = None
            try:
                with self._replacing:
                    stage = self._stage or self._start_stage()
                return work(stage)
            except Exception as problem:
                with self._replacing:  # another thread may have replaced it
                    if self._stage is stage:
                        self._end_stage()
                lost = problem if isinstance(problem, SparkLost) else watch.find_problem()
                if lost is not None:
                    raise lost from None
                if not isinstance(problem, SlotLost) or attempt == _ATTEMPTS:
                    raise
                _log.warning("%s again in a new stage: %s", doing, problem)
        raise AssertionError(doing)

    def cancel(self) -> None:
        """End the stage, whose processes are killed, and cancel tasks between epochs."""
        stage = self._stage
        if stage is not None:
            stage.cancel()
        super().cancel()

    def abandon(self, reason: str) -> None:
        """Kill the JVM, if it was started here; calls that wait for it fail."""
        super().abandon(reason)
        stage = self._stage
        if stage is not None:
            stage.fail(SparkLost(reason, jvm=True))

    def close(self) -> None:
        """End the stage, and forget the program."""
        self._end_stage()
        super().close()


def create_engine(settings: Mapping[str, str]) -> SparkEngine:
    """Return the engine that the options name."""
    is_jobs = Configuration.from_dict(dict(settings)).get(ENGINE) == "jobs"
    return SparkEngine(settings) if is_jobs else ResidentEngine(settings)
