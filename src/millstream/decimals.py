"""Rounding of decimals to a precision and a scale.

Promises: a number with too many digits does not fit, and nothing is cut off before the decimal point.
Does not know: types."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

_CONTEXT = Context(prec=90)  # more than the digits of any decimal type


def fit_decimal(number: Decimal, precision: int, scale: int) -> Decimal | None:
    """Round a number half up to `scale` decimal places; None if it has more than `precision` digits then.

    Raises:
        InvalidOperation: If the number is not a number (NaN).

    """
    try:
        rounded = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _CONTEXT)
    except InvalidOperation:
        return None
    # not abs(), which rounds to 28 digits
    return rounded if rounded.copy_abs() < 10 ** (precision - scale) else None
