"""Vectors as values of columns: a dense vector is an array, a sparse one a row of size, indices and values.

Promises: a vector has the type of its column in SQL too, so every other connector and function can use it.
Does not know: how stages compute with vectors; see `vector_rows.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.errors import InvalidArgument
from millstream.sql.types import data_types as t
from millstream.types.factory import TypeInformation, Types
from millstream.types.row import Row

DENSE_VECTOR = t.ArrayType(t.DOUBLE)
SPARSE_VECTOR = t.row_of(["size", "indices", "values"], [t.INT, t.ArrayType(t.INT), t.ArrayType(t.DOUBLE)])


class Vectors:
    """Creates vectors.

    Example:
        >>> Vectors.dense(1, 2.5)
        [1.0, 2.5]
        >>> Vectors.sparse(4, [1, 3], [2.0, 5.0])
        Row(size=4, indices=[1, 3], values=[2.0, 5.0])

    """

    @staticmethod
    def dense(*elements: Any) -> list[float]:
        """Create a dense vector.

        Args:
            *elements: The numbers, or one sequence of them.

        """
        numbers = elements[0] if len(elements) == 1 and not isinstance(elements[0], int | float) else elements
        return [float(number) for number in numbers]

    @staticmethod
    def sparse(size: int, indices: Sequence[int] | Mapping[int, float], values: Sequence[float] = ()) -> Row:
        """Create a sparse vector.

        Args:
            size: The number of dimensions.
            indices: The indices of the values in ascending order; or a mapping of indices to values.
            values: The values.

        """
        if isinstance(indices, Mapping):
            indices, values = sorted(indices), [indices[index] for index in sorted(indices)]
        if len(indices) != len(values) or list(indices) != sorted({i for i in indices if 0 <= i < size}):
            msg = f"indices {list(indices)!r} and {len(values)} values are not a sparse vector of size {size}"
            raise InvalidArgument(msg, hint="give ascending indices from 0 to below the size, and a value for each")
        return Row(size=size, indices=list(indices), values=[float(value) for value in values])


def DenseVectorTypeInfo() -> TypeInformation:
    """Return the type of dense vectors in streams."""
    return Types.LIST(Types.DOUBLE())


def SparseVectorTypeInfo() -> TypeInformation:
    """Return the type of sparse vectors in streams."""
    types = [Types.INT(), Types.LIST(Types.INT()), Types.LIST(Types.DOUBLE())]
    return Types.ROW_NAMED(["size", "indices", "values"], types)
