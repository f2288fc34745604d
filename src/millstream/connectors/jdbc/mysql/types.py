"""MySQL's column types: their type information, and their values as text and in the binary log.

Promises: the types of Flink CDC's table. The same value comes from a query and from the binary log.
Does not know: rows, tables.

A query returns texts, and bytes for binary columns; `to_text` converts both to texts, so that a plan can contain
rows."""

from __future__ import annotations

import base64
import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from millstream.connectors.jdbc.mysql.driver import pymysql
from millstream.connectors.jdbc.mysql.wire import make_date
from millstream.connectors.jdbc.types import UnreadableValue
from millstream.errors import UserError
from millstream.types.factory import LocalTimeTypeInfo, TypeInformation, Types

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_TEXT = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json")
_GEOMETRY = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
             "geomcollection", "geometrycollection")  # fmt: skip
_DAY = timedelta(days=1)
_TIMES = LocalTimeTypeInfo.TimeType


class UnsupportedColumn(UserError):
    """A column of a type that cannot be captured."""

    def __init__(self, column: str, column_type: str) -> None:
        self.column, self.column_type = column, column_type
        super().__init__(
            f"the column {column} has the type {column_type}, which cannot be captured",
            hint="change its type; millstream knows the types of MySQL 8.4 and those that MariaDB shares with it",
        )


@dataclass(frozen=True, slots=True)
class MysqlColumn:
    """A column as the database describes it.

    `zone` is the time zone of TIMESTAMP values; `binary` is the form of binary values: `bytes`, or text in `base64`,
    `base64-url-safe` or `hex`; `boolean`: TINYINT(1) and BIT(1) are booleans."""

    name: str
    data_type: str
    column_type: str
    charset: str | None = None
    collation: str | None = None
    nullable: bool = True
    precision: int = 0
    scale: int = 0
    zone: str = "UTC"
    binary: str = "bytes"
    boolean: bool = True

    @property
    def is_unsigned(self) -> bool:
        """Whether numbers have no sign."""
        return "unsigned" in self.column_type or "zerofill" in self.column_type

    @property
    def is_binary(self) -> bool:
        """Whether values are bytes."""
        return self.data_type in _BINARY or (self.data_type in _TEXT and self.charset == "binary")

    @property
    def selected(self) -> str:
        """The expression that a query selects; of a FLOAT it selects all digits."""
        name = quote(self.name)
        return f"{name} + 0e0" if self.data_type == "float" else name


@dataclass(frozen=True, slots=True)
class MysqlType:
    """How values of a column are converted: the type information, and functions for texts of queries and for values of
    the log."""

    type_info: TypeInformation
    read: Callable[[str], Any]
    from_log: Callable[[Any], Any]
    name: str

    def value(self, text: str | None) -> Any:
        """Parse the text of a value; None for null."""
        if text is None:
            return None
        try:
            return self.read(text)
        except (ValueError, ArithmeticError):
            raise UnreadableValue(text, self.name) from None

    def logged(self, value: Any) -> Any:
        """Convert a value of the binary log; None for null."""
        return None if value is None else self.from_log(value)


def quote(name: str) -> str:
    """Return a quoted name."""
    return "`" + name.replace("`", "``") + "`"


