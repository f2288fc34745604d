"""The engine contract in one process, without Spark; for tests only.

Promises: the same levels, slots and blocks as on Spark; every block is serialized to bytes.
Does not know: parallel work; slots run one after another."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import cloudpickle

from millstream.connector.slot_task import SlotTask
from millstream.engine import epoch_level
from millstream.engine.batch_level import run_batch_level
from millstream.engine.contract import Deployment, EpochRequest, EpochResult
from millstream.engine.dependencies import activate
from millstream.engine.packing import pickle_deployment
from millstream.engine.slot_tasks import collect_results, run_task
from millstream.runtime import block as blocks
from millstream.runtime.batch_task import SortableBlock
from millstream.runtime.block import BlockKind
from millstream.runtime.report import unpack_failure, unpack_report


class InlineEngine:
    """An engine that runs epochs in the calling thread."""

    def __init__(self) -> None:
        self._deployment: Deployment | None = None
        self._attempts = itertools.count()

    def prepare(self) -> None:
        """Do nothing: there is no process to start."""

    def deploy(self, deployment: Deployment) -> None:
        """Load a program, pickled and unpickled as for a worker."""
        data = pickle_deployment(deployment)
        if deployment.dependencies is not None:
            activate(deployment.dependencies, deployment.dependencies.read)
        self._deployment = pickle.loads(data)

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        """Run every level, slot by slot."""
        deployment = self._deployment
        assert deployment is not None, "deploy first"
        if deployment.plan.batch:
            return _create_result(self._run_batch(deployment, request))
        slots = deployment.plan.slots
        inboxes: list[list[bytes]] = [[] for _ in range(slots)]
        for level, level_request in enumerate(epoch_level.level_requests(deployment, request)):
            outboxes: list[list[bytes]] = [[] for _ in range(slots)]
            for index in range(slots):
                for target, data in self._attempt(deployment, level, index, inboxes[index], level_request):
                    outboxes[target].append(data)
            inboxes = outboxes
        return _create_result(data for inbox in inboxes for data in inbox)

    def _run_batch(self, deployment: Deployment, request: EpochRequest) -> Iterator[bytes]:
        """Run every level over what the one before it sent, sorted in memory by sort_key."""
        slots = deployment.plan.slots
        inboxes: list[list[tuple[bytes, bytes]]] = [[] for _ in range(slots)]
        for level_request in epoch_level.level_requests(deployment, request):
            outboxes: list[list[tuple[bytes, bytes]]] = [[] for _ in range(slots)]
            for index in range(slots):
                inboxes[index].sort(key=lambda block: block[0])
                for target, sort_key, data in self._attempt_batch(deployment, index, inboxes[index], level_request):
                    outboxes[target].append((sort_key, data))
            inboxes = outboxes
        return (data for inbox in inboxes for _, data in inbox)

    def _attempt(
        self, deployment: Deployment, level: int, index: int, inbox: list[bytes], request: epoch_level.LevelRequest
    ) -> Iterable[tuple[int, bytes]]:
        """Run one attempt of one slot, with its own copy of the request, as in a worker."""
        request_copy = pickle.loads(pickle.dumps(request, 5))
        return epoch_level.run_level(deployment, level, index, inbox, request_copy, f"i{next(self._attempts)}")

    def run_tasks(self, tasks: Sequence[SlotTask]) -> list[Any]:
        """Run tasks one after the other, each pickled and unpickled as for a worker."""
        assert self._deployment is not None, "deploy first"
        copies: list[SlotTask] = [pickle.loads(cloudpickle.dumps(task, 5)) for task in tasks]
        return collect_results([run_task(index, task) for index, task in enumerate(copies)], len(tasks))

    def _attempt_batch(
        self, deployment: Deployment, index: int, inbox: list[tuple[bytes, bytes]], request: epoch_level.LevelRequest
    ) -> Iterable[SortableBlock]:
        """Run one attempt of one slot of a batch job."""
        request_copy = pickle.loads(pickle.dumps(request, 5))
        return run_batch_level(deployment, index, inbox, request_copy, f"i{next(self._attempts)}")

    def slots(self) -> int | None:
        """Return None: there are as many slots as a job needs."""
        return None

    def cancel(self) -> None:
        """Do nothing: the calling thread runs the epoch, so nothing runs when this is called."""

    def abandon(self, reason: str) -> None:
        """Do nothing: there is no other process that could hang."""

    def close(self) -> None:
        """Dispose the program and its tasks."""
        self._deployment = None
        epoch_level.dispose_tasks()
        activate(None, bytes)

    def clean_hosts(self, scratch: str) -> None:
        """Do nothing: there is no other host."""


def _create_result(messages: Iterable[bytes]) -> EpochResult:
    blocks_by_kind = [(blocks.header(data).kind, data) for data in messages]
    return EpochResult(
        tuple(unpack_report(data) for kind, data in blocks_by_kind if kind is BlockKind.REPORT),
        tuple(unpack_failure(data) for kind, data in blocks_by_kind if kind is BlockKind.FAILURE),
    )
