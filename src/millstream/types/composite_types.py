"""Types with fields: rows, tuples, named tuples and dataclasses.

Promises: a column of records is checked and converted field by field, as columns. A record that is converted to Arrow
and back is equal to the original, including its row kind.
Does not know: what the fields contain."""

from __future__ import annotations

import dataclasses
import sys
import typing
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa

from millstream.types.arrow_types import TypeMismatch, find_null_indexes
from millstream.types.row import KINDS, Row, RowKind, create_rows
from millstream.types.type_information import InvalidTypeArgument, TypeInformation, check_types

KIND_FIELD = "$kind"
_INSERT = RowKind.INSERT
_NONE = type(None)


class StructTypeInfo(TypeInformation):
    """The base class of types with named fields."""

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str]) -> None:
        super().__init__()
        self.field_types = check_types(field_types, type(self).__name__)
        self.field_names = list(field_names)
        if len(self.field_names) != len(self.field_types):
            message = f"got {len(self.field_names)} field names, but {len(self.field_types)} field types"
            raise InvalidTypeArgument(message, field_names)
        if len(set(self.field_names)) != len(self.field_names):
            message = f"field names {self.field_names} are not unique"
            raise InvalidTypeArgument(message, field_names)
        self._arrow_type = pa.struct(self._arrow_fields())
        self._columnar = all(field_type.is_columnar for field_type in self.field_types)

    def _arrow_fields(self) -> list[tuple[str, pa.DataType]]:
        return [(n, t.arrow_type) for n, t in zip(self.field_names, self.field_types, strict=True)]

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type of Arrow structs of the fields."""
        return self._arrow_type

    @property
    def is_columnar(self) -> bool:
        """Return whether all fields are columnar."""
        return self._columnar

    @abstractmethod
    def _split(self, values: list[Any]) -> tuple[list[list[Any]], bool]:
        """Return the column of each field, and whether all values are exactly of this type; no value is None."""

    @abstractmethod
    def _join(self, columns: list[list[Any]], count: int) -> list[Any]:
        """Create `count` values of this type from the columns of their fields."""

    def conform(self, values: list[Any]) -> list[Any]:
        """Check and convert values; see `TypeInformation.conform`."""
        missing, columns, exact = self._columns(values)
        conformed: list[list[Any]] = [
            self._convert_field(name, field_type.conform, column)
            for name, field_type, column in zip(self.field_names, self.field_types, columns, strict=True)
        ]
        if exact and all(new is old for new, old in zip(conformed, columns, strict=True)):
            return values
        objects = self._join(conformed, len(values))
        for index in missing:
            objects[index] = None
        self._copy_row_kinds(values, objects)
        return objects

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an array of `arrow_type`."""
        values = values if isinstance(values, list) else list(values)
        missing, columns, _ = self._columns(values)
        arrays = [
            self._convert_field(name, field_type.to_arrow, column)
            for name, field_type, column in zip(self.field_names, self.field_types, columns, strict=True)
        ]
        return self._struct(arrays + self._extra_arrays(values), len(values), missing)

    def _from_array(self, array: pa.Array) -> list[Any]:
        columns = [field_type.from_arrow(array.field(i)) for i, field_type in enumerate(self.field_types)]
        objects = self._join(columns, len(array))
        for index in find_null_indexes(array):
            objects[index] = None
        return objects

    def _extra_arrays(self, values: list[Any]) -> list[pa.Array]:
        return []

    def _copy_row_kinds(self, values: list[Any], objects: list[Any]) -> None:
        """Copy the row kinds of the values to the converted objects."""

    def _struct(self, arrays: list[pa.Array], length: int, missing: list[int]) -> pa.Array:
        if not arrays:
            null_rows = set(missing)
            return pa.array([None if i in null_rows else {} for i in range(length)], self._arrow_type)
        mask = None
        if missing:
            is_null = [False] * length
            for index in missing:
                is_null[index] = True
            mask = pa.array(is_null, pa.bool_())
        return pa.StructArray.from_arrays(arrays, fields=list(self._arrow_type), mask=mask)

    def _columns(self, values: list[Any]) -> tuple[list[int], list[list[Any]], bool]:
        """Return the indexes of None, the column of each field, and whether all values are exactly of this type."""
        if _NONE not in set(map(type, values)):
            return [], *self._split(values)
        missing = [index for index, value in enumerate(values) if value is None]
        try:
            columns, exact = self._split([value for value in values if value is not None])
        except TypeMismatch as mismatch:
            raise TypeMismatch(_index_among_all(missing, mismatch.index), mismatch.value, mismatch.expected) from None
        present = [value is not None for value in values]
        return missing, [_insert_none(column, present) for column in columns], exact

    def _transpose(self, values: list[Any], records: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return the columns of records, which must have as many fields as the type."""
        field_count = len(self.field_types)
        if not records:
            return [[] for _ in range(field_count)]
        if set(map(len, records)) != {field_count}:
            mismatch = next(index for index, record in enumerate(records) if len(record) != field_count)
            raise TypeMismatch(mismatch, values[mismatch], repr(self))
        return [
            list(map(itemgetter(index), records)) for index in range(field_count)
        ]  # four times as fast as zip(*records)

    @staticmethod
    def _convert_field(name: str, convert: Callable[[list[Any]], Any], column: list[Any]) -> Any:
        try:
            return convert(column)
        except TypeMismatch as mismatch:
            raise mismatch.inside(name) from None

    def get_field_names(self) -> list[str]:
        """Return the names of the fields, in order."""
        return self.field_names

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields, in order."""
        return self.field_types

    def to_json(self) -> dict[str, Any]:
        """Return a description of the type."""
        return {
            "type": self.json_tags[0],
            "names": list(self.field_names),
            "fields": [field_type.to_json() for field_type in self.field_types],
        }

    def schema_equals(self, other: object) -> bool:
        """Return whether the types are equal including the names of their fields."""
        return type(self) is type(other) and self.to_json() == other.to_json()


class TupleTypeInfo(StructTypeInfo):
    """The type of tuples; lists, rows and instances of subclasses of tuple are converted to tuples.

    Example:
        >>> from millstream.common import Types
        >>> Types.TUPLE([Types.STRING(), Types.LONG()])
        TupleTypeInfo(String, Long)

    """

    json_tags = ("TUPLE",)

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        super().__init__(field_types, [f"f{index}" for index in range(len(field_types))])

    def _split(self, values: list[Any]) -> tuple[list[list[Any]], bool]:
        if set(map(type, values)) <= {tuple}:
            return self._transpose(values, values), True
        for index, value in enumerate(values):
            if not isinstance(value, (tuple, list, Row)):
                raise TypeMismatch(index, value, repr(self))
        return self._transpose(values, [tuple(value) for value in values]), False

    def _join(self, columns: list[list[Any]], count: int) -> list[Any]:
        return list(zip(*columns, strict=True)) if columns else [()] * count

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> TupleTypeInfo:
        return TupleTypeInfo(_read_field_types(description))

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self.field_types))})"


