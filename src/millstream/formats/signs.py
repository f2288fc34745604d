"""The signs of a text, asked for at many places at once.

Promises: places are given in ascending order, and answered in order; no place in or right behind the text is out of
reach. Eight signs are looked at in one step.
Does not know: what the text means."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

QUOTE = ord('"')

_EACH = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_LOW = ~_HIGH
_ZEROS = np.uint64(ord("0")) * _EACH
_ABOVE_NINE = np.uint64(0x76) * _EACH  # what makes the high bit of every sign above nine
_TENS = np.array([10**count for count in range(9)], np.uint64)
_MOST_DIGITS = 18
_Places = np.ndarray


class Signs:
    """A text of ASCII or UTF-8."""

    def __init__(self, text: bytes, reach: int) -> None:
        """`reach`: of how many signs a window has at most."""
        self.text = text
        self._padded = text + bytes(max(reach, 8))
        self._every = np.ndarray((len(text) + 1,), "<u8", self._padded, strides=(1,))

    def count(self, sign: int) -> int:
        """How often a sign is in the text."""
        return int(np.count_nonzero(np.frombuffer(self.text, np.uint8) == sign))

    def words(self, at: _Places) -> np.ndarray:
        """Eight signs from each of these places on, as one number."""
        return np.asarray(self._every[at])

    def windows(self, at: _Places, width: int) -> Windows:
        """The signs from these places on."""
        whole = -(-width // 8) * 8
        return Windows(np.ndarray((len(self.text) + 1,), f"V{whole}", self._padded, strides=(1,))[at])

    def until(self, sign: int, at: _Places, limit: _Places) -> _Places:
        """Where the sign comes next; the limit where it does not come before."""
        wanted = np.uint64(sign) * _EACH
        found = np.minimum(at, limit)
        step = self._steps(wanted, found)
        found += step
        more = np.flatnonzero((step == 8) & (found < limit))
        while len(more):
            step = self._steps(wanted, found[more])
            found[more] += step
            more = more[(step == 8) & (found[more] < limit[more])]
        return np.asarray(np.minimum(found, limit))

    def _steps(self, wanted: np.uint64, at: _Places) -> np.ndarray:
        """How far it is to a sign; 8 if that is further."""
        words = self.words(at) ^ wanted
        return _first((words - _EACH) & ~words & _HIGH)

    def whole_numbers(self, at: _Places, begin: np.ndarray) -> tuple[_Places, np.ndarray, np.ndarray]:
        """Where the whole numbers end that begin here with these eight signs, which they are, and where there is one:
        as JSON spells them, without a minus, and of not more digits than fit."""
        value, count = _digits(begin)
        zero = begin & np.uint64(0xFF) == ord("0")
        good = (count > 0) & ~(zero & (count > 1))
        end = at + count
        more = np.flatnonzero(count == 8)
        while len(more):
            further, count = _digits(self.words(end[more]))
            value[more] = value[more] * _TENS[count] + further
            end[more] += count
            good[more] &= end[more] - at[more] <= _MOST_DIGITS
            more = more[(count == 8) & good[more]]
        return end, value.astype(np.int64), good

    def texts(self, starts: _Places, ends: _Places, there: np.ndarray | None = None) -> pa.Array:
        """The texts between places, none of which overlap; null where there is none."""
        count = len(starts)
        offsets = np.empty(2 * count + 1, np.int32)
        offsets[:-1:2], offsets[1::2], offsets[-1:] = starts, ends, ends[-1:]
        every = pa.StringArray.from_buffers(2 * count, pa.py_buffer(offsets), pa.py_buffer(self.text))
        taken = every.take(pa.array(np.arange(0, 2 * count, 2)))  # between two of them are those that are not wanted
        _, where, data = taken.buffers()
        return pa.StringArray.from_buffers(count, where, data, valid(there))


class Windows:
    """As many signs at each of many places."""

    def __init__(self, data: np.ndarray) -> None:
        self._data = data

    def words(self, offset: int) -> np.ndarray:
        """Eight signs of each, from an offset on."""
        if not len(self._data):
            return np.empty(0, "<u8")
        return np.ndarray(self._data.shape, "<u8", self._data, offset, self._data.strides)

    def begin_with(self, wanted: bytes) -> np.ndarray:
        """Which of them do."""
        offsets = [*range(0, len(wanted) - 8, 8), max(0, len(wanted) - 8)]
        good = self._have(wanted[:8], 0)
        for offset in offsets[1:]:
            good &= self._have(wanted[offset : offset + 8], offset)
        return good

    def _have(self, piece: bytes, offset: int) -> np.ndarray:
        words, wanted = self.words(offset), np.uint64(int.from_bytes(piece, "little"))
        return np.asarray((words if len(piece) == 8 else words & np.uint64((1 << 8 * len(piece)) - 1)) == wanted)


def valid(there: np.ndarray | None) -> pa.Buffer | None:
    """What an Arrow array needs to know where it has values; None for everywhere."""
    return None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))


def _first(marks: np.ndarray) -> np.ndarray:
    """Which of eight signs is the first that is marked; 8 for none."""
    return np.asarray(np.bitwise_count((marks - np.uint64(1)) & ~marks) >> 3)


def _digits(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that up to eight digits spell, and how many there are."""
    signs = words ^ _ZEROS
    count = _first((((signs & _LOW) + _ABOVE_NINE) | signs) & _HIGH)
    # the last digit to the highest place; then pairs, fours and all eight are put together
    value = signs << (np.uint64(64) - (count.astype(np.uint64) << np.uint64(3)))
    value = (value * np.uint64(10) + (value >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    value = (value * np.uint64(100) + (value >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (value * np.uint64(10_000) + (value >> np.uint64(32))) & np.uint64(0xFFFFFFFF), count
