"""Constructors of logical types with PyFlink's parameters: `IntType(nullable=False)`, `ArrayType(element_type)`.

Promises: a constructor call that is written for PyFlink creates the same type here. Other calls are not changed.
Does not know: what types mean."""

from __future__ import annotations

import functools
import inspect
from dataclasses import MISSING, fields
from typing import Any

from millstream.sql.types import data_types as t

# PyFlink's names of parameters that have other names here.
_PYFLINK_NAMES = {
    "element": "element_type",
    "key": "key_type",
    "value": "value_type",
    "fraction": "fractional_precision",
    "row_fields": "fields",
}
_NOT_IN_PYFLINK = ("attribute",)


def accept_pyflink_parameters(type_class: type[t.DataType]) -> None:
    """Let the constructor of a type accept PyFlink's parameter names, and `nullable` as the last parameter."""
    original_init: Any = type_class.__init__
    parameters = [field for field in fields(type_class) if field.init and not field.kw_only]
    own_names = {_PYFLINK_NAMES[p.name]: p.name for p in parameters if p.name in _PYFLINK_NAMES} | {"nullable": "null"}

    @functools.wraps(original_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if args and isinstance(args[-1], bool):  # `nullable` is the only parameter with a boolean value
            *rest, kwargs["nullable"] = args
            args = tuple(rest)
        if any(name in kwargs for name in own_names):
            kwargs = {own_names.get(name, name): value for name, value in kwargs.items()}
        original_init(self, *(tuple(arg) if isinstance(arg, list) else arg for arg in args), **kwargs)

    signature = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for parameter in parameters:
        if parameter.name not in _NOT_IN_PYFLINK:
            default = inspect.Parameter.empty if parameter.default is MISSING else parameter.default
            name = _PYFLINK_NAMES.get(parameter.name, parameter.name)
            signature.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    signature.append(inspect.Parameter("nullable", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=True))
    init.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    type_class.__init__ = init  # type: ignore[method-assign]


for _type_class in (
    t.DataType, t.AtomicType, t.NumericType, t.IntegerType, t.FractionalType, t.NullType, t.CharType, t.VarCharType,
    t.BinaryType, t.VarBinaryType, t.BooleanType, t.DecimalType, t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType,
    t.FloatType, t.DoubleType, t.DateType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType,
    t.YearMonthIntervalType, t.DayTimeIntervalType, t.ArrayType, t.MultisetType, t.MapType, t.RowType,
):  # fmt: skip
    accept_pyflink_parameters(_type_class)
