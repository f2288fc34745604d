"""One slot of one level: every vertex's subtask of that number, blocks in, blocks out.

Promises: a block whose exchange goes to a higher level is passed on unread, and so are reports and failures; after a
failure nothing is processed. Tasks live on in this process between epochs, and are rebuilt when they are not there.
Does not know: who moves the blocks."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterable, Iterator
from pathlib import Path

from millstream.engine import scratch
from millstream.engine.contract import Deployment, EpochRequest
from millstream.engine.dependencies import at_work, cached_files
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
_recent: list[str] = []  # deployments, newest last
_classes: dict[str, codec.Classes] = {}  # what each of them may decode
_KEPT = 4  # deployments whose tasks stay in a process


def run_level(
    deployment: Deployment, level: int, slot: int, inbox: Iterable[bytes], request: LevelRequest, attempt: str
) -> Iterator[tuple[int, bytes]]:
    """Run slot `slot` of `level`; yields (target slot, block) for the next level, or reports at the last one."""
    mine: dict[int, list[bytes]] = {}
    failed = False
    levels = deployment.plan.edge_levels
    passing: list[tuple[int, bytes]] = []
    for data in inbox:
        header = blocks.header(data)
        if header.kind in (BlockKind.REPORT, BlockKind.FAILURE):
            failed = failed or header.kind is BlockKind.FAILURE
            passing.append((slot, data))
        elif levels[header.edge] == level:
            mine.setdefault(header.edge, []).append(data)
        else:
            passing.append((slot, data))
    yield from passing
    if failed:
        return
    if deployment.uses_scratch:
        scratch.use(deployment.scratch)
    with without_cycle_collection(), at_work(deployment.dependencies), codec.using(classes_of(deployment)):
        for vertex, asked in request.get(slot, ()):
            task = task_of(deployment, vertex, slot)
            arrived = [data for edge in task.spec.inputs for data in mine.get(edge.edge, ())]
            yield from task.run(dataclasses.replace(asked, attempt=f"{asked.attempt}-{attempt}"), arrived)


@contextlib.contextmanager
def without_cycle_collection() -> Iterator[None]:
    """Records are made by the hundred thousand and die by reference count; looking for cycles among them cost half the
    time of a keyed function. What cycles user code makes are collected between epochs."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def task_of(deployment: Deployment, vertex: str, subtask: int) -> Task:
    """The subtask as it lives in this process."""
    key = (deployment.id, vertex, subtask)
    found = _tasks.get(key)
    if found is None:
        spec = Original(_spec(deployment, vertex))
        found = _tasks[key] = Task(spec.copy(), subtask, environment_of(deployment), spec.copy)
    return found


def classes_of(deployment: Deployment) -> codec.Classes:
    """The classes that a deployment's tasks may encode and decode; those of other jobs are not among them."""
    if deployment.id not in _recent:
        _make_room(deployment.id)
    if deployment.id not in _classes:
        _classes[deployment.id] = codec.Classes(deployment.classes)
    return _classes[deployment.id]


def own_spec(deployment: Deployment, vertex: str) -> TaskSpec:
    """A vertex, copied: subtasks that meet in one process must not share function objects."""
    return Original(_spec(deployment, vertex)).copy()


def _spec(deployment: Deployment, vertex: str) -> TaskSpec:
    return next(planned.task for planned in deployment.plan.vertices if planned.vertex.id == vertex)


def environment_of(deployment: Deployment) -> TaskEnvironment:
    """What this worker offers to tasks."""
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
        run_bytes=deployment.run_bytes,
    )


def _make_room(deployment: str) -> None:
    """A new deployment arrives: those of its job before it, and the oldest of others, are let go."""
    job = deployment.split("/")[0]
    kept = [each for each in _recent if each.split("/")[0] != job][-_KEPT + 1 :]
    _recent[:] = [*kept, deployment]
    for key in [key for key in _tasks if key[0] not in _recent]:
        _tasks.pop(key).close()
    for name in [name for name in _classes if name not in _recent]:
        del _classes[name]


def forget() -> None:
    """Let go of all tasks."""
    _recent.clear()
    _classes.clear()
    while _tasks:
        _tasks.popitem()[1].close()
    scratch.release_all()


def _store(deployment: Deployment, operator: str, subtask: int) -> OpenStore:
    if deployment.backend == "hashmap":
        return lambda: None
    return lambda: LmdbStore(Path(deployment.local) / deployment.id.split("/")[0] / f"{operator}-{subtask}")


def level_requests(deployment: Deployment, request: EpochRequest) -> list[LevelRequest]:
    """An epoch's request cut by level and slot."""
    made: list[LevelRequest] = [{} for _ in range(deployment.plan.levels)]
    for planned in deployment.plan.vertices:
        operators = tuple(node.id for node in planned.task.operators)
        for subtask in range(planned.task.parallelism):
            asked = request.of(planned.task.vertex, operators, subtask)
            made[planned.level].setdefault(subtask, []).append((planned.task.vertex, asked))
    return made
