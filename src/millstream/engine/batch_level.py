"""One slot of one level of a batch job: blocks in the order of their places, one vertex after the other.

Promises: a vertex reads its blocks as they come and holds no more of them than it must; blocks for higher levels,
reports and failures are passed on unread; after a failure nothing is processed.
Does not know: who sorts and moves the blocks."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterable, Iterator
from itertools import groupby

from millstream.engine.contract import Deployment
from millstream.engine.dependencies import at_work
from millstream.engine.slot import LevelRequest, classes_of, environment_of, own_spec, without_cycle_collection
from millstream.runtime import block as blocks
from millstream.runtime.batch_task import BatchTask, Placed
from millstream.runtime.block import BlockKind
from millstream.runtime.places import rank_of
from millstream.runtime.task import TaskRequest
from millstream.serialization import codec

_BLOCKS_BETWEEN_COLLECTIONS = 1 << 14


def run_batch_level(
    deployment: Deployment,
    slot: int,
    inbox: Iterable[tuple[bytes, bytes]],
    request: LevelRequest,
    attempt: str,
) -> Iterator[Placed]:
    """Run a slot over (place, block) in the order of places; yields blocks with targets and places of their own."""
    ranks = {vertex.id: rank for rank, vertex in enumerate(deployment.plan.job.vertices, start=1)}
    waiting = {ranks[vertex]: (vertex, asked) for vertex, asked in request.get(slot, ())}
    failed = False
    with without_cycle_collection(), at_work(deployment.dependencies), codec.using(classes_of(deployment)):
        for rank, pieces in groupby(inbox, key=_rank):
            if rank not in waiting:
                for place, data in pieces:
                    failed = failed or (rank == 0 and blocks.header(data).kind is BlockKind.FAILURE)
                    yield slot, place, data
            elif not failed:
                yield from _run(deployment, slot, *waiting.pop(rank), attempt, pieces)
        for vertex, asked in () if failed else waiting.values():  # no record came for these
            yield from _run(deployment, slot, vertex, asked, attempt, iter(()))


def _run(
    deployment: Deployment,
    slot: int,
    vertex: str,
    asked: TaskRequest,
    attempt: str,
    arrived: Iterator[tuple[bytes, bytes]],
) -> Iterator[Placed]:
    ranks = dict(enumerate(deployment.plan.edge_ranks))
    task = BatchTask(own_spec(deployment, vertex), slot, environment_of(deployment), ranks)
    try:
        sent = task.run_all(dataclasses.replace(asked, attempt=f"{asked.attempt}-{attempt}"), arrived)
        for number, placed in enumerate(sent, start=1):
            yield placed
            if number % _BLOCKS_BETWEEN_COLLECTIONS == 0:
                gc.collect()
    finally:
        task.close()


def _rank(piece: tuple[bytes, bytes]) -> int:
    return rank_of(piece[0])
