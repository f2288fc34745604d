"""JSON values to records.

Promises: what Flink's json format makes of every value, field by field.
Does not know: options, batches."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Any

from millstream.formats import texts
from millstream.formats.json_writer import quoted
from millstream.formats.shapes import BITS, Kind, Shape

#: What reading JSON that does not fit can raise.
REFUSED = (ValueError, TypeError, RecursionError, KeyError, OverflowError)
_SURROGATE = re.compile("[\ud800-\udfff]")

Reader = Callable[[Any], Any]


class Number(str):
    """A number with a fraction or an exponent, as it is spelt."""

    __slots__ = ()


class MissingField(ValueError):
    """A field that must be there is not."""

    def __init__(self, name: str) -> None:
        super().__init__(f"could not find field with name '{name}'")


class NoObject(ValueError):
    """A JSON value that is no object."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"expected an object, got {value!r:.100}")


def _no_constant(name: str) -> Any:
    message = f"non-standard token '{name}'"
    raise ValueError(message)


def _whole_number(text: str) -> Any:
    return Number(text) if text == "-0" else int(text)


_SCANNER = json.JSONDecoder(parse_float=Number, parse_constant=_no_constant, strict=False)
# minus zero is a number of its own for floating point fields; asking for each number costs time
_SCANNER_OF_ZEROS = json.JSONDecoder(
    parse_float=Number, parse_int=_whole_number, parse_constant=_no_constant, strict=False
)


def parse(data: bytes) -> Any:
    """The first JSON value in the data; ValueError if it does not begin with one. Numbers keep their spelling."""
    text = bytes(data).decode("utf-8-sig").lstrip(" \t\r\n")
    try:
        value, _ = (_SCANNER_OF_ZEROS if "-0" in text else _SCANNER).scan_once(text, 0)  # type: ignore[attr-defined]
    except StopIteration as found:
        message = f"expected a JSON value at character {found.value}"
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
    """Makes records of parsed JSON values."""

    def __init__(self, shape: Shape, *, style: str, ignoring: bool, fail_on_missing: bool) -> None:
        self._style, self._ignoring, self._fail_on_missing = style, ignoring, fail_on_missing
        self.row = self.reader(shape)

    def reader(self, shape: Shape) -> Reader:
        """What reads a value of the shape; null gives None, and so does an error when errors are ignored."""
        read = self._reader(shape)
        if shape.kind is Kind.ANY:
            return _any_value
        if not self._ignoring:
            return _quick(shape.kind, read)

        def forgiving(value: Any) -> Any:
            try:
                return None if value is None else read(value)
            except REFUSED:
                return None

        return forgiving

    def _reader(self, shape: Shape) -> Reader:
        kind = shape.kind
        if kind in BITS:
            return _integer_reader(kind)
        if kind is Kind.DECIMAL:
            read_decimal = texts.decimal_reader(shape)
            return lambda value: read_decimal(_scalar_text(value).strip(texts.BLANKS))
        if kind is Kind.TIMESTAMP or kind is Kind.TIMESTAMP_LTZ:
            read_timestamp = texts.timestamp_reader(self._style, kind is Kind.TIMESTAMP_LTZ)
            return lambda value: read_timestamp(_scalar_text(value))
        if kind is Kind.TIME:
            read_time = texts.time_reader(self._style)
            return lambda value: read_time(_scalar_text(value))
        if kind is Kind.ARRAY:
            return self._array_reader(shape)
        if kind is Kind.MAP:
            return self._map_reader(shape)
        if kind is Kind.ROW:
            return self.row_reader(shape)
        return _LEAVES[kind]

    def _array_reader(self, shape: Shape) -> Reader:
        element = self.reader(shape.children[0])

        def read(value: Any) -> list[Any]:
            if not isinstance(value, list):
                message = f"expected an array, got {value!r:.100}"
                raise ValueError(message)
            return [element(item) for item in value]

        return read

    def _map_reader(self, shape: Shape) -> Reader:
        key, item = self.reader(shape.children[0]), self.reader(shape.children[1])

        def read(value: Any) -> dict[Any, Any]:
            if not isinstance(value, dict):
                raise NoObject(value)
            return {key(name): item(member) for name, member in value.items()}

        return read

    def row_reader(self, shape: Shape) -> Reader:
        """What reads an object of the shape."""
        names = list(shape.names)
        pairs = [(name, self.reader(child)) for name, child in shape.fields()]
        make = shape.maker()
        strict = self._fail_on_missing

        def read(value: Any) -> Any:
            if type(value) is not dict:
                raise NoObject(value)
            if strict:
                for name in names:
                    if name not in value:
                        raise MissingField(name)
            found = value.get
            return make([reader(found(name)) for name, reader in pairs])

        return read


_AS_THEY_ARE = {Kind.STRING: str, Kind.BOOLEAN: bool}


def _quick(kind: Kind, read: Reader) -> Reader:
    """The reader, which is not asked for null and for what JSON has as it is wanted."""
    if kind in BITS:
        limit = 1 << (BITS[kind] - 1)

        def integer(value: Any) -> Any:
            if type(value) is int and -limit <= value < limit:
                return value
            return None if value is None else read(value)

        return integer
    if kind in _AS_THEY_ARE:
        cls = _AS_THEY_ARE[kind]

        def plain(value: Any) -> Any:
            if type(value) is cls:
                return value
            return None if value is None else read(value)

        return plain
    return lambda value: None if value is None else read(value)


def _any_value(value: Any) -> Any:
    """A value of no declared type, as Python has it."""
    if type(value) is Number:
        return float(value)
    if isinstance(value, list):
        return [_any_value(item) for item in value]
    if isinstance(value, dict):
        return {name: _any_value(item) for name, item in value.items()}
    return value


def _integer_reader(kind: Kind) -> Reader:
    limit = 1 << (BITS[kind] - 1)
    read_text = texts.integer_reader(kind)

    def read(value: Any) -> int:
        if type(value) is int:
            if -limit <= value < limit:
                return value
            raise texts.BadText(value, kind.value)
        if type(value) is Number and kind in (Kind.INT, Kind.BIGINT):
            number = float(value)
            if not abs(number) < 2 * limit or not -limit <= int(number) < limit:
                raise texts.BadText(value, kind.value)
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
        raise texts.BadText(value, "Base64")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as problem:
        message = f"no Base64: {problem}"
        raise ValueError(message) from None


def _scalar_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise texts.BadText(value, "single value")


def _read_string(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _compact(value)
    return str.__str__(_scalar_text(value))


def _compact(value: Any) -> str:
    """A JSON value as text without blanks, its numbers as they were spelt."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(name)}:{_compact(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_compact, value)) + "]"
    if value is None:
        return "null"
    return quoted(value) if type(value) is str else _scalar_text(value)


_LEAVES: dict[Kind, Reader] = {
    Kind.STRING: _read_string,
    Kind.BOOLEAN: _read_boolean,
    Kind.FLOAT: _read_float,
    Kind.DOUBLE: _read_float,
    Kind.BYTES: _read_bytes,
    Kind.DATE: lambda value: texts.read_date(_scalar_text(value)),
    Kind.BIG_INTEGER: lambda value: int(_scalar_text(value)),
    Kind.ANY: lambda value: value,
}
