"""Vectorised hashes equal those of the xxhash library."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
import xxhash

from millstream.state.key_groups import KeyGrouper, stable_hash
from millstream.state.key_hashes import KeyHasher
from millstream.state.xxh3 import LONGEST, ShortStrings


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("length", range(LONGEST))
def test_hashes_are_those_of_the_library(length, kind):
    chance = random.Random(length)
    rows = [chance.randbytes(length) for _ in range(20)]
    rows += [chance.randbytes(chance.randrange(LONGEST)) for _ in range(20)]
    column = pa.array(rows, kind).slice(3, 30)  # a part of a column
    expected = [xxhash.xxh3_64_intdigest(b"p" + row) for row in rows[3:33]]
    assert ShortStrings(column, b"p").hashes().tolist() == expected


def test_more_rows_than_one_block():
    rows = [str(number) for number in range(10_000)]
    expected = [xxhash.xxh3_64_intdigest(b"s" + row.encode()) for row in rows]
    assert ShortStrings(pa.array(rows), b"s").hashes().tolist() == expected


@pytest.mark.parametrize(
    "keys",
    [
        ["", "a", "ä" * 31, "🦆", None, "x" * (LONGEST - 1)],
        ["short", "x" * LONGEST, None],
        [b"", b"\x00", None, b"\xff" * 40],
        [],
    ],
)
def test_a_column_of_text_has_the_hashes_of_its_values(keys):
    kind = pa.binary() if keys and isinstance(keys[0], bytes) else pa.string()
    column = pa.array(keys, kind)
    assert KeyHasher().of_column(column).tolist() == [stable_hash(key) for key in keys]
    assert KeyGrouper(128).of_column(column).tolist() == [stable_hash(key) % 128 for key in keys]


def test_many_keys_are_grouped_like_single_ones(monkeypatch):
    monkeypatch.setattr("millstream.state.key_groups._MANY", 3)
    for keys in (["a", "b", "c" * 200], ["a", "\ud800", "b"], [1, 2, 1 << 70], [1, "a", None]):
        assert KeyGrouper(128).of_many(keys).tolist() == [stable_hash(key) % 128 for key in keys]
