"""Sends rows of relations to the slots of a batch job.

Promises: each row reaches one slot of its source; the rows that one partition sends to one slot keep their order. A
program that only collects the rows of one relation runs in the driver, where they are collected anyway.
Does not know: what a program does with the rows."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import SparkContext, TaskContext

from millstream.engine.batch_level import run_batch_level
from millstream.engine.contract import Deployment
from millstream.engine.epoch_level import LevelRequest
from millstream.engine.relational import Batches, RelationalSource, feed_readers
from millstream.engine.spark.catalyst import QuerySession, find_relational_sources, open_query_session
from millstream.engine.spark.compatibility import collect_batches, partition_by_slot

_SORT_KEY = struct.Struct(">HIQ")  # vertex, partition, sequence
_COLUMNS = "slot int, sort_key binary, block binary"
Relations = Sequence[tuple[int, RelationalSource, int]]


class _BlockPacker:
    """Packs the batches of a partition as blocks for slots."""

    def __init__(self, vertex: int, parallelism: int) -> None:
        self._vertex, self._parallelism = vertex, parallelism

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        partition = 0 if task is None else task.partitionId()
        for sequence, batch in enumerate(batches):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            slot = (partition + sequence) % self._parallelism
            sort_key = _SORT_KEY.pack(self._vertex, partition, sequence)
            yield pa.RecordBatch.from_arrays(
                [pa.array([slot], pa.int32()), pa.array([sort_key]), pa.array([sink.getvalue().to_pybytes()])],
                names=["slot", "sort_key", "block"],
            )


def blocks_of(session: QuerySession, relations: Relations, now: int, slots: int) -> Any:
    """Return all relations as one DataFrame of blocks, with a partition for each slot."""
    all_blocks: Any = None
    for vertex, source, parallelism in relations:
        frame = session.frame_of(source, now).mapInArrow(_BlockPacker(vertex, parallelism), _COLUMNS)
        all_blocks = frame if all_blocks is None else all_blocks.unionAll(frame)
    return partition_by_slot(all_blocks, slots).sortWithinPartitions("sort_key")


def read_feed_of_slot(pairs: Iterable[tuple[bytes, bytes]], relations: Relations) -> dict[str, Batches]:
    """Return what the readers of a slot read, by source; from the slot's sorted pairs (sort key, block)."""
    slot_input = _SlotInput(pairs)
    return {source.name: slot_input.batches_of(vertex) for vertex, source, _ in relations}


class _SlotInput:
    """The blocks of a slot, sorted by vertex: vertices run in this order."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._pairs = iter(pairs)
        self._head = next(self._pairs, None)

    def batches_of(self, vertex: int) -> Batches:
        """Yield the batches of one vertex."""
        while self._head is not None and _SORT_KEY.unpack(self._head[0])[0] <= vertex:
            target, data = _SORT_KEY.unpack(self._head[0])[0], self._head[1]
            self._head = next(self._pairs, None)
            if target == vertex:
                yield from pa.ipc.open_stream(data)


def is_collected(deployment: Deployment) -> bool:
    """Whether the program only collects the rows of one relation in the driver."""
    vertices = deployment.plan.vertices
    if len(vertices) != 1 or vertices[0].task.parallelism != 1:
        return False
    sinks = [getattr(node.spec, "sink", None) for node in vertices[0].task.operators[1:]]
    return len(sinks) == 1 and getattr(sinks[0], "driver_only", False)


def run_collected(
    context: SparkContext, deployment: Deployment, requests: Sequence[LevelRequest], now: int
) -> list[bytes]:
    """Run a program that only collects, and return the blocks for the driver."""
    ((_, source, _),) = find_relational_sources(deployment)
    with open_query_session(context) as session:
        batches = collect_batches(session.frame_of(source, now))
    with feed_readers({source.name: iter(batches)}):
        return [data for _, _, data in run_batch_level(deployment, 0, (), requests[0], "driver")]
