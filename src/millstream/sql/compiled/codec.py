"""JSON form of parts of plans: operator specs, expressions, types, constants.

Promises: decoding returns an equal value. Only the classes listed here are created, from plain values, so a plan cannot
run code that this release does not have. A part that this release does not know is refused by name.
Does not know: tables, plans."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from millstream.errors import UserError
from millstream.job.traits import OperatorTraits
from millstream.runtime.nfa.pattern import Skip, SkipKind
from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition, TableDistribution
from millstream.sql.errors import SqlError, SqlNotSupported
from millstream.sql.expressions import nodes as e
from millstream.sql.functions.function_context import AsyncOptions
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.logical.nodes import Unnest
from millstream.sql.logical.patterns import MatchDescription, PatternRef
from millstream.sql.operators.join.lookup_join import Retry
from millstream.sql.operators.library import OPERATOR_SPECS
from millstream.sql.physical.nodes import Distribution
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t
from millstream.times import MICROSECOND
from millstream.types.nanoseconds import read_iso_timestamp

_CLASSES: tuple[type, ...] = (
    e.Ref, e.Lit, e.Sym, e.Apply, e.Convert, e.Choose, e.UserCall, e.AggregateCall, e.FieldRef,
    l.Values, l.WindowSpec, l.OverCall, Distribution, AsyncOptions, Unnest, Skip, MatchDescription, OperatorTraits,
    ColumnDefinition, TableDefinition, TableDistribution, t.RowField, t.RowType, t.ArrayType, t.MultisetType, t.MapType,
    t.JsonTextType, t.SymbolType, t.RawType, t.VariantType, t.BitmapType, t.NullType, t.DescriptorType,
    t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType,  # the type of an empty literal has no text that is read
    PatternRef, Retry, *OPERATOR_SPECS,
)  # fmt: skip
_BY_NAME: dict[str, Any] = {cls.__name__: cls for cls in _CLASSES}
_ATTRIBUTES = (t.ROWTIME, t.PROCTIME)


class UnreadablePlan(UserError):
    """A plan, or a part of one, that this release cannot read."""

    hint = "compile it again, or use the release that wrote it or a later one"


class Writer:
    """Encodes parts of plans as plain values. `named` returns the names of user-defined functions."""

    def __init__(self, named: Callable[[UserFunction], tuple[str, ...]]) -> None:
        self._named = named

    def plain(self, value: Any) -> Any:
        """Encode a value for JSON."""
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else {"$float": repr(value)}
            case tuple():
                return [self.plain(item) for item in value]
            case list():
                return {"$list": [self.plain(item) for item in value]}
            case frozenset():
                return {"$set": sorted((self.plain(item) for item in value), key=repr)}
            case dict():
                return {"$map": [[self.plain(key), self.plain(item)] for key, item in value.items()]}
            case Decimal():
                return {"$decimal": str(value)}
            case bytes():
                return {"$bytes": value.hex()}
            case datetime.datetime():
                return {"$timestamp": value.isoformat()}
            case datetime.date():
                return {"$date": value.isoformat()}
            case datetime.time():
                return {"$time": value.isoformat()}
            case datetime.timedelta():
                return {"$micros": value // MICROSECOND}
            case SkipKind():
                return {"$skip": value.value}
            case UserFunction():
                return {"$function": list(self._named(value))}
            case t.RowType():
                named = {"class": value.class_name} if isinstance(value, t.StructuredType) else {}
                return {"$row": [self._field(item) for item in value.fields], "null": value.null, **named}
            case t.DataType():
                return self._type(value)
        return self._object(value)

    def _field(self, field: t.RowField) -> list[Any]:
        return [field.name, self.plain(field.data_type), *([] if field.description is None else [field.description])]

    def _type(self, data_type: t.DataType) -> Any:
        text = str(data_type)
        return {"$type": text} if _is_same(data_type, _parse_type(text)) else self._object(data_type)

    def _object(self, value: Any) -> dict[str, Any]:
        name = type(value).__name__
        cls = _BY_NAME.get(name)
        if cls is not type(value):
            message = f"a plan with {name} cannot be compiled"
            raise SqlNotSupported(message)
        parts = {field.name: self.plain(getattr(value, field.name)) for field in dataclasses.fields(cls) if field.init}
        return {"$": name, **parts}


class Reader:
    """Decodes what `Writer` encodes. `function` finds a user-defined function by name."""

    def __init__(self, function: Callable[[tuple[str, ...]], UserFunction]) -> None:
        self._function = function

    def value(self, data: Any) -> Any:
        """Decode a plain value."""
        if isinstance(data, list):
            return tuple(self.value(item) for item in data)
        if not isinstance(data, Mapping):
            return data
        if "$" in data:
            return self._object(data)
        if "$row" in data:
            fields, null = tuple(map(self._field, data["$row"])), data["null"]
            class_name = data.get("class")
            return (
                t.RowType(fields, null=null) if class_name is None else t.StructuredType(fields, class_name, null=null)
            )
        ((tag, inner),) = data.items()
        match tag:
            case "$type":
                data_type = _parse_type(inner)
                if data_type is None:
                    message = f"the plan has a type '{inner}', which this release does not know"
                    raise UnreadablePlan(message)
                return data_type
            case "$list":
                return [self.value(item) for item in inner]
            case "$set":
                return frozenset(self.value(item) for item in inner)
            case "$map":
                return {self.value(key): self.value(item) for key, item in inner}
            case "$function":
                return self._function(tuple(inner))
        decode = _PLAIN.get(tag)
        if decode is None:
            message = f"the plan has a part '{tag}', which this release does not know"
            raise UnreadablePlan(message)
        return decode(inner)

    def _field(self, data: list[Any]) -> t.RowField:
        name, data_type, *description = data
        return t.RowField(name, self.value(data_type), *description)

    def _object(self, data: Mapping[str, Any]) -> Any:
        cls = _BY_NAME.get(data["$"])
        if cls is None:
            message = f"the plan has a part '{data['$']}', which this release does not know"
            raise UnreadablePlan(message)
        try:
            return cls(**{name: self.value(part) for name, part in data.items() if name != "$"})
        except TypeError as problem:
            message = f"the plan's {data['$']} is not what this release has: {problem}"
            raise UnreadablePlan(message) from None


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "$float": float,
    "$decimal": Decimal,
    "$bytes": bytes.fromhex,
    "$timestamp": read_iso_timestamp,
    "$date": datetime.date.fromisoformat,
    "$time": datetime.time.fromisoformat,
    "$micros": lambda count: count * MICROSECOND,
    "$skip": SkipKind,
}


def _parse_type(text: str) -> t.DataType | None:
    """Parse a type with its time attribute; None if the text is not a type."""
    attribute = next((name for name in _ATTRIBUTES if text.endswith(f" *{name}*")), None)
    try:
        data_type = parse_type(text if attribute is None else text.removesuffix(f" *{attribute}*"))
    except SqlError:
        return None
    return data_type if attribute is None else dataclasses.replace(data_type, attribute=attribute)  # type: ignore[call-arg]


def _is_same(left: t.DataType, right: t.DataType | None) -> bool:
    return right is not None and type(left) is type(right) and left == right and str(left) == str(right)
