"""Conversions of values whose column type was changed to a wider one.

Promises: a widened value is equal to the original. For any other change of a type, the result is None.
Does not know: databases."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from millstream.types.factory import TypeInformation, Types

_INTEGERS = [repr(type_info) for type_info in (Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG())]
_FLOATS = [repr(type_info) for type_info in (Types.FLOAT(), Types.DOUBLE())]
_DECIMAL = repr(Types.BIG_DEC())


def widening(old: TypeInformation, new: TypeInformation) -> Callable[[Any], Any] | None:
    """Return the function that converts values of one type to a wider one; None if the new type is not wider."""
    before, after = repr(old), repr(new)
    if before == after or any(
        before in types and after in types and types.index(before) < types.index(after)
        for types in (_INTEGERS, _FLOATS)
    ):
        return _same
    return _to_decimal if before in _INTEGERS and after == _DECIMAL else None


def _same(value: Any) -> Any:
    return value


def _to_decimal(value: Any) -> Any:
    return None if value is None else Decimal(value)
