"""The epoch loop of one job.

Promises: plan, log, run, accept, checkpoint, commit, in this order, so that a crash anywhere repeats nothing visible;
a job ends in a final status, with its cause.
Does not know: Spark, threads of others, how jobs are submitted.

What a crash does: before the log, nothing happened; before accept, the epoch is run again from its logged plan; before
the publish of a checkpoint, the epochs since the last one are; after it, recovery repeats the commit."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.restore import OperatorShape, assign, nothing
from millstream.checkpoint.storage_errors import CheckpointTaken
from millstream.cluster.adoption import differs
from millstream.cluster.attempts import run_until_agreed
from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.closing import do_all, settle_output
from millstream.cluster.commit_workers import CommitWorkers
from millstream.cluster.deadlines import watched, within
from millstream.cluster.events import (
    CancelEpoch,
    CancelRequested,
    Concluded,
    Event,
    InputEnded,
    Restarted,
    RestoreAfter,
    Started,
    Stopped,
)
from millstream.cluster.failures import CheckpointNotFound, EndedElsewhere, EpochTimedOut, event_of, failure_of
from millstream.cluster.job_machine import Job, on_event
from millstream.cluster.leadership import Leadership, check_leadership, take_over
from millstream.cluster.measuring import epoch_done
from millstream.cluster.movement import Movement
from millstream.cluster.observations import CheckpointDone, EpochCut, Observation, RescaleDone, StatusChanged
from millstream.cluster.oversize import Oversize
from millstream.cluster.progress import Progress
from millstream.cluster.requests import Requests
from millstream.cluster.rescale import Rescaling, Wanted
from millstream.cluster.savepoints import NoSavepointDirectory, SavepointFailed, SavepointRequest, Savepoints, undrained
from millstream.cluster.sinks import Sinks
from millstream.cluster.sizing import EpochSize
from millstream.cluster.sources import EpochPlan, Sources
from millstream.cluster.submission import SubmittedJob
from millstream.connector.source import Budget
from millstream.engine.contract import Engine, EpochResult
from millstream.errors import ExternalError, MillstreamError
from millstream.job.job_status import JobStatus
from millstream.state.saving import StateFileDamaged
from millstream.times import Clock

_log = logging.getLogger("millstream.job")

_SWEEP_EVERY = 100  # epochs, when no checkpoint cleans up


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
        self._incarnation = job.incarnation
        self._sources: Sources | None = None
        self._sinks: Sinks | None = None
        self._replay: deque[EpochPlan] = deque()
        self._size = EpochSize(job.settings.epoch_target / 1000, job.settings.epoch_records)
        self._cancel = threading.Event()
        self._failed_checkpoints = 0
        self._earliest = 0.0  # when the next epoch may start, by the clock that is never set
        self._rescaling = Rescaling(job.adaptive)
        self._requests = Requests(checkpoints.storage, self._rescale_by_request)
        self._deployed = False
        run = f"{job.id}-{job.incarnation}"  # drawn for every run of a driver, whichever incarnation the job then has
        times = job.settings.deadline, job.settings.cancellation
        self._workers = CommitWorkers(run, engine, self._ensure_deployed, job.leadership, *times)
        self._movement = Movement(job.leadership)
        self._savepoints = Savepoints(checkpoints, self._workers.run_tasks, self._movement.piece_written)
        checkpoints.allow_older, checkpoints.timeout = job.settings.allow_older, job.settings.checkpoint_timeout
        if job.settings.claim and job.settings.recovery_path is not None:
            checkpoints.claim(job.settings.recovery_path)
        self._stopping = False
        self._stopped_with: tuple[SavepointRequest, str] | None = None
        self._over = False
        self._named_by: str | None = None  # without checkpoints: the savepoint that names what is being committed
        self._leads = False
        self._began_at = 0
        self._oversize = Oversize(self._cut)
        self.job = Job(strategy=job.settings.restart)
        self.failure: BaseException | None = None

    # ---------------------------------------------------------------------------------------- from other threads

    def cancel(self) -> None:
        """End the job without a checkpoint, soon."""
        self._cancel.set()
        if self._sinks is not None and self._sinks.cancel(self._settings.commit_grace):
            return  # a commit may run on the workers: the loop cancels what runs there when it has ended
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
        assert self._submitted.layout is not None
        done = self._rescaling.order(self._submitted.layout.rescaled(wanted))
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
            self._savepoints.advance(self._plan.slots)
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
            leadership = self._submitted.leadership
            self.failure = problem if leadership is None else leadership.explained(problem)
            if isinstance(self.failure, StateFileDamaged) and self._checkpoints.blame(self.failure):
                _log.warning("a checkpoint is damaged: %s", problem)
                return self._outcome(self._recover, None)
            event = event_of(self.failure, self._clock.now(), standby=leadership is not None, begun=bool(self._sources))
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
        outcome = leadership.wait(self._cancel.is_set, self._engine.prepare, self._checkpoints.newest_term)
        if outcome is not None:
            self.failure = EndedElsewhere(outcome) if outcome.status == JobStatus.FAILED.name else None
            return Concluded(JobStatus[outcome.status], outcome.cause)
        self._checkpoints.lead(leadership.term)
        sinks = self._sinks = self._sinks or Sinks.of(self._plan, self._workers, self._settings)
        empty = CheckpointMetadata.empty(self._submitted.id, self._submitted.name, self._clock.now(), self._incarnation)
        found = take_over(leadership, self._checkpoints, sinks.recover, empty)
        self._incarnation = found.incarnation
        if not found.operators and self._settings.recovery_path is not None:
            found = self._checkpoints.open(self._settings.recovery_path)
        self._leads = True
        self._start_from(found, leadership.first_generation + 1)
        return None

    def _recover(self) -> Event | None:
        leadership = self._submitted.leadership
        if leadership is not None and not self._leads:
            return self._lead(leadership)
        self._still_leading()
        self._resolve()
        found = self._found()  # before anything is undone: what a checkpoint names must stay
        self._still_leading()
        if self._sinks is not None:
            self._sinks.abort(found)
        self._named_by = None
        if self._sources is not None:
            self._sources.close()
        self._engine.close()
        self._deployed = False
        self._start_from(found, self._progress.generation + 1)
        return None

    def _resolve(self) -> set[int]:
        """Settle what came of checkpoints that failed or expired; gives the numbers of those that exist. The sinks are
        notified at once, because each number is returned once."""
        landed = self._checkpoints.resolve()
        for each in landed:
            assert self._sinks is not None
            self._sinks.published(each.checkpoint, each.epoch)
        return {each.checkpoint for each in landed}

    def _found(self) -> CheckpointMetadata | None:
        timeout = self._settings.checkpoint_timeout
        return within(timeout, self._find, CheckpointNotFound(timeout))

    def _find(self) -> CheckpointMetadata | None:
        """The job's own newest checkpoint, else the one it was told to start from: that begins an incarnation."""
        found = self._checkpoints.latest_intact()
        if found is not None:
            self._incarnation = found.incarnation
        if (found is None or not found.operators) and self._settings.recovery_path is not None:
            found = self._checkpoints.open(self._settings.recovery_path)
        return found

    def _start_from(self, found: CheckpointMetadata | None, generation: int = 0) -> None:
        """Restore, and count checkpoint intervals from here."""
        self._restore(found, generation)
        if found is not None and not self._is_foreign(found):
            assert self._sinks is not None
            self._sinks.reached(found.operators, found.now)
        self._checkpoints.started(self._clock.now(), self._progress.epoch)

    def _is_foreign(self, found: CheckpointMetadata) -> bool:
        own = (self._submitted.id, self._incarnation)
        return found.savepoint is not None or (found.job_id, found.incarnation) != own

    def _restore(self, found: CheckpointMetadata | None, generation: int = 0, recovered: int | None = None) -> None:
        """Come to the state of a checkpoint, or to the beginning; then replay what was planned after it.

        What was staged since the generation `recovered` is still to be committed: nothing, if it is not given."""
        layout = self._submitted.layout
        if found is not None and layout is not None and differs(self._plan, found.operators):
            self._plan = layout.adopted(found.operators)
            self._rescaling.limit(min(planned.task.max_parallelism for planned in self._plan.vertices))
        shapes = [
            OperatorShape(node.id, node.name, planned.task.parallelism, planned.task.max_parallelism)
            for planned in self._plan.vertices
            for node in planned.task.operators
        ]
        if found is None:
            restored, epoch, now, foreign = nothing(shapes), 0, 0, False
        else:
            foreign = self._is_foreign(found)
            found = undrained(found) if foreign and found.ended else found
            restored = assign(found, shapes, allow_unclaimed=self._settings.allow_unclaimed, foreign=foreign)
            epoch, now = found.epoch, found.now
            generation = max(generation, found.generation + 1)
        self._over = found is not None and found.ended and not foreign
        self._deploy(generation)
        self._sources = Sources.of(self._plan, found.sources if found is not None else {}, self._settings)
        if self._sinks is None:
            self._sinks = Sinks.of(self._plan, self._workers, self._settings)
        if found is not None:
            self._sinks.recover(found)
        # the first epoch runs at once, input or not: it finds the timers that are due, and writes what was restored
        recovered = generation if recovered is None else recovered
        self._progress = Progress(epoch, generation, now, restored.lineages, restored.memory, now, recovered)
        self._began_at = epoch
        logged = self._checkpoints.logged_plans(epoch, self._sources.operators)
        self._replay = deque(EpochPlan.from_json(plan) for plan in logged)

    def _deploy(self, generation: int) -> None:
        owner = "-".join(part for part in (self._submitted.id, self._incarnation) if part)
        deployment = self._submitted.deployment(f"{owner}/{generation}")
        self._engine.deploy(replace(deployment, plan=self._plan))
        self._deployed = True

    def _ensure_deployed(self) -> None:
        """A new leader commits what it finds before it restores anything."""
        leadership = self._submitted.leadership
        if not self._deployed:
            self._deploy(0 if leadership is None else leadership.first_generation)

    # -------------------------------------------------------------------------------------------------- an epoch

    def _epoch(self) -> Event | None:
        """One turn of the loop: an epoch if there is work, then a checkpoint if one is due."""
        if self._over:
            return InputEnded()
        self._requests.look(self._clock.precise())
        self._rescale_if_asked()
        plan = self._next_plan()
        if plan is None:
            if self._checkpoints.due(self._clock.now(), self._progress.epoch):
                self._checkpoint()
            self._movement.idle()
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
        wanted = self._rescaling.wanted(self._engine.slots, self._clock.now(), self._plan.slots)
        if wanted is not None:
            self.rescale(wanted)
        if not self._rescaling.ordered or self._progress.restored or self._replay:
            return
        assert self._sources is not None
        cut = replace(self._snapshot(), committables={})  # what is staged waits for a checkpoint as before
        self._plan = self._rescaling.begin(self._clock.precise())
        self._sources.close()
        self._restore(cut, recovered=self._progress.recovered)

    def _rescale_by_request(self, wanted: Wanted) -> Future[int]:
        self._still_leading()  # else the request is for whoever does
        return self.rescale(wanted)

    def _next_plan(self) -> EpochPlan | None:
        """The logged plan to replay, or a new one made durable; None when there is nothing to do."""
        assert self._sources is not None
        if self._replay:
            most, memory = (self._size.budget, self._settings.epoch_bytes), self._progress.memory
            return self._oversize.replay(self._replay, self._sources, self._checkpoints, most, memory)
        progress = self._progress
        now = max(self._clock.now(), progress.now)
        budget = Budget(self._rescaling.limited(self._size.budget), self._settings.epoch_bytes, now)
        plan = self._sources.plan(progress.epoch + 1, budget, progress.memory)
        timer_due = progress.next_timer is not None and progress.next_timer <= now
        if not plan.ranges and not plan.ends and not timer_due and progress.epoch > 0:
            return None
        self._checkpoints.log_plan(plan.to_json())
        return plan

    def _cut(self, cut: EpochCut) -> None:
        """An epoch gets a smaller plan, and the epochs after it get new plans."""
        self._movement.epochs_replanned(cut.epoch)
        self._observe(cut)

    def _run(self, plan: EpochPlan) -> EpochResult:
        assert self._sources is not None
        assert self._sinks is not None
        work = self._sources.work(plan, self._progress.memory)
        request = self._progress.request(plan, self.job.restarts, work)
        settings, engine = self._settings, self._engine
        late = EpochTimedOut(plan.epoch, settings.deadline)
        abandon = partial(engine.abandon, f"epoch {plan.epoch} was cancelled and did not end")

        def run() -> EpochResult:
            run_epoch = partial(engine.run_epoch, request)
            result = watched(settings.deadline, run_epoch, engine.cancel, late, settings.cancellation, abandon)
            if result.failures:
                raise failure_of(result.failures[0])
            return result

        try:
            return run_until_agreed(self._plan, plan.epoch, run, self._sinks.discard)
        except ExternalError as problem:
            self._size = self._oversize.failed(plan, problem, self._size)
            raise

    def _accept(self, plan: EpochPlan, result: EpochResult, seconds: float) -> None:
        """Every subtask has reported: this epoch happened."""
        assert self._sinks is not None
        assert self._sources is not None
        for report in result.reports:
            if report.printed:
                self._show(report.printed)
        self._progress = self._progress.after(plan.epoch, plan.now, result.reports)
        self._oversize.accepted(plan.epoch)
        self._sinks.stage(result.reports, plan.epoch)
        self._movement.epoch_accepted(plan.epoch)
        if not self._checkpoints.enabled and plan.epoch % _SWEEP_EVERY == 0:
            self._checkpoints.sweep(self._progress.handles())
        done = epoch_done(self._plan, plan, result, seconds, self._sources.lag())
        self._observe(done)
        if not self._rescaling.under_way:
            if self._oversize.epoch is None:  # else epochs are replayed up to one that was too large
                self._size = self._size.after(done.records, seconds)
        else:  # it took its time to take state over, not to read
            pause = self._rescaling.done(self._plan.slots, self._clock.precise())
            self._observe(RescaleDone(plan.epoch, self._plan.slots, pause * 1000))

    # -------------------------------------------------------------------------------------------- a checkpoint

    def _checkpoint(self, *, final: bool = False) -> bool:
        """Make the epoch boundary durable, then its output visible; False when that failed and the job goes on."""
        assert self._sinks is not None
        assert self._sources is not None
        started = self._clock.precise()
        metadata = self._snapshot()
        if final and not self._checkpoints.enabled:
            self._sinks.commit(metadata.checkpoint)  # nothing to come back to: the end is the only checkpoint
            self._sinks.reached(metadata.operators, metadata.now)
            return True
        try:
            metadata, path = self._checkpoints.complete(metadata, self._clock)
        except MillstreamError as problem:
            if isinstance(problem, CheckpointTaken):
                self._still_leading()
            self._failed_checkpoints += 1
            tolerable = self._failed_checkpoints <= self._settings.tolerable_failures
            if final or not tolerable or isinstance(problem, CheckpointTaken):  # that one may have our output in it
                self._movement.checkpoint_failed()
                raise
            _log.warning("checkpoint %s failed: %s", metadata.checkpoint, problem)
            self._checkpoints.missed(self._clock.now())
            return False
        self._sinks.published(metadata.checkpoint)
        self._failed_checkpoints = 0
        self._progress.lineages = {each.operator: each.lineages for each in metadata.operators}
        self._still_leading(metadata.checkpoint)
        self._sinks.commit(metadata.checkpoint)
        self._sinks.reached(metadata.operators, metadata.now)
        self._movement.checkpoint_completed()
        self._sources.acknowledge()
        try:
            self._checkpoints.retire(keep=self._settings.retained)
        except ExternalError as problem:  # the job is well without; the next checkpoint tries again
            _log.warning("old checkpoints could not be deleted: %s", problem)
        made, took = metadata, (self._clock.precise() - started) * 1000
        self._observe(CheckpointDone(made.checkpoint, made.epoch, made.bytes_new, made.full_size, took, path))
        return True

    def _kept_path(self, checkpoint: int) -> str | None:
        """Where the checkpoint of this number is after the end of the job, or the savepoint that took its place."""
        return self._named_by or self._checkpoints.path_after_end(checkpoint)

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
            path = self._savepoints.write(asked, metadata, self._plan.slots).path
            self._named_by = path
            self._sinks.commit(metadata.checkpoint)
            self._named_by = None
            self._sinks.reached(metadata.operators, metadata.now)
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
        made = self._savepoints.write(asked, undrained(metadata) if asked.drain else metadata, self._plan.slots)
        if not self._checkpoints.enabled:
            self._named_by = made.path
        self._stopping = asked.stop
        try:
            self._checkpoint(final=True)
        except Exception:
            with suppress(MillstreamError):
                number = metadata.checkpoint
                if self._checkpoints.is_unresolved(number) and number not in self._resolve():
                    made.dispose()  # the job goes on without it, and may take back output that it names
            raise
        finally:
            self._stopping = False
        self._stopped_with = (asked, made.path)
        if asked.stop:
            return InputEnded()
        self._cancel.set()
        return None

    def _still_leading(self, made: int | None = None) -> None:
        if self._submitted.leadership is not None:
            check_leadership(self._submitted.leadership, self._checkpoints, made)

    def _snapshot(self) -> CheckpointMetadata:
        assert self._sinks is not None
        assert self._sources is not None
        progress = self._progress
        operators = progress.operators(self._plan)
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
            incarnation=self._incarnation,
            sinks=self._sinks.snapshot(),
        )

    def _end(self) -> None:
        """Let go of everything; keep or delete checkpoints as asked. What cannot be tidied up changes no result."""
        self._rescaling.close()
        leadership, status = self._submitted.leadership, self.job.status
        final = leadership is None or leadership.tell_end(status, self.job.cause)
        if final:
            self._requests.close(status.name)
        self._savepoints.close(self._submitted.name, status.name, self._plan.slots)
        retained = self._settings.retain_on_cancel and status is JobStatus.CANCELED
        # without sinks nothing was recovered yet: what the job would have started from stays as it was
        keep = retained or status is JobStatus.FAILED or not final or self._sinks is None
        steps: list[Callable[[], None]] = []
        completed = status in (JobStatus.FINISHED, JobStatus.CANCELED)
        if not completed:
            self._workers.release()
        if self._sinks is not None:
            if final and status is not JobStatus.FINISHED:  # else another driver may go on from what names this output
                keep |= not settle_output(self._sinks, status, self._resolve, self._kept_path)
            steps += [self._sinks.finish] if final and completed else []
            steps.append(self._sinks.close)
        if self._sources is not None:
            steps.append(self._sources.close)
        steps += [self._engine.close, partial(self._checkpoints.close, keep=keep)]
        do_all(steps)
        if self._stopped_with is not None:
            self._stopped_with[0].done(self._stopped_with[1])
