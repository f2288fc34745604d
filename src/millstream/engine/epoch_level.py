"""Runs one slot of one level of an epoch: the subtask with the slot's index of every vertex of the level.

Promises: blocks for higher levels, reports and failures are forwarded unread; after a failure nothing is processed.
Tasks are kept in this process between epochs, and are built again when they are not there.
Does not know: how blocks move between slots."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterable, Iterator
from pathlib import Path

from millstream.engine import scratch
from millstream.engine.contract import Deployment, EpochRequest
from millstream.engine.dependencies import cached_files, in_working_directory
from millstream.engine.fresh_copy import Original
from millstream.files.access import set_file_access
from millstream.runtime import block as blocks
from millstream.runtime.block import BlockKind
from millstream.runtime.task import Task, TaskEnvironment, TaskRequest, TaskSpec
from millstream.serialization import codec
from millstream.state.lmdb import LmdbStore
from millstream.state.store import OpenStore

LevelRequest = dict[int, list[tuple[str, TaskRequest]]]

_tasks: dict[tuple[str, str, int], Task] = {}
_recent: list[str] = []  # ids of deployments, newest last
_classes: dict[str, codec.Classes] = {}  # that each deployment may decode
_MAX_DEPLOYMENTS = 4  # deployments whose tasks are kept in this process


def run_level(
    deployment: Deployment, level: int, slot: int, inbox: Iterable[bytes], request: LevelRequest, attempt: str
) -> Iterator[tuple[int, bytes]]:
    """Run slot `slot` of `level`; yields (target slot, block) for the next level, or reports at the last level."""
    by_edge: dict[int, list[bytes]] = {}
    failed = False
    levels = deployment.plan.edge_levels
    forwarded: list[tuple[int, bytes]] = []
    for data in inbox:
        header = blocks.header(data)
        if header.kind in (BlockKind.REPORT, BlockKind.FAILURE):
            failed = failed or header.kind is BlockKind.FAILURE
            forwarded.append((slot, data))
        elif levels[header.edge] == level:
            by_edge.setdefault(header.edge, []).append(data)
        else:
            forwarded.append((slot, data))
    yield from forwarded
    if failed:
        return
    if deployment.uses_scratch:
        scratch.use(deployment.scratch)
    with without_cycle_collection(), in_working_directory(deployment.dependencies), codec.using(classes_of(deployment)):
        for vertex, task_request in request.get(slot, ()):
            task = task_of(deployment, vertex, slot)
            task_inbox = [data for edge in task.spec.inputs for data in by_edge.get(edge.edge, ())]
            attempt_request = dataclasses.replace(task_request, attempt=f"{task_request.attempt}-{attempt}")
            yield from task.run(attempt_request, task_inbox)


@contextlib.contextmanager
def without_cycle_collection() -> Iterator[None]:
    """Disable the cyclic garbage collector. Records and reports are freed by their reference counts; searching them for
    cycles took half the time of a keyed function, and half of the driver's time for an epoch of a thousand slots.
    Cycles of user code are collected between epochs."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def task_of(deployment: Deployment, vertex: str, subtask: int) -> Task:
    """Return a subtask of this process; it is built if it is not there."""
    key = (deployment.id, vertex, subtask)
    task = _tasks.get(key)
    if task is None:
        spec = Original(_spec(deployment, vertex))
        task = _tasks[key] = Task(spec.copy(), subtask, environment_of(deployment), spec.copy)
    return task


def classes_of(deployment: Deployment) -> codec.Classes:
    """Return the classes that the tasks of a deployment may encode and decode."""
    if deployment.id not in _recent:
        _evict_for(deployment.id)
    if deployment.id not in _classes:
        _classes[deployment.id] = codec.Classes(deployment.classes)
    return _classes[deployment.id]


def copy_spec(deployment: Deployment, vertex: str) -> TaskSpec:
    """Return a copy of a vertex: subtasks in one process must not share function objects."""
    return Original(_spec(deployment, vertex)).copy()


def _spec(deployment: Deployment, vertex: str) -> TaskSpec:
    return next(planned.task for planned in deployment.plan.vertices if planned.vertex.id == vertex)


def environment_of(deployment: Deployment) -> TaskEnvironment:
    """Return the environment of tasks in this worker."""
    set_file_access(deployment.file_access)
    return TaskEnvironment(
        files=deployment.files,
        open_store=lambda operator, at: _store(deployment, operator, at),
        job=deployment.id.split("/")[0],
        storage=deployment.storage,
        parameters=deployment.parameters,
        block_records=deployment.block_records,
        cache_limit=deployment.cache_limit,
        cached_files=cached_files(deployment.dependencies),
        compressed_state=deployment.compressed_state,
        batch=deployment.plan.batch,
        object_reuse=deployment.object_reuse,
        run_bytes=deployment.run_bytes,
    )


def _evict_for(deployment: str) -> None:
    """Dispose of earlier deployments of the same job, and of the oldest of others, before a new one."""
    job = deployment.split("/")[0]
    kept_deployments = [other for other in _recent if other.split("/")[0] != job][-_MAX_DEPLOYMENTS + 1 :]
    _recent[:] = [*kept_deployments, deployment]
    for key in [key for key in _tasks if key[0] not in _recent]:
        _tasks.pop(key).close()
    for name in [name for name in _classes if name not in _recent]:
        del _classes[name]


def dispose_tasks() -> None:
    """Dispose of all tasks of this process."""
    _recent.clear()
    _classes.clear()
    while _tasks:
        _tasks.popitem()[1].close()
    scratch.release_all()


def _store(deployment: Deployment, operator: str, subtask: int) -> OpenStore | None:
    if deployment.backend == "hashmap":
        return None
    return lambda: LmdbStore(Path(deployment.local) / deployment.id.split("/")[0] / f"{operator}-{subtask}")


@without_cycle_collection()
def level_requests(deployment: Deployment, request: EpochRequest) -> list[LevelRequest]:
    """Split the request of an epoch by level and slot."""
    requests: list[LevelRequest] = [{} for _ in range(deployment.plan.levels)]
    sent = request.sent_watermarks(deployment.plan)
    for planned in deployment.plan.vertices:
        for subtask in range(planned.task.parallelism):
            task_request = request.task_request(planned.task, subtask, sent)
            requests[planned.level].setdefault(subtask, []).append((planned.task.vertex, task_request))
    return requests
