"""Feedback of an iteration: batches that a tail keeps as chunks of its state, and that the head of the slot reads.

Promises: a head reads exactly the chunks of the state version it was given. If this process wrote that version, they
are taken from memory, otherwise from the state files of the tail.
Does not know: rounds, epochs, when feedback is read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import OperatorContext
from millstream.state.backend import OperatorState
from millstream.state.deltas import Redistribution
from millstream.state.handles import Lineage
from millstream.state.table import StateTable
from millstream.types.arrow_streams import write_stream_bytes
from millstream.types.factory import TypeInformation, Types

_MOST_RECENT = 64
_recent: dict[tuple[str, str, int], tuple[str, list[bytes]]] = {}  # by job, tail and subtask: version and chunks


def feedback_table(state: OperatorState) -> StateTable:
    """Return the table of chunks; after a change of parallelism they are distributed over the new subtasks."""
    return state.table("feedback", Types.PICKLED_BYTE_ARRAY(), Redistribution.SPLIT, key_type=Types.STRING())


def chunk_key(index: int) -> str:
    """Return the key of a chunk; keys sort by index."""
    return f"{index:08d}"


def pack_chunk(batch: Batch) -> bytes:
    """Return a batch as bytes, in a form that is safe to store."""
    arrays, names = [batch.array()], ["value"]
    if batch.timestamps is not None:
        arrays.append(pa.array(batch.timestamps))
        names.append("timestamp")
    return write_stream_bytes(pa.RecordBatch.from_arrays(arrays, names=names))


def unpack_chunk(data: bytes | memoryview, record_type: TypeInformation) -> Batch:
    """Return the inverse of `pack_chunk`."""
    batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
    times = batch.column("timestamp").to_numpy() if batch.num_columns > 1 else None
    return Batch(record_type, array=batch.column("value"), timestamps=times)


def keep_recent(job: str, tail: str, subtask: int, version: str, chunks: list[bytes]) -> None:
    """Remember the chunks of a version, in place of those of an earlier one."""
    _recent.pop((job, tail, subtask), None)
    _recent[job, tail, subtask] = (version, chunks)
    while len(_recent) > _MOST_RECENT:
        del _recent[next(iter(_recent))]


def forget_recent(job: str, tail: str, subtask: int) -> None:
    """Forget the chunks of a tail."""
    _recent.pop((job, tail, subtask), None)


def version_name(operator: str, subtask: int, epoch: int, attempt: str) -> str:
    """Return the name of the state file that an attempt writes."""
    return f"{operator}-{subtask}-{epoch}-{attempt}"


class FeedbackReader:
    """Reads the feedback of one subtask."""

    def __init__(self, context: OperatorContext, tail: str) -> None:
        self._context, self._tail = context, tail
        self._state: OperatorState | None = None

    def read(self, lineage: Lineage) -> Iterator[bytes]:
        """Iterate over the chunks of a version, in order."""
        context = self._context
        version, chunks = _recent.get((context.job, self._tail, context.subtask), ("", []))
        if lineage.own and lineage.version.rpartition("/")[2] == version:
            self._state = None
            yield from chunks
            return
        if self._state is None:
            own = context.state
            self._state = OperatorState(own.key_range, context.subtask, context.parallelism, own.grouper)
        table = feedback_table(self._state)
        assert context.files is not None
        self._state.advance(lineage, context.files.read)
        for _, data in sorted(table.scan(None)):
            yield data
