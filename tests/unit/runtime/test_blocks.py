"""A block is bytes from which the same records come back."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.runtime import block as blocks
from millstream.runtime.batch import Batch
from millstream.runtime.block import BlockKind
from millstream.types.factory import Types
from millstream.types.row import Row, RowKind

ANY = Types.PICKLED_BYTE_ARRAY()
ROW = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])


def pack_and_unpack(batch):
    return blocks.unpack_batch(blocks.pack_batch(3, 2, 1, batch), batch.record_type)


def same(one, other):
    stamps = (None if each.timestamps is None else each.timestamps.tolist() for each in (one, other))
    return one.rows() == other.rows() and one.keys == other.keys and len(set(map(str, stamps))) == 1


@given(
    st.lists(st.tuples(st.integers() | st.text() | st.none(), st.integers(-(2**62), 2**62))),
    st.booleans(),
    st.booleans(),
)
def test_untyped_records_keep_their_keys_and_timestamps(pairs, timed, keyed):
    rows = [value for value, _ in pairs]
    stamps = np.array([time for _, time in pairs], dtype=np.int64) if timed else None
    batch = Batch(ANY, rows=rows, timestamps=stamps, keys=list(rows) if keyed else None)
    assert same(pack_and_unpack(batch), batch)


@given(st.lists(st.tuples(st.text(), st.none() | st.integers(-(2**63), 2**63 - 1))), st.booleans())
def test_typed_records_survive_a_round_trip_through_columns(pairs, timed):
    rows = [Row(k=k, v=v) for k, v in pairs]
    stamps = np.arange(len(rows), dtype=np.int64) if timed else None
    batch = Batch(ROW, array=ROW.to_arrow(rows), timestamps=stamps)
    packed = blocks.pack_batch(0, 0, 0, batch)
    assert blocks.header(packed).kind is BlockKind.COLUMNS
    assert same(blocks.unpack_batch(packed, ROW), batch)
    assert blocks.unpack_batch(packed, ROW).rows() == rows


def test_a_part_of_columns_is_sent_without_the_rest():
    rows = [Row(k="x" * 1000, v=n) for n in range(1000)]
    whole = Batch(ROW, array=ROW.to_arrow(rows), timestamps=np.arange(1000))
    part = whole.slice(10, 12)
    packed = blocks.pack_batch(0, 0, 0, part)
    assert len(packed) < 10_000
    assert blocks.unpack_batch(packed, ROW).rows() == rows[10:12]
    assert blocks.unpack_batch(packed, ROW).times() == [10, 11]


def test_row_kinds_survive_both_forms():
    rows = []
    for kind in RowKind:
        row = Row(k="a", v=1)
        row.set_row_kind(kind)
        rows.append(row)
    for batch in (Batch(ROW, rows=rows), Batch(ROW, array=ROW.to_arrow(rows))):
        assert [row.get_row_kind() for row in pack_and_unpack(batch).rows()] == [row.get_row_kind() for row in rows]


@given(
    st.integers(0, 0xFFFE),
    st.integers(0, 0xFFFF),
    st.integers(0, 2**32 - 1),
    st.none() | st.integers(-(2**63), 2**63 - 1),
)
def test_headers_and_watermarks_survive_a_round_trip(edge, upstream, sequence, mark):
    attempt = blocks.attempt_token(f"0-{sequence}")
    packed = blocks.pack_watermark(edge, upstream, sequence, mark, attempt)
    assert blocks.header(packed) == blocks.Header(BlockKind.WATERMARK, edge, upstream, sequence, attempt)
    assert blocks.unpack_watermark(packed) == mark


PROGRAM = """
import sys, types
from millstream.runtime import block as blocks
from millstream.runtime.batch import Batch
from millstream.types.factory import Types

class Event:  # of the main module, which a worker's main module is not
    def __init__(self, n): self.n = n

kind = Types.PICKLED_BYTE_ARRAY()
main = sys.modules["__main__"]
sys.modules["__main__"] = types.ModuleType("__main__")  # as in a worker: it got the class by value
data = blocks.pack_batch(0, 0, 0, Batch(kind, rows=[Event(1), Event(2)], keys=["a", "b"]))
sys.stdout.buffer.write(data)
"""


@pytest.mark.parametrize("indirect", [False, True])
def test_instances_of_classes_of_the_main_module_reach_a_process_that_has_another(indirect):
    source = PROGRAM.replace("rows=[Event(1), Event(2)]", "rows=[[Event(1)], {'x': Event(2)}]") if indirect else PROGRAM
    data = subprocess.run([sys.executable, "-c", source], stdout=subprocess.PIPE, check=True).stdout
    first, second = blocks.unpack_batch(data, ANY).rows()
    if indirect:
        (first,), second = first, second["x"]
    assert (first.n, second.n) == (1, 2)
    assert type(first) is type(second)