def to_text(value: Any) -> str | None:
    """Return a value of a query as text; bytes are encoded in base64."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def elements_of(column_type: str) -> list[str]:
    """Return the words of an ENUM or SET."""
    words = re.findall(r"'((?:[^']|'')*)'", column_type)
    return [word.replace("''", "'") for word in words]


@cache
def mysql_type(column: MysqlColumn) -> MysqlType:
    """Return the type of a column."""
    kind = column.data_type
    if kind in ("tinyint", "bit") and column.boolean and re.match(r"(tinyint|bit)\(1\)", column.column_type):
        if kind == "bit":
            return _type(column, Types.BOOLEAN(), lambda text: any(base64.b64decode(text)), any)
        return _type(column, Types.BOOLEAN(), lambda text: int(text) != 0, lambda number: number != 0)
    if kind in _BITS:
        return _integer(column)
    if kind == "decimal":
        if column.precision > 38:
            return _type(column, Types.STRING(), str, str)
        return _type(column, Types.BIG_DEC(), Decimal, lambda number: number)
    if kind == "float":
        return _type(column, Types.FLOAT(), float, lambda number: number)
    if kind == "double":
        return _type(column, Types.DOUBLE(), float, lambda number: number)
    if kind == "year":
        return _type(column, Types.INT(), int, lambda number: number)
    if kind in ("date", "time", "datetime", "timestamp"):
        return _temporal(column)
    if kind == "enum":
        words = ["", *elements_of(column.column_type)]
        return _type(column, Types.STRING(), str, lambda number: words[number])
    if kind == "set":
        words = elements_of(column.column_type)
        return _type(
            column,
            Types.OBJECT_ARRAY(Types.STRING()),
            lambda text: text.split(",") if text else [],
            lambda bits: [word for number, word in enumerate(words) if bits >> number & 1],
        )
    if column.is_binary or kind == "bit" or kind in _GEOMETRY:
        return _bytes(column)
    if kind in _TEXT:
        return _type(column, Types.STRING(), str, _decoder(column.charset or "utf8mb4"))
    raise UnsupportedColumn(column.name, column.column_type)


def _type(
    column: MysqlColumn, type_info: TypeInformation, read: Callable[[str], Any], from_log: Callable[[Any], Any]
) -> MysqlType:
    return MysqlType(type_info, read, from_log, column.column_type)


def _integer(column: MysqlColumn) -> MysqlType:
    bits = _BITS[column.data_type]
    if not column.is_unsigned:
        info = {8: Types.BYTE, 16: Types.SHORT, 24: Types.INT, 32: Types.INT, 64: Types.LONG}[bits]()
        return _type(column, info, int, lambda number: number)
    modulus = 1 << bits
    if bits == 64:
        return _type(column, Types.BIG_DEC(), Decimal, lambda number: Decimal(number % modulus))
    info = {8: Types.SHORT, 16: Types.INT, 24: Types.LONG, 32: Types.LONG}[bits]()
    return _type(column, info, int, lambda number: number % modulus)


def _bytes(column: MysqlColumn) -> MysqlType:
    """Return the type of bytes; BINARY(n) is padded in a query and not in the log."""
    fixed = re.match(r"binary\((\d+)\)", column.column_type)
    size = int(fixed[1]) if fixed else 0
    encodings: dict[str, Callable[[bytes], Any]] = {
        "bytes": bytes,
        "base64": lambda data: base64.b64encode(data).decode(),
        "base64-url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
        "hex": bytes.hex,
    }
    encode = encodings[column.binary]
    info = Types.PRIMITIVE_ARRAY(Types.BYTE()) if column.binary == "bytes" else Types.STRING()
    return _type(
        column, info, lambda text: encode(base64.b64decode(text)), lambda data: encode(data.ljust(size, b"\0"))
    )


def _decoder(charset: str) -> Callable[[Any], str]:
    if charset in ("utf8mb4", "utf8mb3", "utf8", "ascii"):
        return lambda data: data if isinstance(data, str) else data.decode()
    # as in the driver, because MySQL's latin1 is Windows-1252
    known_charset = pymysql().charset.charset_by_name(charset)
    encoding = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}.get(
        charset, known_charset.encoding if known_charset is not None else charset
    )
    codec = codecs.lookup(encoding)
    return lambda data: data if isinstance(data, str) else codec.decode(data)[0]


def _temporal(column: MysqlColumn) -> MysqlType:
    if column.data_type == "date":
        return _type(column, Types.SQL_DATE(), _date, lambda day: day)
    if column.data_type == "time":
        return _type(column, LocalTimeTypeInfo(_TIMES.LOCAL_TIME), time.fromisoformat, _time_of_day)
    info = LocalTimeTypeInfo(_TIMES.LOCAL_DATE_TIME)
    if column.data_type == "datetime":
        return _type(column, info, _datetime, lambda moment: moment)
    zone = parse_zone(column.zone)

    def to_zone(moment: datetime | None) -> datetime | None:
        if moment is None:
            return None
        return moment.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)

    return _type(column, info, lambda text: to_zone(_datetime(text)), to_zone)


def parse_zone(name: str) -> tzinfo:
    """Return the time zone of this name: one of the time zone database, or an offset such as +02:00."""
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?", name)
    if offset:
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        message = f"there is no time zone {name}"
        raise UserError(message, hint="use a name such as Europe/Berlin or an offset such as +02:00") from None


def _date(text: str) -> date | None:
    year, month, day = text.split("-")
    return make_date(int(year), int(month), int(day))


def _datetime(text: str) -> datetime | None:
    """Return a local time; None for an invalid one, as in the log."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _time_of_day(span: timedelta) -> time:
    if not timedelta() <= span < _DAY:
        raise UnreadableValue(str(span), "time")
    seconds, micros = divmod(span // timedelta(microseconds=1), 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)