class RowTypeInfo(StructTypeInfo):
    """The type of rows; tuples, lists, dicts and objects with the fields as attributes are converted to rows.

    As in Flink, two row types are equal if their field types are equal; `schema_equals` also compares the names. In
    Arrow, the row kind is an additional field, which is null for inserted rows.

    Example:
        >>> from millstream.common import Types
        >>> row_type = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.LONG()])
        >>> row_type.get_field_names(), row_type.get_field_index("amount")
        (['name', 'amount'], 1)

    """

    json_tags = ("ROW",)

    def __init__(self, field_types: list[TypeInformation], field_names: list[str] | None = None) -> None:
        self._named = field_names is not None
        names = [f"f{index}" for index in range(len(field_types))] if field_names is None else field_names
        super().__init__(field_types, names)

    def _arrow_fields(self) -> list[tuple[str, pa.DataType]]:
        return [*super()._arrow_fields(), (KIND_FIELD, pa.int8())]

    def get_field_index(self, field_name: str) -> int:
        """Return the index of a field by its name; -1 in a type without names.

        Args:
            field_name: The name of the field.

        """
        return self.field_names.index(field_name) if self._named else -1

    def _split(self, values: list[Any]) -> tuple[list[list[Any]], bool]:
        names = self.field_names
        if set(map(type, values)) <= {Row}:
            named_count = sum(map(hasattr, values, repeat("_fields")))
            if not named_count or (named_count == len(values) and all([row._fields == names for row in values])):
                return self._transpose(values, [row._values for row in values]), True
        return self._transpose(values, [self._to_record(i, value) for i, value in enumerate(values)]), False

    def conform(self, values: list[Any]) -> list[Any]:
        """Check and convert values; rows without field names get those of the type."""
        rows = super().conform(values)
        first = next((row for row in rows if row is not None), None)
        if first is not None and not hasattr(first, "_fields"):
            present_rows = [row for row in rows if row is not None]
            deque(map(Row.set_field_names, present_rows, repeat(self.field_names)), 0)
        return rows

    def _to_record(self, index: int, value: Any) -> Sequence[Any]:
        names = self.field_names
        if isinstance(value, Row):
            row_names: list[str] | None = getattr(value, "_fields", None)
            if row_names is None or row_names == names:
                return value._values
            if set(names) <= set(row_names):
                return [value._values[row_names.index(name)] for name in names]
        elif isinstance(value, (tuple, list)):
            return value
        elif isinstance(value, dict):
            return [value.get(name) for name in names]
        elif all(hasattr(value, name) for name in names):
            return [getattr(value, name) for name in names]
        raise TypeMismatch(index, value, repr(self))

    def _join(self, columns: list[list[Any]], count: int) -> list[Any]:
        return create_rows(self.field_names, zip(*columns, strict=True) if columns else repeat((), count), count)

    def _copy_row_kinds(self, values: list[Any], objects: list[Any]) -> None:
        for value, row in zip(values, objects, strict=True):
            if isinstance(value, Row):
                row.set_row_kind(value._row_kind)

    def _extra_arrays(self, values: list[Any]) -> list[pa.Array]:
        kinds = [value._row_kind if isinstance(value, Row) else _INSERT for value in values]
        if all([kind is _INSERT for kind in kinds]):
            return [pa.nulls(len(values), pa.int8())]
        return [pa.array([None if kind is _INSERT else kind.value for kind in kinds], pa.int8())]

    def _from_array(self, array: pa.Array) -> list[Any]:
        rows = super()._from_array(array)
        if array.type.num_fields > len(self.field_types):
            kinds = array.field(len(self.field_types))
            if kinds.null_count < len(kinds):
                for row, kind in zip(rows, kinds.to_pylist(), strict=True):
                    if kind is not None and row is not None:
                        row.set_row_kind(KINDS[kind])
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return a description of the type."""
        description = super().to_json()
        if not self._named:
            del description["names"]
        return description

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> RowTypeInfo:
        return RowTypeInfo(_read_field_types(description), description.get("names"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowTypeInfo) and self.field_types == other.field_types

    def __hash__(self) -> int:
        return hash(("ROW", *self.field_types))

    def __repr__(self) -> str:
        if not self._named:
            return f"RowTypeInfo({', '.join(map(str, self.field_types))})"
        pairs = zip(self.field_names, self.field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {field_type}' for name, field_type in pairs)})"


class _ClassTypeInfo(StructTypeInfo):
    """The base class of types of instances of exactly one class, which are stored field by field."""

    def __init__(self, cls: type, field_types: Sequence[TypeInformation], field_names: Sequence[str]) -> None:
        self.cls = cls
        super().__init__(field_types, field_names)

    def _split(self, values: list[Any]) -> tuple[list[list[Any]], bool]:
        if not set(map(type, values)) <= {self.cls}:
            index = next(index for index, value in enumerate(values) if type(value) is not self.cls)
            raise TypeMismatch(index, values[index], repr(self))
        return [list(map(attrgetter(name), values)) for name in self.field_names], True

    def to_json(self) -> dict[str, Any]:
        """Return a description of the type; it names the class by module and qualified name."""
        return {**super().to_json(), "class": f"{self.cls.__module__}:{self.cls.__qualname__}"}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> TypeInformation:
        types, names = _read_field_types(description), description["names"]
        record_class = _find_loaded_class(description["class"])
        # Instances of a class that this program has not imported are read as rows.
        return RowTypeInfo(types, names) if record_class is None else cls(record_class, types, names)

    def __repr__(self) -> str:
        pairs = zip(self.field_names, self.field_types, strict=True)
        fields = ", ".join(f"{name}: {field_type}" for name, field_type in pairs)
        return f"{type(self).__name__}<{self.cls.__qualname__}>({fields})"


class NamedTupleTypeInfo(_ClassTypeInfo):
    """The type of instances of one NamedTuple class.

    Example:
        >>> from typing import NamedTuple
        >>> from millstream.common import Types
        >>> class Order(NamedTuple):
        ...     name: str
        ...     amount: int
        >>> Types.NAMED_TUPLE(Order)
        NamedTupleTypeInfo<Order>(name: String, amount: Long)

    """

    json_tags = ("NAMED_TUPLE",)

    def _join(self, columns: list[list[Any]], count: int) -> list[Any]:
        records = zip(*columns, strict=True) if columns else repeat((), count)
        return list(map(tuple.__new__, repeat(self.cls), records))


class DataclassTypeInfo(_ClassTypeInfo):
    """The type of instances of one dataclass.

    Like unpickling, reading creates instances without calling `__init__` and `__post_init__`.

    Example:
        >>> from dataclasses import dataclass
        >>> from millstream.common import Types
        >>> @dataclass
        ... class Order:
        ...     name: str
        ...     amount: int
        >>> Types.DATACLASS(Order)
        DataclassTypeInfo<Order>(name: String, amount: Long)

    """

    json_tags = ("DATACLASS",)

    def _join(self, columns: list[list[Any]], count: int) -> list[Any]:
        instances: list[Any] = list(map(object.__new__, repeat(self.cls, count)))
        for name, column in zip(self.field_names, columns, strict=True):
            deque(map(object.__setattr__, instances, repeat(name), column), 0)
        return instances


def is_named_tuple(cls: Any) -> bool:
    """Return whether a class was created by NamedTuple."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


