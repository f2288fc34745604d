"""The engine contract: how the control plane runs an epoch.

Promises: a request is all an engine needs for an epoch; a result holds the reports of the accepted attempts, one per
subtask, or the failures.
Does not know: Spark. The job master does not know which engine it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from millstream.connector.slot_task import SlotTask
from millstream.engine.dependencies import Dependencies
from millstream.errors import ExternalError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.report import TaskFailure, TaskReport
from millstream.runtime.stack_samples import Sampling
from millstream.runtime.task import TaskRequest, TaskSpec
from millstream.runtime.watermarks import SentWatermarks
from millstream.state.compaction import Compaction
from millstream.state.handles import Lineage
from millstream.state.snapshot import StateFiles


class EngineGone(ExternalError):
    """The engine of this process can run no more epochs and cannot be started again in this process."""


@dataclass(frozen=True)
class Deployment:
    """A program as it is sent to the workers once. Every change of a deployment gets a new `id`. `storage` is the
    directory of the job in its checkpoint storage, for staged output of sinks; `scratch` is its directory on every
    host."""

    id: str
    plan: ExecutionPlan
    files: StateFiles
    local: str
    backend: str
    classes: tuple[type, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    block_records: int = 65536
    cache_limit: int | None = None
    dependencies: Dependencies | None = None
    compressed_state: bool = False
    object_reuse: bool = False
    run_bytes: int = 64 << 20
    storage: str = ""
    scratch: str = ""

    @property
    def uses_scratch(self) -> bool:
        """Whether workers write files of their own."""
        return bool(self.scratch) and (self.backend != "hashmap" or self.dependencies is not None)

    file_access: str = "owner"


@dataclass(frozen=True)
class EpochRequest:
    """What one epoch does: everything that a replay needs. Output that generations before `recovered` staged is either
    committed or obsolete. `attempts` are the attempts that were accepted last, by vertex. The stacks of the vertices in
    `sampled` are sampled, which changes no result."""

    epoch: int
    now: int
    generation: int
    recovered: int = 0
    restarts: int = 0
    attempts: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    lineages: Mapping[str, tuple[Lineage, ...]] = field(default_factory=dict)
    memory: Mapping[str, tuple[SubtaskMemory, ...]] = field(default_factory=dict)
    work: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    compact: Mapping[str, Mapping[int, Compaction]] = field(default_factory=dict)
    last: bool = False
    sampled: Mapping[str, Sampling] = field(default_factory=dict)

    def sent_watermarks(self, plan: ExecutionPlan) -> dict[int, SentWatermarks]:
        """Return what was sent on each edge in the last epoch; nothing after a restore, when it is sent again."""
        senders = {
            edge.edge: task.operators[edge.source].id
            for task in (planned.task for planned in plan.vertices)
            for edge in task.outputs
        }
        memories = {edge: self.memory[operator] for edge, operator in senders.items() if operator in self.memory}
        return {
            edge: SentWatermarks.of([memory.emitted_watermark for memory in subtasks])
            for edge, subtasks in memories.items()
            if not any(memory.restored for memory in subtasks)
        }

    def task_request(self, task: TaskSpec, subtask: int, sent: Mapping[int, SentWatermarks]) -> TaskRequest:
        """Return the request of one subtask; the worker adds the name of the attempt."""
        operators = tuple(node.id for node in task.operators)
        vertex = task.vertex

        def of_subtask(parts: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
            return {name: parts[name][subtask] for name in operators if name in parts}

        return TaskRequest(
            epoch=self.epoch,
            now=self.now,
            attempt=str(self.generation),
            recovered=self.recovered,
            previous=self.attempts[vertex][subtask] if vertex in self.attempts else b"",
            restarts=self.restarts,
            lineages=of_subtask(self.lineages),
            memory=of_subtask(self.memory),
            work=of_subtask(self.work),
            compact={n: self.compact[n][subtask] for n in operators if subtask in self.compact.get(n, {})},
            last=self.last,
            sampling=self.sampled.get(vertex),
            channels={edge.edge: sent[edge.edge] for edge in task.inputs if edge.edge in sent},
        )


@dataclass(frozen=True)
class EpochResult:
    """The outcome of an epoch: the reports of all subtasks, or the failures of some."""

    reports: tuple[TaskReport, ...]
    failures: tuple[TaskFailure, ...] = ()


class Engine(Protocol):
    """Runs epochs."""

    def prepare(self) -> None:
        """Do the slow part of `deploy` ahead of time, without holding resources that another driver's engine needs."""

    def deploy(self, deployment: Deployment) -> None:
        """Send a program to the workers; it replaces an earlier one."""

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        """Run one epoch to its end. Raises an `ExternalError` when the engine itself fails."""

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """Run tasks of the deployed program between epochs, those of different slots in parallel; return their results
        in order. Raises the failure of a task, or an `ExternalError` when the engine itself fails."""

    def slots(self) -> int | None:
        """Return how many slots can run at once now; None if that is unknown or never changes."""

    def cancel(self) -> None:
        """End the running epoch soon; may be called from another thread. Raises nothing and waits only a little."""

    def abandon(self, reason: str) -> None:
        """Give up an epoch that did not end although it was cancelled: the waiting call fails now, and the next
        `deploy` starts a new engine. May be called from another thread."""

    def close(self) -> None:
        """Release the program; the engine may run others. Raises nothing if the engine is gone."""

    def clean_hosts(self, scratch: str) -> None:
        """Delete the directory of a closed job on every other host, as far as that is possible."""
