"""Methods of numbers.

Promises: PyFlink's names.
Does not know: how numbers are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.table.expression.terms import Term, applied, symbol
from millstream.table.expression.words import TimeIntervalUnit

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Numbers(Term):
    """What can be computed of a number; moments are rounded too."""

    __slots__ = ()

    abs = applied("ABS", "The absolute value.")
    exp = applied("EXP", "e to the power of the number.")
    log10 = applied("LOG10", "The logarithm to base 10.")
    log2 = applied("LOG2", "The logarithm to base 2.")
    ln = applied("LN", "The natural logarithm.")
    sqrt = applied("SQRT", "The square root.")
    sin = applied("SIN", "The sine.")
    sinh = applied("SINH", "The hyperbolic sine.")
    cos = applied("COS", "The cosine.")
    cosh = applied("COSH", "The hyperbolic cosine.")
    tan = applied("TAN", "The tangent.")
    tanh = applied("TANH", "The hyperbolic tangent.")
    cot = applied("COT", "The cotangent.")
    asin = applied("ASIN", "The arc sine.")
    acos = applied("ACOS", "The arc cosine.")
    atan = applied("ATAN", "The arc tangent.")
    degrees = applied("DEGREES", "Radians as degrees.")
    radians = applied("RADIANS", "Degrees as radians.")
    sign = applied("SIGN", "1, 0 or -1.")
    bin = applied("BIN", "The number in binary digits.")
    hex = applied("HEX", "The value in hexadecimal digits.")
    unhex = applied("UNHEX", "The bytes of hexadecimal digits.")

    def log(self, base: Any = None) -> Expression:
        """The logarithm."""
        return self._call("LOG", self) if base is None else self._call("LOG", base, self)

    def round(self, places: Any) -> Expression:
        """Rounded to so many places."""
        return self._call("ROUND", self, places)

    def truncate(self, n: Any = 0) -> Expression:
        """Cut to so many places."""
        return self._call("TRUNCATE", self, n)

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """Rounded down."""
        return self._call("FLOOR", self, *([] if time_interval_unit is None else [symbol(time_interval_unit.value)]))

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """Rounded up."""
        return self._call("CEIL", self, *([] if time_interval_unit is None else [symbol(time_interval_unit.value)]))
