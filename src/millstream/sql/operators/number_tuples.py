"""Hashes of keys of several whole numbers, for whole columns at once.

Promises: the hash of a row is `stable_hash` of the tuple of its numbers, or there is none for any of them: for keys of
more than 32 bytes, and for the one number that needs nine.
Does not know: NULL, other types; `key_tuples` does.

Rows whose numbers have as many bytes each have one layout: of the number's form the length, a tag and the bytes. So the
words that the hash reads are put together from the numbers by shifting, and no bytes are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from millstream.state.xxh3 import hashes_of_words

_SHORTEST, _LONGEST = 9, 32
_WIDER = np.array([1 << bits for bits in range(7, 64, 8)], dtype=np.uint64)  # from these on, a byte more is needed

_U64 = npt.NDArray[np.uint64]


def number_tuple_hashes(columns: Sequence[npt.NDArray[np.int64]]) -> _U64 | None:
    """The hash of each row; None where they must be hashed otherwise."""
    classes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        classes = classes * 10 + _sizes(column)
    found = np.empty(len(classes), dtype=np.uint64)
    for number in np.flatnonzero(np.bincount(classes)).tolist():
        layout = _Layout([int(digit) for digit in str(number)])
        if not layout.fits:
            return None
        rows = np.flatnonzero(classes == number)
        values = columns if len(rows) == len(classes) else [column[rows] for column in columns]
        found[rows] = layout.hashes([value.view(np.uint64) for value in values])
    return found


def _sizes(column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many bytes each number needs."""
    far = np.abs(column).view(np.uint64)
    fewest, most = (int(np.searchsorted(_WIDER, end, "right")) for end in (far.min(), far.max()))
    sizes = np.full(len(far), 1 + fewest, dtype=np.int64)
    for wider in _WIDER[fewest:most]:
        sizes += far >= wider
    return sizes


class _Layout:
    """Where the numbers of a tuple are when they have so many bytes each."""

    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes
        self._places: list[int] = []
        frame = b"("
        for size in sizes:
            frame += (size + 1).to_bytes(4, "little") + b"i"
            self._places.append(len(frame))
            frame += bytes(size)
        self._frame = frame
        self.fits = _SHORTEST <= len(frame) <= _LONGEST and max(sizes) <= 8

    def hashes(self, numbers: Sequence[_U64]) -> _U64:
        """The hashes of tuples of such numbers."""
        bits = zip(numbers, self._sizes, strict=True)
        cut = [value if size == 8 else value & np.uint64((1 << 8 * size) - 1) for value, size in bits]
        return hashes_of_words(lambda at: self._word(cut, at), len(self._frame))

    def _word(self, numbers: Sequence[_U64], at: int) -> _U64:
        """The eight bytes from position `at` on."""
        word = np.full(len(numbers[0]), int.from_bytes(self._frame[at : at + 8], "little"), dtype=np.uint64)
        for value, place, size in zip(numbers, self._places, self._sizes, strict=True):
            if at <= place < at + 8:
                word |= value << np.uint64(8 * (place - at))
            elif place < at < place + size:
                word |= value >> np.uint64(8 * (at - place))
        return word
