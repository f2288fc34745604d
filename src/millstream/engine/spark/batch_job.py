"""A batch job as one Spark job: a stage per level, blocks through Spark's shuffle and its spilling sort.

Promises: Spark sees rows (slot, sort_key, block) and sorts them by sort key; the last stage sends the reports
to the driver.
Does not know: what is inside a block or a program."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import Broadcast, SparkContext, TaskContext
from pyspark.sql import SparkSession

from millstream.engine.batch_level import run_batch_level
from millstream.engine.contract import Deployment
from millstream.engine.relational import feed_readers
from millstream.engine.spark.broadcasts import release_after_job
from millstream.engine.spark.catalyst import QuerySession, find_relational_sources
from millstream.engine.spark.catalyst_feed import blocks_of, is_collected, read_feed_of_slot, run_collected
from millstream.engine.spark.compatibility import partition_by_slot
from millstream.engine.spark.level_command import DeployedProgram, LevelCommand, attempt_name

_COLUMNS = "slot int, sort_key binary, block binary"
_SCHEMA = pa.schema([("slot", pa.int32()), ("sort_key", pa.binary()), ("block", pa.binary())])
_BATCH_BYTES = 1 << 20  # of blocks in one Arrow batch
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # a slot is a partition: partitions must not be merged or split
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
}


class BatchLevelCommand(LevelCommand):
    """Runs one slot of a level: the one with the index of the partition."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run one slot."""
        deployment = self._load_deployment()
        task = TaskContext.get()
        assert task is not None
        relations = [] if self._level else find_relational_sources(deployment)
        inbox = _create_pairs(batches) if self._level else _read_empty([] if relations else batches)
        outgoing_blocks = run_batch_level(deployment, task.partitionId(), inbox, self._request(), attempt_name())
        with feed_readers(read_feed_of_slot(_create_pairs(batches) if relations else (), relations)):
            while rows := _take_rows(outgoing_blocks):
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(column, field.type)
                        for column, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
                    ],
                    schema=_SCHEMA,
                )


def _take_rows(outgoing_blocks: Iterator[tuple[int, bytes, bytes]]) -> list[tuple[int, bytes, bytes]]:
    """Return the next rows, of about `_BATCH_BYTES` together."""
    rows: list[tuple[int, bytes, bytes]] = []
    size = 0
    for row in outgoing_blocks:
        rows.append(row)
        size += len(row[2])
        if size >= _BATCH_BYTES:
            break
    return rows


def _create_pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes, bytes]]:
    for batch in batches:
        sort_keys, blocks = batch.column("sort_key"), batch.column("block")
        yield from zip(map(bytes, _iterate_buffers(sort_keys)), map(bytes, _iterate_buffers(blocks)), strict=True)


def _iterate_buffers(column: pa.Array) -> Iterator[pa.Buffer]:
    return (value.as_buffer() for value in column)


def _read_empty(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """Read the input of the first stage, which is empty rows."""
    return itertools.chain.from_iterable(() for _ in batches)


def run_batch_job(
    context: SparkContext, program: DeployedProgram, deployment: Deployment, requests: list[Any], now: int
) -> list[bytes]:
    """Run the job and return the blocks for the driver."""
    slots = deployment.plan.slots
    relations = find_relational_sources(deployment)
    if relations and is_collected(deployment):
        return run_collected(context, deployment, requests, now)
    frame: Any
    if relations:
        frame = blocks_of(QuerySession(context), relations, now, slots)
    else:
        session = SparkSession(context).newSession()
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        frame = session.range(0, slots, 1, slots)
    broadcasts: list[Broadcast[Any]] = []
    with release_after_job(broadcasts):
        for level, request in enumerate(requests):
            if level:
                frame = partition_by_slot(frame, slots).sortWithinPartitions("sort_key")
            command = BatchLevelCommand(program, level, request)
            broadcasts += command.broadcast_if_large(context)
            frame = frame.mapInArrow(command, _COLUMNS)
        return [bytes(row.block) for row in frame.select("block").collect()]
