"""One job on its engine: the deployed program, its sources and sinks, and the progress of the last accepted epoch.

Promises: `restore` brings the job to the state of a checkpoint or to its beginning; `run` and `accept` turn a logged
plan into progress, and an epoch has no effect before `accept`; `snapshot` returns the epoch boundary as checkpoint
metadata.
Does not know: when epochs run, when checkpoints are taken, restarts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.restore import OperatorShape, assign, start_empty
from millstream.cluster.attempts import run_until_reports_agree
from millstream.cluster.cancellation import Cancellation
from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.commit_workers import CommitWorkers
from millstream.cluster.deadlines import run_watched
from millstream.cluster.epoch_summary import summarize_epoch
from millstream.cluster.failures import EpochTimedOut, to_error
from millstream.cluster.job_cleanup import clean_up_output, run_steps
from millstream.cluster.job_events import EpochDone, JobEvent, RestoreDone
from millstream.cluster.leadership import check_leadership
from millstream.cluster.machine_events import Position
from millstream.cluster.max_parallelism import has_other_max_parallelism
from millstream.cluster.progress import Progress
from millstream.cluster.savepoints import reopen_event_time
from millstream.cluster.sinks import Sinks
from millstream.cluster.sources import EpochPlan, Sources
from millstream.cluster.submission import SubmittedJob
from millstream.engine.contract import Engine, EpochResult
from millstream.graph.execution_plan import ExecutionPlan
from millstream.job.job_status import JobStatus
from millstream.runtime.stack_samples import Sampling
from millstream.times import Clock


class JobExecution:
    """The running parts of a job, and its position between two epochs.

    Attributes:
        logged_plans: Plans of epochs after the restored checkpoint, which are to be replayed.
        committing_savepoint: Without checkpoints, the path of the savepoint that names the output being committed.

    """

    def __init__(
        self,
        job: SubmittedJob,
        engine: Engine,
        checkpoints: Checkpoints,
        clock: Clock,
        sleep: Callable[[float], None],
        notify: Callable[[JobEvent], None],
        show: Callable[[str], None],
    ) -> None:
        """`notify` informs the listeners of the job; `show` prints what tasks printed."""
        self.job, self.settings, self.leadership = job, job.settings, job.leadership
        self.engine, self.checkpoints = engine, checkpoints
        self.clock, self.sleep, self.notify, self._show = clock, sleep, notify, show
        self.cancellation = Cancellation(clock, sleep)
        self.sampled: Callable[[], Mapping[str, Sampling]] = dict  # the vertices whose stacks are sampled
        self.plan = job.plan
        self.progress = Progress()
        self.incarnation = job.incarnation
        self.logged_plans: deque[EpochPlan] = deque()
        self.committing_savepoint: str | None = None
        self._sources: Sources | None = None
        self._sinks: Sinks | None = None
        self._first_epoch = 0  # the epoch of the restored checkpoint
        self._is_over = False
        self._is_deployed = False
        run = f"{job.id}-{job.incarnation}"  # random for every run of a driver, whichever incarnation the job then has
        times = job.settings.deadline, job.settings.cancellation
        self.workers = CommitWorkers(run, engine, self._ensure_deployed, job.leadership, *times)
        checkpoints.allow_older, checkpoints.timeout = job.settings.allow_older, job.settings.checkpoint_timeout
        if job.settings.claim and job.settings.recovery_path is not None:
            checkpoints.claim(job.settings.recovery_path)

    @property
    def sources(self) -> Sources:
        """The sources of the job, after it was restored."""
        assert self._sources is not None
        return self._sources

    @property
    def sinks(self) -> Sinks:
        """The sinks of the job, after they were opened."""
        assert self._sinks is not None
        return self._sinks

    @property
    def has_sources(self) -> bool:
        """Whether the job was restored at least once, so that its program is known to be usable."""
        return self._sources is not None

    @property
    def position(self) -> Position:
        """The position of the job, for the job machine."""
        return Position(
            epochs=self.progress.epoch - self._first_epoch,
            replay=len(self.logged_plans),
            has_restored_files=self.progress.is_restored,
            is_over=self._is_over,
        )

    @property
    def least_max_parallelism(self) -> int:
        """The largest parallelism that every operator can have."""
        return min(planned.task.max_parallelism for planned in self.plan.vertices)

    def check_leadership(self, published: int | None = None) -> None:
        """Raise `LeadershipLost` if another driver leads; then a checkpoint just `published` may be deleted."""
        if self.leadership is not None:
            check_leadership(self.leadership, self.checkpoints, published)

    # --------------------------------------------------------------------------------------------------- restoring

    def open_sinks(self) -> Sinks:
        """Create the committers, if there are none yet: they outlive restarts."""
        if self._sinks is None:
            self._sinks = Sinks.of(self.plan, self.workers, self.settings)
        return self._sinks

    def start_from(self, checkpoint: CheckpointMetadata | None, generation: int = 0) -> None:
        """Restore a checkpoint, or start from the beginning, and restart the checkpoint schedule."""
        self.restore(checkpoint, generation)
        if checkpoint is not None and not self._is_foreign(checkpoint):
            self.sinks.notify_watermarks(checkpoint.operators, checkpoint.now)
        self.checkpoints.start(self.clock.now(), self.progress.epoch)
        if checkpoint is not None and checkpoint.operators:
            is_foreign = self._is_foreign(checkpoint)
            path = self.settings.recovery_path if is_foreign else self.checkpoints.path_of(checkpoint.checkpoint)
            self.notify(RestoreDone(checkpoint.checkpoint, checkpoint.savepoint is not None, path or ""))

    def restart_from(self, checkpoint: CheckpointMetadata | None) -> None:
        """Undo everything since a checkpoint, and restore it as a new generation."""
        if self._sinks is not None:
            self._sinks.abort(checkpoint)
        self.committing_savepoint = None
        if self._sources is not None:
            self._sources.close()
        self.engine.close()
        self._is_deployed = False
        self.start_from(checkpoint, self.progress.generation + 1)

    def redeploy(self, plan: ExecutionPlan, boundary: CheckpointMetadata) -> None:
        """Continue from a snapshot of this boundary with another plan. Staged output still waits for a checkpoint. A
        later crash restores the last checkpoint at the parallelism that the program then has."""
        self.plan = plan
        self.sources.close()
        self.restore(replace(boundary, committables={}), recovered=self.progress.recovered)

    def restore(self, checkpoint: CheckpointMetadata | None, generation: int = 0, recovered: int | None = None) -> None:
        """Deploy at the state of a checkpoint, or at the beginning, and read the plans that were logged after it.

        Output that was staged since the generation `recovered` is still to be committed; by default there is none."""
        layout = self.job.layout
        if checkpoint is not None and layout is not None and has_other_max_parallelism(self.plan, checkpoint.operators):
            self.plan = layout.inherit_max_parallelism(checkpoint.operators)
        shapes = [
            OperatorShape(node.id, node.name, planned.task.parallelism, planned.task.max_parallelism)
            for planned in self.plan.vertices
            for node in planned.task.operators
        ]
        if checkpoint is None:
            restored, epoch, now, foreign = start_empty(shapes), 0, 0, False
        else:
            foreign = self._is_foreign(checkpoint)
            checkpoint = reopen_event_time(checkpoint) if foreign and checkpoint.ended else checkpoint
            restored = assign(checkpoint, shapes, allow_unclaimed=self.settings.allow_unclaimed, foreign=foreign)
            epoch, now = checkpoint.epoch, checkpoint.now
            generation = max(generation, checkpoint.generation + 1)
        self._is_over = checkpoint is not None and checkpoint.ended and not foreign
        self._deploy(generation)
        self._sources = Sources.of(self.plan, checkpoint.sources if checkpoint is not None else {}, self.settings)
        self._sources.notify_arrivals(self.cancellation.wake)
        sinks = self.open_sinks()
        if checkpoint is not None:
            sinks.recover(checkpoint)
        # the first epoch runs immediately, with or without input: it fires due timers, and writes the restored state
        recovered = generation if recovered is None else recovered
        self.progress = Progress(epoch, generation, now, restored.lineages, restored.memory, now, recovered)
        self._first_epoch = epoch
        logged = self.checkpoints.logged_plans(epoch, self._sources.operators)
        self.logged_plans = deque(EpochPlan.from_json(plan) for plan in logged)

    def _is_foreign(self, checkpoint: CheckpointMetadata) -> bool:
        this_run = (self.job.id, self.incarnation)
        return checkpoint.savepoint is not None or (checkpoint.job_id, checkpoint.incarnation) != this_run

    def _deploy(self, generation: int) -> None:
        owner = "-".join(part for part in (self.job.id, self.incarnation) if part)
        deployment = self.job.deployment(f"{owner}/{generation}")
        self.engine.deploy(replace(deployment, plan=self.plan))
        self._is_deployed = True

    def _ensure_deployed(self) -> None:
        """Deploy the program if it is not deployed yet: a new leader commits the output of a checkpoint before it
        restores it."""
        if not self._is_deployed:
            self._deploy(0 if self.leadership is None else self.leadership.first_generation)

    # -------------------------------------------------------------------------------------------------- an epoch

    def run(self, plan: EpochPlan, restarts: int) -> EpochResult:
        """Run a planned epoch, within its deadline, until the reports of its subtasks agree."""
        work = self.sources.work(plan, self.progress.memory, self.progress.lineages)
        request = replace(self.progress.request(plan, restarts, work), sampled=self.sampled())
        settings, engine = self.settings, self.engine
        late = EpochTimedOut(plan.epoch, settings.deadline)
        abandon = partial(engine.abandon, f"epoch {plan.epoch} was cancelled and did not end")

        def run() -> EpochResult:
            run_epoch = partial(engine.run_epoch, request)
            result = run_watched(settings.deadline, run_epoch, engine.cancel, late, settings.cancellation, abandon)
            if result.failures:
                raise to_error(result.failures[0])
            return result

        return run_until_reports_agree(self.plan, plan.epoch, run, self.sinks.discard)

    def accept(self, plan: EpochPlan, result: EpochResult) -> None:
        """Accept an epoch, of which every subtask has reported."""
        for report in result.reports:
            if report.printed:
                self._show(report.printed)
        self.progress = self.progress.after(plan.epoch, plan.now, result.reports)
        self.sinks.stage(result.reports, plan.epoch)

    def measure(self, plan: EpochPlan, result: EpochResult, seconds: float) -> EpochDone:
        """Return the summary of an accepted epoch for listeners."""
        done = summarize_epoch(self.plan, plan, result, seconds, self.sources.lags(), self.progress.lineages)
        iterations = self.sources.measure_loops(plan, result.reports)
        return replace(done, iterations=iterations) if iterations else done

    def snapshot(self, *, ended: bool = False) -> CheckpointMetadata:
        """Return this epoch boundary as metadata of the next checkpoint; `ended`: the job stops with it."""
        operators = self.progress.operators(self.plan)
        return CheckpointMetadata(
            checkpoint=self.checkpoints.next_id,
            epoch=self.progress.epoch,
            generation=self.progress.generation,
            job_id=self.job.id,
            job_name=self.job.name,
            timestamp=self.clock.now(),
            now=self.progress.now,
            operators=operators,
            sources=self.sources.snapshot(),
            committables=self.sinks.staged_committables(),
            bytes_new=self.checkpoints.new_bytes(operators),
            ended=ended,
            incarnation=self.incarnation,
            sinks=self.sinks.snapshot(),
        )

    def resolve_checkpoints(self) -> set[int]:
        """Find out which of the checkpoints that failed or expired exist, and return their numbers. The sinks are
        notified at once, because each number is returned once."""
        existing = self.checkpoints.resolve()
        for metadata in existing:
            self.sinks.mark_published(metadata.checkpoint, metadata.epoch)
        return {metadata.checkpoint for metadata in existing}

    # ---------------------------------------------------------------------------------------------------- the end

    def cancel(self) -> None:
        """Cancel the running epoch; called from another thread."""
        self.cancellation.request()
        if self._sinks is not None and self._sinks.cancel(self.settings.commit_grace):
            return  # a commit may run on the workers: when it has ended, the job's loop cancels what still runs there
        self.engine.cancel()

    def close(self, status: JobStatus, *, is_concluded: bool) -> None:
        """Release everything, and keep or delete checkpoints as configured. An error here does not change the result of
        the job.

        `is_concluded`: the job has ended for all drivers; otherwise another driver may continue from its
        checkpoints."""
        retained = self.settings.retain_on_cancel and status is JobStatus.CANCELED
        # without sinks nothing was recovered yet, so the snapshot to start from is not changed
        keep = retained or status is JobStatus.FAILED or not is_concluded or self._sinks is None
        steps: list[Callable[[], None]] = []
        completed = status in (JobStatus.FINISHED, JobStatus.CANCELED)
        if not completed:
            self.workers.release()
        if self._sinks is not None:
            if is_concluded and status is not JobStatus.FINISHED:
                keep |= not clean_up_output(self._sinks, status, self.resolve_checkpoints, self._path_after_end)
            steps += [self._sinks.finish] if is_concluded and completed else []
            steps.append(self._sinks.close)
        if self._sources is not None:
            steps.append(self._sources.close)
        steps += [self.engine.close, partial(self.checkpoints.close, keep=keep)]
        run_steps(steps)

    def _path_after_end(self, checkpoint: int) -> str | None:
        """Return the path of the checkpoint of this number after the end of the job, or of the savepoint that replaced
        it."""
        return self.committing_savepoint or self.checkpoints.path_after_end(checkpoint)
