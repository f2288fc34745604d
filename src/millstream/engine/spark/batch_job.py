"""A batch job as one Spark job: a stage per level, blocks through Spark's shuffle and its spilling sort.

Promises: Spark sees rows (slot, place, block) and sorts them by place; the last stage gives the reports to the driver.
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
from millstream.engine.relational import feeding
from millstream.engine.spark.broadcasts import ended_with_job
from millstream.engine.spark.catalyst import QuerySession, relational_sources
from millstream.engine.spark.catalyst_feed import blocks_of, fed, is_collected, run_collected
from millstream.engine.spark.stage import Parts, Stage, attempt_name

_COLUMNS = "slot int, place binary, block binary"
_SCHEMA = pa.schema([("slot", pa.int32()), ("place", pa.binary()), ("block", pa.binary())])
_SENT_TOGETHER = 1 << 20  # bytes of blocks in one Arrow batch
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # a slot is a partition: none may be merged or cut
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
}


class BatchLevel(Stage):
    """What Spark calls for each partition of a stage."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run one slot."""
        deployment = self._deployed()
        task = TaskContext.get()
        assert task is not None
        relations = [] if self._level else relational_sources(deployment)
        inbox = _pairs(batches) if self._level else _nothing([] if relations else batches)
        sent = run_batch_level(deployment, task.partitionId(), inbox, self._request(), attempt_name())
        with feeding(fed(_pairs(batches) if relations else (), relations)):
            while gathered := _gathered(sent):
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(column, field.type)
                        for column, field in zip(zip(*gathered, strict=True), _SCHEMA, strict=True)
                    ],
                    schema=_SCHEMA,
                )


def _gathered(sent: Iterator[tuple[int, bytes, bytes]]) -> list[tuple[int, bytes, bytes]]:
    """The next rows, about as many bytes as travel well together."""
    rows: list[tuple[int, bytes, bytes]] = []
    size = 0
    for row in sent:
        rows.append(row)
        size += len(row[2])
        if size >= _SENT_TOGETHER:
            break
    return rows


def _pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes, bytes]]:
    for batch in batches:
        places, blocks = batch.column("place"), batch.column("block")
        yield from zip(map(bytes, _buffers(places)), map(bytes, _buffers(blocks)), strict=True)


def _buffers(column: pa.Array) -> Iterator[pa.Buffer]:
    return (value.as_buffer() for value in column)


def _nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """The seeds of the first stage say nothing, but must be read."""
    return itertools.chain.from_iterable(() for _ in batches)


def batch_job(
    context: SparkContext, parts: Parts, deployment: Deployment, requests: list[Any], now: int
) -> list[bytes]:
    """Run the job; gives the blocks that are for the driver."""
    slots = deployment.plan.slots
    relations = relational_sources(deployment)
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
    sent: list[Broadcast[Any]] = []
    with ended_with_job(sent):
        for level, request in enumerate(requests):
            if level:
                frame = frame.repartitionById(slots, frame.slot).sortWithinPartitions("place")
            stage = BatchLevel(parts, level, request)
            sent += stage.send_apart(context)
            frame = frame.mapInArrow(stage, _COLUMNS)
        return [bytes(row.block) for row in frame.select("block").collect()]
