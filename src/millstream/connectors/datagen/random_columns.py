"""Random columns as a function of a key and of row indexes, so that any part can be generated at any time.

Promises: the same key and index give the same number in every process and release; columns of different keys look
independent.
Does not know: fields, types."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

Hashes: TypeAlias = npt.NDArray[np.uint64]
Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

_WORD = (1 << 64) - 1
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", dtype=np.uint8)
_LETTERS_IN_A_HASH = 12


def derive_key(seed: int, *names: str) -> int:
    """Return the key of a column, which depends on the seed and the names, never on Python's `hash`."""
    return xxhash.xxh64_intdigest("\0".join((str(seed), *names)).encode())


def hash_indexes(key: int, indexes: Hashes) -> Hashes:
    """Return a random 64-bit word for each index (splitmix64, started at the key)."""
    hashes = indexes * _GAMMA
    hashes += np.uint64(key)
    shifted = hashes >> np.uint64(30)
    hashes ^= shifted
    hashes *= _FIRST
    np.right_shift(hashes, np.uint64(27), out=shifted)
    hashes ^= shifted
    hashes *= _SECOND
    np.right_shift(hashes, np.uint64(31), out=shifted)
    hashes ^= shifted
    return hashes


def to_fractions(words: Hashes) -> Floats:
    """Convert words to fractions in [0, 1)."""
    scaled: Floats = (words >> np.uint64(11)).astype(np.float64)
    scaled *= 2.0**-53
    return scaled


def draw_below(count: int, words: Hashes) -> Hashes:
    """Convert words to integers in [0, count); `count` is at most 2**64."""
    if count > _WORD:
        return words
    if count > 1 << 32:
        return words % np.uint64(count)
    drawn = words >> np.uint64(32)
    drawn *= np.uint64(count)
    drawn >>= np.uint64(32)
    return drawn


def draw_skewed(count: int, skew: float, words: Hashes) -> Hashes:
    """Convert words to integers in [0, count), the k-th about k**-skew times as often as the first (Zipf's law)."""
    if skew == 0:
        return draw_below(count, words)
    drawn = to_fractions(words)
    if abs(skew - 1) < 1e-9:
        rank = np.power(float(count) + 1, drawn)
    else:
        flat = 1 - skew
        drawn *= (float(count) + 1) ** flat - 1
        drawn += 1
        rank = np.power(drawn, 1 / flat)
    ranked: Hashes = np.clip(np.floor(rank) - 1, 0, count - 1).astype(np.uint64)
    return ranked


def draw_letters(key: int, indexes: Hashes, length: int, prefix: str = "") -> pa.Array:
    """Return a string for each index: the prefix, then `length` random letters."""
    head = np.frombuffer(prefix.encode(), dtype=np.uint8)
    width = len(head) + length
    text = np.empty((len(indexes), width), dtype=np.uint8)
    text[:, : len(head)] = head
    for first in range(0, length, _LETTERS_IN_A_HASH):
        words = hash_indexes((key + first * 0x5851F42D4C957F2D) & _WORD, indexes)
        for letter_index in range(first, min(first + _LETTERS_IN_A_HASH, length)):
            text[:, len(head) + letter_index] = _LETTERS[(words & np.uint64(31)).astype(np.intp)]
            words >>= np.uint64(5)
    offsets: Any = np.arange(0, (len(indexes) + 1) * width, width, dtype=np.int64) if width else None
    if offsets is None:
        offsets = np.zeros(len(indexes) + 1, dtype=np.int64)
    wide = pa.LargeStringArray.from_buffers(len(indexes), pa.py_buffer(offsets), pa.py_buffer(text))
    return wide.cast(pa.string())
