"""Parts of plans as JSON: operators' descriptions, expressions, types, constants.

Promises: reading gives back an equal value; only the classes named here are ever made, from plain values, so a plan
runs nothing that this release does not have. A part that later releases have and this one does not is refused by name.
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
from millstream.sql.expressions.fields import FieldRef
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

_CLASSES: tuple[type, ...] = (
    e.Ref, e.Lit, e.Sym, e.Apply, e.Convert, e.Choose, e.UserCall, e.AggregateCall, FieldRef,
    l.Values, l.WindowSpec, l.OverCall, Distribution, AsyncOptions, Unnest, Skip, MatchDescription, OperatorTraits,
    ColumnDefinition, TableDefinition, TableDistribution, t.RowField, t.RowType, t.ArrayType, t.MultisetType, t.MapType,
    t.JsonTextType, t.SymbolType, t.RawType, t.VariantType, t.BitmapType, t.NullType, t.DescriptorType,
    t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType,  # the type of an empty literal has no text that is read
    PatternRef, Retry, *OPERATOR_SPECS,
)  # fmt: skip
_BY_NAME: dict[str, Any] = {each.__name__: each for each in _CLASSES}
_MARKS = (t.ROWTIME, t.PROCTIME)
_MICROSECOND = datetime.timedelta(microseconds=1)


class UnreadablePlan(UserError):
    """A plan, or a part of one, that this release cannot read."""

    hint = "compile it again, or use the release that wrote it or a later one"


class Writer:
    """Turns parts of plans into plain values. `named` gives the names of users' functions."""

    def __init__(self, named: Callable[[UserFunction], tuple[str, ...]]) -> None:
        self._named = named

    def plain(self, value: Any) -> Any:
        """A value as JSON has it."""
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else {"$float": repr(value)}
            case tuple():
                return [self.plain(each) for each in value]
            case list():
                return {"$list": [self.plain(each) for each in value]}
            case frozenset():
                return {"$set": sorted((self.plain(each) for each in value), key=repr)}
            case dict():
                return {"$map": [[self.plain(key), self.plain(each)] for key, each in value.items()]}
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
                return {"$micros": value // _MICROSECOND}
            case SkipKind():
                return {"$skip": value.value}
            case UserFunction():
                return {"$function": list(self._named(value))}
            case t.RowType():
                named = {"class": value.class_name} if isinstance(value, t.StructuredType) else {}
                return {"$row": [self._field(each) for each in value.fields], "null": value.null, **named}
            case t.DataType():
                return self._type(value)
        return self._object(value)

    def _field(self, field: t.RowField) -> list[Any]:
        return [field.name, self.plain(field.data_type), *([] if field.description is None else [field.description])]

    def _type(self, kind: t.DataType) -> Any:
        text = str(kind)
        return {"$type": text} if _same(kind, _typed(text)) else self._object(kind)

    def _object(self, value: Any) -> dict[str, Any]:
        name = type(value).__name__
        kind = _BY_NAME.get(name)
        if kind is not type(value):
            message = f"a plan with {name} cannot be stored"
            raise SqlNotSupported(message)
        parts = {each.name: self.plain(getattr(value, each.name)) for each in dataclasses.fields(kind) if each.init}
        return {"$": name, **parts}


class Reader:
    """The inverse of `Writer`. `function` finds a user's function by name."""

    def __init__(self, function: Callable[[tuple[str, ...]], UserFunction]) -> None:
        self._function = function

    def value(self, data: Any) -> Any:
        """What a plain value stands for."""
        if isinstance(data, list):
            return tuple(self.value(each) for each in data)
        if not isinstance(data, Mapping):
            return data
        if "$" in data:
            return self._object(data)
        if "$row" in data:
            fields, null = tuple(map(self._field, data["$row"])), data["null"]
            named = data.get("class")
            return t.RowType(fields, null=null) if named is None else t.StructuredType(fields, named, null=null)
        ((mark, inner),) = data.items()
        match mark:
            case "$type":
                found = _typed(inner)
                if found is None:
                    message = f"the plan has a type '{inner}', which this release does not know"
                    raise UnreadablePlan(message)
                return found
            case "$list":
                return [self.value(each) for each in inner]
            case "$set":
                return frozenset(self.value(each) for each in inner)
            case "$map":
                return {self.value(key): self.value(each) for key, each in inner}
            case "$function":
                return self._function(tuple(inner))
        plain = _PLAIN.get(mark)
        if plain is None:
            message = f"the plan has a part '{mark}', which this release does not know"
            raise UnreadablePlan(message)
        return plain(inner)

    def _field(self, data: list[Any]) -> t.RowField:
        name, kind, *description = data
        return t.RowField(name, self.value(kind), *description)

    def _object(self, data: Mapping[str, Any]) -> Any:
        found = _BY_NAME.get(data["$"])
        if found is None:
            message = f"the plan has a part '{data['$']}', which this release does not know"
            raise UnreadablePlan(message)
        try:
            return found(**{name: self.value(part) for name, part in data.items() if name != "$"})
        except TypeError as problem:
            message = f"the plan's {data['$']} is not what this release has: {problem}"
            raise UnreadablePlan(message) from None


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "$float": float,
    "$decimal": Decimal,
    "$bytes": bytes.fromhex,
    "$timestamp": datetime.datetime.fromisoformat,
    "$date": datetime.date.fromisoformat,
    "$time": datetime.time.fromisoformat,
    "$micros": lambda count: count * _MICROSECOND,
    "$skip": SkipKind,
}


def _typed(text: str) -> t.DataType | None:
    """The type that a text is of, time attributes too; None if there is none."""
    mark = next((each for each in _MARKS if text.endswith(f" *{each}*")), None)
    try:
        found = parse_type(text if mark is None else text.removesuffix(f" *{mark}*"))
    except SqlError:
        return None
    return found if mark is None else dataclasses.replace(found, attribute=mark)  # type: ignore[call-arg]


def _same(one: t.DataType, other: t.DataType | None) -> bool:
    return other is not None and type(one) is type(other) and one == other and str(one) == str(other)
