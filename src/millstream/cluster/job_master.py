"""The epoch loop of one job.

Promises: plan, log, run, accept, checkpoint, commit, in this order, so that a crash anywhere repeats nothing visible;
a job ends in a final status, with its cause.
Does not know: Spark, threads of others, how jobs are submitted.

What a crash does: before the log, nothing happened; before accept, the epoch is run again from its logged plan; before
the publish of a checkpoint, the epochs since the last one are; after it, recovery repeats the commit."""

from __future__ import annotations

import functools
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.restore import OperatorShape, Restored, assign
from millstream.cluster.checkpoints import AllCheckpointsDamaged, Checkpoints
from millstream.cluster.deadlines import within
from millstream.cluster.events import (
    CancelEpoch,
    CancelRequested,
    EpochFailed,
    Event,
    InputEnded,
    Restarted,
    RestoreAfter,
    Started,
    Stopped,
)
from millstream.cluster.job_machine import Job, on_event
from millstream.cluster.observations import CheckpointDone, EpochDone, Observation, StatusChanged
from millstream.cluster.settings import JobSettings
from millstream.cluster.sinks import Sinks
from millstream.cluster.sizing import EpochSize
from millstream.cluster.sources import EpochPlan, Sources
from millstream.engine.contract import Deployment, Engine, EpochRequest, EpochResult
from millstream.errors import ExternalError, InternalError, MillstreamError, UserError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.model.accumulators import merged
from millstream.model.job_status import JobStatus
from millstream.model.source import Budget
from millstream.model.time import Clock
from millstream.model.watermarks import MIN_WATERMARK
from millstream.runtime.metrics import combined
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.state.handles import Lineage

_log = logging.getLogger("millstream.job")

_SWEEP_EVERY = 100  # epochs, when no checkpoint cleans up
_MERGE_AFTER = 64  # own files before small ones are merged


class EpochTimedOut(ExternalError):
    """An epoch did not end by its deadline."""

    def __init__(self, epoch: int, deadline: int) -> None:
        super().__init__(
            f"epoch {epoch} did not end within {deadline / 1000:g} s and was cancelled",
            hint="a function may be waiting for ever; else raise millstream.epoch.deadline",
        )


class CheckpointExpired(ExternalError):
    """A checkpoint was not durable in time."""

    def __init__(self, checkpoint: int, after: int) -> None:
        self.checkpoint, self.after = checkpoint, after
        super().__init__(
            f"checkpoint {checkpoint} expired after {after / 1000:g} s, still waiting for its storage",
            hint="raise execution.checkpointing.timeout or see what slows the checkpoint directory",
        )


class TaskFailed(ExternalError):
    """A task failed for a reason that is not the program's."""


@dataclass(frozen=True)
class SubmittedJob:
    """A program ready to run."""

    id: str
    name: str
    plan: ExecutionPlan
    settings: JobSettings
    deployment: Callable[[str], Deployment]


@dataclass
class Progress:
    """Where the job is: everything a checkpoint holds, as of the last accepted epoch."""

    epoch: int = 0
    generation: int = 0
    now: int = 0
    lineages: dict[str, tuple[Lineage, ...]] = field(default_factory=dict)
    memory: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)
    next_timer: int | None = None


