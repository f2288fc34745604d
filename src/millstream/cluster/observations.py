"""What a running job lets be seen: one value per epoch, per checkpoint and per change of status.

Promises: frozen values, handed to whoever listens, in order.
Does not know: who listens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.job.accumulators import Accumulator
from millstream.job.job_status import JobStatus


@dataclass(frozen=True)
class EpochDone:
    """An accepted epoch. `watermark` is the least over the job's last operators; `lag` the records that wait;
    `accumulators` hold what this epoch added; `vertex_busy_ms` tells how long each chain's subtasks worked."""

    epoch: int
    records: int
    duration_ms: float
    watermark: int
    lag: int | None
    busy_ms: float
    metrics: dict[str, dict[str, Any]]
    accumulators: Mapping[str, Accumulator[Any, Any]] = field(default_factory=dict)
    vertex_busy_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckpointDone:
    """A completed checkpoint."""

    id: int
    epoch: int
    bytes: int
    full_bytes: int
    duration_ms: float
    path: str


@dataclass(frozen=True)
class StatusChanged:
    """The job has another status."""

    status: JobStatus
    restarts: int
    cause: str | None = None


@dataclass(frozen=True)
class RescaleDone:
    """The job runs at another parallelism; `pause_ms` from the last epoch at the old one to the end of the first at the
    new one."""

    epoch: int
    slots: int
    pause_ms: float


@dataclass(frozen=True)
class EpochCut:
    """An epoch failed for its size, and a smaller plan takes the place of its plan. A number of records that is not
    known is None."""

    epoch: int
    records_before: int | None
    records_after: int | None


Observation = EpochDone | CheckpointDone | StatusChanged | RescaleDone | EpochCut
