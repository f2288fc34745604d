"""A bitmap behaves like a Python set, and the same set is read from its bytes."""

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
_RANGES = st.builds(
    lambda start, length, step: range(start, min(start + length * step, 1 << 32), step),
    _STARTS,
    st.sampled_from([1, 2, 3, 4, 5, 40, 5000]),
    st.sampled_from([1, 1, 2, 3, 7]),
)
SETS = st.lists(_RANGES, max_size=5).map(lambda ranges: {number for numbers in ranges for number in numbers})
few = settings(max_examples=20, deadline=None)


@few
@given(SETS, SETS)
def test_a_bitmap_is_a_set(numbers_a: set[int], numbers_b: set[int]) -> None:
    bitmap_a, bitmap_b = Bitmap(numbers_a), Bitmap(numbers_b)
    assert list(bitmap_a) == sorted(numbers_a)
    assert (len(bitmap_a), hash(bitmap_a)) == (len(numbers_a), hash(frozenset(numbers_a)))
    assert bitmap_a == numbers_a
    assert (bitmap_a == bitmap_b) == (numbers_a == numbers_b) == (bitmap_a.to_bytes() == bitmap_b.to_bytes())
    assert (bitmap_a & bitmap_b, bitmap_a | bitmap_b) == (numbers_a & numbers_b, numbers_a | numbers_b)
    assert (bitmap_a ^ bitmap_b, bitmap_a - bitmap_b) == (numbers_a ^ numbers_b, numbers_a - numbers_b)
    assert all((number in bitmap_a) == (number in numbers_a) for number in (*_EDGES, *list(numbers_b)[:50]))


@few
@given(SETS)
def test_bytes_are_read_back_as_the_same_set(numbers: set[int]) -> None:
    encoded = Bitmap(numbers)
    assert Bitmap.from_bytes(encoded.to_bytes()) == encoded
    assert pickle.loads(pickle.dumps(encoded)) == encoded
    assert codec.decode(codec.encode(encoded)) == encoded


@few
@given(SETS, st.data())
def test_damaged_bytes_are_refused_or_are_another_set(numbers: set[int], data: st.DataObject) -> None:
    encoded = bytearray(Bitmap(numbers).to_bytes())
    offset = data.draw(st.integers(0, min(len(encoded) - 1, 200)))
    encoded[offset] = data.draw(st.integers(0, 255))
    changed = bytes(encoded[: data.draw(st.sampled_from([len(encoded), offset]))])
    try:
        runs = decode(changed)
    except CorruptBitmap:
        return
    assert (runs.starts[1:] > runs.ends[:-1]).all()
    assert runs.cardinality() == decode(encode(runs)).cardinality()


def test_a_set_of_consecutive_numbers_is_small() -> None:
    """100 million numbers are stored as one run for each 65536 of them."""
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


def test_negative_numbers_are_the_unsigned_numbers_with_the_same_bits() -> None:
    assert Bitmap([-1, 5]) == {5, (1 << 32) - 1}
    assert Bitmap([-1, 5]).to_array() == [5, -1]
    assert repr(Bitmap([-1, 5])) == "Bitmap({5,4294967295})"
