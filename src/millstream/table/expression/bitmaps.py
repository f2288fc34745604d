"""Functions of bitmaps as methods of expressions.

Promises: PyFlink's names.
Does not know: how bitmaps are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.table.expression.terms import Term

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Bitmaps(Term):
    """Functions of bitmaps, which are sets of 32-bit integers."""

    __slots__ = ()

    def bitmap_build(self) -> Expression:
        """Create a bitmap of the integers in an array."""
        return self._call("BITMAP_BUILD", self)

    def bitmap_from_bytes(self) -> Expression:
        """Read a bitmap in the portable Roaring format."""
        return self._call("BITMAP_FROM_BYTES", self)

    def bitmap_to_bytes(self) -> Expression:
        """Write the bitmap in the portable Roaring format."""
        return self._call("BITMAP_TO_BYTES", self)

    def bitmap_to_array(self) -> Expression:
        """Return the integers in unsigned order, as an array."""
        return self._call("BITMAP_TO_ARRAY", self)

    def bitmap_to_string(self) -> Expression:
        """Return the integers as unsigned numbers in a text such as {1,2,3}."""
        return self._call("BITMAP_TO_STRING", self)

    def bitmap_cardinality(self) -> Expression:
        """Return the number of integers in the bitmap."""
        return self._call("BITMAP_CARDINALITY", self)

    def bitmap_and(self, bitmap2: Any) -> Expression:
        """Return the intersection of two bitmaps."""
        return self._call("BITMAP_AND", self, bitmap2)

    def bitmap_or(self, bitmap2: Any) -> Expression:
        """Return the union of two bitmaps."""
        return self._call("BITMAP_OR", self, bitmap2)

    def bitmap_xor(self, bitmap2: Any) -> Expression:
        """Return the symmetric difference of two bitmaps."""
        return self._call("BITMAP_XOR", self, bitmap2)

    def bitmap_andnot(self, bitmap2: Any) -> Expression:
        """Return the difference of two bitmaps."""
        return self._call("BITMAP_ANDNOT", self, bitmap2)

    def bitmap_build_agg(self) -> Expression:
        """Aggregate integers to a bitmap."""
        return self._call("BITMAP_BUILD_AGG", self)

    def bitmap_build_cardinality_agg(self) -> Expression:
        """Return the number of distinct integers of all rows."""
        return self._call("BITMAP_BUILD_CARDINALITY_AGG", self)

    def bitmap_and_agg(self) -> Expression:
        """Return the intersection of the bitmaps of all rows."""
        return self._call("BITMAP_AND_AGG", self)

    def bitmap_and_cardinality_agg(self) -> Expression:
        """Return the cardinality of the intersection of the bitmaps of all rows."""
        return self._call("BITMAP_AND_CARDINALITY_AGG", self)

    def bitmap_or_agg(self) -> Expression:
        """Return the union of the bitmaps of all rows."""
        return self._call("BITMAP_OR_AGG", self)

    def bitmap_or_cardinality_agg(self) -> Expression:
        """Return the cardinality of the union of the bitmaps of all rows."""
        return self._call("BITMAP_OR_CARDINALITY_AGG", self)

    def bitmap_xor_agg(self) -> Expression:
        """Return the integers that are in an odd number of the bitmaps of all rows."""
        return self._call("BITMAP_XOR_AGG", self)

    def bitmap_xor_cardinality_agg(self) -> Expression:
        """Return how many integers are in an odd number of the bitmaps of all rows."""
        return self._call("BITMAP_XOR_CARDINALITY_AGG", self)
