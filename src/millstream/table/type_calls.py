"""Logical types made by PyFlink's own calls: `IntType(nullable=False)`, `ArrayType(element_type)`.

Promises: a call that is written for PyFlink makes the type that it makes there; all other calls mean what they meant.
Does not know: what types mean."""

from __future__ import annotations

import functools
import inspect
from dataclasses import MISSING, fields
from typing import Any

from millstream.sql.types import data_types as t

_NAMES = {"element": "element_type", "key": "key_type", "value": "value_type", "fraction": "fractional_precision"}
_OURS = ("attribute",)  # parameters that PyFlink does not have


def take_pyflink_calls(kind: type[t.DataType]) -> None:
    """Let a type be made with PyFlink's names of parameters, and with `nullable` as the last of them."""
    plain: Any = kind.__init__
    ours = [each for each in fields(kind) if each.init and not each.kw_only]
    theirs = {_NAMES[each.name]: each.name for each in ours if each.name in _NAMES} | {"nullable": "null"}

    @functools.wraps(plain)
    def made(self: Any, *args: Any, **given: Any) -> None:
        if args and isinstance(args[-1], bool):  # no parameter but `nullable` is true or false
            *rest, given["nullable"] = args
            args = tuple(rest)
        if any(name in given for name in theirs):
            given = {theirs.get(name, name): value for name, value in given.items()}
        plain(self, *(tuple(each) if isinstance(each, list) else each for each in args), **given)

    shown = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for each in ours:
        if each.name not in _OURS:
            default = inspect.Parameter.empty if each.default is MISSING else each.default
            name = _NAMES.get(each.name, each.name)
            shown.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    shown.append(inspect.Parameter("nullable", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=True))
    made.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    kind.__init__ = made  # type: ignore[method-assign]


for _kind in (
    t.DataType, t.AtomicType, t.NumericType, t.IntegerType, t.FractionalType, t.NullType, t.CharType, t.VarCharType,
    t.BinaryType, t.VarBinaryType, t.BooleanType, t.DecimalType, t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType,
    t.FloatType, t.DoubleType, t.DateType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType,
    t.YearMonthIntervalType, t.DayTimeIntervalType, t.ArrayType, t.MultisetType, t.MapType, t.RowType,
):  # fmt: skip
    take_pyflink_calls(_kind)
