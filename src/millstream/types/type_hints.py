"""Type information from Python type hints.

Promises: a hint gives a type only if every value that it allows is preserved, except that ints are accepted as floats.
A hint that is not understood gives None and raises no error.
Does not know: which functions are inspected, and what is done without a type."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import functools
import inspect
import types
import typing
from decimal import Decimal
from typing import Any

from millstream.times import Instant
from millstream.types.basic_types import BasicType, BasicTypeInfo, LocalTimeTypeInfo
from millstream.types.collection_types import ByteArrayTypeInfo, ListTypeInfo, MapTypeInfo
from millstream.types.composite_types import (
    DataclassTypeInfo,
    NamedTupleTypeInfo,
    TupleTypeInfo,
    is_named_tuple,
    read_hints_of_fields,
)
from millstream.types.type_information import TypeInformation

_LEAVES: dict[Any, TypeInformation] = {
    int: BasicTypeInfo(BasicType.LONG),
    str: BasicTypeInfo(BasicType.STRING),
    float: BasicTypeInfo(BasicType.DOUBLE),
    bool: BasicTypeInfo(BasicType.BOOLEAN),
    bytes: ByteArrayTypeInfo(),
    Decimal: BasicTypeInfo(BasicType.BIG_DEC),
    Instant: BasicTypeInfo(BasicType.INSTANT),
    datetime.datetime: LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME),
    datetime.date: LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE),
    datetime.time: LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_TIME),
}
_ITERABLES = (
    list,
    set,
    frozenset,
    tuple,
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.Generator,
    collections.abc.Collection,
    collections.abc.Sequence,
)


def find_type_of_hint(hint: Any) -> TypeInformation | None:
    """Return the type of the values that a hint allows; None if no type can hold all of them."""
    return _find_type(hint, ())


def find_return_type(function: Any, element: bool = False) -> TypeInformation | None:
    """Return the type of a function's result according to its annotation.

    Args:
        function: The function.
        element: Whether to return the type of the items of the returned iterable.

    """
    hint = _return_hint(function)
    if element:
        arguments = typing.get_args(hint)
        if typing.get_origin(hint) not in _ITERABLES or not arguments:
            return None
        if typing.get_origin(hint) is tuple and arguments[1:] != (...,):
            return None
        hint = arguments[0]
    return find_type_of_hint(hint)


def _find_type(hint: Any, enclosing_classes: tuple[Any, ...]) -> TypeInformation | None:
    if isinstance(hint, typing.Hashable) and hint in _LEAVES:
        return _LEAVES[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _find_type(arguments[0], enclosing_classes)
    if origin in (typing.Union, types.UnionType):
        alternatives = [argument for argument in arguments if argument is not type(None)]
        return _find_type(alternatives[0], enclosing_classes) if len(alternatives) == 1 else None
    if origin is tuple:
        item_types = [_find_type(argument, enclosing_classes) for argument in arguments if argument is not ...]
        known_types = [item_type for item_type in item_types if item_type is not None]
        return TupleTypeInfo(known_types) if known_types and len(known_types) == len(arguments) else None
    if origin is list:
        item = _find_type(arguments[0], enclosing_classes)
        return None if item is None else ListTypeInfo(item)
    if origin is dict:
        key, value = (_find_type(argument, enclosing_classes) for argument in arguments)
        return None if key is None or value is None else MapTypeInfo(key, value)
    return (
        _find_type_of_class(hint, enclosing_classes)
        if isinstance(hint, type) and hint not in enclosing_classes
        else None
    )


def _find_type_of_class(cls: type, enclosing_classes: tuple[Any, ...]) -> TypeInformation | None:
    if not is_named_tuple(cls) and not _is_plain_dataclass(cls):
        return None
    types, names = [], []
    for name, hint in read_hints_of_fields(cls):
        field_type = _find_type(hint, (*enclosing_classes, cls))
        if field_type is None:
            return None
        types.append(field_type)
        names.append(name)
    return NamedTupleTypeInfo(cls, types, names) if is_named_tuple(cls) else DataclassTypeInfo(cls, types, names)


def _is_plain_dataclass(cls: type) -> bool:
    # Attributes that __post_init__ or another base class sets outside of the fields would be lost.
    return (
        dataclasses.is_dataclass(cls)
        and not hasattr(cls, "__post_init__")
        and all(dataclasses.is_dataclass(base) or base is object for base in cls.__mro__)
    )


def _return_hint(function: Any) -> Any:
    try:
        while isinstance(function, functools.partial):
            function = function.func
        function = inspect.unwrap(function)
        if not inspect.isroutine(function):
            function = type(function).__call__
        function = getattr(function, "__func__", function)
        hint = function.__annotations__.get("return")
        if hint is None:
            return None
        holder = types.SimpleNamespace(__annotations__={"return": hint})
        closure = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
        return typing.get_type_hints(holder, function.__globals__, dict(closure))["return"]
    except Exception:  # evaluating annotations can raise any error, and without a hint the type is declared
        return None
