"""Decimals with a precision and a scale: rounded half up, exact, and refused when they are too long."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import pytest

from millstream.decimals import fit_decimal
from millstream.formats.format_types import FormatType, TypeRoot
from millstream.formats.texts import BadText, to_decimal_type
from millstream.sql.columns import round_decimal
from millstream.sql.types.data_types import DecimalType


@pytest.mark.parametrize(
    ("number", "precision", "scale", "fitted"),
    [
        ("1.005", 4, 2, "1.01"),
        ("-1.005", 4, 2, "-1.01"),
        ("1.004", 4, 2, "1.00"),
        ("99.99", 4, 2, "99.99"),
        ("99.995", 4, 2, None),
        ("100", 4, 2, None),
        ("0.001", 2, 2, "0.00"),
        ("9" * 38, 38, 0, "9" * 38),
        ("-" + "9" * 38, 38, 0, "-" + "9" * 38),
        ("1E+999999", 38, 2, None),
        ("1E-999999", 38, 2, "0.00"),
        ("Infinity", 38, 2, None),
    ],
)
def test_a_number_is_rounded_or_does_not_fit(number: str, precision: int, scale: int, fitted: str | None) -> None:
    expected = None if fitted is None else Decimal(fitted)
    assert fit_decimal(Decimal(number), precision, scale) == expected
    assert round_decimal(Decimal(number), DecimalType(precision, scale)) == expected
    assert to_decimal_type(Decimal(number), FormatType(TypeRoot.DECIMAL, precision, scale)) == expected


def test_the_result_has_the_scale() -> None:
    fitted = fit_decimal(Decimal("1E+1"), 4, 2)
    assert str(fitted) == "10.00"


def test_nan_and_infinity_are_errors() -> None:
    with pytest.raises(InvalidOperation):
        fit_decimal(Decimal("NaN"), 4, 2)
    with pytest.raises(BadText, match="is not a decimal"):
        to_decimal_type(Decimal("NaN"), FormatType(TypeRoot.DECIMAL, 4, 2))


def test_a_decimal_without_precision_is_unchanged() -> None:
    assert to_decimal_type(Decimal("1.2345"), FormatType(TypeRoot.DECIMAL)) == Decimal("1.2345")
