"""A bitmap is a set: what Python's sets say of numbers, bitmaps say, and their bytes are read back as the same set."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.serialization import codec
from millstream.types.bitmap import Bitmap
from millstream.types.roaring import CorruptBitmap, decode, encode

_EDGES = [0, 1, 65535, 65536, 131071, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
_STARTS = st.sampled_from(_EDGES) | st.integers(0, (1 << 32) - 1)
_STRETCHES = st.builds(
    lambda start, length, step: range(start, min(start + length * step, 1 << 32), step),
    _STARTS,
    st.sampled_from([1, 2, 3, 4, 5, 40, 5000]),
    st.sampled_from([1, 1, 2, 3, 7]),
)
SETS = st.lists(_STRETCHES, max_size=5).map(lambda found: {number for each in found for number in each})
few = settings(max_examples=20, deadline=None)


@few
@given(SETS, SETS)
def test_a_bitmap_is_a_set(one: set[int], other: set[int]) -> None:
    mine, others = Bitmap(one), Bitmap(other)
    assert list(mine) == sorted(one)
    assert (len(mine), hash(mine)) == (len(one), hash(frozenset(one)))
    assert mine == one
    assert (mine == others) == (one == other) == (mine.to_bytes() == others.to_bytes())
    assert (mine & others, mine | others) == (one & other, one | other)
    assert (mine ^ others, mine - others) == (one ^ other, one - other)
    assert all((number in mine) == (number in one) for number in (*_EDGES, *list(other)[:50]))


@few
@given(SETS)
def test_bytes_are_read_back_as_the_same_set(numbers: set[int]) -> None:
    made = Bitmap(numbers)
    assert Bitmap.from_bytes(made.to_bytes()) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert codec.decode(codec.encode(made)) == made


@few
@given(SETS, st.data())
def test_bytes_that_were_changed_are_refused_or_are_a_set(numbers: set[int], data: st.DataObject) -> None:
    made = bytearray(Bitmap(numbers).to_bytes())
    place = data.draw(st.integers(0, min(len(made) - 1, 200)))
    made[place] = data.draw(st.integers(0, 255))
    changed = bytes(made[: data.draw(st.sampled_from([len(made), place]))])
    try:
        found = decode(changed)
    except CorruptBitmap:
        return
    assert (found.starts[1:] > found.ends[:-1]).all()
    assert found.cardinality() == decode(encode(found)).cardinality()


def test_a_set_of_many_numbers_in_a_row_is_small() -> None:
    """100 million numbers, in one run for each 65536 of them."""
    parts = 1600
    head = (12347 | (parts - 1) << 16).to_bytes(4, "little") + b"\xff" * (parts // 8)
    keys = b"".join(key.to_bytes(2, "little") + b"\xff\xff" for key in range(parts))
    many = Bitmap.from_bytes(head + keys + bytes(4 * parts) + b"\x01\x00\x00\x00\xff\xff" * parts)
    assert len(many) == parts << 16
    assert len(many.to_bytes()) < 1 << 16
    assert len(many - Bitmap([7])) == len(many) - 1
    text = str(many)
    assert text.startswith("{0,1,2,")
    assert text.endswith(",...}")
    assert len(text) < 1 << 20


@pytest.mark.parametrize("number", [1 << 32, -(1 << 31) - 1])
def test_numbers_have_32_bits(number: int) -> None:
    with pytest.raises(ValueError, match="32 bits"):
        Bitmap([number])


def test_negative_numbers_stand_for_their_bits() -> None:
    assert Bitmap([-1, 5]) == {5, (1 << 32) - 1}
    assert Bitmap([-1, 5]).to_array() == [5, -1]
    assert repr(Bitmap([-1, 5])) == "Bitmap({5,4294967295})"
