"""Binding of literals: their types and values.

Promises: Flink's types: INT or BIGINT by size, DECIMAL by digits, CHAR by length, TIMESTAMP by fractional digits.
Does not know: columns."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import Lit
from millstream.sql.functions import text
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MILLIS = {
    "WEEK": 604_800_000,
    "DAY": 86_400_000,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
    "MILLISECOND": 1,
}
_YEAR_MONTH = re.compile(r"([+-]?)(\d+)-(\d+)")
_DAY_TIME = re.compile(r"([+-]?)(?:(\d+)[ ])?(\d+)(?::(\d+))?(?::(\d+))?(?:\.(\d+))?")


def bind_literal(value: Any, at: int) -> Lit:
    """Bind a literal by the type of its Python value."""
    match value:
        case None:
            return Lit(t.NULL, None)
        case bool():
            return Lit(t.BOOLEAN.not_null(), value)
        case int():
            if -(2**31) <= value < 2**31:
                return Lit(t.INT.not_null(), value)
            if -(2**63) <= value < 2**63:
                return Lit(t.BIGINT.not_null(), value)
            return bind_decimal(Decimal(value), at)
        case Decimal():
            return bind_decimal(value, at)
        case float():
            return Lit(t.DOUBLE.not_null(), value)
        case str():
            return Lit(t.CharType(len(value), null=False), value)
        case bytes():
            return Lit(t.BinaryType(len(value), null=False), value)
    raise AssertionError(value)


def bind_decimal(value: Decimal, at: int) -> Lit:
    """Bind a decimal literal."""
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(exponent, 0), scale + 1 if scale else 1)  # one digit is before the decimal point
    if precision > t.MAX_PRECISION:
        message = f"the number has {precision} digits, more than {t.MAX_PRECISION}"
        raise SqlValidationError(message, at=at)
    return Lit(t.DecimalType(precision, scale, null=False), value)


def bind_temporal(type_name: str, body: str, at: int) -> Lit:
    """Bind DATE '...', TIME '...', TIMESTAMP '...' or TIMESTAMP_LTZ '...'."""
    try:
        match type_name:
            case "DATE":
                return Lit(t.DATE.not_null(), text.parse_date(body))
            case "TIME":
                digits = len(body.rpartition(".")[2]) if "." in body else 0
                return Lit(t.TimeType(digits, null=False), text.parse_time(body))
        digits = min(len(body.strip().rpartition(".")[2]), 9) if "." in body else 0
        timestamp = text.parse_timestamp(body)
    except ValueError as problem:
        raise SqlValidationError(str(problem), at=at, hint=f"write {_EXAMPLES[type_name]}") from None
    if type_name == "TIMESTAMP_LTZ":
        return Lit(t.LocalZonedTimestampType(digits, null=False), timestamp.replace(tzinfo=text.UTC))
    return Lit(t.TimestampType(digits, null=False), timestamp)


_EXAMPLES = {
    "DATE": "DATE '2020-01-31'",
    "TIME": "TIME '12:30:00'",
    "TIMESTAMP": "TIMESTAMP '2020-01-31 12:30:00'",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ '2020-01-31 12:30:00'",
}


def bind_interval(node: s.IntervalLiteral) -> Lit:
    """Bind INTERVAL '...' unit [TO unit]."""
    body, sign = node.value.strip(), -1 if node.negative else 1
    resolution = node.unit if node.to is None else f"{node.unit} TO {node.to}"
    if node.unit in _MONTHS:
        months = _parse_months(body, node) * sign
        data_type: t.DataType = t.YearMonthIntervalType(resolution, node.precision or 2, null=False)
        return Lit(data_type, months)
    if node.unit not in _MILLIS:
        message = f"there are no intervals in {node.unit}"
        raise SqlValidationError(message, at=node.at)
    micros = _parse_micros(body, node) * sign
    data_type = t.DayTimeIntervalType(resolution, node.precision or 2 if node.unit == "DAY" else 2, 6, null=False)
    return Lit(data_type, datetime.timedelta(microseconds=micros))


def _parse_months(body: str, node: s.IntervalLiteral) -> int:
    if node.to is None and re.fullmatch(r"[+-]?\d+", body):
        return int(body) * _MONTHS[node.unit]
    match = _YEAR_MONTH.fullmatch(body)
    if match is None or node.to != "MONTH":
        raise _create_interval_error(node)
    months = int(match.group(2)) * 12 + int(match.group(3))
    return -months if match.group(1) == "-" else months


def _parse_micros(body: str, node: s.IntervalLiteral) -> int:
    if node.to is None:
        if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)", body):
            raise _create_interval_error(node)
        return int(Decimal(body) * _MILLIS[node.unit] * 1000)
    match = _DAY_TIME.fullmatch(body)
    if match is None:
        raise _create_interval_error(node)
    sign, days, *parts, fraction = match.groups()
    units = ["DAY", "HOUR", "MINUTE", "SECOND"]
    fields = units[units.index(node.unit) : units.index(node.to) + 1] if node.to in units else []
    values = [part for part in ([days] if days is not None else []) + parts if part is not None]
    if len(values) != len(fields):
        raise _create_interval_error(node)
    millis = sum(int(part) * _MILLIS[unit] for part, unit in zip(values, fields, strict=True))
    micros = millis * 1000 + int(((fraction or "") + "000000")[:6])
    return -micros if sign == "-" else micros


def _create_interval_error(node: s.IntervalLiteral) -> SqlValidationError:
    unit = node.unit if node.to is None else f"{node.unit} TO {node.to}"
    message = f"'{node.value}' is not an interval in {unit}"
    return SqlValidationError(
        message, at=node.at, hint="write INTERVAL '10' MINUTE or INTERVAL '1 10:30' DAY TO MINUTE"
    )