def read_hints_of_fields(cls: type) -> list[tuple[str, Any]]:
    """Return the fields of a dataclass or NamedTuple class with their type hints.

    The hint is Any if it cannot be resolved.
    """
    try:
        hints = typing.get_type_hints(cls)
    except Exception:  # evaluating a hint can raise any error
        hints = {}
    names = [f.name for f in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else cls._fields  # type: ignore[attr-defined]
    return [(name, hints.get(name, Any)) for name in names]


def _read_field_types(description: dict[str, Any]) -> list[TypeInformation]:
    return [TypeInformation.type_from_json(field) for field in description["fields"]]


def _find_loaded_class(path: str) -> type | None:
    """Return a class by module and qualified name if the program has imported it; nothing is imported."""
    module, _, qualname = path.partition(":")
    target: Any = sys.modules.get(module)
    for part in qualname.split("."):
        target = getattr(target, part, None)
    return target if dataclasses.is_dataclass(target) or is_named_tuple(target) else None


def _insert_none(column: list[Any], present: list[bool]) -> list[Any]:
    """Insert None into a column of the present values at the indexes of missing values."""
    values = iter(column)
    return [next(values) if is_present else None for is_present in present]


def _index_among_all(missing: list[int], present: int) -> int:
    """Convert an index among the present values to an index among all values."""
    index = present
    for missing_index in missing:
        if missing_index > index:
            break
        index += 1
    return index