class JobMaster:
    """Runs one job to its end, in the thread that calls `run`."""

    def __init__(
        self,
        job: SubmittedJob,
        engine: Engine,
        checkpoints: Checkpoints,
        clock: Clock,
        sleep: Callable[[float], None],
        observe: Callable[[Observation], None],
        show: Callable[[str], None],
    ) -> None:
        self._submitted = job
        self._plan = job.plan
        self._settings = job.settings
        self._engine = engine
        self._checkpoints = checkpoints
        self._clock = clock
        self._sleep = sleep
        self._observe = observe
        self._show = show
        self._progress = Progress()
        self._sources: Sources | None = None
        self._sinks: Sinks | None = None
        self._replay: deque[EpochPlan] = deque()
        self._size = EpochSize(job.settings.epoch_target / 1000, job.settings.epoch_records)
        self._cancel = threading.Event()
        self._failed_checkpoints = 0
        self.job = Job(strategy=job.settings.restart)
        self.failure: BaseException | None = None

    # ---------------------------------------------------------------------------------------- from other threads

    def cancel(self) -> None:
        """End the job without a checkpoint, soon."""
        self._cancel.set()
        self._engine.cancel()

    # ------------------------------------------------------------------------------------------------- the loop

    def run(self) -> None:
        """Run to a final status. Does not raise: `failure` and `job` say how it ended."""
        self._step(self._begin, then=Started())
        while not self.job.status.is_terminal_state():
            if self._cancel.is_set():
                self._happened(CancelRequested())
                self._happened(Stopped())
                break
            self._step(self._epoch)
        self._end()

    def _step(self, work: Callable[[], Event | None], then: Event | None = None) -> None:
        self._happened(*self._outcome(work, then))

    def _outcome(self, work: Callable[[], Event | None], then: Event | None) -> tuple[Event, ...]:
        """Do a piece of work; what goes wrong becomes an event."""
        try:
            event = work() or then
        except Exception as problem:
            if self._cancel.is_set():
                return CancelRequested(), Stopped()
            self.failure = problem
            helpless = isinstance(problem, AllCheckpointsDamaged) or (
                self._sources is None and isinstance(problem, UserError)
            )
            event = EpochFailed(str(problem), self._clock.now(), retryable=not helpless)
        return () if event is None else (event,)

    def _happened(self, *events: Event) -> None:
        waiting = deque(events)
        while waiting:
            before = self.job.status
            self.job, actions = on_event(self.job, waiting.popleft())
            if self.job.status is not before:
                self._observe(StatusChanged(self.job.status, self.job.restarts, self.job.cause))
            for action in actions:
                if isinstance(action, RestoreAfter):
                    _log.warning("restarting in %s ms: %s", action.delay, self.job.cause)
                    self._pause(action.delay)
                    waiting.extend(self._outcome(self._recover, Restarted()))
                elif isinstance(action, CancelEpoch):
                    self._engine.cancel()

    def _pause(self, delay: int) -> None:
        until = self._clock.now() + delay
        while not self._cancel.is_set() and (left := until - self._clock.now()) > 0:
            self._sleep(min(left, 100) / 1000)

    # ---------------------------------------------------------------------------------------- begin and recover

    def _begin(self) -> None:
        self._start_from(self._found())

    def _recover(self) -> None:
        found = self._found()  # before anything is undone: what a checkpoint names must stay
        if self._sinks is not None:
            self._sinks.abort(found.committables if found is not None else {})
        if self._sources is not None:
            self._sources.close()
        self._engine.close()
        self._start_from(found, self._progress.generation + 1)

    def _found(self) -> CheckpointMetadata | None:
        """The job's own newest checkpoint, else the one it was told to start from."""
        found = self._checkpoints.latest_intact()
        if found is None and self._settings.recovery_path is not None:
            found = self._checkpoints.open(self._settings.recovery_path)
        return found

    def _start_from(self, found: CheckpointMetadata | None, generation: int = 0) -> None:
        """Come to the state of a checkpoint, or to the beginning; then replay what was planned after it."""
        shapes = [
            OperatorShape(node.id, node.name, planned.task.parallelism, planned.task.max_parallelism)
            for planned in self._plan.vertices
            for node in planned.task.operators
        ]
        if found is None:
            restored = Restored(
                {shape.operator: (Lineage(),) * shape.parallelism for shape in shapes},
                {shape.operator: ({},) * shape.parallelism for shape in shapes},
            )
            epoch = now = 0
        else:
            foreign = found.job_id != self._submitted.id
            restored = assign(found, shapes, allow_unclaimed=self._settings.allow_unclaimed, foreign=foreign)
            epoch, now = found.epoch, found.now
            generation = max(generation, found.generation + 1)
        self._engine.deploy(self._submitted.deployment(f"{self._submitted.id}/{generation}"))
        self._sources = Sources(self._plan, found.sources if found is not None else {})
        if self._sinks is None:
            self._sinks = Sinks(self._plan, with_epoch=self._settings.checkpoint_interval is None)
        if found is not None:
            self._sinks.recommit(found.checkpoint, found.committables)
        # the first epoch runs at once, input or not: it finds the timers that are due, and writes what was restored
        self._progress = Progress(epoch, generation, now, restored.lineages, restored.memory, next_timer=now)
        logged = self._checkpoints.logged_plans(epoch, self._sources.operators)
        self._replay = deque(EpochPlan.from_json(plan) for plan in logged)
        self._checkpoints.started(self._clock.now(), epoch)

    # -------------------------------------------------------------------------------------------------- an epoch

    def _epoch(self) -> Event | None:
        """One turn of the loop: an epoch if there is work, then a checkpoint if one is due."""
        plan = self._next_plan()
        if plan is None:
            if self._checkpoints.due(self._clock.now(), self._progress.epoch):
                self._checkpoint()
            self._sleep(self._settings.idle_interval / 1000)
            return None
        started = self._clock.precise()
        result = self._run(plan)
        self._accept(plan, result, self._clock.precise() - started)
        if plan.ends:
            self._checkpoint(final=True)
            return InputEnded()
        if self._checkpoints.due(self._clock.now(), self._progress.epoch):
            self._checkpoint()
        return None

    def _next_plan(self) -> EpochPlan | None:
        """The logged plan to replay, or a new one made durable; None when there is nothing to do."""
        assert self._sources is not None
        if self._replay:
            plan = self._replay.popleft()
            self._sources.replay(plan)
            return plan
        progress = self._progress
        now = max(self._clock.now(), progress.now)
        budget = Budget(self._size.budget, self._settings.epoch_bytes, now)
        plan = self._sources.plan(progress.epoch + 1, budget, progress.memory)
        timer_due = progress.next_timer is not None and progress.next_timer <= now
        if not plan.ranges and not plan.ends and not timer_due and progress.epoch > 0:
            return None
        self._checkpoints.log_plan(plan.to_json())
        return plan

    def _run(self, plan: EpochPlan) -> EpochResult:
        assert self._sources is not None
        progress = self._progress
        request = EpochRequest(
            epoch=plan.epoch,
            now=plan.now,
            generation=progress.generation,
            restarts=self.job.restarts,
            lineages=progress.lineages,
            memory=progress.memory,
            work=self._sources.work(plan, progress.memory),
            compact=_compactions(progress.lineages),
            last=plan.ends,
        )
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._engine.cancel()

        watchdog = threading.Timer(self._settings.deadline / 1000, expire)
        watchdog.daemon = True
        watchdog.start()
        try:
            result = self._engine.run_epoch(request)
        except ExternalError:
            if expired.is_set():
                raise EpochTimedOut(plan.epoch, self._settings.deadline) from None
            raise
        finally:
            watchdog.cancel()
        if result.failures:
            raise _failure(result.failures[0])
        return result

    def _accept(self, plan: EpochPlan, result: EpochResult, seconds: float) -> None:
        """Every subtask has reported: this epoch happened."""
        assert self._sinks is not None
        assert self._sources is not None
        expected = sum(planned.task.parallelism for planned in self._plan.vertices)
        if len(result.reports) != expected:
            msg = f"epoch {plan.epoch}: {len(result.reports)} reports from {expected} subtasks"
            raise InternalError(msg)
        progress = self._progress
        lineages = {name: list(parts) for name, parts in progress.lineages.items()}
        memory = {name: list(parts) for name, parts in progress.memory.items()}
        timers: list[int] = []
        for report in result.reports:
            subtask = report["subtask"]
            for operator, handle in report["states"].items():
                lineages[operator][subtask] = lineages[operator][subtask].extended(handle)
            for operator, remembered in report["memory"].items():
                memory[operator][subtask] = remembered
            if report["timer"] is not None:
                timers.append(report["timer"])
            if report["printed"]:
                self._show(report["printed"])
        self._progress = Progress(
            plan.epoch,
            progress.generation,
            plan.now,
            {name: tuple(parts) for name, parts in lineages.items()},
            {name: tuple(parts) for name, parts in memory.items()},
            min(timers, default=None),
        )
        self._sinks.stage(result.reports)
        if not self._checkpoints.enabled and plan.epoch % _SWEEP_EVERY == 0:
            self._checkpoints.sweep(
                [h for parts in self._progress.lineages.values() for each in parts for h in each.handles]
            )
        records = self._measure(plan, result, seconds)
        self._size = self._size.after(records, seconds)

    def _measure(self, plan: EpochPlan, result: EpochResult, seconds: float) -> int:
        metrics: dict[str, dict[str, Any]] = {}
        for report in result.reports:
            for operator, counts in report["metrics"].items():
                totals = metrics.setdefault(operator, {})
                for name, count in counts.items():
                    totals[name] = combined(totals[name], count) if name in totals else count
        records: int = sum(metrics.get(operator, {}).get("records_in", 0) for operator in plan.sources)
        marks = [report["watermark"] for report in result.reports]
        assert self._sources is not None
        self._observe(
            EpochDone(
                epoch=plan.epoch,
                records=records,
                duration_ms=seconds * 1000,
                watermark=min(marks, default=MIN_WATERMARK),
                lag=self._sources.lag(),
                busy_ms=sum(report["busy"] for report in result.reports) * 1000,
                metrics=metrics,
                accumulators=functools.reduce(merged, (report["accumulators"] for report in result.reports), {}),
            )
        )
        return records

    # -------------------------------------------------------------------------------------------- a checkpoint

    def _checkpoint(self, *, final: bool = False) -> None:
        """Make the epoch boundary durable, then its output visible."""
        assert self._sinks is not None
        assert self._sources is not None
        started = self._clock.precise()
        metadata = self._snapshot()
        if final and not self._checkpoints.enabled:
            self._sinks.commit(metadata.checkpoint)  # nothing to come back to: the end is the only checkpoint
            return
        try:
            late = CheckpointExpired(metadata.checkpoint, self._settings.checkpoint_timeout)
            publish = functools.partial(self._checkpoints.complete, metadata, self._clock)
            path = within(self._settings.checkpoint_timeout, publish, late)
        except MillstreamError as problem:
            self._failed_checkpoints += 1
            if final or self._failed_checkpoints > self._settings.tolerable_failures:
                raise
            _log.warning("checkpoint %s failed: %s", metadata.checkpoint, problem)
            self._checkpoints.missed(self._clock.now())
            return
        self._failed_checkpoints = 0
        self._sinks.commit(metadata.checkpoint)
        self._sources.acknowledge()
        try:
            self._checkpoints.retire(keep=self._settings.retained)
        except ExternalError as problem:  # the job is well without; the next checkpoint tries again
            _log.warning("old checkpoints could not be deleted: %s", problem)
        self._observe(
            CheckpointDone(
                metadata.checkpoint,
                metadata.epoch,
                metadata.bytes_new,
                metadata.full_size,
                (self._clock.precise() - started) * 1000,
                path,
            )
        )

    def _snapshot(self) -> CheckpointMetadata:
        assert self._sinks is not None
        assert self._sources is not None
        progress = self._progress
        operators = tuple(
            OperatorSnapshot(
                node.operator,
                node.name,
                node.uid,
                planned.task.parallelism,
                planned.task.max_parallelism,
                progress.lineages[node.operator],
                progress.memory[node.operator],
            )
            for planned in self._plan.vertices
            for node in planned.vertex.nodes
        )
        return CheckpointMetadata(
            checkpoint=self._checkpoints.next_id,
            epoch=progress.epoch,
            generation=progress.generation,
            job_id=self._submitted.id,
            job_name=self._submitted.name,
            timestamp=self._clock.now(),
            now=progress.now,
            operators=operators,
            sources=self._sources.snapshot(),
            committables=self._sinks.durable(),
            bytes_new=self._checkpoints.new_bytes(operators),
        )

    def _end(self) -> None:
        """Let go of everything; keep or delete checkpoints as asked. What cannot be tidied up changes no result."""
        keep = self._settings.retain_on_cancel or self.job.status is JobStatus.FAILED
        steps: list[Callable[[], None]] = []
        if self._sinks is not None:
            steps += [] if self.job.status is JobStatus.FINISHED else [self._sinks.abort]
            steps.append(self._sinks.close)
        if self._sources is not None:
            steps.append(self._sources.close)
        steps += [self._engine.close, partial(self._checkpoints.close, keep=keep)]
        for step in steps:
            try:
                step()
            except Exception as problem:
                _log.warning("the job has ended, but something is left behind: %s", problem)


