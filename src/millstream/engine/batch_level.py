"""Runs one slot of one level of a batch job: one vertex after the other, each on its sorted blocks.

Promises: a vertex reads its blocks one by one and holds few of them. Blocks for higher levels, reports and failures are
forwarded unread; after a failure nothing is processed.
Does not know: who sorts and moves the blocks."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterable, Iterator
from itertools import groupby

from millstream.engine.contract import Deployment
from millstream.engine.dependencies import in_working_directory
from millstream.engine.epoch_level import LevelRequest, classes_of, copy_spec, environment_of, without_cycle_collection
from millstream.runtime import block as blocks
from millstream.runtime.batch_task import BatchTask, SortableBlock
from millstream.runtime.block import BlockKind
from millstream.runtime.block_order import rank_of
from millstream.runtime.task import TaskRequest
from millstream.serialization import codec

_BLOCKS_BETWEEN_COLLECTIONS = 1 << 14


def run_batch_level(
    deployment: Deployment,
    slot: int,
    inbox: Iterable[tuple[bytes, bytes]],
    request: LevelRequest,
    attempt: str,
) -> Iterator[SortableBlock]:
    """Run a slot over (sort key, block) in the order of sort keys; yields blocks with their targets and sort keys."""
    ranks = {vertex.id: rank for rank, vertex in enumerate(deployment.plan.job.vertices, start=1)}
    waiting = {ranks[vertex]: (vertex, task_request) for vertex, task_request in request.get(slot, ())}
    failed = False
    with without_cycle_collection(), in_working_directory(deployment.dependencies), codec.using(classes_of(deployment)):
        for rank, blocks_of_vertex in groupby(inbox, key=_rank):
            if rank not in waiting:
                for sort_key, data in blocks_of_vertex:
                    failed = failed or (rank == 0 and blocks.header(data).kind is BlockKind.FAILURE)
                    yield slot, sort_key, data
            elif not failed:
                yield from _run(deployment, slot, *waiting.pop(rank), attempt, blocks_of_vertex)
        for vertex, task_request in () if failed else waiting.values():  # vertices without input
            yield from _run(deployment, slot, vertex, task_request, attempt, iter(()))


def _run(
    deployment: Deployment,
    slot: int,
    vertex: str,
    request: TaskRequest,
    attempt: str,
    inbox: Iterator[tuple[bytes, bytes]],
) -> Iterator[SortableBlock]:
    ranks = dict(enumerate(deployment.plan.edge_ranks))
    task = BatchTask(copy_spec(deployment, vertex), slot, environment_of(deployment), ranks)
    try:
        outgoing_blocks = task.run_all(dataclasses.replace(request, attempt=f"{request.attempt}-{attempt}"), inbox)
        for number, block in enumerate(outgoing_blocks, start=1):
            yield block
            if number % _BLOCKS_BETWEEN_COLLECTIONS == 0:
                gc.collect()
    finally:
        task.close()


def _rank(pair: tuple[bytes, bytes]) -> int:
    return rank_of(pair[0])
