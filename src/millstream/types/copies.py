"""Copies of records: what a function does to an object after it has emitted it does not change the emitted record.

A task processes batches, so a record that a function has emitted is read by the next operator when the function has
seen the rest of the batch. Without a copy, a function that emits one list again and again, or a reduce function that
changes its first argument, would change records that it emitted before. Flink serializes each record at that point.

Promises: values that cannot change are not copied; a value that has no copy, such as a lock, is passed on as it is.
Does not know: operators."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import types
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from millstream.types.basic_types import PickledBytesTypeInfo
from millstream.types.composite_types import TupleTypeInfo
from millstream.types.row import Row
from millstream.types.type_information import LeafTypeInfo, TypeInformation

_IMMUTABLE: frozenset[type] = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, type(...), range, uuid.UUID, decimal.Decimal),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
    }
)
_IMMUTABLE_BASES = (np.generic, enum.Enum, type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
_are_immutable = _IMMUTABLE.issuperset


def find_copier(record_type: TypeInformation) -> Callable[[Any], Any] | None:
    """Return the function that copies a record of the type; None if such records cannot change."""
    if isinstance(record_type, TupleTypeInfo) and all(map(is_immutable, record_type.field_types)):
        return _copy_unless_tuple
    return None if is_immutable(record_type) else copy_value


def is_immutable(record_type: TypeInformation) -> bool:
    """Return whether the values of a type cannot change: numbers, texts, times and the like."""
    return isinstance(record_type, LeafTypeInfo) and not isinstance(record_type, PickledBytesTypeInfo)


def _copy_unless_tuple(value: Any) -> Any:
    """Copy a record of a tuple type whose fields cannot change; it can be a list or a row, too."""
    return value if value.__class__ is tuple else copy_value(value)


def copy_records(record_type: TypeInformation, records: list[Any]) -> list[Any]:
    """Return a copy of each record."""
    copy_record = find_copier(record_type)
    return records if copy_record is None else list(map(copy_record, records))


def copy_value(value: Any) -> Any:
    """Return a value that does not change when `value` does; it is `value` itself if that cannot change."""
    try:
        return _copy(value)
    except RecursionError:  # the value contains itself
        return _copy_any(value)


def _copy(value: Any) -> Any:
    cls = value.__class__
    if cls in _IMMUTABLE or (cls is tuple and _are_immutable(map(type, value))):
        return value
    return (_COPIERS.get(cls) or _add_copier(cls))(value)


def _copy_items(values: Any) -> list[Any]:
    return [value if value.__class__ in _IMMUTABLE else _copy(value) for value in values]


def _copy_dict(values: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value if value.__class__ in _IMMUTABLE else _copy(value) for key, value in values.items()}


def _copy_row(row: Row) -> Row:
    return Row._from(getattr(row, "_fields", None), _copy_items(row._values), row._row_kind)


def _copy_object(value: Any) -> Any:
    """Copy an object that is nothing but its attributes."""
    duplicate = object.__new__(value.__class__)
    duplicate.__dict__.update(_copy_dict(value.__dict__))
    return duplicate


def _copy_any(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # of the classes of the value, which may raise anything
        return value


def _add_copier(cls: type) -> Callable[[Any], Any]:
    """Choose how values of a class are copied, and remember it."""
    copy: Callable[[Any], Any] = _copy_any
    if issubclass(cls, _IMMUTABLE_BASES):
        copy = _keep
    elif issubclass(cls, tuple) and hasattr(cls, "_make"):
        make = cls._make

        def copy(value: Any) -> Any:
            return make(_copy_items(value))

    elif _has_only_attributes(cls):
        copy = _copy_object
    _COPIERS[cls] = copy
    return copy


def _keep(value: Any) -> Any:
    return value


def _has_only_attributes(cls: type) -> bool:
    """Whether instances are ordinary objects: no slots, no base written in C, no way of their own to be copied."""
    own_ways = ("__deepcopy__", "__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__new__")
    bases = cls.__mro__[:-1]
    return all(
        ("__dict__" in vars(base) or base.__base__ is not object)  # of a class that Python code defines
        and "__slots__" not in vars(base)
        and not any(way in vars(base) for way in own_ways)
        for base in bases
    )


_COPIERS: dict[type, Callable[[Any], Any]] = {
    tuple: lambda value: tuple(_copy_items(value)),
    list: _copy_items,
    dict: _copy_dict,
    set: lambda value: set(_copy_items(value)),
    frozenset: lambda value: frozenset(_copy_items(value)),
    bytearray: bytearray,
    Row: _copy_row,
    np.ndarray: _copy_any,
}
