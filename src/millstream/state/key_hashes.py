"""64-bit hashes of many keys; batches are sorted by them.

Promises: the hash of a key is its `stable_hash`, as a Python value and in an Arrow column; different 64-bit integers
have different hashes.
Does not know: key groups, sorting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from millstream.state.key_groups import KeyNumbers

KeyHashes = npt.NDArray[np.uint64]


class KeyHasher(KeyNumbers):
    """Computes the hashes of many keys."""

    def __init__(self, *, cache_size: int = 1 << 17) -> None:
        super().__init__(lambda hashes: hashes, np.uint64, cache_size)
