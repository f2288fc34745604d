"""What an expression computes: a column, or a constant for all rows.

Promises: callers need not know which of them they have.
Does not know: expressions, logical types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def as_array(datum: Any, count: int) -> pa.Array:
    """A column of so many values, whatever was computed."""
    if isinstance(datum, pa.Scalar):
        return pa.nulls(count, datum.type) if not datum.is_valid else pa.repeat(datum, count)
    if isinstance(datum, pa.ChunkedArray):
        return datum.combine_chunks() if datum.num_chunks != 1 else datum.chunk(0)
    return datum


def field_datum(datum: Any, index: int) -> Any:
    """A field of a column of rows, or of one row."""
    if isinstance(datum, pa.Scalar):
        return pc.struct_field(pa.repeat(datum, 1), [index])[0]
    return pc.struct_field(datum, [index])
