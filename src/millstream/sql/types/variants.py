"""Variants: semi-structured values that contain their own type, such as parsed JSON.

Promises: each number of a variant has the type that Flink gives it: the narrowest integer type, else DECIMAL, else
DOUBLE. The text of a variant is JSON with sorted keys. Parsing the text returns an equal variant, so a variant can be
stored, hashed and compared as its text.
Does not know: columns, SQL functions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, NoReturn

from millstream.errors import UserError
from millstream.types.java_numbers import format_double

_LONG = 1 << 63
_MAX_DIGITS = 38
_MAX_NUMBER_LENGTH = 1000
_INTEGER_TYPES = ((1 << 7, "TINYINT"), (1 << 15, "SMALLINT"), (1 << 31, "INT"))
_WHITESPACE = " \t\n\r"
_UNSAFE = re.compile(r'["\\\x00-\x1f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class VariantTypeError(UserError, TypeError):
    """A getter was called for a type that is not the type of the variant."""

    hint = "check get_type() before"

    def __init__(self, expected: str, actual: str) -> None:
        self.expected, self.actual = expected, actual
        super().__init__(f"the variant is of type {actual}, not {expected}")


# -------------------------------------------------------------------------------------------------------------- parsing


def _parse_integer(text: str) -> int | Decimal | float:
    _check_length(text)
    number = int(text)
    return number if -_LONG <= number < _LONG else _parse_fraction(text)


def _parse_fraction(text: str) -> Decimal | float:
    _check_length(text)
    if "e" in text or "E" in text:
        return float(text)
    number = Decimal(text)
    return (number if number else number.copy_abs()) if _fits_decimal(number) else float(text)


def _check_length(number: str) -> None:
    if len(number) > _MAX_NUMBER_LENGTH:
        msg = f"a number of {len(number)} characters is too long; the limit is {_MAX_NUMBER_LENGTH}"
        raise ValueError(msg)


def _fits_decimal(number: Decimal) -> bool:
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return False
    return len(digits) + max(exponent, 0) <= _MAX_DIGITS and -exponent <= _MAX_DIGITS


def _reject_constant(text: str) -> NoReturn:
    msg = f"{text} is not valid JSON"
    raise ValueError(msg)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        msg = "an object has a key twice"
        raise ValueError(msg)
    return fields


_DECODERS = {
    allow_duplicates: json.JSONDecoder(
        parse_int=_parse_integer,
        parse_float=_parse_fraction,
        parse_constant=_reject_constant,
        object_pairs_hook=dict if allow_duplicates else _reject_duplicates,
    )
    for allow_duplicates in (False, True)
}


def parse(text: str, *, allow_duplicate_keys: bool = False) -> Any:
    """Parse JSON to plain values; raise ValueError if it is not valid. As in Flink, text after the value is ignored."""
    start = len(text) - len(text.lstrip(_WHITESPACE))
    try:
        value, end = _DECODERS[allow_duplicate_keys].raw_decode(text, start)
    except RecursionError:
        msg = "JSON that is nested too deeply"
        raise ValueError(msg) from None
    following = text[end : end + 1]
    if isinstance(value, int | float | Decimal):
        is_same_token = following not in _WHITESPACE
    else:
        is_same_token = following.isalnum() and value is None
    if following and is_same_token:
        msg = f"unexpected '{following}' after a value"
        raise ValueError(msg)
    return value


@lru_cache(maxsize=256)
def _parse_stored(text: str) -> Any:
    return parse(text)


# ----------------------------------------------------------------------------------------------------------- formatting


def _quote(text: str) -> str:
    return '"' + _UNSAFE.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}", text) + '"'


def _sort_keys(value: dict[str, Any]) -> list[str]:
    """Return the keys in the order of Java's String.compareTo."""
    return sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def _format_stored(value: Any) -> str:
    """Format JSON from which parsing restores the type of every number."""
    return _format(value, _format_stored_double, _format_stored_decimal)


def _format_displayed(value: Any) -> str:
    """Format JSON as Flink does."""
    return _format(value, format_double, _format_displayed_decimal)


def _format(value: Any, format_float: Callable[[float], str], format_decimal: Callable[[Decimal], str]) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return format_float(value)
        case Decimal():
            return format_decimal(value)
        case str():
            return _quote(value.encode("utf-8", "replace").decode())
        case list():
            return f"[{','.join(_format(element, format_float, format_decimal) for element in value)}]"
    fields = (f"{_quote(key)}:{_format(value[key], format_float, format_decimal)}" for key in _sort_keys(value))
    return "{" + ",".join(fields) + "}"


