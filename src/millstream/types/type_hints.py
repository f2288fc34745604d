"""Types from Python's own type hints.

Promises: a hint gives a type only if every value it allows survives the trip unchanged, apart from ints where floats
are promised; whatever is not understood gives None and is never evaluated twice or allowed to raise.
Does not know: which functions are asked about, or what happens without a type."""

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
    hints_of_fields,
    is_named_tuple,
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


def type_of_hint(hint: Any) -> TypeInformation | None:
    """The type of the values a hint allows, or None if it allows others than one type can hold."""
    return _type_of(hint, ())


def return_type_of(function: Any, element: bool = False) -> TypeInformation | None:
    """The type of what a function returns by its annotation; with `element`, of the items it returns or yields."""
    hint = _return_hint(function)
    if element:
        arguments = typing.get_args(hint)
        if typing.get_origin(hint) not in _ITERABLES or not arguments:
            return None
        if typing.get_origin(hint) is tuple and arguments[1:] != (...,):
            return None
        hint = arguments[0]
    return type_of_hint(hint)


def _type_of(hint: Any, within: tuple[Any, ...]) -> TypeInformation | None:
    if isinstance(hint, typing.Hashable) and hint in _LEAVES:
        return _LEAVES[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _type_of(arguments[0], within)
    if origin in (typing.Union, types.UnionType):
        kinds = [argument for argument in arguments if argument is not type(None)]
        return _type_of(kinds[0], within) if len(kinds) == 1 else None
    if origin is tuple:
        parts = [_type_of(argument, within) for argument in arguments if argument is not ...]
        known = [part for part in parts if part is not None]
        return TupleTypeInfo(known) if known and len(known) == len(arguments) else None
    if origin is list:
        item = _type_of(arguments[0], within)
        return None if item is None else ListTypeInfo(item)
    if origin is dict:
        key, value = (_type_of(argument, within) for argument in arguments)
        return None if key is None or value is None else MapTypeInfo(key, value)
    return _type_of_class(hint, within) if isinstance(hint, type) and hint not in within else None


def _type_of_class(cls: type, within: tuple[Any, ...]) -> TypeInformation | None:
    if not is_named_tuple(cls) and not _is_plain_dataclass(cls):
        return None
    kinds, names = [], []
    for name, hint in hints_of_fields(cls):
        kind = _type_of(hint, (*within, cls))
        if kind is None:
            return None
        kinds.append(kind)
        names.append(name)
    return NamedTupleTypeInfo(cls, kinds, names) if is_named_tuple(cls) else DataclassTypeInfo(cls, kinds, names)


def _is_plain_dataclass(cls: type) -> bool:
    # what __post_init__ or a base class of another kind keeps outside the fields would be lost
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
    except Exception:  # annotations are arbitrary code and only a hint here
        return None
