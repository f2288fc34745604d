"""Hashes of keys of several columns equal the hashes of tuples."""

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
    lambda data_types: st.lists(
        st.tuples(*(st.none() | COLUMNS[data_type] for data_type in data_types)), min_size=1
    ).map(
        lambda rows: [
            pa.array(values, data_type) for values, data_type in zip(zip(*rows, strict=True), data_types, strict=True)
        ]
    )
)


@given(KEYS)
def test_hashes_of_columns_equal_those_of_tuples(columns: list[pa.Array]) -> None:
    hashes = hash_tuples(columns)
    expected = [stable_hash(key) for key in zip(*map(to_python_values, columns), strict=True)]
    assert hashes is None or np.array_equal(hashes, np.array(expected, dtype=np.uint64))
    short = all(column.type != pa.string() for column in columns)
    assert hashes is not None or not short


@given(KEYS, st.integers(4, 40), st.booleans())
def test_repeated_keys_have_the_same_hashes(columns: list[pa.Array], times: int, runs: bool) -> None:
    rows = np.arange(len(columns[0]))
    repeated = np.repeat(rows, times) if runs else np.tile(rows, times)
    hashes = hash_tuples([column.take(pa.array(repeated)) for column in columns])
    expected = [stable_hash(key) for key in zip(*map(to_python_values, columns), strict=True)]
    assert hashes is None or np.array_equal(hashes, np.array(expected, dtype=np.uint64)[repeated])


@pytest.mark.parametrize("column", [pa.array([1.5]), pa.array(["x" * 60]), pa.array([0], pa.timestamp("ns"))])
def test_columns_of_other_types_have_no_vectorized_hashes(column: pa.Array) -> None:
    rows = pa.array([0] * 40)
    assert hash_tuples([pa.array(range(40)), column.take(rows)]) is None
