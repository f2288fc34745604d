"""Dictionary encoding of string columns, so that repeated strings are computed once.

Promises: the result is the same as without encoding. A sample of the column decides whether encoding pays off, so a
column of distinct strings costs little more than before.
Does not know: what is computed, but that it depends on the string alone."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

_MIN_ROWS = 64  # fewer rows are not worth a sample
_SAMPLE_ROWS = 1024
_MAX_DISTINCT_FRACTION = 0.75  # above it, encoding costs more than it saves


def compute_on_distinct(strings: pa.Array, compute: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Apply `compute` to a column of strings, once for each distinct string if many are repeated."""
    if len(strings) < _MIN_ROWS or not isinstance(strings, pa.StringArray):
        return compute(strings)
    sample = strings.slice(0, _SAMPLE_ROWS)
    if len(sample.unique()) > _MAX_DISTINCT_FRACTION * len(sample):
        return compute(strings)
    encoded = strings.dictionary_encode()
    return compute(encoded.dictionary).take(encoded.indices)
