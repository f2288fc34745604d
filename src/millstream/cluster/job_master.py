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
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.restore import OperatorShape, Restored, assign
from millstream.checkpoint.storage import CheckpointTaken
from millstream.cluster.checkpoints import AllCheckpointsDamaged, Checkpoints
from millstream.cluster.deadlines import within
from millstream.cluster.events import (
    CancelEpoch,
    CancelRequested,
    Concluded,
    EpochFailed,
    Event,
    InputEnded,
    Restarted,
    RestoreAfter,
    Started,
    Stopped,
    Superseded,
)
from millstream.cluster.job_machine import Job, on_event
from millstream.cluster.leadership import Leadership, LeadershipLost, take_over
from millstream.cluster.lease import Outcome
from millstream.cluster.observations import CheckpointDone, EpochDone, Observation, RescaleDone, StatusChanged
from millstream.cluster.rescale import Adaptive, Wanted
from millstream.cluster.savepoints import NoSavepointDirectory, SavepointFailed, SavepointRequest, Savepoints, undrained
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
_RESCALED_RECORDS = 1_000  # read by the first epoch at another parallelism, at most: it has state to take over


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


class EndedElsewhere(ExternalError):
    """The job failed under another driver."""

    hint = "to run it anew, give another high-availability.cluster-id or delete the job's directory in the storageDir"

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"another driver's run of this job ended as {outcome.status}: {outcome.cause}")


