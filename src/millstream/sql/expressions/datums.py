"""Results of expressions: an Arrow array, or a scalar that is the value of every row.

Promises: callers do not have to distinguish arrays and scalars.
Does not know: expressions, logical types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def as_array(datum: Any, count: int) -> pa.Array:
    """Return a result as an array of `count` values."""
    if isinstance(datum, pa.Scalar):
        return pa.nulls(count, datum.type) if not datum.is_valid else pa.repeat(datum, count)
    if isinstance(datum, pa.ChunkedArray):
        return datum.combine_chunks() if datum.num_chunks != 1 else datum.chunk(0)
    return datum


def get_field(datum: Any, index: int) -> Any:
    """Return a field of a struct array or of a struct scalar."""
    if isinstance(datum, pa.Scalar):
        return pc.struct_field(pa.repeat(datum, 1), [index])[0]
    return pc.struct_field(datum, [index])
