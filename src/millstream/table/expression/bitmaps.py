"""Methods of bitmaps, and those that make them.

Promises: PyFlink's names.
Does not know: how bitmaps are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.table.expression.terms import Term

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Bitmaps(Term):
    """What can be asked of sets of 32-bit numbers."""

    __slots__ = ()

    def bitmap_build(self) -> Expression:
        """The bitmap of an array's numbers."""
        return self._call("BITMAP_BUILD", self)

    def bitmap_from_bytes(self) -> Expression:
        """The bitmap of its portable Roaring form."""
        return self._call("BITMAP_FROM_BYTES", self)

    def bitmap_to_bytes(self) -> Expression:
        """The portable Roaring form."""
        return self._call("BITMAP_TO_BYTES", self)

    def bitmap_to_array(self) -> Expression:
        """The numbers in the order of unsigned numbers."""
        return self._call("BITMAP_TO_ARRAY", self)

    def bitmap_to_string(self) -> Expression:
        """The numbers, unsigned, as {1,2,3}."""
        return self._call("BITMAP_TO_STRING", self)

    def bitmap_cardinality(self) -> Expression:
        """How many numbers there are."""
        return self._call("BITMAP_CARDINALITY", self)

    def bitmap_and(self, bitmap2: Any) -> Expression:
        """The numbers that both have."""
        return self._call("BITMAP_AND", self, bitmap2)

    def bitmap_or(self, bitmap2: Any) -> Expression:
        """The numbers that either has."""
        return self._call("BITMAP_OR", self, bitmap2)

    def bitmap_xor(self, bitmap2: Any) -> Expression:
        """The numbers that only one of them has."""
        return self._call("BITMAP_XOR", self, bitmap2)

    def bitmap_andnot(self, bitmap2: Any) -> Expression:
        """The numbers that the other does not have."""
        return self._call("BITMAP_ANDNOT", self, bitmap2)

    def bitmap_build_agg(self) -> Expression:
        """The bitmap of the numbers."""
        return self._call("BITMAP_BUILD_AGG", self)

    def bitmap_build_cardinality_agg(self) -> Expression:
        """How many different numbers there are."""
        return self._call("BITMAP_BUILD_CARDINALITY_AGG", self)

    def bitmap_and_agg(self) -> Expression:
        """The numbers that all bitmaps have."""
        return self._call("BITMAP_AND_AGG", self)

    def bitmap_and_cardinality_agg(self) -> Expression:
        """How many numbers all bitmaps have."""
        return self._call("BITMAP_AND_CARDINALITY_AGG", self)

    def bitmap_or_agg(self) -> Expression:
        """The numbers that any of the bitmaps has."""
        return self._call("BITMAP_OR_AGG", self)

    def bitmap_or_cardinality_agg(self) -> Expression:
        """How many numbers the bitmaps have together."""
        return self._call("BITMAP_OR_CARDINALITY_AGG", self)

    def bitmap_xor_agg(self) -> Expression:
        """The numbers that an odd number of the bitmaps has."""
        return self._call("BITMAP_XOR_AGG", self)

    def bitmap_xor_cardinality_agg(self) -> Expression:
        """How many numbers an odd number of the bitmaps has."""
        return self._call("BITMAP_XOR_CARDINALITY_AGG", self)
