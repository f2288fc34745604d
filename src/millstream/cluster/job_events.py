"""Job events: what a running job reports to its listeners.

Promises: frozen values, reported in order: one for each accepted epoch, completed checkpoint, savepoint, rescale,
replaced plan and change of status.
Does not know: listeners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.cluster.hot_keys import KeySample
from millstream.job.accumulators import Accumulator
from millstream.job.job_status import JobStatus


@dataclass(frozen=True)
class OperatorEpoch:
    """What one subtask of one operator did in an epoch. `counts` are its metrics; `input_watermark` is None before the
    first watermark arrived, `output_watermark` is None if the operator is idle; `state_bytes` is the size of its state
    files."""

    counts: Mapping[str, Any]
    input_watermark: int | None = None
    output_watermark: int | None = None
    state_bytes: int = 0


@dataclass(frozen=True)
class SubtaskEpoch:
    """What one subtask did in an epoch. `backpressured_ms` is the time that it waited for subtasks downstream while
    sources had more input; `operators` are those of its chain, by id."""

    subtask: int
    records_in: int
    records_out: int
    busy_ms: float
    watermark: int
    bytes_in: int = 0
    bytes_out: int = 0
    backpressured_ms: float = 0.0
    operators: Mapping[str, OperatorEpoch] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundDone:
    """What an iteration did in an epoch: its phase and the number of its last round, the feedback records that the next
    round gets, which are the workset of a delta iteration, and the aggregates of the round, criteria among them."""

    phase: str
    round: int
    feedback: int
    aggregates: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class EpochDone:
    """An accepted epoch. `watermark` is the least over the subtasks; `lag` is the number of records that sources have
    not read yet; `accumulators` hold what this epoch added; `vertex_busy_ms` is how long the subtasks of each
    vertex worked, by the name of the vertex; `subtasks` are what they did, by the id of the vertex; `source_lags` are
    the lags of the sources that know theirs, by operator id; `stacks` are samples for flame graphs, as (subtask,
    stacks) by the id of the vertex; `samples` are some of the records that were dropped, as (reason, key, value) by
    operator id; `iterations` are those of the program, by name; `keys` are samples of keys that were read, by operator
    id."""

    epoch: int
    records: int
    duration_ms: float
    watermark: int
    lag: int | None
    busy_ms: float
    metrics: dict[str, dict[str, Any]]
    accumulators: Mapping[str, Accumulator[Any, Any]] = field(default_factory=dict)
    vertex_busy_ms: Mapping[str, float] = field(default_factory=dict)
    subtasks: Mapping[str, tuple[SubtaskEpoch, ...]] = field(default_factory=dict)
    source_lags: Mapping[str, int] = field(default_factory=dict)
    stacks: Mapping[str, tuple[tuple[int, Mapping[str, Any]], ...]] = field(default_factory=dict)
    samples: Mapping[str, Sequence[tuple[str, str | None, str]]] = field(default_factory=dict)
    iterations: Mapping[str, RoundDone] = field(default_factory=dict)
    keys: Mapping[str, Sequence[KeySample]] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckpointDone:
    """A completed checkpoint. `state_bytes` are the sizes of the state of the subtasks, by operator id."""

    id: int
    epoch: int
    bytes: int
    full_bytes: int
    duration_ms: float
    path: str
    state_bytes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckpointFailed:
    """A checkpoint that could not be completed."""

    id: int
    duration_ms: float
    cause: str


@dataclass(frozen=True)
class SavepointDone:
    """A savepoint was written. `id` is the number that the next checkpoint has, too; `is_last` says that the job ends
    with it; `duration_ms` is the time since it was requested."""

    id: int
    form: str
    is_last: bool
    bytes: int
    duration_ms: float
    path: str


@dataclass(frozen=True)
class RestoreDone:
    """The job was restored from a checkpoint or savepoint."""

    id: int
    is_savepoint: bool
    path: str


@dataclass(frozen=True)
class StatusChanged:
    """The job has another status."""

    status: JobStatus
    restarts: int
    cause: str | None = None


@dataclass(frozen=True)
class RescaleDone:
    """The job runs at another parallelism. `pause_ms` is the time from the last epoch at the old parallelism to the end
    of the first one at the new parallelism."""

    epoch: int
    slots: int
    pause_ms: float


@dataclass(frozen=True)
class EpochCut:
    """An epoch was too large and failed, and a smaller plan replaces its plan. A number of records that is not known is
    None."""

    epoch: int
    records_before: int | None
    records_after: int | None


JobEvent = (
    EpochDone | CheckpointDone | CheckpointFailed | SavepointDone | RestoreDone | StatusChanged | RescaleDone | EpochCut
)
