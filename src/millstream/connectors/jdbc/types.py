"""PostgreSQL's types: their type information, and parsers of their text form.

Promises: every column has a type; an unknown type is read as text. The text of a value is parsed to a value of its
type.
Does not know: rows, tables.

The text forms are those of a session with the settings of `SESSION`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.times import Instant, to_instant
from millstream.types.factory import LocalTimeTypeInfo, TypeInformation, Types

#: Settings on which the text form of a value depends.
SESSION = "SET datestyle = 'ISO, MDY'; SET timezone = 'UTC'; SET bytea_output = 'hex'; SET intervalstyle = 'iso_8601'"


class UnreadableValue(UserError):
    """A value that the type information cannot represent."""

    hint = "cast the column to text in the database, or change the value"

    def __init__(self, text: str, type_name: str) -> None:
        self.text, self.type_name = text, type_name
        super().__init__(f"the value {text[:100]!r} of type {type_name} cannot be read")


@dataclass(frozen=True)
class PgType:
    """One type. `csv` is how Arrow reads a CSV column of it; None if texts must be parsed one by one."""

    name: str
    make: Callable[[], TypeInformation]
    read: Callable[[str], Any]
    csv: pa.DataType | None

    @property
    def type_info(self) -> TypeInformation:
        """Return the type of the values."""
        return self.make()

    def value(self, text: str | None) -> Any:
        """Parse the text of a value; None for null."""
        if text is None:
            return None
        try:
            return self.read(text)
        except (ValueError, ArithmeticError):
            raise UnreadableValue(text, self.name) from None


def _boolean(text: str) -> bool:
    return text in ("t", "true")


def _bytes(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise ValueError(text)
    return bytes.fromhex(text[2:])


def _instant(text: str) -> Instant:
    return to_instant(datetime.fromisoformat(text))


def _local(time_type: LocalTimeTypeInfo.TimeType) -> Callable[[], TypeInformation]:
    return lambda: LocalTimeTypeInfo(time_type)


_TIMES = LocalTimeTypeInfo.TimeType
_TEXT = PgType("text", Types.STRING, str, pa.string())
_SCALARS: dict[int, PgType] = {
    16: PgType("boolean", Types.BOOLEAN, _boolean, pa.bool_()),
    17: PgType("bytea", lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), _bytes, None),
    20: PgType("bigint", Types.LONG, int, pa.int64()),
    21: PgType("smallint", Types.SHORT, int, pa.int16()),
    23: PgType("integer", Types.INT, int, pa.int32()),
    26: PgType("oid", Types.LONG, int, pa.int64()),
    700: PgType("real", Types.FLOAT, float, pa.float32()),
    701: PgType("double precision", Types.DOUBLE, float, pa.float64()),
    1082: PgType("date", Types.SQL_DATE, date.fromisoformat, pa.date32()),
    1083: PgType("time", _local(_TIMES.LOCAL_TIME), time.fromisoformat, None),
    1114: PgType("timestamp", _local(_TIMES.LOCAL_DATE_TIME), datetime.fromisoformat, pa.timestamp("us")),
    1184: PgType("timestamptz", Types.INSTANT, _instant, pa.timestamp("us", "UTC")),
    1700: PgType("numeric", Types.BIG_DEC, Decimal, pa.string()),
}
# OIDs of array types, and of the types of their elements; text types have no entry above
_ARRAYS = {
    1000: 16, 1001: 17, 1016: 20, 1005: 21, 1007: 23, 1028: 26, 1021: 700, 1022: 701, 1182: 1082, 1183: 1083,
    1115: 1114, 1185: 1184, 1231: 1700, 1009: 25, 1015: 1043, 1014: 1042, 1003: 19, 199: 114, 3807: 3802, 2951: 2950,
}  # fmt: skip


def pg_type(oid: int) -> PgType:
    """Return the type with this OID; text for an unknown one."""
    if oid in _ARRAYS:
        element = pg_type(_ARRAYS[oid])
        return PgType(
            f"{element.name}[]",
            lambda: Types.OBJECT_ARRAY(element.type_info),
            lambda text: _array(text, element.value),
            None,
        )
    return _SCALARS.get(oid, _TEXT)


def _array(text: str, read: Callable[[str | None], Any]) -> list[Any]:
    """Parse the text of an array: `{1,NULL,"a,b",{...}}`, optionally with bounds before it."""
    start = text.index("{")
    values, end = _elements(text, start, read)
    if end != len(text):
        raise ValueError(text)
    return values


def _elements(text: str, start: int, read: Callable[[str | None], Any]) -> tuple[list[Any], int]:
    values: list[Any] = []
    offset = start + 1
    while text[offset] != "}":
        if text[offset] == "{":
            inner, offset = _elements(text, offset, read)
            values.append(inner)
        elif text[offset] == '"':
            element, offset = _parse_quoted(text, offset + 1)
            values.append(read(element))
        elif text[offset] == ",":
            offset += 1
        else:
            end = min(index for delimiter in ",}" if (index := text.find(delimiter, offset)) >= 0)
            element, offset = text[offset:end], end
            values.append(None if element == "NULL" else read(element))
    return values, offset + 1


def _parse_quoted(text: str, offset: int) -> tuple[str, int]:
    characters: list[str] = []
    while text[offset] != '"':
        offset += text[offset] == "\\"
        characters.append(text[offset])
        offset += 1
    return "".join(characters), offset + 1
