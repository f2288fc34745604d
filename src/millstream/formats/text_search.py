"""Search in a text from many offsets at once, with NumPy.

Eight bytes are compared in one step, as one 64-bit integer.

Promises: offsets are in ascending order, and so are the results; every offset up to the end of the text is valid.
Does not know: what the text means."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

QUOTE = ord('"')

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_LOW = ~_HIGH
_ZEROS = np.uint64(ord("0")) * _ONES
_ABOVE_NINE = np.uint64(0x76) * _ONES  # sets the high bit of each byte that is greater than nine
_TENS = np.array([10**count for count in range(9)], np.uint64)
_MAX_DIGITS = 18
_Offsets = np.ndarray


class SearchableText:
    """A text in ASCII or UTF-8."""

    def __init__(self, text: bytes, reach: int) -> None:
        """`reach` is the maximum width of a window, in bytes."""
        self.text = text
        self._padded = text + bytes(max(reach, 8))
        self._every = np.ndarray((len(text) + 1,), "<u8", self._padded, strides=(1,))

    def count(self, character: int) -> int:
        """Return how often a character occurs in the text."""
        return int(np.count_nonzero(np.frombuffer(self.text, np.uint8) == character))

    def words(self, at: _Offsets) -> np.ndarray:
        """Return the eight bytes at each offset as an integer."""
        return np.asarray(self._every[at])

    def windows(self, at: _Offsets, width: int) -> Windows:
        """Return the bytes at each offset."""
        whole = -(-width // 8) * 8
        return Windows(np.ndarray((len(self.text) + 1,), f"V{whole}", self._padded, strides=(1,))[at])

    def find_next(self, character: int, at: _Offsets, limit: _Offsets) -> _Offsets:
        """Return the offset of the next occurrence of a character, or the limit if there is none before it."""
        pattern = np.uint64(character) * _ONES
        result = np.minimum(at, limit)
        step = self._steps(pattern, result)
        result += step
        more = np.flatnonzero((step == 8) & (result < limit))
        while len(more):
            step = self._steps(pattern, result[more])
            result[more] += step
            more = more[(step == 8) & (result[more] < limit[more])]
        return np.asarray(np.minimum(result, limit))

    def _steps(self, pattern: np.uint64, at: _Offsets) -> np.ndarray:
        """Return the distance to a character; 8 if it is not among the next eight."""
        words = self.words(at) ^ pattern
        return _first_marked_byte((words - _ONES) & ~words & _HIGH)

    def parse_integers(self, at: _Offsets, begin: np.ndarray) -> tuple[_Offsets, np.ndarray, np.ndarray]:
        """Parse the integers that start at these offsets with these eight bytes: JSON integers without a minus sign.

        Returns their ends, their values, and at which offsets there is an integer that fits."""
        value, count = _parse_digits(begin)
        starts_with_zero = begin & np.uint64(0xFF) == ord("0")
        good = (count > 0) & ~(starts_with_zero & (count > 1))
        end = at + count
        more = np.flatnonzero(count == 8)
        while len(more):
            more_digits, count = _parse_digits(self.words(end[more]))
            value[more] = value[more] * _TENS[count] + more_digits
            end[more] += count
            good[more] &= end[more] - at[more] <= _MAX_DIGITS
            more = more[(count == 8) & good[more]]
        return end, value.astype(np.int64), good

    def texts(self, starts: _Offsets, ends: _Offsets, present: np.ndarray | None = None) -> pa.Array:
        """Return the texts between offsets, which do not overlap; null where `present` is false."""
        count = len(starts)
        offsets = np.empty(2 * count + 1, np.int32)
        offsets[:-1:2], offsets[1::2], offsets[-1:] = starts, ends, ends[-1:]
        every = pa.StringArray.from_buffers(2 * count, pa.py_buffer(offsets), pa.py_buffer(self.text))
        texts = every.take(pa.array(np.arange(0, 2 * count, 2)))  # without the texts between them
        _, text_offsets, data = texts.buffers()
        return pa.StringArray.from_buffers(count, text_offsets, data, validity(present))


class Windows:
    """Windows of the same width at many offsets of a text."""

    def __init__(self, data: np.ndarray) -> None:
        self._data = data

    def words(self, offset: int) -> np.ndarray:
        """Return eight bytes of each window, from an offset on."""
        if not len(self._data):
            return np.empty(0, "<u8")
        return np.ndarray(self._data.shape, "<u8", self._data, offset, self._data.strides)

    def begin_with(self, prefix: bytes) -> np.ndarray:
        """Return which windows start with the bytes."""
        offsets = [*range(0, len(prefix) - 8, 8), max(0, len(prefix) - 8)]
        good = self._equal(prefix[:8], 0)
        for offset in offsets[1:]:
            good &= self._equal(prefix[offset : offset + 8], offset)
        return good

    def _equal(self, piece: bytes, offset: int) -> np.ndarray:
        words, expected = self.words(offset), np.uint64(int.from_bytes(piece, "little"))
        return np.asarray((words if len(piece) == 8 else words & np.uint64((1 << 8 * len(piece)) - 1)) == expected)


def validity(present: np.ndarray | None) -> pa.Buffer | None:
    """Return the validity bitmap of an Arrow array; None if all values are valid."""
    return None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))


def _first_marked_byte(marks: np.ndarray) -> np.ndarray:
    """Return the index of the first marked byte of eight; 8 if none is."""
    return np.asarray(np.bitwise_count((marks - np.uint64(1)) & ~marks) >> 3)


def _parse_digits(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of up to eight leading digits, and how many digits there are."""
    digits = words ^ _ZEROS
    count = _first_marked_byte((((digits & _LOW) + _ABOVE_NINE) | digits) & _HIGH)
    # shift the last digit to the highest byte; then combine pairs, fours and all eight
    value = digits << (np.uint64(64) - (count.astype(np.uint64) << np.uint64(3)))
    value = (value * np.uint64(10) + (value >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    value = (value * np.uint64(100) + (value >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (value * np.uint64(10_000) + (value >> np.uint64(32))) & np.uint64(0xFFFFFFFF), count
