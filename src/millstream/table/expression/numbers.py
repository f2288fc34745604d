"""Arithmetic functions as methods of expressions.

Promises: PyFlink's names.
Does not know: how numbers are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.table.expression.symbols import TimeIntervalUnit
from millstream.table.expression.terms import Term, function_property, symbol

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Numbers(Term):
    """Arithmetic functions; `floor` and `ceil` also round times."""

    __slots__ = ()

    abs = function_property("ABS", "The absolute value.")
    exp = function_property("EXP", "e to the power of the number.")
    log10 = function_property("LOG10", "The logarithm to base 10.")
    log2 = function_property("LOG2", "The logarithm to base 2.")
    ln = function_property("LN", "The natural logarithm.")
    sqrt = function_property("SQRT", "The square root.")
    sin = function_property("SIN", "The sine.")
    sinh = function_property("SINH", "The hyperbolic sine.")
    cos = function_property("COS", "The cosine.")
    cosh = function_property("COSH", "The hyperbolic cosine.")
    tan = function_property("TAN", "The tangent.")
    tanh = function_property("TANH", "The hyperbolic tangent.")
    cot = function_property("COT", "The cotangent.")
    asin = function_property("ASIN", "The arc sine.")
    acos = function_property("ACOS", "The arc cosine.")
    atan = function_property("ATAN", "The arc tangent.")
    degrees = function_property("DEGREES", "The angle in degrees, from radians.")
    radians = function_property("RADIANS", "The angle in radians, from degrees.")
    sign = function_property("SIGN", "The sign of the number: 1, 0 or -1.")
    bin = function_property("BIN", "The number as text in binary digits.")
    hex = function_property("HEX", "The value as text in hexadecimal digits.")
    unhex = function_property("UNHEX", "The bytes of a text of hexadecimal digits.")

    def log(self, base: Any = None) -> Expression:
        """Return the logarithm; without a base, the natural logarithm."""
        return self._call("LOG", self) if base is None else self._call("LOG", base, self)

    def round(self, places: Any) -> Expression:
        """Round to a number of decimal places."""
        return self._call("ROUND", self, places)

    def truncate(self, n: Any = 0) -> Expression:
        """Truncate to a number of decimal places."""
        return self._call("TRUNCATE", self, n)

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """Round down to an integer, or a time to a unit."""
        return self._call("FLOOR", self, *([] if time_interval_unit is None else [symbol(time_interval_unit.value)]))

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """Round up to an integer, or a time to a unit."""
        return self._call("CEIL", self, *([] if time_interval_unit is None else [symbol(time_interval_unit.value)]))
