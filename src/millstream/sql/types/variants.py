"""Variants: values that say themselves what they are, as JSON does.

Promises: a variant keeps the kind of each number as Flink keeps it: the narrowest whole number, else a decimal, else a
double. Its text is JSON with keys in order, and reading that text again gives the same variant: so it can be kept,
hashed and compared as text.
Does not know: columns, SQL."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, NoReturn

from millstream.errors import UserError
from millstream.sql.types.java_numbers import double_text

_LONG = 1 << 63
_MOST_DIGITS = 38
_MOST_CHARACTERS = 1000  # of a number
_WHOLE = ((1 << 7, "TINYINT"), (1 << 15, "SMALLINT"), (1 << 31, "INT"))
_SPACE = " \t\n\r"
_UNSAFE = re.compile(r'["\\\x00-\x1f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class VariantTypeError(UserError, TypeError):
    """A variant was asked for a value of a kind that it is not."""

    hint = "ask get_type() first"

    def __init__(self, wanted: str, kind: str) -> None:
        self.wanted, self.kind = wanted, kind
        super().__init__(f"the variant is of kind {kind}, not {wanted}")


# -------------------------------------------------------------------------------------------------------------- reading


def _whole(text: str) -> int | Decimal | float:
    if len(text) > _MOST_CHARACTERS:
        msg = f"a number of {len(text)} characters"
        raise ValueError(msg)
    number = int(text)
    return number if -_LONG <= number < _LONG else _fraction(text)


def _fraction(text: str) -> Decimal | float:
    if len(text) > _MOST_CHARACTERS:
        msg = f"a number of {len(text)} characters"
        raise ValueError(msg)
    if "e" in text or "E" in text:
        return float(text)
    number = Decimal(text)
    return (number if number else number.copy_abs()) if _fits(number) else float(text)


def _fits(number: Decimal) -> bool:
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return False
    return len(digits) + max(exponent, 0) <= _MOST_DIGITS and -exponent <= _MOST_DIGITS


def _no_number(text: str) -> NoReturn:
    msg = f"{text} is no JSON"
    raise ValueError(msg)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        msg = "an object has a key twice"
        raise ValueError(msg)
    return made


_READERS = {
    duplicates: json.JSONDecoder(
        parse_int=_whole,
        parse_float=_fraction,
        parse_constant=_no_number,
        object_pairs_hook=dict if duplicates else _once_each,
    )
    for duplicates in (False, True)
}


def parsed(text: str, *, allow_duplicate_keys: bool = False) -> Any:
    """JSON as plain values; ValueError where it is none. What stands behind the first value is passed over."""
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        value, end = _READERS[allow_duplicate_keys].raw_decode(text, start)
    except RecursionError:
        msg = "JSON that is nested too deeply"
        raise ValueError(msg) from None
    behind = text[end : end + 1]
    glued = behind not in _SPACE if isinstance(value, int | float | Decimal) else behind.isalnum() and value is None
    if behind and glued:
        msg = f"'{behind}' stands behind a value"
        raise ValueError(msg)
    return value


@lru_cache(maxsize=256)
def _read(text: str) -> Any:
    return parsed(text)


# -------------------------------------------------------------------------------------------------------------- writing


def _quoted(text: str) -> str:
    return '"' + _UNSAFE.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'


def _in_order(value: dict[str, Any]) -> list[str]:
    """Keys as Java compares them."""
    return sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def _written(value: Any, *, shown: bool) -> str:
    """JSON; `shown` as Flink writes it, else so that reading gives every number its kind again."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return double_text(value) if shown else _kept(value)
        case Decimal():
            return _plain(value) if shown else _pointed(value)
        case str():
            return _quoted(value.encode("utf-8", "replace").decode())
        case list():
            return f"[{','.join(_written(each, shown=shown) for each in value)}]"
    return "{" + ",".join(f"{_quoted(key)}:{_written(value[key], shown=shown)}" for key in _in_order(value)) + "}"


def _kept(value: float) -> str:
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    made = repr(value)
    return made if "e" in made else f"{made}e0"


def _plain(value: Decimal) -> str:
    made = f"{value:f}"
    return made.rstrip("0").rstrip(".") if "." in made else made


def _pointed(value: Decimal) -> str:
    made = f"{value:f}"
    return made if "." in made or not -_LONG <= value < _LONG else f"{made}.0"


