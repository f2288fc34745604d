"""Functions of rows, arrays, maps and multisets as methods of expressions.

Promises: PyFlink's names. Positions count from 1.
Does not know: what the collections contain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql.syntax import tree as s
from millstream.table.expression.terms import Term, function_property, to_node

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Collections(Term):
    """Functions of rows, arrays, maps and multisets."""

    __slots__ = ()

    cardinality = function_property("CARDINALITY", "The number of elements or entries.")
    element = function_property("ELEMENT", "The only element of an array; NULL if it is empty.")
    map_keys = function_property("MAP_KEYS", "The keys of a map, as an array.")
    map_values = function_property("MAP_VALUES", "The values of a map, as an array.")
    map_entries = function_property("MAP_ENTRIES", "The entries of a map, as an array of rows.")

    @property
    def flatten(self) -> Expression:
        """All fields of a row as columns."""
        return self._of(s.Call(0, "$FLATTEN", (self._node,)))

    def get(self, name_or_index: Any) -> Expression:
        """Return a field of a row by name or by index, from 0; also an element of an array, or the value of a key."""
        if isinstance(name_or_index, str) and isinstance(self._node, s.Name):
            return self._of(s.Name(0, (*self._node.parts, name_or_index)))
        return self._of(s.FieldAccess(0, self._node, name_or_index))

    def at(self, index: Any) -> Expression:
        """Return the element of an array at a position, from 1, or the value of a key of a map."""
        return self._of(s.ElementAccess(0, self._node, to_node(index)))

    def object_update(self, *kv: Any) -> Expression:
        """Return a structured object with changed fields.

        Args:
            *kv: Field names and values, alternating.

        """
        return self._call("OBJECT_UPDATE", self, *kv)

    def array_append(self, addition: Any) -> Expression:
        """Append an element."""
        return self._call("ARRAY_APPEND", self, addition)

    def array_prepend(self, addition: Any) -> Expression:
        """Insert an element at the start."""
        return self._call("ARRAY_PREPEND", self, addition)

    def array_concat(self, *arrays: Any) -> Expression:
        """Concatenate arrays."""
        return self._call("ARRAY_CONCAT", self, *arrays)

    def array_contains(self, needle: Any) -> Expression:
        """Return whether the array contains an element."""
        return self._call("ARRAY_CONTAINS", self, needle)

    def array_distinct(self) -> Expression:
        """Remove duplicate elements."""
        return self._call("ARRAY_DISTINCT", self)

    def array_position(self, needle: Any) -> Expression:
        """Return the position of the first occurrence of an element, from 1; 0 if there is none."""
        return self._call("ARRAY_POSITION", self, needle)

    def array_remove(self, needle: Any) -> Expression:
        """Remove all occurrences of an element."""
        return self._call("ARRAY_REMOVE", self, needle)

    def array_reverse(self) -> Expression:
        """Reverse the order of the elements."""
        return self._call("ARRAY_REVERSE", self)

    def array_slice(self, start_offset: Any, end_offset: Any = None) -> Expression:
        """Return the elements from a start to an end position, both inclusive and from 1."""
        return self._call("ARRAY_SLICE", self, start_offset, *([] if end_offset is None else [end_offset]))

    def array_sort(self, ascending_order: Any = None, null_first: Any = None) -> Expression:
        """Sort the elements.

        Args:
            ascending_order: Whether the order is ascending, the default.
            null_first: Whether NULLs come first.

        """
        options = [option for option in (ascending_order, null_first) if option is not None]
        return self._call("ARRAY_SORT", self, *options)

    def array_union(self, array: Any) -> Expression:
        """Return the distinct elements of both arrays."""
        return self._call("ARRAY_UNION", self, array)

    def array_except(self, array: Any) -> Expression:
        """Return the elements that are not in another array."""
        return self._call("ARRAY_EXCEPT", self, array)

    def array_intersect(self, array: Any) -> Expression:
        """Return the elements that are in both arrays."""
        return self._call("ARRAY_INTERSECT", self, array)

    def array_max(self) -> Expression:
        """Return the greatest element."""
        return self._call("ARRAY_MAX", self)

    def array_min(self) -> Expression:
        """Return the least element."""
        return self._call("ARRAY_MIN", self)

    def array_join(self, delimiter: Any, null_replacement: Any = None) -> Expression:
        """Concatenate the elements, which are strings.

        Args:
            delimiter: The text between two elements.
            null_replacement: The text for a NULL, which is skipped by default.

        """
        return self._call("ARRAY_JOIN", self, delimiter, *([] if null_replacement is None else [null_replacement]))

    def map_union(self, *maps: Any) -> Expression:
        """Merge maps; for a key in several maps the last value counts."""
        return self._call("MAP_UNION", self, *maps)