def _format_stored_double(value: float) -> str:
    """Format with an exponent, because a number without one is parsed as an integer or a decimal."""
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _format_displayed_decimal(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _format_stored_decimal(value: Decimal) -> str:
    """Format with a decimal point, because a number without one is parsed as an integer."""
    text = f"{value:f}"
    return text if "." in text or not -_LONG <= value < _LONG else f"{text}.0"


def _normalize(value: Any) -> Any:
    """Return a value of the user as parsing its JSON would return it; raise TypeError if a variant cannot hold it."""
    match value:
        case None | bool() | str():
            return value
        case Variant():
            return _parse_stored(value.text)
        case int():
            return _parse_integer(str(value))
        case float() if not math.isnan(value):
            return value
        case Decimal() if value.is_finite() and _fits_decimal(value):
            return value
        case list() | tuple():
            return [_normalize(element) for element in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _normalize(field) for key, field in value.items()}
    msg = f"a variant cannot hold {type(value).__name__} {value!r:.40}"
    raise TypeError(msg)


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of the type VARIANT.

    Two variants are equal if their types and values are equal; `text` is JSON that determines both.

    Example:
        >>> from millstream.table import Variant
        >>> Variant.parse_json('{"a": [1, 2.5]}').get_field("a").get_element(1).get_decimal()
        Decimal('2.5')

    """

    text: str

    @classmethod
    def parse_json(cls, text: str, allow_duplicate_keys: bool = False) -> Variant:
        """Parse JSON text.

        Args:
            text: The JSON text.
            allow_duplicate_keys: Whether an object can have a key twice; the last value wins.

        Raises:
            ValueError: If the text is not valid JSON.

        """
        return cls(_format_stored(parse(text, allow_duplicate_keys=allow_duplicate_keys)))

    @classmethod
    def of(cls, value: Any) -> Variant:
        """Create a variant from None, a bool, a number, a string, or lists and dicts of them.

        Args:
            value: The value.

        Raises:
            TypeError: If the value, or a part of it, has another type.

        """
        return cls(_format_stored(_normalize(value)))

    @property
    def value(self) -> Any:
        """The value as None, bool, int, float, Decimal, str, list or dict; a new object for each access."""
        return parse(self.text)

    def get_type(self) -> str:
        """Return the type: NULL, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, DOUBLE, DECIMAL, STRING, ARRAY or OBJECT."""
        match _parse_stored(self.text):
            case None:
                return "NULL"
            case bool():
                return "BOOLEAN"
            case int(value):
                return next((name for limit, name in _INTEGER_TYPES if -limit <= value < limit), "BIGINT")
            case float():
                return "DOUBLE"
            case Decimal():
                return "DECIMAL"
            case str():
                return "STRING"
            case list():
                return "ARRAY"
        return "OBJECT"

    def is_null(self) -> bool:
        """Return whether the variant is JSON's null, which is a value and not NULL."""
        return self.text == "null"

    def is_array(self) -> bool:
        """Return whether the variant is an ARRAY."""
        return self.text.startswith("[")

    def is_object(self) -> bool:
        """Return whether the variant is an OBJECT."""
        return self.text.startswith("{")

    def is_primitive(self) -> bool:
        """Return whether the variant is neither an ARRAY nor an OBJECT."""
        return not self.is_array() and not self.is_object()

    def _get_as(self, expected: str) -> Any:
        actual = self.get_type()
        if actual != expected:
            raise VariantTypeError(expected, actual)
        return _parse_stored(self.text)

    def get_boolean(self) -> bool:
        """Return the value of a BOOLEAN; raise VariantTypeError for other types."""
        return bool(self._get_as("BOOLEAN"))

    def get_byte(self) -> int:
        """Return the value of a TINYINT; raise VariantTypeError for other types."""
        return int(self._get_as("TINYINT"))

    def get_short(self) -> int:
        """Return the value of a SMALLINT; raise VariantTypeError for other types."""
        return int(self._get_as("SMALLINT"))

    def get_int(self) -> int:
        """Return the value of an INT; raise VariantTypeError for other types."""
        return int(self._get_as("INT"))

    def get_long(self) -> int:
        """Return the value of a BIGINT; raise VariantTypeError for other types."""
        return int(self._get_as("BIGINT"))

    def get_double(self) -> float:
        """Return the value of a DOUBLE; raise VariantTypeError for other types."""
        return float(self._get_as("DOUBLE"))

    def get_decimal(self) -> Decimal:
        """Return the value of a DECIMAL; raise VariantTypeError for other types."""
        return Decimal(self._get_as("DECIMAL"))

    def get_string(self) -> str:
        """Return the value of a STRING; raise VariantTypeError for other types."""
        return str(self._get_as("STRING"))

    def get(self) -> Any:
        """Return the value; raise VariantTypeError for ARRAY and OBJECT."""
        if not self.is_primitive():
            expected = "a primitive"
            raise VariantTypeError(expected, self.get_type())
        return _parse_stored(self.text)

    def get_element(self, index: int) -> Variant | None:
        """Return the element of an ARRAY at an index, counted from 0; None if there is none.

        Args:
            index: The index.

        """
        elements = self._get_as("ARRAY")
        return Variant(_format_stored(elements[index])) if 0 <= index < len(elements) else None

    def get_field(self, name: str) -> Variant | None:
        """Return the field of an OBJECT; None if there is none.

        Args:
            name: The name of the field.

        """
        fields = self._get_as("OBJECT")
        return Variant(_format_stored(fields[name])) if name in fields else None

    def get_array_size(self) -> int:
        """Return the number of elements of an ARRAY."""
        return len(self._get_as("ARRAY"))

    def get_field_names(self) -> list[str]:
        """Return the field names of an OBJECT, sorted."""
        return _sort_keys(self._get_as("OBJECT"))

    def to_json(self) -> str:
        """Return the variant as JSON, formatted as in Flink."""
        return _format_displayed(_parse_stored(self.text))

    def __str__(self) -> str:
        return self.to_json()
