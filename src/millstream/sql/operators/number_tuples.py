"""Vectorized hashes of keys that are tuples of integers.

Promises: the hash of a row is `stable_hash` of the tuple of its numbers. There is no hash for any row (None) if a key
has more than 32 bytes, or if a number is the one that needs nine bytes.
Does not know: NULL and other types; see `key_tuples`.

Rows whose numbers have the same byte lengths have the same layout: for each number its length, a tag and its bytes. So
the words that the hash reads are computed from the numbers by shifts, and the bytes are not written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from millstream.state.xxh3 import hashes_of_words

_SHORTEST, _LONGEST = 9, 32
_WIDER = np.array([1 << bits for bits in range(7, 64, 8)], dtype=np.uint64)  # numbers from here on need one more byte

_U64 = npt.NDArray[np.uint64]


def hash_number_tuples(columns: Sequence[npt.NDArray[np.int64]]) -> _U64 | None:
    """Return the hash of each row; None if the rows must be hashed in another way."""
    classes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        classes = classes * 10 + _compute_sizes(column)
    hashes = np.empty(len(classes), dtype=np.uint64)
    for class_number in np.flatnonzero(np.bincount(classes)).tolist():
        layout = _Layout([int(digit) for digit in str(class_number)])
        if not layout.fits:
            return None
        rows = np.flatnonzero(classes == class_number)
        values = columns if len(rows) == len(classes) else [column[rows] for column in columns]
        hashes[rows] = layout.hashes([value.view(np.uint64) for value in values])
    return hashes


def _compute_sizes(column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of bytes that each number needs."""
    magnitudes = np.abs(column).view(np.uint64)
    fewest, most = (int(np.searchsorted(_WIDER, end, "right")) for end in (magnitudes.min(), magnitudes.max()))
    sizes = np.full(len(magnitudes), 1 + fewest, dtype=np.int64)
    for wider in _WIDER[fewest:most]:
        sizes += magnitudes >= wider
    return sizes


class _Layout:
    """The positions of the numbers in an encoded tuple, given their byte lengths."""

    def __init__(self, sizes: list[int]) -> None:
        self._compute_sizes = sizes
        self._positions: list[int] = []
        frame = b"("
        for size in sizes:
            frame += (size + 1).to_bytes(4, "little") + b"i"
            self._positions.append(len(frame))
            frame += bytes(size)
        self._frame = frame
        self.fits = _SHORTEST <= len(frame) <= _LONGEST and max(sizes) <= 8

    def hashes(self, numbers: Sequence[_U64]) -> _U64:
        """Return the hashes of tuples of such numbers."""
        sized_numbers = zip(numbers, self._compute_sizes, strict=True)
        masked = [value if size == 8 else value & np.uint64((1 << 8 * size) - 1) for value, size in sized_numbers]
        return hashes_of_words(lambda at: self._get_word(masked, at), len(self._frame))

    def _get_word(self, numbers: Sequence[_U64], at: int) -> _U64:
        """Return the eight bytes from position `at` on."""
        word = np.full(len(numbers[0]), int.from_bytes(self._frame[at : at + 8], "little"), dtype=np.uint64)
        for value, position, size in zip(numbers, self._positions, self._compute_sizes, strict=True):
            if at <= position < at + 8:
                word |= value << np.uint64(8 * (position - at))
            elif position < at < position + size:
                word |= value >> np.uint64(8 * (at - position))
        return word
