"""The sinks of a job as its JobMaster sees them: what is staged, what is visible.

Promises: a committable is committed only after the checkpoint that names it (law 7), except for sinks that say they may
show output with the epoch; committing is repeated on recovery and must not show. Output of a checkpoint that no sink of
the program takes is refused, or dropped with a warning where that is allowed. A sink that fails takes no rows from
others.
Does not know: tasks, storage."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.cluster.bounded import BoundedCommitter
from millstream.cluster.failures import StateRefused
from millstream.cluster.settings import JobSettings
from millstream.graph.execution_plan import ExecutionPlan
from millstream.model.sink import Committer, Sink, Workers
from millstream.model.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.options import CHECKPOINT_TIMEOUT
from millstream.runtime.operators.sink import SinkSpec

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
        not have may be dropped. `timeout`: the milliseconds that a call of a committer may take."""
        self._sinks: dict[str, Sink] = {}
        self._committers: dict[str, Committer] = {}
        self._with_epoch, self._allow_unclaimed = with_epoch, allow_unclaimed
        for planned in plan.vertices:
            for node in planned.task.operators:
                if isinstance(node.spec, SinkSpec):
                    self._sinks[node.id] = node.spec.sink
                    committer = node.spec.sink.create_committer()
                    if committer is not None:
                        committer.workers = workers
                        if timeout is not None:
                            committer = BoundedCommitter(committer, node.name, timeout, CHECKPOINT_TIMEOUT.key)
                        self._committers[node.id] = committer
        self._staged: dict[str, list[Any]] = {}
        self._owed: dict[str, list[Any]] = {}  # of a checkpoint, but in no file: its commit failed

    @classmethod
    def of(cls, plan: ExecutionPlan, workers: Workers, settings: JobSettings) -> Sinks:
        """The sinks of a job."""
        with_epoch = settings.checkpoint_interval is None
        allow_unclaimed, timeout = settings.allow_unclaimed, settings.commit_timeout
        return cls(plan, workers, with_epoch=with_epoch, allow_unclaimed=allow_unclaimed, timeout=timeout)

    def stage(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Take the committables of an accepted epoch, in the order of subtasks."""
        for operator, staged in _committables(reports).items():
            sink = self._sinks[operator]
            if sink.commits_with_epoch or (sink.driver_only and self._with_epoch):
                self._committers[operator].commit(-1, staged)
            else:
                self._staged.setdefault(operator, []).extend(staged)

    def discard(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """A run of an epoch is not accepted: what it staged is removed before the epoch is run again."""
        for operator, staged in _committables(reports).items():
            self._committers[operator].abort(staged)

    def durable(self) -> dict[str, tuple[Any, ...]]:
        """What a checkpoint must name."""
        return {name: tuple(staged) for name, staged in self._staged.items() if not self._sinks[name].driver_only}

    def commit(self, checkpoint: int) -> None:
        """The checkpoint is durable: make what it names visible. If a sink fails, the others commit all the same.

        What that sink has staged is committed by the recovery, from the checkpoint; what stays in the driver is kept
        here for it."""
        staged, self._staged = self._staged, {}
        problems: list[Exception] = []
        for operator, committables in staged.items():
            try:
                self._committers[operator].commit(checkpoint, committables)
            except Exception as problem:
                problems.append(problem)
                if self._sinks[operator].driver_only:
                    self._owed.setdefault(operator, []).extend(committables)
        for other in problems[1:]:
            _log.warning("another sink failed to commit checkpoint %s: %s", checkpoint, other)
        if problems:
            raise problems[0]

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
        for operator, staged in committables.items():
            if operator in self._committers:
                self._committers[operator].commit(checkpoint, list(staged))
        for operator in list(self._owed):
            self._committers[operator].commit(checkpoint, self._owed[operator])
            del self._owed[operator]

    def reached(self, operators: Sequence[OperatorSnapshot], now: int) -> None:
        """A checkpoint is durable and its output visible: tell every committer how far the time of its sink is."""
        for each in operators:
            if each.operator in self._committers:
                awake = [memory for memory in each.memory if not memory.get("sink_idle")]
                mark = min((memory.get("watermark", MIN_WATERMARK) for memory in awake), default=MIN_WATERMARK)
                self._committers[each.operator].reached(mark, now)

    def ended(self, now: int) -> None:
        """All output there will ever be is visible."""
        for committer in self._committers.values():
            committer.reached(MAX_WATERMARK, now)

    def abort(self, named: Mapping[str, Sequence[Any]] = MappingProxyType({})) -> None:
        """What was staged since the last checkpoint will be made again; what that one has `named` stays."""
        staged, self._staged = self._staged, {}
        for operator, committables in staged.items():
            kept = named.get(operator, ())
            self._committers[operator].abort([each for each in committables if each not in kept])

    def interrupt(self) -> None:
        """The job is cancelled: no commit waits any longer for somebody to read. May be called from another thread."""
        for committer in self._committers.values():
            committer.interrupt()

    def finish(self) -> None:
        """This driver has ended the job: have every committer complete what waits, whether others can or not."""
        problems: list[Exception] = []
        for committer in self._committers.values():
            try:
                committer.finish()
            except Exception as problem:
                problems.append(problem)
        for other in problems[1:]:
            _log.warning("another sink failed to complete its output: %s", other)
        if problems:
            raise problems[0]

    def close(self) -> None:
        """Close every committer."""
        for committer in self._committers.values():
            committer.close()


def _committables(reports: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """What reports have staged, by sink, in the order of subtasks."""
    found: dict[str, list[Any]] = {}
    for report in sorted(reports, key=lambda report: report["subtask"]):
        for operator, staged in report["results"].items():
            found.setdefault(operator, []).extend(staged)
    return found
