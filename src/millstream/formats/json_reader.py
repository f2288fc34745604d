"""JSON values to records.

Promises: the results of Flink's json format for every value.
Does not know: options, batches."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Any

from millstream.formats import texts
from millstream.formats.format_types import BITS, FormatType, TypeRoot
from millstream.formats.json_writer import quote_string

#: The exceptions for JSON that does not fit the type.
REFUSED = (ValueError, TypeError, RecursionError, KeyError, OverflowError)
_SURROGATE = re.compile("[\ud800-\udfff]")

Reader = Callable[[Any], Any]


class Number(str):
    """A number with a fraction or an exponent, as text."""

    __slots__ = ()


class MissingField(ValueError):
    """A required field is missing."""

    def __init__(self, name: str) -> None:
        super().__init__(f"could not find field with name '{name}'")


class NoObject(ValueError):
    """A JSON value is not an object."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"expected an object, got {value!r:.100}")


def _refuse_constant(name: str) -> Any:
    message = f"non-standard token '{name}'"
    raise ValueError(message)


def _parse_integer(text: str) -> Any:
    return Number(text) if text == "-0" else int(text)


_SCANNER = json.JSONDecoder(parse_float=Number, parse_constant=_refuse_constant, strict=False)
# -0 differs from 0 in floating-point fields; this decoder is slower, because it calls a function for each integer
_SCANNER_WITH_MINUS_ZERO = json.JSONDecoder(
    parse_float=Number, parse_int=_parse_integer, parse_constant=_refuse_constant, strict=False
)


def parse(data: bytes) -> Any:
    """Parse the first JSON value of the data; numbers keep their text. Raises ValueError if there is none."""
    text = bytes(data).decode("utf-8-sig").lstrip(" \t\r\n")
    try:
        value, _ = (_SCANNER_WITH_MINUS_ZERO if "-0" in text else _SCANNER).scan_once(text, 0)  # type: ignore[attr-defined]
    except StopIteration as stop:
        message = f"expected a JSON value at character {stop.value}"
        raise ValueError(message) from None
    if "\\u" in text or "\\U" in text:
        value = _without_lone_surrogates(value)
    return value


def _without_lone_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("?", value) if _SURROGATE.search(value) else value
    if isinstance(value, list):
        return [_without_lone_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_lone_surrogates(key): _without_lone_surrogates(item) for key, item in value.items()}
    return value


class JsonReader:
    """Converts parsed JSON values to records."""

    def __init__(self, data_type: FormatType, *, style: str, ignores_errors: bool, fail_on_missing: bool) -> None:
        self._style, self._ignores_errors, self._fail_on_missing = style, ignores_errors, fail_on_missing
        self.row = self.reader(data_type)

    def reader(self, data_type: FormatType) -> Reader:
        """Return the converter of a type; it returns None for null, and for an error if errors are ignored."""
        read = self._reader(data_type)
        if data_type.root is TypeRoot.ANY:
            return _any_value
        if not self._ignores_errors:
            return _with_fast_path(data_type.root, read)

        def read_or_none(value: Any) -> Any:
            try:
                return None if value is None else read(value)
            except REFUSED:
                return None

        return read_or_none

    def _reader(self, data_type: FormatType) -> Reader:
        root = data_type.root
        if root in BITS:
            return _integer_reader(root)
        if root is TypeRoot.DECIMAL:
            read_decimal = texts.decimal_reader(data_type)
            return lambda value: read_decimal(_scalar_text(value).strip(texts.BLANKS))
        if root is TypeRoot.TIMESTAMP or root is TypeRoot.TIMESTAMP_LTZ:
            read_timestamp = texts.timestamp_reader(self._style, root is TypeRoot.TIMESTAMP_LTZ)
            return lambda value: read_timestamp(_scalar_text(value))
        if root is TypeRoot.TIME:
            read_time = texts.time_reader(self._style)
            return lambda value: read_time(_scalar_text(value))
        if root is TypeRoot.ARRAY:
            return self._array_reader(data_type)
        if root is TypeRoot.MAP:
            return self._map_reader(data_type)
        if root is TypeRoot.ROW:
            return self.row_reader(data_type)
        return _LEAVES[root]

    def _array_reader(self, data_type: FormatType) -> Reader:
        element = self.reader(data_type.children[0])

        def read(value: Any) -> list[Any]:
            if not isinstance(value, list):
                message = f"expected an array, got {value!r:.100}"
                raise ValueError(message)
            return [element(item) for item in value]

        return read

    def _map_reader(self, data_type: FormatType) -> Reader:
        key, item = self.reader(data_type.children[0]), self.reader(data_type.children[1])

        def read(value: Any) -> dict[Any, Any]:
            if not isinstance(value, dict):
                raise NoObject(value)
            return {key(name): item(member) for name, member in value.items()}

        return read

    def row_reader(self, data_type: FormatType) -> Reader:
        """Return the converter of objects of a row type."""
        names = list(data_type.names)
        pairs = [(name, self.reader(child)) for name, child in data_type.fields()]
        make = data_type.maker()
        strict = self._fail_on_missing

        def read(value: Any) -> Any:
            if type(value) is not dict:
                raise NoObject(value)
            if strict:
                for name in names:
                    if name not in value:
                        raise MissingField(name)
            get = value.get
            return make([reader(get(name)) for name, reader in pairs])

        return read