def _checked(value: Any) -> Any:
    """A value of the user's as reading JSON would have given it."""
    match value:
        case None | bool() | str():
            return value
        case Variant():
            return _read(value.text)
        case int():
            return _whole(str(value))
        case float() if not math.isnan(value):
            return value
        case Decimal() if value.is_finite() and _fits(value):
            return value
        case list() | tuple():
            return [_checked(each) for each in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _checked(each) for key, each in value.items()}
    msg = f"a variant cannot hold {type(value).__name__} {value!r:.40}"
    raise TypeError(msg)


@dataclass(frozen=True, slots=True)
class Variant:
    """A value of VARIANT. Two are equal when their kinds and values are; `text` is JSON that keeps both."""

    text: str

    @classmethod
    def parse_json(cls, text: str, allow_duplicate_keys: bool = False) -> Variant:
        """What a JSON text says; ValueError where it is none, or has a key twice and may not."""
        return cls(_written(parsed(text, allow_duplicate_keys=allow_duplicate_keys), shown=False))

    @classmethod
    def of(cls, value: Any) -> Variant:
        """The variant of None, a bool, a number, a string, or lists and dicts of them."""
        return cls(_written(_checked(value), shown=False))

    @property
    def value(self) -> Any:
        """As plain Python: None, bool, int, float, Decimal, str, list, dict; the caller's own."""
        return parsed(self.text)

    def get_type(self) -> str:
        """The kind: NULL, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, DOUBLE, DECIMAL, STRING, ARRAY or OBJECT."""
        match _read(self.text):
            case None:
                return "NULL"
            case bool():
                return "BOOLEAN"
            case int(value):
                return next((name for limit, name in _WHOLE if -limit <= value < limit), "BIGINT")
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
        """Whether this is JSON's null, which is a value."""
        return self.text == "null"

    def is_array(self) -> bool:
        """Whether it has elements."""
        return self.text.startswith("[")

    def is_object(self) -> bool:
        """Whether it has fields."""
        return self.text.startswith("{")

    def is_primitive(self) -> bool:
        """Whether it has neither elements nor fields."""
        return not self.is_array() and not self.is_object()

    def _of_kind(self, wanted: str) -> Any:
        kind = self.get_type()
        if kind != wanted:
            raise VariantTypeError(wanted, kind)
        return _read(self.text)

    def get_boolean(self) -> bool:
        """The value of a BOOLEAN."""
        return bool(self._of_kind("BOOLEAN"))

    def get_byte(self) -> int:
        """The value of a TINYINT."""
        return int(self._of_kind("TINYINT"))

    def get_short(self) -> int:
        """The value of a SMALLINT."""
        return int(self._of_kind("SMALLINT"))

    def get_int(self) -> int:
        """The value of an INT."""
        return int(self._of_kind("INT"))

    def get_long(self) -> int:
        """The value of a BIGINT."""
        return int(self._of_kind("BIGINT"))

    def get_double(self) -> float:
        """The value of a DOUBLE."""
        return float(self._of_kind("DOUBLE"))

    def get_decimal(self) -> Decimal:
        """The value of a DECIMAL."""
        return Decimal(self._of_kind("DECIMAL"))

    def get_string(self) -> str:
        """The value of a STRING."""
        return str(self._of_kind("STRING"))

    def get(self) -> Any:
        """The value of any kind but ARRAY and OBJECT."""
        if not self.is_primitive():
            wanted = "a primitive"
            raise VariantTypeError(wanted, self.get_type())
        return _read(self.text)

    def get_element(self, index: int) -> Variant | None:
        """The element of an ARRAY, from 0; None where there is none."""
        elements = self._of_kind("ARRAY")
        return Variant(_written(elements[index], shown=False)) if 0 <= index < len(elements) else None

    def get_field(self, name: str) -> Variant | None:
        """The field of an OBJECT; None where there is none."""
        fields = self._of_kind("OBJECT")
        return Variant(_written(fields[name], shown=False)) if name in fields else None

    def get_array_size(self) -> int:
        """How many elements an ARRAY has."""
        return len(self._of_kind("ARRAY"))

    def get_field_names(self) -> list[str]:
        """The names of an OBJECT's fields, in order."""
        return _in_order(self._of_kind("OBJECT"))

    def to_json(self) -> str:
        """As JSON, as Flink writes it."""
        return _written(_read(self.text), shown=True)

    def __str__(self) -> str:
        return self.to_json()
