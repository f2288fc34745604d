"""Text of floating-point numbers as in Java.

Promises: the results of Double.toString and Float.toString of Java 19 and later.
Does not know: SQL types."""

from __future__ import annotations

import math

import numpy as np


def format_double(value: float, *, single: bool = False) -> str:
    """Format a number as Java's Double.toString does, or Float.toString if it has single precision."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    digits = np.format_float_scientific(np.float32(value) if single else np.float64(value), unique=True, trim="0")
    mantissa, _, exponent = digits.partition("e")
    power = int(exponent)
    if len(mantissa.strip("-.0")) == 1:
        mantissa = _format_two_digits(value, single) or mantissa
    if -3 <= power < 7:
        return np.format_float_positional(np.float32(value) if single else np.float64(value), unique=True, trim="0")
    if "." not in mantissa:
        mantissa += ".0"
    elif mantissa.endswith("."):
        mantissa += "0"
    return f"{mantissa}E{power}"


def _format_two_digits(value: float, single: bool) -> str | None:
    """Return the two digits nearest to a number, which Java prefers to one digit (4.9E-324); None if they are another
    number."""
    digits = f"{value:.1e}"
    is_same = np.float32(digits) == np.float32(value) if single else float(digits) == value
    return digits.partition("e")[0] if is_same else None