_UNCHANGED = {TypeRoot.STRING: str, TypeRoot.BOOLEAN: bool}


def _with_fast_path(root: TypeRoot, read: Reader) -> Reader:
    """Return the converter with a fast path for null and for values that need no conversion."""
    if root in BITS:
        limit = 1 << (BITS[root] - 1)

        def integer(value: Any) -> Any:
            if type(value) is int and -limit <= value < limit:
                return value
            return None if value is None else read(value)

        return integer
    if root in _UNCHANGED:
        cls = _UNCHANGED[root]

        def plain(value: Any) -> Any:
            if type(value) is cls:
                return value
            return None if value is None else read(value)

        return plain
    return lambda value: None if value is None else read(value)


def _any_value(value: Any) -> Any:
    """Convert a value without a declared type to Python."""
    if type(value) is Number:
        return float(value)
    if isinstance(value, list):
        return [_any_value(item) for item in value]
    if isinstance(value, dict):
        return {name: _any_value(item) for name, item in value.items()}
    return value


def _integer_reader(root: TypeRoot) -> Reader:
    limit = 1 << (BITS[root] - 1)
    read_text = texts.integer_reader(root)

    def read(value: Any) -> int:
        if type(value) is int:
            if -limit <= value < limit:
                return value
            raise texts.BadText(value, root.value)
        if type(value) is Number and root in (TypeRoot.INT, TypeRoot.BIGINT):
            number = float(value)
            if not abs(number) < 2 * limit or not -limit <= int(number) < limit:
                raise texts.BadText(value, root.value)
            return int(number)
        return read_text(_scalar_text(value))

    return read


def _read_float(value: Any) -> float:
    return float(value) if type(value) in (int, Number) else texts.read_float(_scalar_text(value))


def _read_boolean(value: Any) -> bool:
    if isinstance(value, (dict, list)):
        return False  # Flink's parser looks at the bracket, which is not "true"
    return value if type(value) is bool else texts.read_boolean(_scalar_text(value))


def _read_bytes(value: Any) -> bytes:
    if type(value) is not str:
        raise texts.BadText(value, "Base64 string")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as problem:
        message = f"invalid Base64: {problem}"
        raise ValueError(message) from None


def _scalar_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise texts.BadText(value, "scalar value")


def _read_string(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _compact(value)
    return str.__str__(_scalar_text(value))


def _compact(value: Any) -> str:
    """Return a JSON value as text without spaces; numbers keep their text."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{quote_string(name)}:{_compact(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_compact, value)) + "]"
    if value is None:
        return "null"
    return quote_string(value) if type(value) is str else _scalar_text(value)


_LEAVES: dict[TypeRoot, Reader] = {
    TypeRoot.STRING: _read_string,
    TypeRoot.BOOLEAN: _read_boolean,
    TypeRoot.FLOAT: _read_float,
    TypeRoot.DOUBLE: _read_float,
    TypeRoot.BYTES: _read_bytes,
    TypeRoot.DATE: lambda value: texts.read_date(_scalar_text(value)),
    TypeRoot.BIG_INTEGER: lambda value: int(_scalar_text(value)),
    TypeRoot.ANY: lambda value: value,
}
