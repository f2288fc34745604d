"""Hashes of many keys, as wide as they come: what batches are sorted by.

Promises: the hash of a key is `stable_hash` of it, whether it comes as a Python value or in a column; whole numbers of
64 bits that differ have hashes that differ.
Does not know: key groups, sorting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from millstream.state.key_groups import KeyNumbers

KeyHashes = npt.NDArray[np.uint64]


class KeyHasher(KeyNumbers):
    """Hashes of many keys."""

    def __init__(self, *, remember: int = 1 << 17) -> None:
        super().__init__(lambda hashes: hashes, np.uint64, remember)
