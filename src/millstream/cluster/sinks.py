"""The sinks of a job as its JobMaster sees them: what is staged, what is visible.

Promises: a committable is committed only after the checkpoint that names it (law 7), except for sinks that say they may
show output with the epoch; committing is repeated on recovery and must not show. Output of a checkpoint that no sink of
the program takes is refused, or dropped with a warning where that is allowed. A sink that fails takes no rows from
others. What a published checkpoint names and no commit has completed is remembered to the end of the job. The reader of
the job's own output may take any time.
Does not know: tasks, storage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.cluster.bounded import BoundedCommitter
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
    """A checkpoint names staged output of a sink that the program does not have."""

    def __init__(self, checkpoint: int, counts: Mapping[str, int]) -> None:
        self.checkpoint, self.counts = checkpoint, dict(counts)
        told = ", ".join(f"{count} of sink {operator}" for operator, count in counts.items())
        super().__init__(
            f"checkpoint {checkpoint} has staged output that is still to be committed, and no sink takes it: {told}",
            hint="give the sink the uid it had; execution.state-recovery.ignore-unclaimed-state drops the output",
        )


@dataclass(frozen=True)
class Uncommitted:
    """Output of a sink that a checkpoint or savepoint names and that may not be committed. `left` names it for a
    person, `problem` is why."""

    sink: str
    checkpoint: int
    left: str
    problem: str

    def report(self, path: str | None) -> str:
        """What a person is to know. `path` is where the checkpoint or savepoint is kept."""
        end = f"{path} is kept: a job that starts from it (execution.state-recovery.path) commits this output"
        text = f"output of sink '{self.sink}' of checkpoint {self.checkpoint} may not be committed: {self.problem}"
        nothing = "No checkpoint or savepoint that names it is kept"
        return f"{text}. What is left: {self.left}. {end if path else nothing}."


class Sinks:
    """The committers of a job, and what waits for them."""

    def __init__(
        self,
        plan: ExecutionPlan,
        workers: Workers,
        *,
        with_epoch: bool,
        allow_unclaimed: bool = False,
        timeout: int | None = None,
    ) -> None:
        """`workers` is what committers may use of the job. `with_epoch`: no checkpoints are taken: driver-only sinks
        show their output when its epoch is accepted. `allow_unclaimed`: staged output of sinks that the program does
        not have may be dropped. `timeout`: the milliseconds that a call of a committer may take; that of a driver-only
        sink waits for the reader of the job's output."""
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
                            committer = BoundedCommitter(committer, node.name, millis, option, waits)
                        self._committers[node.id] = committer
        self._staged: dict[str, list[tuple[int, list[Any]]]] = {}  # by epoch
        self._owed: dict[str, list[Any]] = {}  # of a checkpoint, but in no file: not committed yet
        self._uncommitted: dict[str, tuple[int, list[Any]]] = {}  # named by a checkpoint: not committed yet
        self._tried: set[str] = set()  # sinks whose commit did not complete
        self._committed = 0  # the last checkpoint of which all is committed
        self._committing = False

    @classmethod
    def of(cls, plan: ExecutionPlan, workers: Workers, settings: JobSettings) -> Sinks:
        """The sinks of a job."""
        with_epoch = settings.checkpoint_interval is None
        allow_unclaimed, timeout = settings.allow_unclaimed, settings.commit_timeout
        return cls(plan, workers, with_epoch=with_epoch, allow_unclaimed=allow_unclaimed, timeout=timeout)

    def stage(self, reports: Sequence[TaskReport], epoch: int = 0) -> None:
        """Take the committables of an accepted epoch, in the order of subtasks."""
        for operator, staged in _committables(reports).items():
            sink = self._sinks[operator]
            if sink.commits_with_epoch or (sink.driver_only and self._with_epoch):
                self._committers[operator].commit(-1, staged)
            else:
                self._staged.setdefault(operator, []).append((epoch, staged))

    def discard(self, reports: Sequence[TaskReport]) -> None:
        """A run of an epoch is not accepted: what it staged is removed before the epoch is run again."""
        for operator, staged in _committables(reports).items():
            self._committers[operator].abort(staged)

    def durable(self) -> dict[str, tuple[Any, ...]]:
        """What a checkpoint must name."""
        return {name: tuple(_joined(epochs)) for name, epochs in self._staged.items() if not self._is_driver_only(name)}

    def published(self, checkpoint: int, epoch: int | None = None) -> None:
        """A checkpoint exists that names what was staged up to `epoch`, or all of it: none of that is removed any more,
        whatever happens before it is committed."""
        staged, self._staged = self._staged, {}
        for operator, epochs in staged.items():
            named = [each for each in epochs if epoch is None or each[0] <= epoch]
            later = epochs[len(named) :]
            if later:
                self._staged[operator] = later
            if not named:
                continue
            if self._is_driver_only(operator):
                self._owed.setdefault(operator, []).extend(_joined(named))
            else:  # a checkpoint before it that expired names a part of this
                _, before = self._uncommitted.get(operator, (0, []))
                self._uncommitted[operator] = (checkpoint, [*before, *_joined(named)])

    def commit(self, checkpoint: int) -> None:
        """The checkpoint is durable: make what it names visible. If a sink fails, the others commit all the same.

        What that sink has staged is committed by the recovery, from the checkpoint, or at the end of the job; what
        stays in the driver is kept here for it. The reader of the job's output is last: others do not wait for it."""
        self.published(checkpoint)
        problems: list[Exception] = []
        with self._commit_under_way():
            for operator in sorted({**self._uncommitted, **self._owed}, key=self._is_driver_only):
                try:
                    self._commit_named(operator, checkpoint)
                except Exception as problem:
                    problems.append(problem)
        _raise_first(problems, f"to commit checkpoint {checkpoint}")
        self._committed = checkpoint

    def _commit_named(self, operator: str, checkpoint: int) -> None:
        """Commit what a checkpoint names of one sink, and forget it if that succeeds."""
        if operator in self._uncommitted:
            number, committables = self._uncommitted[operator]
            self._tried.add(operator)
            self._committers[operator].commit(number, committables)
            self._tried.discard(operator)
            del self._uncommitted[operator]
        else:
            self._committers[operator].commit(checkpoint, self._owed[operator])
            del self._owed[operator]

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
        """What a checkpoint keeps for the committers."""
        kept = {name: committer.snapshot() for name, committer in self._committers.items()}
        return {name: value for name, value in kept.items() if value is not None}

    def recover(self, found: CheckpointMetadata) -> None:
        """Come to what a checkpoint says, and repeat its commit."""
        for name, value in found.sinks.items():
            if name in self._committers:
                self._committers[name].restore(value)
        self.recommit(found.checkpoint, found.committables)

    def recommit(self, checkpoint: int, committables: Mapping[str, Sequence[Any]]) -> None:
        """Recovery: the checkpoint was durable, its commit may have been interrupted."""
        unclaimed = {name: len(staged) for name, staged in committables.items() if name not in self._committers}
        if any(unclaimed.values()):
            problem = OutputNotClaimed(checkpoint, unclaimed)
            if not self._allow_unclaimed:
                raise problem
            _log.warning("output is dropped: %s", problem.message)
        self._name(checkpoint, committables)
        for operator in committables:  # a batch job commits from here only
            self._staged.pop(operator, None)
        with self._commit_under_way():
            for operator in [*self._uncommitted, *self._owed]:
                self._commit_named(operator, checkpoint)
        if committables:  # else it may be a cut that no checkpoint was made of
            self._committed = checkpoint

    def _name(self, checkpoint: int, committables: Mapping[str, Sequence[Any]]) -> None:
        """What recovery goes on from names this, and nothing else is to be committed."""
        named = {operator: (checkpoint, list(staged)) for operator, staged in committables.items()}
        self._uncommitted = {operator: each for operator, each in named.items() if operator in self._committers}

    def reached(self, operators: Sequence[OperatorSnapshot], now: int) -> None:
        """A checkpoint is durable and its output visible: tell every committer how far the time of its sink is."""
        for each in operators:
            if each.operator in self._committers:
                awake = [memory.watermark for memory in each.memory if not memory.part(SinkMemory).idle]
                mark = min((MIN_WATERMARK if mark is None else mark for mark in awake), default=MIN_WATERMARK)
                self._committers[each.operator].reached(mark, now)

    def ended(self, now: int) -> None:
        """All output there will ever be is visible."""
        for committer in self._committers.values():
            committer.reached(MAX_WATERMARK, now)

    def abort(self, found: CheckpointMetadata | None = None) -> None:
        """What was staged since the checkpoint `found` will be made again: remove it. What that one names stays, and is
        committed next; so do rows in the driver up to its epoch, which will not be made again. What no commit was tried
        of is removed too if only a checkpoint names it that recovery does not go on from, such as a damaged one."""
        before, self._uncommitted = self._uncommitted, {}
        problems = self._abort_staged(found)
        if found is not None:
            if found.checkpoint != self._committed:
                self._name(found.checkpoint, found.committables)
            for operator, (_, committables) in before.items():
                gone = [each for each in committables if each not in found.committables.get(operator, ())]
                problem = self._remove(operator, gone) if gone and operator not in self._tried else None
                problems += [problem] if problem is not None else []
        if problems:
            raise problems[0]

    def _abort_staged(self, found: CheckpointMetadata | None) -> list[Exception]:
        staged, self._staged = self._staged, {}
        named: Mapping[str, Sequence[Any]] = found.committables if found is not None else {}
        last = found.epoch if found is not None else -1
        problems: list[Exception] = []
        for operator, epochs in staged.items():
            if self._is_driver_only(operator):
                owed = [each for each in epochs if each[0] <= last]
                if owed:
                    self._owed.setdefault(operator, []).extend(_joined(owed))
                epochs = epochs[len(owed) :]
            kept = named.get(operator, ())
            problem = self._remove(operator, [each for each in _joined(epochs) if each not in kept])
            problems += [problem] if problem is not None else []
        return problems

    def _remove(self, operator: str, committables: list[Any]) -> Exception | None:
        """Abort; what cannot be removed is logged."""
        try:
            self._committers[operator].abort(committables)
        except Exception as problem:
            name, left = self._names[operator], self._committers[operator].describe(committables)
            _log.warning("output of sink '%s' could not be removed: %s. What is left: %s", name, problem, left)
            return problem
        return None

    def end(self, *, retry: bool, is_kept: Callable[[int], bool]) -> list[Uncommitted]:
        """The job ends before its input did: remove what no checkpoint names. What a published checkpoint names and no
        commit has completed is committed now, if `retry`; gives what may still not be committed. Unless its checkpoint
        `is_kept`, output that no commit was tried of is removed too; what one was tried of may be visible, so it is
        left."""
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
        left = self._left_over(problems, is_kept)
        with self._commit_under_way():
            for operator in list(self._owed) if retry else ():
                try:
                    self._commit_named(operator, 0)
                except Exception as problem:
                    _log.warning("rows of sink '%s' were not delivered: %s", self._names[operator], problem)
        return left

    def _left_over(self, problems: Mapping[str, str], is_kept: Callable[[int], bool]) -> list[Uncommitted]:
        """What could not be committed, by operator and why; what may be removed, is."""
        left = []
        for operator, problem_text in problems.items():
            checkpoint, committables = self._uncommitted[operator]
            if not is_kept(checkpoint) and operator not in self._tried:
                self._remove(operator, committables)
                continue
            described = self._committers[operator].describe(committables)
            left.append(Uncommitted(self._names[operator], checkpoint, described, problem_text))
        return left

    def cancel(self, grace: int) -> bool:
        """The job is cancelled: no call waits for the reader of results any longer, and calls to external systems have
        `grace` milliseconds to end. Whether a commit is under way. From another thread."""
        remedy = f"a job that is cancelled waits for {MOST_COMMIT_GRACE / 1000:g} s at most"
        if grace < MOST_COMMIT_GRACE:
            remedy = f"else raise {TASK_CANCELLATION_TIMEOUT.key}: {remedy}"
        for operator, committer in self._committers.items():
            if self._is_driver_only(operator):
                committer.interrupt()
            if isinstance(committer, BoundedCommitter):
                committer.hurry(grace, remedy)
        return self._committing

    def finish(self) -> None:
        """This driver has ended the job: have every committer complete what waits, whether others can or not."""
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
        """Close every committer, whether others can be closed or not."""
        self._call_all(lambda committer: committer.close(), "to close")


def _raise_first(problems: Sequence[Exception], doing: str) -> None:
    """Raise the first problem, if there is one, and log the others."""
    for other in problems[1:]:
        _log.warning("another sink failed %s: %s", doing, other)
    if problems:
        raise problems[0]


def _joined(epochs: Sequence[tuple[int, list[Any]]]) -> list[Any]:
    return [committable for _, committables in epochs for committable in committables]


def _committables(reports: Sequence[TaskReport]) -> dict[str, list[Any]]:
    """What reports have staged, by sink, in the order of subtasks."""
    found: dict[str, list[Any]] = {}
    for report in sorted(reports, key=lambda report: report.subtask):
        for operator, staged in report.results.items():
            found.setdefault(operator, []).extend(staged)
    return found
