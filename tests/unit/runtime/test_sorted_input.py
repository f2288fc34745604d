"""Sorted runs are merged by key: every record once, by key and time, whatever the runs and blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.runtime import sorted_runs
from millstream.runtime.batch import Batch
from millstream.runtime.block_order import rank_of
from millstream.runtime.keys import KeySelection
from millstream.runtime.partitioners import Hash
from millstream.runtime.sorted_input import SortedEdge, SortedInput, SortedUnit
from millstream.runtime.sorted_runs import SortedRuns
from millstream.state.key_groups import stable_hash
from millstream.types.factory import Types

KEY = KeySelection(Types.STRING(), selector=lambda record: record[0])
ROWS = Types.PICKLED_BYTE_ARRAY()
EDGES = {3: SortedEdge(0, ROWS, KEY), 5: SortedEdge(1, ROWS, KEY)}

channels = st.lists(
    st.tuples(
        st.sampled_from([3, 5]),
        st.booleans(),
        st.lists(st.tuples(st.sampled_from("aaaabcde"), st.integers(0, 2)), max_size=60),
    ),
    max_size=4,
)


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_runs, "_MIN_BLOCK_RECORDS", 8)
        patch.setattr(sorted_runs, "_ROW_BYTES", 1)
        yield


def send_records(edge: int, upstream: int, records: list, times: list | None, run: int) -> list[tuple[bytes, bytes]]:
    """The blocks that one subtask sends for its records, which arrive two at a time, in runs of `run`."""
    out: list[tuple[bytes, bytes]] = []
    runs = SortedRuns(
        Hash(KEY), "test", edge, upstream, 1, 7, run, lambda _, sort_key, data: out.append((sort_key, data))
    )
    for start in range(0, len(records), 2):
        stamps = None if times is None else np.array(times[start : start + 2], dtype=np.int64)
        runs.add(Batch(ROWS, rows=records[start : start + 2], timestamps=stamps))
    runs.flush()
    assert all(rank_of(sort_key) == 7 for sort_key, _ in out)
    return out


def records_of(unit: SortedUnit) -> list[tuple[int, tuple]]:
    return [(side, record) for batch, side in unit.batches_by_input() for record in batch.rows()]


@given(channels, st.integers(1, 30), st.integers(1, 12))
def test_a_unit_has_complete_keys_in_the_order_of_time(channels: list, run: int, unit: int) -> None:
    blocks, given_records = [], []
    for number, (edge, timed, rows) in enumerate(channels):
        records = [(key, time if timed else None, number, at) for at, (key, time) in enumerate(rows)]
        given_records += [(EDGES[edge].side, record) for record in records]
        blocks += send_records(edge, number, records, [time for _, time in rows] if timed else None, run)
    units = list(SortedInput(EDGES, "test", unit).units(sorted(blocks)))
    order = [each for made in units for each in records_of(made)]
    assert sorted(order, key=repr) == sorted(given_records, key=repr), "every record comes once"
    sort_keys = [(stable_hash(r[0]), -1 if r[1] is None else r[1]) for _, r in order]
    assert sort_keys == sorted(sort_keys), "by hash of the key, then time; no time comes first"
    for number in range(len(channels)):
        for sort_key in set(sort_keys):
            mine = [r[3] for (_, r), at in zip(order, sort_keys, strict=True) if r[2] == number and at == sort_key]
            assert mine == sorted(mine), "what is equal stays in the order of its channel"
    open_key = None
    for made in units:
        keys = {record[0] for _, record in records_of(made)}
        assert open_key is None or keys == {open_key}, "a key that has begun is finished first"
        assert made.complete or len(keys) == 1, "only one key comes in parts"
        open_key = None if made.complete else keys.pop()
    assert open_key is None
    finished = [key for made in units if made.complete for key in {record[0] for _, record in records_of(made)}]
    assert len(finished) == len(set(finished)), "a key is finished once"


def test_little_memory_is_used_for_a_key_with_many_records() -> None:
    records = [("hot", at) for at in range(4000)] + [("other", 0)]
    blocks = sorted(send_records(3, 0, records, None, 500))
    seen = SortedInput(EDGES, "test", 64)
    most = 0
    for _ in seen.units(blocks):
        most = max(most, sum(map(len, seen._blocks)))
    assert most <= 400


@pytest.mark.parametrize("time", [None, 5])
def test_parts_of_a_key_stay_in_the_order_of_their_runs(time: int | None) -> None:
    """The second run's block begins with another key, so it arrives before those of the first."""
    low, high = sorted("xy", key=stable_hash)
    records = [(high, at) for at in range(60)] + [(low, 60), (high, 61), (high, 62)]
    blocks = sorted(send_records(3, 0, records, None if time is None else [time] * len(records), 60))
    order = [record for made in SortedInput(EDGES, "test", 4).units(blocks) for _, record in records_of(made)]
    assert order == sorted(records, key=lambda record: (record[0] != low, record[1]))


def test_columns_stay_columns() -> None:
    kind = Types.ROW_NAMED(["k", "v"], [Types.LONG(), Types.LONG()])
    key = KeySelection(Types.LONG(), field="k")
    values = pa.array([1, 2, 1, 2])
    arrays = [values, pa.array([10, 20, 30, 40]), pa.nulls(4, pa.int8())]
    batch = Batch(kind, array=pa.StructArray.from_arrays(arrays, fields=list(kind.arrow_type)))
    out: list[tuple[bytes, bytes]] = []
    runs = SortedRuns(Hash(key), "test", 3, 0, 1, 1, 1 << 20, lambda _, sort_key, data: out.append((sort_key, data)))
    runs.add(batch)
    runs.add(batch)
    runs.flush()
    (unit,) = SortedInput({3: SortedEdge(0, kind, key)}, "test").units(sorted(out))
    assert unit.batch.columnar
    assert [tuple(row) for row in unit.batch.rows() if row[0] == 1] == [(1, 10), (1, 30)] * 2


def test_records_of_a_key_are_combined_before_they_are_sent() -> None:
    out: list[tuple[bytes, bytes]] = []
    runs = SortedRuns(
        Hash(KEY), "test", 3, 0, 1, 1, 1 << 20, lambda _, sort_key, data: out.append((sort_key, data)), _add
    )
    runs.add(Batch(ROWS, rows=[("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5)]))
    runs.flush()
    (unit,) = SortedInput(EDGES, "test").units(sorted(out))
    assert sorted(unit.batch.rows()) == [("a", 8), ("b", 7)]


def _add(one: tuple, other: tuple) -> tuple:
    return one[0], one[1] + other[1]


def test_keys_that_share_a_hash_are_distinguished() -> None:
    hashes = np.full(3, 5, dtype=np.uint64)
    assert sorted_runs.key_starts(hashes, ["a", "b", "a"]) is None
    assert sorted_runs.key_starts(hashes, ["a", "a", "a"]).tolist() == [0]
