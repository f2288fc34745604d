"""The engine contract on resident slots, with Spark jobs for programs that do not fit.

Promises: a streaming job runs on resident slots if they fit and its options allow it; batch jobs, and tasks between
epochs, are Spark jobs. A slot that is lost ends its stage, and the epoch runs again in a new stage, as often as Spark
repeats a task; then the epoch raises `SlotLost`. A Spark that is gone raises `SparkLost`, as with the jobs engine.
Does not know: how slots exchange blocks."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Mapping
from functools import partial

from millstream.config.configuration import Configuration
from millstream.engine.contract import Deployment, EpochRequest, EpochResult
from millstream.engine.epoch_level import level_requests
from millstream.engine.spark.engine import SparkEngine, create_epoch_result
from millstream.engine.spark.failures import translate_errors
from millstream.engine.spark.health import SparkLost
from millstream.engine.spark.resident.fit import find_obstacle, find_setting
from millstream.engine.spark.resident.stage import ResidentStage, SlotLost
from millstream.engine.spark.settings import TASK_FAILURES
from millstream.errors import ExternalError, UserError
from millstream.options import ENGINE, RESIDENT_MEMORY

_log = logging.getLogger("millstream.spark")

_START_SECONDS = 60.0
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
        self._memory = int(configuration.get(RESIDENT_MEMORY))
        self._stage: ResidentStage | None = None
        self._is_resident = False
        self._numbers = itertools.count()

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
            if self._is_required:
                raise (ResidentRefused if find_setting(self._context) else TooFewSlots)(obstacle)
            _log.info("job '%s' runs as Spark jobs, not on resident slots: %s", name, obstacle)

    def _find_obstacle(self, deployment: Deployment) -> str | None:
        with _lock:
            held = sum(stage.slots for stage in _stages if stage.context is self._context)
        return translate_errors(partial(find_obstacle, self._context, deployment, held))

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
        for attempt in itertools.count(1):
            try:
                stage = self._stage or self._start_stage()
                received = stage.run(level_requests(deployment, request), watch.find_problem, self._check_interval)
            except Exception as problem:
                self._end_stage()
                lost = problem if isinstance(problem, SparkLost) else watch.find_problem()
                if lost is not None:
                    self._lose(lost)
                    raise lost from None
                if not isinstance(problem, SlotLost) or attempt == _ATTEMPTS:
                    raise
                _log.warning("epoch %s runs again in a new stage: %s", request.epoch, problem)
            else:
                break
        watch.note_success()
        return create_epoch_result(received)

    def slots(self) -> int | None:
        """Return how many slots a job can have."""
        running = super().slots()
        return max(1, running - 1) if running is not None and self._is_required else running

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
