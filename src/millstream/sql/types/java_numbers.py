"""Floating point numbers as Java writes them.

Promises: what Double.toString and Float.toString of a recent Java give.
Does not know: types."""

from __future__ import annotations

import math

import numpy as np


def double_text(value: float, *, single: bool = False) -> str:
    """A floating point number as Java's Double.toString and Float.toString write it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    digits = np.format_float_scientific(np.float32(value) if single else np.float64(value), unique=True, trim="0")
    mantissa, _, exponent = digits.partition("e")
    power = int(exponent)
    if -3 <= power < 7:
        plain = np.format_float_positional(np.float32(value) if single else np.float64(value), unique=True, trim="0")
        return plain
    if "." not in mantissa:
        mantissa += ".0"
    elif mantissa.endswith("."):
        mantissa += "0"
    return f"{mantissa}E{power}"
