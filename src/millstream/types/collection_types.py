"""Types of arrays, lists and maps.

Promises: a column of collections is checked and converted as one flat column of all elements.
Does not know: what the elements are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, chain, pairwise, repeat
from operator import is_
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.types.arrow_types import BytesColumn, TypeMismatch, find_null_indexes
from millstream.types.basic_types import BasicType, BasicTypeInfo
from millstream.types.type_information import InvalidTypeArgument, LeafTypeInfo, TypeInformation, check_types

_BYTE = BasicTypeInfo(BasicType.BYTE)
_ELEMENT = "element"
_PRIMITIVES = ("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "CHAR")


def _compute_offsets(collections: Sequence[Any]) -> list[int]:
    return list(accumulate(map(len, _replace_none(collections)), initial=0))


def _replace_none(collections: Sequence[Any]) -> Sequence[Any]:
    """Replace None by an empty collection."""
    if type(None) not in set(map(type, collections)):
        return collections
    return [() if collection is None else collection for collection in collections]


def _conform_flat(type_info: TypeInformation, flat: list[Any], offsets: list[int], field: str) -> list[Any]:
    try:
        return type_info.conform(flat)
    except TypeMismatch as mismatch:
        raise mismatch.inside(field, bisect_right(offsets, mismatch.index) - 1) from None


class SequenceTypeInfo(TypeInformation):
    """The type of lists of elements of one type; tuples are converted to lists."""

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__()
        (self.elem_type,) = check_types([element_type], type(self).__name__)

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type of Arrow lists of the elements."""
        return pa.list_(self.elem_type.arrow_type)

    @property
    def is_columnar(self) -> bool:
        """Return whether the elements are columnar."""
        return self.elem_type.is_columnar

    def conform(self, values: list[Any]) -> list[Any]:
        """Check and convert values; see `TypeInformation.conform`."""
        lists = self._to_lists(values)
        flat = list(chain.from_iterable(v for v in lists if v is not None))
        offsets = _compute_offsets(lists)
        conformed = _conform_flat(self.elem_type, flat, offsets, _ELEMENT)
        if conformed is flat:
            return lists
        spans = zip(lists, offsets, offsets[1:], strict=False)
        return [None if v is None else conformed[start:end] for v, start, end in spans]

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an array of `arrow_type`."""
        lists = self._to_lists(list(values))
        collections = _replace_none(lists)
        offsets = np.zeros(len(lists) + 1, np.int32)
        np.cumsum(np.fromiter(map(len, collections), np.int32, len(lists)), out=offsets[1:])
        flat = list(chain.from_iterable(collections))
        try:
            elements = self.elem_type.to_arrow(flat)
        except TypeMismatch as mismatch:
            list_index = bisect_right(offsets, mismatch.index) - 1
            raise mismatch.inside(_ELEMENT, list_index) from None
        return pa.ListArray.from_arrays(
            pa.array(offsets), elements, type=self.arrow_type, mask=_create_null_mask(lists)
        )

    def _from_array(self, array: pa.Array) -> list[Any]:
        offsets = array.offsets.to_pylist()
        first = offsets[0]
        flat = self.elem_type.from_arrow(array.values.slice(first, offsets[-1] - first))
        lists: list[Any] = [flat[a - first : b - first] for a, b in pairwise(offsets)]
        for index in find_null_indexes(array):
            lists[index] = None
        return lists

    def _to_lists(self, values: list[Any]) -> list[Any]:
        if set(map(type, values)) <= {list, type(None)}:
            return values
        for index, value in enumerate(values):
            if value is not None and not isinstance(value, (list, tuple)):
                raise TypeMismatch(index, value, repr(self))
        return [value if value is None else list(value) for value in values]

    def to_json(self) -> dict[str, Any]:
        """Return a description of the type."""
        return {"type": self.json_tags[0], "element": self.elem_type.to_json()}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> SequenceTypeInfo:
        return cls(TypeInformation.type_from_json(description["element"]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.elem_type}>"


class ListTypeInfo(SequenceTypeInfo):
    """The type of lists.

    Example:
        >>> from millstream.common import Types
        >>> Types.LIST(Types.STRING())
        ListTypeInfo<String>

    """

    json_tags = ("LIST",)


class ObjectArrayTypeInfo(SequenceTypeInfo):
    """The type of arrays of elements of any type.

    Example:
        >>> from millstream.common import Types
        >>> Types.OBJECT_ARRAY(Types.STRING())
        ObjectArrayTypeInfo<String>

    """

    json_tags = ("OBJECT_ARRAY",)


class BasicArrayTypeInfo(SequenceTypeInfo):
    """The type of arrays of boxed primitives or strings.

    Example:
        >>> from millstream.common import Types
        >>> Types.BASIC_ARRAY(Types.LONG())
        BasicArrayTypeInfo<Long>

    """

    json_tags = ("BASIC_ARRAY",)

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        _check_element_type(self, element_type, (*_PRIMITIVES, "STRING"))


class PrimitiveArrayTypeInfo(SequenceTypeInfo):
    """The type of arrays of primitives.

    Example:
        >>> from millstream.common import Types
        >>> Types.PRIMITIVE_ARRAY(Types.LONG())
        PrimitiveArrayTypeInfo<Long>

    """

    json_tags = ("PRIMITIVE_ARRAY",)

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        _check_element_type(self, element_type, _PRIMITIVES)


class ByteArrayTypeInfo(LeafTypeInfo):
    """The type of arrays of primitive bytes, whose values are `bytes`."""

    json_tags = ("BYTES",)

    def __init__(self) -> None:
        text = "PrimitiveArrayTypeInfo<Byte>"
        super().__init__(BytesColumn(text), text)

    def to_json(self) -> dict[str, Any]:
        """Return a description of the type."""
        return {"type": "BYTES"}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> ByteArrayTypeInfo:  # noqa: ARG003
        return ByteArrayTypeInfo()


class MapTypeInfo(TypeInformation):
    """The type of dicts with keys and values of one type each; keys are never None.

    Example:
        >>> from millstream.common import Types
        >>> Types.MAP(Types.STRING(), Types.LONG())
        MapTypeInfo<String, Long>

    """

    json_tags = ("MAP",)

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        super().__init__()
        self.key_type, self.value_type = check_types([key_type_info, value_type_info], "MapTypeInfo")

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type of Arrow maps."""
        return pa.map_(self.key_type.arrow_type, self.value_type.arrow_type)

    @property
    def is_columnar(self) -> bool:
        """Return whether keys and values are columnar."""
        return self.key_type.is_columnar and self.value_type.is_columnar

    def conform(self, values: list[Any]) -> list[Any]:
        """Check and convert values; see `TypeInformation.conform`."""
        offsets, keys, items = self._flatten(values)
        new_keys = _conform_flat(self.key_type, keys, offsets, "key")
        new_items = _conform_flat(self.value_type, items, offsets, "value")
        if new_keys is keys and new_items is items and set(map(type, values)) <= {dict, type(None)}:
            return values
        return _build_dicts(values, offsets, new_keys, new_items)

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an array of `arrow_type`."""
        values = list(values)
        offsets, keys, items = self._flatten(values)
        arrays = []
        for type_info, flat, field in ((self.key_type, keys, "key"), (self.value_type, items, "value")):
            try:
                arrays.append(type_info.to_arrow(flat))
            except TypeMismatch as mismatch:
                raise mismatch.inside(field, bisect_right(offsets, mismatch.index) - 1) from None
        starts: list[int | None] = list(offsets)
        for index, value in enumerate(values):
            if value is None:
                starts[index] = None
        return pa.MapArray.from_arrays(pa.array(starts, pa.int32()), *arrays, type=self.arrow_type)

    def _from_array(self, array: pa.Array) -> list[Any]:
        offsets = array.offsets.to_pylist()
        first, length = offsets[0], offsets[-1] - offsets[0]
        keys = self.key_type.from_arrow(array.keys.slice(first, length))
        items = self.value_type.from_arrow(array.items.slice(first, length))
        present: list[Any] = [True] * len(array)
        for index in find_null_indexes(array):
            present[index] = None
        return _build_dicts(present, [offset - first for offset in offsets], keys, items)

    def _flatten(self, values: list[Any]) -> tuple[list[int], list[Any], list[Any]]:
        if not set(map(type, values)) <= {dict, type(None)}:
            for index, value in enumerate(values):
                if value is not None and not isinstance(value, dict):
                    raise TypeMismatch(index, value, repr(self))
        offsets = _compute_offsets(values)
        keys = list(chain.from_iterable(v for v in values if v is not None))
        items = list(chain.from_iterable(v.values() for v in values if v is not None))
        if None in keys:
            raise TypeMismatch(bisect_right(offsets, keys.index(None)) - 1, None, repr(self.key_type), ("key",))
        return offsets, keys, items

    def to_json(self) -> dict[str, Any]:
        """Return a description of the type."""
        return {"type": "MAP", "key": self.key_type.to_json(), "value": self.value_type.to_json()}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> MapTypeInfo:
        read: Callable[[dict[str, Any]], TypeInformation] = TypeInformation.type_from_json
        return MapTypeInfo(read(description["key"]), read(description["value"]))

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self.key_type}, {self.value_type}>"


def create_primitive_array(element_type: TypeInformation) -> TypeInformation:
    """Return the type of arrays of a primitive type; arrays of BYTE are `bytes`, others are lists."""
    return ByteArrayTypeInfo() if element_type == _BYTE else PrimitiveArrayTypeInfo(element_type)


def _build_dicts(values: Sequence[Any], offsets: list[int], keys: list[Any], items: list[Any]) -> list[Any]:
    spans = zip(values, offsets, offsets[1:], strict=False)
    return [None if v is None else dict(zip(keys[start:end], items[start:end], strict=True)) for v, start, end in spans]


def _create_null_mask(values: Sequence[Any]) -> pa.Array | None:
    is_null = list(map(is_, values, repeat(None)))
    return pa.array(is_null, pa.bool_()) if True in is_null else None


def _check_element_type(owner: TypeInformation, element_type: TypeInformation, names: tuple[str, ...]) -> None:
    if element_type.to_json()["type"] not in names:
        message = f"{type(owner).__name__} cannot hold {element_type}"
        raise InvalidTypeArgument(message, element_type, hint="use Types.OBJECT_ARRAY or Types.LIST")
