"""Keys of several columns have the hashes of the tuples they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.sql.operators.key_tuples import hash_tuples
from millstream.state.key_groups import stable_hash
from millstream.types.arrow_types import to_python_values

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
MOMENTS = st.integers(-(10**13), 10**13)
COLUMNS: dict[Any, st.SearchStrategy[Any]] = {
    pa.int64(): WHOLE,
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.string(): st.text(max_size=6),
    pa.timestamp("ms"): MOMENTS,
    pa.timestamp("us", "UTC"): MOMENTS,
    pa.date32(): st.integers(-30_000, 30_000),
}
KEYS = st.lists(st.sampled_from(list(COLUMNS)), min_size=2, max_size=3).flatmap(
    lambda kinds: st.lists(st.tuples(*(st.none() | COLUMNS[kind] for kind in kinds)), min_size=1).map(
        lambda rows: [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    )
)


@given(KEYS)
def test_hashes_of_columns_are_those_of_tuples(columns: list[pa.Array]) -> None:
    found = hash_tuples(columns)
    expected = [stable_hash(key) for key in zip(*map(to_python_values, columns), strict=True)]
    assert found is None or np.array_equal(found, np.array(expected, dtype=np.uint64))
    short = all(column.type != pa.string() for column in columns)
    assert found is not None or not short


@given(KEYS, st.integers(4, 40), st.booleans())
def test_keys_that_come_again_and_again_have_the_same_hashes(columns: list[pa.Array], times: int, runs: bool) -> None:
    rows = np.arange(len(columns[0]))
    again = np.repeat(rows, times) if runs else np.tile(rows, times)
    found = hash_tuples([column.take(pa.array(again)) for column in columns])
    expected = [stable_hash(key) for key in zip(*map(to_python_values, columns), strict=True)]
    assert found is None or np.array_equal(found, np.array(expected, dtype=np.uint64)[again])


@pytest.mark.parametrize("column", [pa.array([1.5]), pa.array(["x" * 60]), pa.array([0], pa.timestamp("ns"))])
def test_other_columns_are_left_to_others(column: pa.Array) -> None:
    rows = pa.array([0] * 40)
    assert hash_tuples([pa.array(range(40)), column.take(rows)]) is None
