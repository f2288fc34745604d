"""Rows in the order of whole numbers.

Promises: rows of equal numbers stay as they are.
Does not know: what the numbers mean.

Where the numbers and the place of a row fit into 63 bits, they are one number, and numbers are sorted much faster than
places are sorted by several of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_MANY = 512  # rows for which it is worth it


def stable_order(keys: Sequence[np.ndarray]) -> np.ndarray:
    """The places of rows in the order of keys of one length, the most important last; like `numpy.lexsort`."""
    count = len(keys[0])
    if len(keys) == 1:
        return np.argsort(keys[0], kind="stable")
    if count < _MANY:
        return np.lexsort(keys)
    bits = (count - 1).bit_length()
    total, parts = bits, []
    for key in keys:
        least = int(key.min())
        width = (int(key.max()) - least).bit_length()
        parts.append((key, least, width))
        total += width
    if total > 63:
        return np.lexsort(keys)
    whole = np.zeros(count, dtype=np.int64)
    for key, least, width in reversed(parts):
        if width:
            whole = (whole << width) | (key.astype(np.int64, copy=False) - least)
    whole = (whole << bits) | np.arange(count)
    whole.sort()
    return whole & ((1 << bits) - 1)
