"""Methods of rows, arrays, maps and multisets.

Promises: PyFlink's names; positions count from 1.
Does not know: what the collections hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql.syntax import tree as s
from millstream.table.expression.terms import Term, applied, node

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Collections(Term):
    """What can be asked of a value that holds others."""

    __slots__ = ()

    cardinality = applied("CARDINALITY", "How many there are.")
    element = applied("ELEMENT", "The only element.")
    map_keys = applied("MAP_KEYS", "The keys.")
    map_values = applied("MAP_VALUES", "The values.")
    map_entries = applied("MAP_ENTRIES", "The entries.")

    @property
    def flatten(self) -> Expression:
        """All fields of a row."""
        return self._of(s.Call(0, "$FLATTEN", (self._node,)))

    def get(self, name_or_index: Any) -> Expression:
        """A field of a row."""
        if isinstance(name_or_index, int):
            return self.at(name_or_index)
        if isinstance(self._node, s.Name):
            return self._of(s.Name(0, (*self._node.parts, name_or_index)))
        return self._of(s.FieldAccess(0, self._node, name_or_index))

    def at(self, index: Any) -> Expression:
        """The element at a position, from 1, or of a key."""
        return self._of(s.ElementAccess(0, self._node, node(index)))

    def object_update(self, *kv: Any) -> Expression:
        """The object with other values, given by field names and values in turn."""
        return self._call("OBJECT_UPDATE", self, *kv)

    def array_append(self, addition: Any) -> Expression:
        """With an element behind."""
        return self._call("ARRAY_APPEND", self, addition)

    def array_prepend(self, addition: Any) -> Expression:
        """With an element before."""
        return self._call("ARRAY_PREPEND", self, addition)

    def array_concat(self, *arrays: Any) -> Expression:
        """One array after the other."""
        return self._call("ARRAY_CONCAT", self, *arrays)

    def array_contains(self, needle: Any) -> Expression:
        """Whether an element is there."""
        return self._call("ARRAY_CONTAINS", self, needle)

    def array_distinct(self) -> Expression:
        """Without duplicates."""
        return self._call("ARRAY_DISTINCT", self)

    def array_position(self, needle: Any) -> Expression:
        """Where an element is."""
        return self._call("ARRAY_POSITION", self, needle)

    def array_remove(self, needle: Any) -> Expression:
        """Without an element."""
        return self._call("ARRAY_REMOVE", self, needle)

    def array_reverse(self) -> Expression:
        """Backwards."""
        return self._call("ARRAY_REVERSE", self)

    def array_slice(self, start_offset: Any, end_offset: Any = None) -> Expression:
        """Some of the elements."""
        return self._call("ARRAY_SLICE", self, start_offset, *([] if end_offset is None else [end_offset]))

    def array_sort(self, ascending_order: Any = None, null_first: Any = None) -> Expression:
        """In order."""
        more = [each for each in (ascending_order, null_first) if each is not None]
        return self._call("ARRAY_SORT", self, *more)

    def array_union(self, array: Any) -> Expression:
        """The elements of both."""
        return self._call("ARRAY_UNION", self, array)

    def array_except(self, array: Any) -> Expression:
        """The elements that are not in the other."""
        return self._call("ARRAY_EXCEPT", self, array)

    def array_intersect(self, array: Any) -> Expression:
        """The elements that are in both."""
        return self._call("ARRAY_INTERSECT", self, array)

    def array_max(self) -> Expression:
        """The greatest element."""
        return self._call("ARRAY_MAX", self)

    def array_min(self) -> Expression:
        """The least element."""
        return self._call("ARRAY_MIN", self)

    def array_join(self, delimiter: Any, null_replacement: Any = None) -> Expression:
        """The strings with a separator."""
        return self._call("ARRAY_JOIN", self, delimiter, *([] if null_replacement is None else [null_replacement]))

    def map_union(self, *maps: Any) -> Expression:
        """All entries."""
        return self._call("MAP_UNION", self, *maps)
