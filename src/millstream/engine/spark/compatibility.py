"""What differs between the APIs of the Spark versions that are supported.

Promises: a difference is found by looking for the method, never by comparing versions. What an older Spark does not
have is replaced by other parts of PySpark's public API, with the same rows in the same order.
Does not know: which version runs; jobs, sessions, what is in the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

_MASK = (1 << 32) - 1
_SEED = 42  # of Spark's hash partitioning
_PARTITION_KEY = "partition_key"


def has_arrow_tables() -> bool:
    """Whether DataFrames are created from and collected as tables of Arrow: since Spark 4.0."""
    return hasattr(DataFrame, "toArrow")


def create_frame(session: Any, table: pa.Table, columns: str) -> Any:
    """Return the rows of a table as a DataFrame; `columns` is its schema in Spark's DDL."""
    if has_arrow_tables():
        return session.createDataFrame(table)
    return session.range(0, 1, 1, 1).mapInArrow(_TableReader(_pack(table.schema, table.to_batches())), columns)


def collect_batches(frame: Any) -> list[pa.RecordBatch]:
    """Run the query of a DataFrame and return its rows, in their order."""
    if has_arrow_tables():
        batches: list[pa.RecordBatch] = frame.toArrow().to_batches()
        return batches
    packed = frame.mapInArrow(_pack_batches, "block binary").collect()
    return [batch for row in packed for batch in pa.ipc.open_stream(row.block)]


def partition_by_slot(frame: Any, slots: int) -> Any:
    """Partition the rows by their column `slot`: partition N has the rows of slot N.

    Before Spark 4.1 rows can be partitioned by a hash only. So each slot gets a key whose hash is the slot."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(slots, frame.slot)
    keys = ", ".join(map(str, choose_slot_keys(slots)))
    keyed = frame.selectExpr("*", f"element_at(array({keys}), slot + 1) AS {_PARTITION_KEY}")
    return keyed.repartition(slots, _PARTITION_KEY).drop(_PARTITION_KEY)


def choose_slot_keys(slots: int) -> list[int]:
    """Return an integer for each slot that Spark's hash partitioning sends to the partition with its index."""
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < slots:
        keys.setdefault(spark_hash(key) % slots, key)
        key += 1
    return [keys[slot] for slot in range(slots)]


def spark_hash(value: int) -> int:
    """Return Spark's hash of an INT, as its function `hash` computes it: Murmur3 with 32 bits."""
    mixed = value * 0xCC9E2D51 & _MASK
    mixed = _rotate(mixed, 15) * 0x1B873593 & _MASK
    state = _rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64 & _MASK
    state ^= 4  # the number of bytes
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


class _TableReader:
    """Returns the batches of a table in place of its input, which is one row."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from pa.ipc.open_stream(self._packed)


def _pack_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([_pack(batch.schema, [batch])], pa.binary())], names=["block"])


def _pack(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
