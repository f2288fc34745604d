"""Samples of keys: evenly taken, bounded, and at most one a second."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millstream.common import Types
from millstream.runtime.batch import Batch
from millstream.runtime.hot_keys import KeySampler
from millstream.runtime.keys import KeySelection

BY_FIRST = KeySelection(Types.STRING(), selector=lambda record: record[0])


def batch(count: int, hot: int) -> Batch:
    """Records of which every `hot`th has the same key."""
    rows = [("hot" if n % hot == 0 else f"key {n}", n) for n in range(count)]
    return Batch(Types.TUPLE([Types.STRING(), Types.LONG()]), rows=rows)


def test_the_share_of_a_key_is_that_of_the_records() -> None:
    sampler = KeySampler("sums")
    sampler.begin(5_000)
    sampler.add(batch(10_000, hot=3), BY_FIRST)
    sampler.add(batch(10_000, hot=1), BY_FIRST)
    count, frequent = sampler.take() or (0, [])
    assert count == 256
    ((key, times),) = frequent
    assert key == "hot"
    assert times / count == pytest.approx(1 / 3, abs=0.1)
    assert sampler.take() is None


def test_a_second_passes_between_two_samples() -> None:
    sampler = KeySampler("sums")
    taken = []
    for now in (1_000, 1_500, 1_999, 2_000, 2_001):
        sampler.begin(now)
        sampler.add(batch(4, hot=2), BY_FIRST)
        taken.append(sampler.take())
    assert taken == [(4, [("hot", 2)]), None, None, (4, [("hot", 2)]), None]


def test_small_batches_fill_one_sample_and_columns_have_keys_too() -> None:
    row = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.LONG()])
    array = pa.array([{"name": "a", "n": 1}, {"name": "b", "n": 2}, {"name": "a", "n": 3}], row.to_arrow([]).type)
    sampler = KeySampler("sums")
    sampler.begin(1_000)
    for _ in range(2):
        sampler.add(Batch(row, array=array), KeySelection(Types.STRING(), field="name"))
    assert sampler.take() == (6, [("a", 4), ("b", 2)])
