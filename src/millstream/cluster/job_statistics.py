"""Statistics of a running job for its observers: times of its statuses, records and busy time of subtasks, checkpoints,
failures and rescales.

Promises: memory is bounded by the size of the program, not by the duration of the job; the methods may be called from
any thread, and what they return does not change afterwards.
Does not know: who reads them; what runs the job."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from millstream.cluster.job_events import (
    CheckpointDone,
    CheckpointFailed,
    EpochDone,
    JobEvent,
    OperatorEpoch,
    RescaleDone,
    RestoreDone,
    SavepointDone,
    StatusChanged,
    SubtaskEpoch,
)
from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.job.job_status import JobStatus
from millstream.runtime.metrics import combine_values
from millstream.times import Clock

_KEPT_CHECKPOINTS, _KEPT_FAILURES, _KEPT_RESCALES = 100, 100, 100
_RATE_SAMPLES, _RATE_INTERVAL = 13, 5_000  # rates are over the last minute, as in Flink
_HISTORY_SAMPLES, _HISTORY_INTERVAL = 1_440, 10_000  # four hours
_HISTORY_VALUES = 50_000  # the limit of samples times vertices: a larger program has a shorter history
_KEPT_EPOCHS, _EPOCH_VALUES = 300, 20_000

T = TypeVar("T")


@dataclass(frozen=True)
class Timed(Generic[T]):
    """An event with the time at which it was reported, in milliseconds since 1970."""

    time: int
    event: T


@dataclass(frozen=True)
class Failure:
    """A failure of the job. `cause` has the traceback."""

    cause: str
    is_final: bool


@dataclass(frozen=True)
class OperatorTotals:
    """What one subtask of one operator did since the job was started, or since its parallelism changed. Gauges have
    their last value."""

    counts: Mapping[str, Any] = field(default_factory=dict)
    input_watermark: int | None = None
    output_watermark: int | None = None
    state_bytes: int = 0

    def after(self, epoch: OperatorEpoch) -> OperatorTotals:
        """Return the totals after one more epoch."""
        counts = dict(self.counts)
        for name, count in epoch.counts.items():
            is_sum = name in counts and not name.startswith("gauge.")
            counts[name] = combine_values(counts[name], count) if is_sum else count
        return OperatorTotals(counts, epoch.input_watermark, epoch.output_watermark, epoch.state_bytes)


@dataclass(frozen=True)
class SubtaskTotals:
    """What one subtask did since the job was started, or since its parallelism changed."""

    records_in: int = 0
    records_out: int = 0
    busy_ms: float = 0.0
    watermark: int = MIN_WATERMARK
    bytes_in: int = 0
    bytes_out: int = 0
    backpressured_ms: float = 0.0
    operators: Mapping[str, OperatorTotals] = field(default_factory=dict)

    def after(self, epoch: SubtaskEpoch) -> SubtaskTotals:
        """Return the totals after one more epoch."""
        nothing = OperatorTotals()
        return SubtaskTotals(
            self.records_in + epoch.records_in,
            self.records_out + epoch.records_out,
            self.busy_ms + epoch.busy_ms,
            epoch.watermark,
            self.bytes_in + epoch.bytes_in,
            self.bytes_out + epoch.bytes_out,
            self.backpressured_ms + epoch.backpressured_ms,
            {name: self.operators.get(name, nothing).after(counts) for name, counts in epoch.operators.items()},
        )


@dataclass(frozen=True)
class VertexSample:
    """The sums over the subtasks of a vertex at one moment. `watermark` is the least one."""

    records_in: int
    records_out: int
    busy_ms: float
    backpressured_ms: float
    watermark: int
    state_bytes: int


@dataclass(frozen=True)
class VertexTime:
    """How long the subtasks of a vertex worked in one epoch. `subtask` is the index of the one that worked longest."""

    longest_ms: float
    subtask: int
    average_ms: float


@dataclass(frozen=True)
class EpochSample:
    """An accepted epoch without the details of its subtasks. `vertices` are by id."""

    epoch: int
    records: int
    duration_ms: float
    watermark: int
    lag: int | None
    vertices: Mapping[str, VertexTime]


Subtasks = dict[str, tuple[SubtaskTotals, ...]]


@dataclass(frozen=True)
class Statistics:
    """The statistics of a job at one moment. Times are milliseconds since 1970.

    Attributes:
        status: The status of the job.
        status_times: When the job last got each status.
        restarts: The number of restarts.
        epochs: The number of accepted epochs.
        epoch_ms: The duration of all of them.
        records: The records that sources have read.
        last_epoch: The newest accepted epoch.
        checkpoint_count: The number of completed checkpoints.
        checkpoints: The newest checkpoints, oldest first.
        failures: The newest failures, oldest first.
        rescales: The newest rescales, oldest first.
        subtasks: The totals of the subtasks of each vertex.
        rate_base: The totals at the beginning of the last minute, from which rates are computed.
        failed_checkpoint_count: The number of failed checkpoints.
        failed_checkpoints: The newest failed checkpoints, oldest first.
        savepoint_count: The number of savepoints.
        savepoints: The newest savepoints, oldest first.
        restore_count: How often the job was restored from a checkpoint or savepoint.
        restored: The last time that it was restored.

    """

    status: JobStatus
    status_times: dict[JobStatus, int]
    restarts: int
    epochs: int
    epoch_ms: float
    records: int
    last_epoch: Timed[EpochDone] | None
    checkpoint_count: int
    checkpoints: tuple[Timed[CheckpointDone], ...]
    failures: tuple[Timed[Failure], ...]
    rescales: tuple[Timed[RescaleDone], ...]
    subtasks: Subtasks
    rate_base: Timed[Subtasks] | None = None
    failed_checkpoint_count: int = 0
    failed_checkpoints: tuple[Timed[CheckpointFailed], ...] = ()
    savepoint_count: int = 0
    savepoints: tuple[Timed[SavepointDone], ...] = ()
    restore_count: int = 0
    restored: Timed[RestoreDone] | None = None


class JobStatistics:
    """Keeps the statistics of one job: a listener of its events."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        created = clock.now()
        self._now = Statistics(JobStatus.CREATED, {JobStatus.CREATED: created}, 0, 0, 0.0, 0, None, 0, (), (), (), {})
        self._checkpoints: deque[Timed[CheckpointDone]] = deque(maxlen=_KEPT_CHECKPOINTS)
        self._failed_checkpoints: deque[Timed[CheckpointFailed]] = deque(maxlen=_KEPT_CHECKPOINTS)
        self._savepoints: deque[Timed[SavepointDone]] = deque(maxlen=_KEPT_CHECKPOINTS)
        self._failures: deque[Timed[Failure]] = deque(maxlen=_KEPT_FAILURES)
        self._rescales: deque[Timed[RescaleDone]] = deque(maxlen=_KEPT_RESCALES)
        self._subtasks: dict[str, list[SubtaskTotals]] = {}
        self._rates: deque[Timed[Subtasks]] = deque([Timed(created, {})], maxlen=_RATE_SAMPLES)
        self._history: deque[Timed[Mapping[str, VertexSample]]] = deque(maxlen=_HISTORY_SAMPLES)
        self._epochs: deque[Timed[EpochSample]] = deque(maxlen=_KEPT_EPOCHS)

    def __call__(self, event: JobEvent) -> None:
        """Add one event of the job."""
        time = self._clock.now()
        with self._lock:
            match event:
                case EpochDone():
                    self._add_epoch(time, event)
                case CheckpointDone():
                    self._checkpoints.append(Timed(time, event))
                    self._now = replace(self._now, checkpoint_count=self._now.checkpoint_count + 1)
                case CheckpointFailed():
                    self._failed_checkpoints.append(Timed(time, event))
                    self._now = replace(self._now, failed_checkpoint_count=self._now.failed_checkpoint_count + 1)
                case SavepointDone():
                    self._savepoints.append(Timed(time, event))
                    self._now = replace(self._now, savepoint_count=self._now.savepoint_count + 1)
                case RestoreDone():
                    count = self._now.restore_count + 1
                    self._now = replace(self._now, restore_count=count, restored=Timed(time, event))
                case StatusChanged():
                    self._change_status(time, event)
                case RescaleDone():
                    self._rescales.append(Timed(time, event))

    def get(self) -> Statistics:
        """Return the current statistics."""
        with self._lock:
            return replace(
                self._now,
                status_times=dict(self._now.status_times),
                checkpoints=tuple(self._checkpoints),
                failed_checkpoints=tuple(self._failed_checkpoints),
                savepoints=tuple(self._savepoints),
                failures=tuple(self._failures),
                rescales=tuple(self._rescales),
                subtasks=self._copy_subtasks(),
                rate_base=self._rates[0],
            )

    def history(self) -> tuple[Timed[Mapping[str, VertexSample]], ...]:
        """Return samples of the vertices of the last hours, by id, oldest first."""
        with self._lock:
            return tuple(self._history)

    def epoch_samples(self) -> tuple[Timed[EpochSample], ...]:
        """Return the newest epochs, oldest first."""
        with self._lock:
            return tuple(self._epochs)

    def _copy_subtasks(self) -> Subtasks:
        return {vertex: tuple(totals) for vertex, totals in self._subtasks.items()}

    def _add_epoch(self, time: int, epoch: EpochDone) -> None:
        now = self._now
        self._now = replace(
            now,
            epochs=now.epochs + 1,
            epoch_ms=now.epoch_ms + epoch.duration_ms,
            records=now.records + epoch.records,
            last_epoch=Timed(time, epoch),
        )
        if self._epochs and len(self._epochs) * len(epoch.subtasks) >= _EPOCH_VALUES:
            self._epochs.popleft()
        self._epochs.append(Timed(time, _sample_epoch(epoch)))
        for vertex, reported in epoch.subtasks.items():
            totals = self._subtasks.get(vertex, [])
            parallelism = 1 + max(subtask.subtask for subtask in reported)
            if len(totals) != parallelism:  # the first epoch, or the first one after a rescale
                totals = self._subtasks[vertex] = [SubtaskTotals()] * parallelism
                self._rates.clear()
                self._rates.append(Timed(time - round(epoch.duration_ms), {}))
            for subtask in reported:
                totals[subtask.subtask] = totals[subtask.subtask].after(subtask)
        if time - self._rates[-1].time >= _RATE_INTERVAL:
            self._rates.append(Timed(time, self._copy_subtasks()))
        if not self._history or time - self._history[-1].time >= _HISTORY_INTERVAL:
            if len(self._history) * len(self._subtasks) >= _HISTORY_VALUES:
                self._history.popleft()
            self._history.append(Timed(time, {vertex: _sum_up(totals) for vertex, totals in self._subtasks.items()}))

    def _change_status(self, time: int, change: StatusChanged) -> None:
        times = {**self._now.status_times, change.status: time}
        self._now = replace(self._now, status=change.status, status_times=times, restarts=change.restarts)
        if change.status in (JobStatus.RESTARTING, JobStatus.FAILED):
            failure = Failure(change.cause or "", is_final=change.status is JobStatus.FAILED)
            self._failures.append(Timed(time, failure))


def _sample_epoch(epoch: EpochDone) -> EpochSample:
    vertices = {}
    for vertex, reported in epoch.subtasks.items():
        slowest = max(reported, key=lambda subtask: subtask.busy_ms)
        average = sum(subtask.busy_ms for subtask in reported) / len(reported)
        vertices[vertex] = VertexTime(slowest.busy_ms, slowest.subtask, average)
    return EpochSample(epoch.epoch, epoch.records, epoch.duration_ms, epoch.watermark, epoch.lag, vertices)


def _sum_up(totals: list[SubtaskTotals]) -> VertexSample:
    return VertexSample(
        sum(subtask.records_in for subtask in totals),
        sum(subtask.records_out for subtask in totals),
        sum(subtask.busy_ms for subtask in totals),
        sum(subtask.backpressured_ms for subtask in totals),
        min(subtask.watermark for subtask in totals),
        sum(operator.state_bytes for subtask in totals for operator in subtask.operators.values()),
    )
