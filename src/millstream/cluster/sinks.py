"""Sinks of a job on the driver: which output is staged, and which is committed.

Promises: a committable is committed only after the checkpoint that names it (law 7), except for sinks that commit with
the epoch. A commit is repeated on recovery and must be idempotent. Output in a checkpoint that belongs to no sink of
the program is refused, or dropped with a warning if that is allowed. A sink that fails does not prevent others from
committing. Output that a published checkpoint names is remembered until its commit completes or the job ends. The
reader of the job's own output has no deadline.
Does not know: tasks, storage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.cluster.connector_deadlines import CommitterWithDeadline
from millstream.cluster.failures import StateRefused
from millstream.cluster.settings import MOST_COMMIT_GRACE, JobSettings
from millstream.connector.sink import Committer, Sink, Workers
from millstream.errors import MillstreamError
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.graph.execution_plan import ExecutionPlan
from millstream.options import CHECKPOINT_TIMEOUT, TASK_CANCELLATION_TIMEOUT
from millstream.runtime.operators.sink import SinkMemory, SinkSpec
from millstream.runtime.report import TaskReport

_log = logging.getLogger("millstream.sinks")


class OutputNotClaimed(StateRefused):
    """A checkpoint names staged output of a sink that is not in the program."""

    def __init__(self, checkpoint: int, counts: Mapping[str, int]) -> None:
        self.checkpoint, self.counts = checkpoint, dict(counts)
        outputs = ", ".join(f"{count} of sink {operator}" for operator, count in counts.items())
        super().__init__(
            f"checkpoint {checkpoint} has staged output to commit, but the program has no sink for it: {outputs}",
            hint="set the uid that the sink had, or execution.state-recovery.ignore-unclaimed-state to drop the output",
        )


@dataclass(frozen=True)
class Uncommitted:
    """Output that a checkpoint or savepoint names, and that may not have been committed. `output` describes the output,
    `problem` is the cause."""

    sink: str
    checkpoint: int
    output: str
    problem: str

    def report(self, path: str | None) -> str:
        """Return the text of the log. `path` is where the checkpoint or savepoint is kept."""
        end = f"{path} is kept: a job that starts from it (execution.state-recovery.path) commits this output"
        text = f"output of sink '{self.sink}' of checkpoint {self.checkpoint} may not be committed: {self.problem}"
        nothing = "No checkpoint or savepoint that names it is kept"
        return f"{text}. What is left: {self.output}. {end if path else nothing}."


class Sinks:
    """The committers of a job, and the output that they have not committed yet."""

    def __init__(
        self,
        plan: ExecutionPlan,
        workers: Workers,
        *,
        with_epoch: bool,
        allow_unclaimed: bool = False,
        timeout: int | None = None,
    ) -> None:
        """Create the committers.

        Args:
            plan: The program.
            workers: The workers that committers may use.
            with_epoch: No checkpoints are taken, so driver-only sinks commit when an epoch is accepted.
            allow_unclaimed: Whether staged output of sinks that are not in the program may be dropped.
            timeout: Milliseconds that a call of a committer may take; a driver-only sink waits for the reader of the
                job's output.

        """
        self._sinks: dict[str, Sink] = {}
        self._names: dict[str, str] = {}
        self._committers: dict[str, Committer] = {}
        self._with_epoch, self._allow_unclaimed = with_epoch, allow_unclaimed
        for planned in plan.vertices:
            for node in planned.task.operators:
                if isinstance(node.spec, SinkSpec):
                    self._sinks[node.id], self._names[node.id] = node.spec.sink, node.name
                    committer = node.spec.sink.create_committer()
                    if committer is not None:
                        committer.workers = workers
                        if timeout is not None:
                            millis = None if node.spec.sink.driver_only else timeout
                            option, waits = CHECKPOINT_TIMEOUT.key, workers.backpressured
                            committer = CommitterWithDeadline(committer, node.name, millis, option, waits)
                        self._committers[node.id] = committer
        self._staged: dict[str, list[tuple[int, list[Any]]]] = {}  # by epoch
        # rows in the driver that belong to a checkpoint and are not committed yet
        self._undelivered: dict[str, list[Any]] = {}
        # output that a checkpoint names and that is not committed yet
        self._uncommitted: dict[str, tuple[int, list[Any]]] = {}
        self._tried: set[str] = set()  # sinks whose commit was attempted and did not complete
        self._committed = 0  # the last checkpoint whose output is committed
        self._committing = False

    @classmethod
    def of(cls, plan: ExecutionPlan, workers: Workers, settings: JobSettings) -> Sinks:
        """Create the sinks of a job."""
        with_epoch = settings.checkpoint_interval is None
        allow_unclaimed, timeout = settings.allow_unclaimed, settings.commit_timeout
        return cls(plan, workers, with_epoch=with_epoch, allow_unclaimed=allow_unclaimed, timeout=timeout)

    def stage(self, reports: Sequence[TaskReport], epoch: int = 0) -> None:
        """Stage the committables of an accepted epoch, in the order of subtasks."""
        for operator, staged in _committables(reports).items():
            sink = self._sinks[operator]
            if sink.commits_with_epoch or (sink.driver_only and self._with_epoch):
                self._committers[operator].commit(-1, staged)
            else:
                self._staged.setdefault(operator, []).append((epoch, staged))

    def discard(self, reports: Sequence[TaskReport]) -> None:
        """Abort output that a run of an epoch staged, before the epoch runs again, because the run is not accepted."""
        for operator, staged in _committables(reports).items():
            self._committers[operator].abort(staged)

    def staged_committables(self) -> dict[str, tuple[Any, ...]]:
        """Return the committables that the next checkpoint must name."""
        return {name: tuple(_join(epochs)) for name, epochs in self._staged.items() if not self._is_driver_only(name)}

    def mark_published(self, checkpoint: int, epoch: int | None = None) -> None:
        """Note that a checkpoint exists that names what was staged up to `epoch`, by default all. From now on that
        output is not aborted, even if its commit fails."""
        staged, self._staged = self._staged, {}
        for operator, epochs in staged.items():
            named = [entry for entry in epochs if epoch is None or entry[0] <= epoch]
            later = epochs[len(named) :]
            if later:
                self._staged[operator] = later
            if not named:
                continue
            if self._is_driver_only(operator):
                self._undelivered.setdefault(operator, []).extend(_join(named))
            else:  # an earlier, expired checkpoint may name a part of this output
                _, before = self._uncommitted.get(operator, (0, []))
                self._uncommitted[operator] = (checkpoint, [*before, *_join(named)])

    def commit(self, checkpoint: int) -> None:
        """Commit the output that a published checkpoint names. If a sink fails, the others still commit.

        The staged output of a failed sink is committed by the recovery, from the checkpoint, or at the end of the job;
        rows in the driver are kept here. Driver-only sinks are last, so that others do not wait for their reader."""
        self.mark_published(checkpoint)
        problems: list[Exception] = []
        with self._commit_under_way():
            for operator in sorted({**self._uncommitted, **self._undelivered}, key=self._is_driver_only):
                try:
                    self._commit_named(operator, checkpoint)
                except Exception as problem:
                    problems.append(problem)
        _raise_first(problems, f"to commit checkpoint {checkpoint}")
        self._committed = checkpoint

    def _commit_named(self, operator: str, checkpoint: int) -> None:
        """Commit the output of one sink that a checkpoint names, and forget it when that has succeeded."""
        if operator in self._uncommitted:
            number, committables = self._uncommitted[operator]
            self._tried.add(operator)
            self._committers[operator].commit(number, committables)
            self._tried.discard(operator)
            del self._uncommitted[operator]
        else:
            self._committers[operator].commit(checkpoint, self._undelivered[operator])
            del self._undelivered[operator]

    @contextmanager
    def _commit_under_way(self) -> Iterator[None]:
        self._committing = True
        try:
            yield
        finally:
            self._committing = False

    def _is_driver_only(self, operator: str) -> bool:
        return self._sinks[operator].driver_only

    def snapshot(self) -> dict[str, Any]:
        """Return the states of the committers, for a checkpoint."""
        snapshots = {name: committer.snapshot() for name, committer in self._committers.items()}
        return {name: value for name, value in snapshots.items() if value is not None}

    def recover(self, checkpoint: CheckpointMetadata) -> None:
        """Restore the committers from a checkpoint, and repeat its commit."""
        for name, value in checkpoint.sinks.items():
            if name in self._committers:
                self._committers[name].restore(value)
        self.recommit(checkpoint.checkpoint, checkpoint.committables)

    def recommit(self, checkpoint: int, committables: Mapping[str, Sequence[Any]]) -> None:
        """Commit the output that a checkpoint names again, because its commit may have been interrupted."""
        unclaimed = {name: len(staged) for name, staged in committables.items() if name not in self._committers}
        if any(unclaimed.values()):
            problem = OutputNotClaimed(checkpoint, unclaimed)
            if not self._allow_unclaimed:
                raise problem
            _log.warning("output is dropped: %s", problem.message)
        self._name(checkpoint, committables)
        for operator in committables:  # a batch job has no other commit
            self._staged.pop(operator, None)
        with self._commit_under_way():
            for operator in [*self._uncommitted, *self._undelivered]:
                self._commit_named(operator, checkpoint)
        if committables:  # otherwise it may be the boundary of a rescale, not a checkpoint
            self._committed = checkpoint

    def _name(self, checkpoint: int, committables: Mapping[str, Sequence[Any]]) -> None:
        """Replace the output to be committed by the output that the restored checkpoint names."""
        named = {operator: (checkpoint, list(staged)) for operator, staged in committables.items()}
        self._uncommitted = {operator: output for operator, output in named.items() if operator in self._committers}

    def notify_watermarks(self, operators: Sequence[OperatorSnapshot], now: int) -> None:
        """Notify every committer of the watermark of its sink: a checkpoint exists and its output is committed."""
        for operator in operators:
            if operator.operator in self._committers:
                awake = [memory.watermark for memory in operator.memory if not memory.part(SinkMemory).idle]
                mark = min((MIN_WATERMARK if mark is None else mark for mark in awake), default=MIN_WATERMARK)
                self._committers[operator.operator].reached(mark, now)

    def notify_end(self, now: int) -> None:
        """Notify every committer that all output is committed."""
        for committer in self._committers.values():
            committer.reached(MAX_WATERMARK, now)

    def abort(self, checkpoint: CheckpointMetadata | None = None) -> None:
        """Remove output that was staged since `checkpoint`, because its epochs are replayed. What the checkpoint names
        stays and is committed next; so do rows in the driver up to its epoch. Output that only other checkpoints name,
        such as a damaged one, is removed too if no commit of it was tried."""
        before, self._uncommitted = self._uncommitted, {}
        problems = self._abort_staged(checkpoint)
        if checkpoint is not None:
            if checkpoint.checkpoint != self._committed:
                self._name(checkpoint.checkpoint, checkpoint.committables)
            for operator, (_, committables) in before.items():
                named = checkpoint.committables.get(operator, ())
                unnamed = [committable for committable in committables if committable not in named]
                problem = self._remove(operator, unnamed) if unnamed and operator not in self._tried else None
                problems += [problem] if problem is not None else []
        if problems:
            raise problems[0]

    def _abort_staged(self, checkpoint: CheckpointMetadata | None) -> list[Exception]:
        staged, self._staged = self._staged, {}
        named: Mapping[str, Sequence[Any]] = checkpoint.committables if checkpoint is not None else {}
        last = checkpoint.epoch if checkpoint is not None else -1
        problems: list[Exception] = []
        for operator, epochs in staged.items():
            if self._is_driver_only(operator):
                undelivered = [entry for entry in epochs if entry[0] <= last]
                if undelivered:
                    self._undelivered.setdefault(operator, []).extend(_join(undelivered))
                epochs = epochs[len(undelivered) :]
            named_by_checkpoint = named.get(operator, ())
            problem = self._remove(operator, [item for item in _join(epochs) if item not in named_by_checkpoint])
            problems += [problem] if problem is not None else []
        return problems

    def _remove(self, operator: str, committables: list[Any]) -> Exception | None:
        """Abort output of one sink; output that cannot be removed is logged, and the error is returned."""
        try:
            self._committers[operator].abort(committables)
        except Exception as problem:
            name, output = self._names[operator], self._committers[operator].describe(committables)
            _log.warning("output of sink '%s' could not be removed: %s. What is left: %s", name, problem, output)
            return problem
        return None

    def end(self, *, retry: bool, is_kept: Callable[[int], bool]) -> list[Uncommitted]:
        """End a job before its input has ended: remove output that no checkpoint names. With `retry`, output that a
        published checkpoint names and that is not committed is committed now. Unless its checkpoint `is_kept`, output
        of which no commit was tried is removed; output of which one was tried stays, because it may be visible.

        Returns:
            The output that may not be committed.

        """
        problems: dict[str, str] = {}
        with self._commit_under_way():
            for operator, (checkpoint, committables) in list(self._uncommitted.items()):
                problems[operator] = "its commit did not complete"
                if retry or not committables:
                    try:
                        self._commit_named(operator, checkpoint)
                        del problems[operator]
                    except Exception as problem:
                        problems[operator] = problem.message if isinstance(problem, MillstreamError) else str(problem)
        self._abort_staged(None)
        uncommitted = self._collect_uncommitted(problems, is_kept)
        with self._commit_under_way():
            for operator in list(self._undelivered) if retry else ():
                try:
                    self._commit_named(operator, 0)
                except Exception as problem:
                    _log.warning("rows of sink '%s' were not delivered: %s", self._names[operator], problem)
        return uncommitted

    def _collect_uncommitted(self, problems: Mapping[str, str], is_kept: Callable[[int], bool]) -> list[Uncommitted]:
        """Return the output that could not be committed; `problems` has the causes. Output that may be removed is
        removed."""
        uncommitted = []
        for operator, problem_text in problems.items():
            checkpoint, committables = self._uncommitted[operator]
            if not is_kept(checkpoint) and operator not in self._tried:
                self._remove(operator, committables)
                continue
            described = self._committers[operator].describe(committables)
            uncommitted.append(Uncommitted(self._names[operator], checkpoint, described, problem_text))
        return uncommitted

    def cancel(self, grace: int) -> bool:
        """Cancel: no call waits for the reader of results any longer, and calls to external systems have `grace`
        milliseconds to end. Returns whether a commit is under way. May be called from another thread."""
        remedy = f"a cancelled job waits for {MOST_COMMIT_GRACE / 1000:g} s at most"
        if grace < MOST_COMMIT_GRACE:
            remedy = f"else raise {TASK_CANCELLATION_TIMEOUT.key}: {remedy}"
        for operator, committer in self._committers.items():
            if self._is_driver_only(operator):
                committer.interrupt()
            if isinstance(committer, CommitterWithDeadline):
                committer.hurry(grace, remedy)
        return self._committing

    def finish(self) -> None:
        """Complete pending output of every committer, even if others fail, because this driver has ended the job."""
        self._call_all(lambda committer: committer.finish(), "to complete its output")

    def _call_all(self, call: Callable[[Committer], None], doing: str) -> None:
        problems: list[Exception] = []
        for committer in self._committers.values():
            try:
                call(committer)
            except Exception as problem:
                problems.append(problem)
        _raise_first(problems, doing)

    def close(self) -> None:
        """Close every committer, even if others fail."""
        self._call_all(lambda committer: committer.close(), "to close")


def _raise_first(problems: Sequence[Exception], doing: str) -> None:
    """Raise the first problem, if there is one, and log the others."""
    for other in problems[1:]:
        _log.warning("another sink failed %s: %s", doing, other)
    if problems:
        raise problems[0]


def _join(epochs: Sequence[tuple[int, list[Any]]]) -> list[Any]:
    return [committable for _, committables in epochs for committable in committables]


def _committables(reports: Sequence[TaskReport]) -> dict[str, list[Any]]:
    """Return the committables in the reports, by sink, in the order of subtasks."""
    committables: dict[str, list[Any]] = {}
    for report in sorted(reports, key=lambda report: report.subtask):
        for operator, staged in report.results.items():
            committables.setdefault(operator, []).extend(staged)
    return committables
