"""Vectorized XXH3 hashes of many short byte strings.

Promises: the hashes equal `xxhash.xxh3_64_intdigest`, for strings of up to `LONGEST` bytes; a column is hashed by a few
NumPy operations, without a Python object per row.
Does not know: keys; the caller chooses the byte before each string."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LONGEST = 64

_U64 = npt.NDArray[np.uint64]
_SECRET: list[np.uint64] = list(
    np.frombuffer(
        bytes.fromhex(
            "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
            "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
            "3c2852bb91c300cb88d0658b532ea371644897a20df94e3819ef46a9deacd8a8"
        ),
        dtype="<u8",
    )
)  # the words of XXH3's default secret that hashes of short strings use
_PRIME_1 = np.uint64(0x9E37_79B1_85EB_CA87)
_PRIME_2 = np.uint64(0xC2B2_AE3D_27D4_EB4F)
_PRIME_3 = np.uint64(0x1656_67B1_9E37_79F9)
_MIX = np.uint64(0x1656_6791_9E37_79F9)
_ROTATE = np.uint64(0x9FB2_1C65_1E98_DF25)
_ROWS_AT_ONCE = 1 << 12  # rows in a block, so that intermediate arrays stay in the processor's cache
_ALL_BUT_FIRST_BYTE = ~np.uint64(0xFF)
_LOW = np.uint64(0xFFFF_FFFF)


class ShortStrings:
    """The rows of a string or binary column, each with one byte before it."""

    def __init__(self, column: pa.Array, prefix: bytes) -> None:
        wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[column.offset : column.offset + len(column) + 1]
        first, last = (int(ends[0]), int(ends[-1])) if len(ends) else (0, 0)
        padded = np.zeros(last - first + 9, np.uint8)  # strings are read by words of 8 bytes, the first with the prefix
        if data is not None:
            padded[1 : 1 + last - first] = np.frombuffer(data, np.uint8)[first:last]
        self._words = np.ndarray((len(padded) - 7,), "<u8", padded.data, strides=(1,))
        self._starts = ends[:-1].astype(np.int64) - first
        self._prefix = np.uint64(prefix[0])
        self.lengths = np.diff(ends).astype(np.int64) + 1

    def hashes(self) -> _U64:
        """Return the hash of each row; no row may be longer than `LONGEST` with its prefix."""
        hashes = np.empty(len(self.lengths), np.uint64)
        functions = (self._hash_1_to_3, self._hash_4_to_8, self._hash_9_to_16, self._hash_17_to_64, self._hash_17_to_64)
        for start in range(0, len(hashes), _ROWS_AT_ONCE):
            classes = np.searchsorted((3, 8, 16, 32), self.lengths[start : start + _ROWS_AT_ONCE])
            for number in np.flatnonzero(np.bincount(classes)):
                rows = start + np.flatnonzero(classes == number)
                hashes[rows] = functions[number](rows)
        return hashes

    def _word(self, rows: npt.NDArray[np.int64], at: npt.NDArray[np.int64] | int) -> _U64:
        """Return eight bytes of each string from offset `at`; they may extend beyond its end."""
        words: _U64 = self._words[self._starts[rows] + at]
        if isinstance(at, int):
            return words if at else words & _ALL_BUT_FIRST_BYTE | self._prefix
        return words if at.min() else np.where(at == 0, words & _ALL_BUT_FIRST_BYTE | self._prefix, words)

    def _hash_1_to_3(self, rows: npt.NDArray[np.int64]) -> _U64:
        length, word = self.lengths[rows].astype(np.uint64), self._word(rows, 0)
        byte = np.uint64(0xFF)
        middle = word >> ((length >> np.uint64(1)) << np.uint64(3)) & byte
        last = word >> ((length - np.uint64(1)) << np.uint64(3)) & byte
        joined = (word & byte) << np.uint64(16) | middle << np.uint64(24) | last | length << np.uint64(8)
        x: _U64 = joined ^ ((_SECRET[0] & _LOW) ^ (_SECRET[0] >> np.uint64(32)))
        x = (x ^ (x >> np.uint64(33))) * _PRIME_2
        x = (x ^ (x >> np.uint64(29))) * _PRIME_3
        return x ^ (x >> np.uint64(32))

    def _hash_4_to_8(self, rows: npt.NDArray[np.int64]) -> _U64:
        length = self.lengths[rows]
        first, last = self._word(rows, 0) & _LOW, self._word(rows, length - 4) & _LOW
        x = (last + (first << np.uint64(32))) ^ (_SECRET[1] ^ _SECRET[2])
        x = x ^ _rotate(x, 49) ^ _rotate(x, 24)
        x = x * _ROTATE
        x = (x ^ ((x >> np.uint64(35)) + length.astype(np.uint64))) * _ROTATE
        return x ^ (x >> np.uint64(28))

    def _hash_9_to_16(self, rows: npt.NDArray[np.int64]) -> _U64:
        length = self.lengths[rows]
        low = self._word(rows, 0) ^ (_SECRET[3] ^ _SECRET[4])
        high = self._word(rows, length - 8) ^ (_SECRET[5] ^ _SECRET[6])
        return _avalanche(length.astype(np.uint64) + low.byteswap() + high + _multiply_fold(low, high))

    def _hash_17_to_64(self, rows: npt.NDArray[np.int64]) -> _U64:
        length = self.lengths[rows]
        total = length.astype(np.uint64) * _PRIME_1
        if length.max() > 32:  # then all rows are, because they belong to one length class
            total = total + self._mix_16_bytes(rows, 16, 4) + self._mix_16_bytes(rows, length - 32, 6)
        return _avalanche(total + self._mix_16_bytes(rows, 0, 0) + self._mix_16_bytes(rows, length - 16, 2))

    def _mix_16_bytes(self, rows: npt.NDArray[np.int64], at: npt.NDArray[np.int64] | int, secret: int) -> _U64:
        return _multiply_fold(self._word(rows, at) ^ _SECRET[secret], self._word(rows, at + 8) ^ _SECRET[secret + 1])


def hashes_of_words(word: Callable[[int], _U64], length: int) -> _U64:
    """Return the hashes of strings that all have this length, from 9 to 32.

    `word` returns eight bytes of each string, from the offset it is given."""
    if length <= 16:
        low, high = word(0) ^ (_SECRET[3] ^ _SECRET[4]), word(length - 8) ^ (_SECRET[5] ^ _SECRET[6])
        return _avalanche(np.uint64(length) + low.byteswap() + high + _multiply_fold(low, high))
    first = _multiply_fold(word(0) ^ _SECRET[0], word(8) ^ _SECRET[1])
    last = _multiply_fold(word(length - 16) ^ _SECRET[2], word(length - 8) ^ _SECRET[3])
    return _avalanche(np.uint64(length * int(_PRIME_1) & 0xFFFF_FFFF_FFFF_FFFF) + first + last)


def _rotate(x: _U64, by: int) -> _U64:
    return x << np.uint64(by) | x >> np.uint64(64 - by)


def _avalanche(x: _U64) -> _U64:
    x = (x ^ (x >> np.uint64(37))) * _MIX
    return x ^ (x >> np.uint64(32))


def _multiply_fold(x: _U64, y: _U64) -> _U64:
    """Return the low and the high half of the 128-bit product, combined by XOR."""
    half = np.uint64(32)
    x_low, x_high, y_low, y_high = x & _LOW, x >> half, y & _LOW, y >> half
    lows, first, second = x_low * y_low, x_high * y_low, x_low * y_high
    carried = (lows >> half) + (first & _LOW) + second
    high = (first >> half) + (carried >> half) + x_high * y_high
    folded: _U64 = (carried << half | (lows & _LOW)) ^ high
    return folded
