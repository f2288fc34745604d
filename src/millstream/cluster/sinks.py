"""The sinks of a job as its JobMaster sees them: what is staged, what is visible.

Promises: a committable is committed only after the checkpoint that names it (law 7), except for sinks that say they may
show output with the epoch; committing is repeated on recovery and must not show.
Does not know: tasks, storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.graph.execution_plan import ExecutionPlan
from millstream.model.sink import Committer, Sink
from millstream.model.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.runtime.operators.sink import SinkSpec


class Sinks:
    """The committers of a job, and what waits for them."""

    def __init__(self, plan: ExecutionPlan, *, with_epoch: bool) -> None:
        """`with_epoch`: no checkpoints are taken: driver-only sinks show their output when its epoch is accepted."""
        self._sinks: dict[str, Sink] = {}
        self._committers: dict[str, Committer] = {}
        self._with_epoch = with_epoch
        for planned in plan.vertices:
            for node in planned.task.operators:
                if isinstance(node.spec, SinkSpec):
                    self._sinks[node.id] = node.spec.sink
                    committer = node.spec.sink.create_committer()
                    if committer is not None:
                        self._committers[node.id] = committer
        self._staged: dict[str, list[Any]] = {}

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
        """The checkpoint is durable: make what it names visible."""
        staged, self._staged = self._staged, {}
        for operator, committables in staged.items():
            self._committers[operator].commit(checkpoint, committables)

    def recommit(self, checkpoint: int, committables: Mapping[str, Sequence[Any]]) -> None:
        """Recovery: the checkpoint was durable, its commit may have been interrupted."""
        for operator, staged in committables.items():
            if operator in self._committers:
                self._committers[operator].commit(checkpoint, list(staged))

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