def _compactions(lineages: Mapping[str, tuple[Lineage, ...]]) -> dict[str, dict[int, int]]:
    """Which subtasks write one file for many: {operator: {subtask: first own file that is replaced}}.

    Everything becomes a new base after a change of parallelism, and when the changes outweigh the base."""
    wanted: dict[str, dict[int, int]] = {}
    for operator, parts in lineages.items():
        for subtask, lineage in enumerate(parts):
            own = lineage.own
            base = own[0].size if own and own[0].base else 0
            changes = sum(handle.size for handle in own) - base
            if lineage.restored or (len(own) >= 8 and changes > max(2 * base, 1 << 20)):
                wanted.setdefault(operator, {})[subtask] = 0
                continue
            small = [index for index, handle in enumerate(own) if not handle.base and not handle.covers]
            if len(small) >= _MERGE_AFTER:
                wanted.setdefault(operator, {})[subtask] = max(small[0], 1 if base else 0)
    return wanted


def _failure(data: Mapping[str, Any]) -> MillstreamError:
    if data["domain"] == "user":
        return UserFunctionFailed.from_json(dict(data))
    text = f"{data['problem']} (in {data['vertex']})"
    if data["domain"] == "external":
        return TaskFailed(text)
    return InternalError(f"{text}\n{data['trace']}")