class StateRefused(UserError):
    """The state a job was to start from cannot be read by its program: trying again would not help."""


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
    leadership: Leadership | None = None
    replan: Callable[[Wanted], ExecutionPlan] | None = None
    adaptive: Adaptive | None = None


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
        self._earliest = 0.0  # when the next epoch may start, by the clock that is never set
        self._adaptive = job.adaptive
        self._rescale_ordered: tuple[ExecutionPlan, Future[int]] | None = None
        self._rescaling: tuple[float, Future[int]] | None = None
        self._savepoints = Savepoints(checkpoints)
        if job.settings.claim and job.settings.recovery_path is not None:
            checkpoints.claim(job.settings.recovery_path)
        self._stopping = False
        self._stopped_with: tuple[SavepointRequest, str] | None = None
        self._over = False
        self._began_at = 0
        self.job = Job(strategy=job.settings.restart)
        self.failure: BaseException | None = None

    # ---------------------------------------------------------------------------------------- from other threads

    def cancel(self) -> None:
        """End the job without a checkpoint, soon."""
        self._cancel.set()
        self._engine.cancel()

    def savepoint(self, directory: str | None = None, **how: Any) -> Future[str]:
        """Write a savepoint at the next epoch boundary; gives its path. `how` are fields of `SavepointRequest`."""
        directory = directory or self._settings.savepoint_dir
        if not directory:
            raise NoSavepointDirectory
        return self._savepoints.ask(SavepointRequest(directory, **how))

    def rescale(self, wanted: Wanted) -> Future[int]:
        """Go on at another parallelism from the next epoch boundary; gives the number of slots once it does.

        Refuses at once what cannot run; a later order replaces one that was not carried out yet."""
        assert self._submitted.replan is not None
        plan, done = self._submitted.replan(wanted), Future[int]()
        replaced, self._rescale_ordered = self._rescale_ordered, (plan, done)
        if replaced is not None:
            replaced[1].cancel()
        if self.job.status.is_terminal_state():
            done.cancel()
        return done

    # ------------------------------------------------------------------------------------------------- the loop

    def run(self) -> None:
        """Run to a final status. Does not raise: `failure` and `job` say how it ended."""
        self._step(self._begin, then=Started())
        while not self.job.status.is_terminal_state():
            if self._cancel.is_set():
                self._happened(CancelRequested())
                self._happened(Stopped())
                break
            self._step(self._savepoint if self._savepoints.waiting and self._settled() else self._epoch)
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
            if isinstance(problem, LeadershipLost):
                return (Superseded(str(problem)),)
            helpless = isinstance(problem, AllCheckpointsDamaged | StateRefused) or (
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
        until = self._clock.precise() + delay / 1000
        while not self._cancel.is_set() and (left := until - self._clock.precise()) > 0:
            self._sleep(min(left, 0.1))

    # ---------------------------------------------------------------------------------------- begin and recover

    def _begin(self) -> Event | None:
        if self._submitted.leadership is None:
            self._start_from(self._found())
            return None
        return self._lead(self._submitted.leadership)

    def _lead(self, leadership: Leadership) -> Event | None:
        """Wait until this driver leads, then begin a term; or learn how the job ended elsewhere."""
        outcome = leadership.wait(self._cancel.is_set)
        if outcome is not None:
            self.failure = EndedElsewhere(outcome) if outcome.status == JobStatus.FAILED.name else None
            return Concluded(JobStatus[outcome.status], outcome.cause)
        self._checkpoints.lead(leadership.term)
        sinks = self._sinks = Sinks(self._plan, with_epoch=False)
        empty = CheckpointMetadata(
            checkpoint=0,
            epoch=0,
            generation=0,
            job_id=self._submitted.id,
            job_name=self._submitted.name,
            timestamp=self._clock.now(),
            now=0,
            operators=(),
        )
        found: CheckpointMetadata | None = take_over(leadership, self._checkpoints, sinks.recommit, empty)
        if found is not None and not found.operators and self._settings.recovery_path is not None:
            found = self._checkpoints.open(self._settings.recovery_path)
        self._start_from(found, leadership.first_generation + 1)
        return None

    def _recover(self) -> None:
        found = self._found()  # before anything is undone: what a checkpoint names must stay
        self._still_leading()
        if self._sinks is not None:
            self._sinks.abort(found.committables if found is not None else {})
        if self._sources is not None:
            self._sources.close()
        self._engine.close()
        self._start_from(found, self._progress.generation + 1)

    def _found(self) -> CheckpointMetadata | None:
        """The job's own newest checkpoint, else the one it was told to start from."""
        found = self._checkpoints.latest_intact()
        if (found is None or not found.operators) and self._settings.recovery_path is not None:
            found = self._checkpoints.open(self._settings.recovery_path)
        return found

    def _start_from(self, found: CheckpointMetadata | None, generation: int = 0) -> None:
        """Restore, and count checkpoint intervals from here."""
        self._restore(found, generation)
        self._checkpoints.started(self._clock.now(), self._progress.epoch)

    def _restore(self, found: CheckpointMetadata | None, generation: int = 0) -> None:
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
            foreign = False
        else:
            foreign = found.job_id != self._submitted.id or found.savepoint is not None
            found = undrained(found) if foreign and found.ended else found
            restored = assign(found, shapes, allow_unclaimed=self._settings.allow_unclaimed, foreign=foreign)
            epoch, now = found.epoch, found.now
            generation = max(generation, found.generation + 1)
        self._over = found is not None and found.ended and not foreign
        deployment = self._submitted.deployment(f"{self._submitted.id}/{generation}")
        self._engine.deploy(replace(deployment, plan=self._plan))
        self._sources = Sources(self._plan, found.sources if found is not None else {})
        if self._sinks is None:
            self._sinks = Sinks(self._plan, with_epoch=self._settings.checkpoint_interval is None)
        if found is not None:
            self._sinks.recommit(found.checkpoint, found.committables)
        # the first epoch runs at once, input or not: it finds the timers that are due, and writes what was restored
        self._progress = Progress(epoch, generation, now, restored.lineages, restored.memory, next_timer=now)
        self._began_at = epoch
        logged = self._checkpoints.logged_plans(epoch, self._sources.operators)
        self._replay = deque(EpochPlan.from_json(plan) for plan in logged)

    # -------------------------------------------------------------------------------------------------- an epoch

    def _epoch(self) -> Event | None:
        """One turn of the loop: an epoch if there is work, then a checkpoint if one is due."""
        if self._over:
            return InputEnded()
        self._rescale_if_asked()
        plan = self._next_plan()
        if plan is None:
            if self._checkpoints.due(self._clock.now(), self._progress.epoch):
                self._checkpoint()
            self._sleep(self._settings.idle_interval / 1000)
            return None
        self._pause(round((self._earliest - self._clock.precise()) * 1000))
        self._earliest = self._clock.precise() + self._settings.min_interval / 1000
        started = self._clock.precise()
        result = self._run(plan)
        self._accept(plan, result, self._clock.precise() - started)
        if plan.ends:
            self._checkpoint(final=True)
            return InputEnded()
        if self._checkpoints.due(self._clock.now(), self._progress.epoch):
            self._checkpoint()
        return None

    def _rescale_if_asked(self) -> None:
        """Between two epochs, all state is in files: tasks of another parallelism go on from them as after a restore.

        A crash later restores the last checkpoint at whatever parallelism the program then has."""
        adaptive, now = self._adaptive, self._clock.now()
        if adaptive is not None and self._rescale_ordered is None and adaptive.look_due(now):
            adaptive = self._adaptive = adaptive.after(self._engine.slots(), now)
            wanted = adaptive.wanted(now, self._plan.slots)
            if wanted is not None:
                self._adaptive = adaptive.rescaled(now)
                self.rescale(wanted)
        written = not any(part.restored for parts in self._progress.lineages.values() for part in parts)
        if self._rescale_ordered is None or not written or self._replay:
            return
        assert self._sources is not None
        cut = replace(self._snapshot(), committables={})  # what is staged waits for a checkpoint as before
        (self._plan, done), self._rescale_ordered = self._rescale_ordered, None
        self._rescaling = self._clock.precise(), done
        self._sources.close()
        self._restore(cut)

    def _next_plan(self) -> EpochPlan | None:
        """The logged plan to replay, or a new one made durable; None when there is nothing to do."""
        assert self._sources is not None
        if self._replay:
            plan = self._replay.popleft()
            self._sources.replay(plan)
            return plan
        progress = self._progress
        now = max(self._clock.now(), progress.now)
        most = self._size.budget if self._rescaling is None else min(self._size.budget, _RESCALED_RECORDS)
        budget = Budget(most, self._settings.epoch_bytes, now)
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
            last=plan.ends or plan.stop,
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
        if self._rescaling is None:
            self._size = self._size.after(records, seconds)
        else:  # it took its time to take state over, not to read
            (since, done), self._rescaling = self._rescaling, None
            self._observe(RescaleDone(plan.epoch, self._plan.slots, (self._clock.precise() - since) * 1000))
            if not done.cancelled():
                done.set_result(self._plan.slots)

    def _measure(self, plan: EpochPlan, result: EpochResult, seconds: float) -> int:
        metrics: dict[str, dict[str, Any]] = {}
        for report in result.reports:
            for operator, counts in report["metrics"].items():
                totals = metrics.setdefault(operator, {})
                for name, count in counts.items():
                    totals[name] = combined(totals[name], count) if name in totals else count
        records: int = sum(metrics.get(operator, {}).get("records_in", 0) for operator in plan.sources)
        marks = [report["watermark"] for report in result.reports]
        names = {planned.task.vertex: planned.task.name for planned in self._plan.vertices}
        busy: dict[str, float] = {}
        for report in result.reports:
            name = names[report["vertex"]]
            busy[name] = busy.get(name, 0.0) + report["busy"] * 1000
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
                vertex_busy_ms=busy,
            )
        )
        return records

    # -------------------------------------------------------------------------------------------- a checkpoint

    def _checkpoint(self, *, final: bool = False) -> bool:
        """Make the epoch boundary durable, then its output visible; False when that failed and the job goes on."""
        assert self._sinks is not None
        assert self._sources is not None
        started = self._clock.precise()
        metadata = self._snapshot()
        if final and not self._checkpoints.enabled:
            self._sinks.commit(metadata.checkpoint)  # nothing to come back to: the end is the only checkpoint
            return True
        try:
            late = CheckpointExpired(metadata.checkpoint, self._settings.checkpoint_timeout)
            publish = functools.partial(self._checkpoints.complete, metadata, self._clock)
            metadata, path = within(self._settings.checkpoint_timeout, publish, late)
        except MillstreamError as problem:
            if isinstance(problem, CheckpointTaken):
                self._still_leading()
            self._failed_checkpoints += 1
            if final or self._failed_checkpoints > self._settings.tolerable_failures:
                raise
            _log.warning("checkpoint %s failed: %s", metadata.checkpoint, problem)
            self._checkpoints.missed(self._clock.now())
            return False
        self._failed_checkpoints = 0
        self._progress.lineages = {each.operator: each.lineages for each in metadata.operators}
        self._still_leading(metadata.checkpoint)
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
        return True

    # --------------------------------------------------------------------------------------------- a savepoint

    def _settled(self) -> bool:
        """Whether this boundary can be written down: an epoch has run, so that what was restored is our own, and
        nothing is to be replayed."""
        return self._progress.epoch > self._began_at and not self._replay

    def _savepoint(self) -> Event | None:
        """Answer the oldest request. What goes wrong with a savepoint that does not end the job leaves it running."""
        asked = self._savepoints.next()
        try:
            if asked.ends:
                return self._stop_with(asked)
            self._trigger(asked)
            return None
        except Exception as problem:
            asked.refuse(problem)
            if isinstance(problem, SavepointFailed) and not asked.drain:
                _log.warning("%s", problem)
                return None
            raise

    def _trigger(self, asked: SavepointRequest) -> None:
        """A savepoint of a job that goes on. With checkpoints its output is committed before it exists, so it has none
        to commit; without, it is the checkpoint that output waits for."""
        assert self._sinks is not None
        metadata = self._snapshot()
        if not self._checkpoints.enabled:
            path = self._savepoints.write(asked, metadata).path
            self._sinks.commit(metadata.checkpoint)
            asked.done(path)
        elif self._checkpoint():
            self._savepoints.start(asked, self._snapshot())
        else:
            problem = f"checkpoint {metadata.checkpoint} failed, and without it there is no savepoint"
            raise SavepointFailed(asked.directory, ExternalError(problem))

    def _stop_with(self, asked: SavepointRequest) -> Event | None:
        """End the job with a savepoint.

        A crash before the savepoint exists leaves the job as it was; one after, before the checkpoint, too, and the
        savepoint is another way on; after the checkpoint, which says that the job is over, recovery only commits."""
        assert self._sources is not None
        if asked.stop:
            now = max(self._clock.now(), self._progress.now)
            plan = self._sources.closing(self._progress.epoch + 1, now, drain=asked.drain)
            self._checkpoints.log_plan(plan.to_json())
            started = self._clock.precise()
            self._accept(plan, self._run(plan), self._clock.precise() - started)
        metadata = self._snapshot()
        made = self._savepoints.write(asked, undrained(metadata) if asked.drain else metadata)
        self._stopping = asked.stop
        try:
            self._checkpoint(final=True)
        except Exception as problem:
            if metadata.checkpoint == self._checkpoints.next_id and not isinstance(problem, CheckpointExpired):
                with suppress(MillstreamError):  # the job goes on without it, and may take back output that it names
                    made.dispose()
            raise
        finally:
            self._stopping = False
        self._stopped_with = (asked, made.path)
        if asked.stop:
            return InputEnded()
        self._cancel.set()
        return None

    def _still_leading(self, made: int | None = None) -> None:
        """Between a checkpoint and its commit: another driver may have begun a term. What it then `made` is no more."""
        if self._submitted.leadership is None:
            return
        try:
            self._submitted.leadership.verify()
        except LeadershipLost:
            if made is not None:
                self._checkpoints.discard(made)
            raise

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
            ended=self._stopping,
        )

    def _concluded(self) -> bool:
        """Whether the end of the job is this driver's to tell; then it is told, before checkpoints may go."""
        leadership, status = self._submitted.leadership, self.job.status
        if leadership is None:
            return True
        try:
            if leadership.term == 0 or not status.is_globally_terminal_state():
                return False
            leadership.verify()
            leadership.conclude(status.name, self.job.cause if status is JobStatus.FAILED else None)
        except ExternalError as problem:
            _log.warning("the end of the job could not be told to other drivers: %s", problem)
            return False
        finally:
            leadership.close()
        return True

    def _end(self) -> None:
        """Let go of everything; keep or delete checkpoints as asked. What cannot be tidied up changes no result."""
        for waiting in (self._rescale_ordered, self._rescaling):
            if waiting is not None:
                waiting[1].cancel()
        final = self._concluded()
        self._savepoints.close(self._submitted.name, self.job.status.name, self._settings.checkpoint_timeout / 1000)
        cancelled = self.job.status is JobStatus.CANCELED
        keep = (self._settings.retain_on_cancel and cancelled) or self.job.status is JobStatus.FAILED or not final
        steps: list[Callable[[], None]] = []
        if self._sinks is not None:
            # what was staged may be named by a checkpoint that another driver went on from
            steps += [self._sinks.abort] if final and self.job.status is not JobStatus.FINISHED else []
            steps.append(self._sinks.close)
        if self._sources is not None:
            steps.append(self._sources.close)
        steps += [self._engine.close, partial(self._checkpoints.close, keep=keep)]
        for step in steps:
            try:
                step()
            except Exception as problem:
                _log.warning("the job has ended, but something is left behind: %s", problem)
        if self._stopped_with is not None:
            self._stopped_with[0].done(self._stopped_with[1])


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
    if data["domain"] == "refused":
        return StateRefused(data["problem"], hint=data["hint"])
    if data["domain"] == "user":
        return UserFunctionFailed.from_json(dict(data))
    text = f"{data['problem']} (in {data['vertex']})"
    if data["domain"] == "external":
        return TaskFailed(text)
    return InternalError(f"{text}\n{data['trace']}")
