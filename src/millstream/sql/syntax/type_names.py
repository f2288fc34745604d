"""The grammar of types: INT NOT NULL, ARRAY<ROW<a INT, b STRING>>, TIMESTAMP(3) WITH LOCAL TIME ZONE.

Promises: every logical type of Flink's by its name and synonyms; a length or precision out of range is refused.
Does not know: values."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.types import data_types as t

_SIMPLE: dict[str, t.DataType] = {
    "BOOLEAN": t.BOOLEAN,
    "TINYINT": t.TINYINT,
    "SMALLINT": t.SMALLINT,
    "INT": t.INT,
    "INTEGER": t.INT,
    "BIGINT": t.BIGINT,
    "FLOAT": t.FLOAT,
    "DATE": t.DATE,
    "STRING": t.STRING,
    "BYTES": t.BYTES,
    "BITMAP": t.BITMAP,
    "NULL": t.NULL,
    "VARIANT": t.VARIANT,
}
_KNOWN = (
    *_SIMPLE,
    *("CHAR", "CHARACTER", "VARCHAR", "BINARY", "VARBINARY", "DECIMAL", "NUMERIC", "DEC", "DOUBLE"),
    *("TIME", "TIMESTAMP"),
    *("TIMESTAMP_LTZ", "INTERVAL", "ARRAY", "MULTISET", "MAP", "ROW", "STRUCTURED", "RAW"),
)
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


def _spans(unit: str, end: str) -> bool:
    """Whether an interval can go from one unit to a finer one."""
    months = [each in ("YEAR", "MONTH") for each in (unit, end)]
    return _UNITS.index(unit) < _UNITS.index(end) and months[0] == months[1]


class TypeGrammar(Cursor):
    """Types."""

    def data_type(self) -> t.DataType:
        """A type with its nullability and the collections made of it."""
        kind = self.deeper(self._base_type)
        kind = self._nullability(kind)
        while self.is_any("ARRAY", "MULTISET") and not (self.ahead().kind == "op" and self.ahead().text == "["):
            word = self.advance().key
            kind = self._nullability(t.ArrayType(kind) if word == "ARRAY" else t.MultisetType(kind))
        return kind

    def _nullability(self, kind: t.DataType) -> t.DataType:
        if self.take("NOT", "NULL"):
            return kind.not_null()
        self.take("NULL")
        return kind

    def _base_type(self) -> t.DataType:
        token = self.token
        if token.kind != "word":
            self.fail("a type")
        word = token.key
        if word in _SIMPLE:
            self.advance()
            return _SIMPLE[word]
        parse: Callable[[], t.DataType] | None = getattr(self, f"_type_{word.lower()}", None)
        if parse is None or word not in _KNOWN:
            message = f"there is no type '{token.text}'"
            raise SqlValidationError(message, at=token.start, text=self.text, hint=nearest(token.text, _KNOWN))
        self.advance()
        return parse()

    def _size(self, least: int, most: int, default: int) -> int:
        if not self.take_op("("):
            return default
        at = self.at
        size = self.integer()
        if not least <= size <= most:
            message = f"{size} is out of range: {least} to {most}"
            raise SqlValidationError(message, at=at, text=self.text)
        self.expect_op(")")
        return size

    def _type_char(self) -> t.DataType:
        return self._type_varchar() if self.take("VARYING") else t.CharType(self._size(1, t.MAX_LENGTH, 1))

    _type_character = _type_char

    def _type_varchar(self) -> t.DataType:
        return t.VarCharType(self._size(1, t.MAX_LENGTH, t.MAX_LENGTH))

    def _type_binary(self) -> t.DataType:
        return self._type_varbinary() if self.take("VARYING") else t.BinaryType(self._size(1, t.MAX_LENGTH, 1))

    def _type_varbinary(self) -> t.DataType:
        return t.VarBinaryType(self._size(1, t.MAX_LENGTH, t.MAX_LENGTH))

    def _type_decimal(self) -> t.DataType:
        if not self.take_op("("):
            return t.DecimalType(10, 0)
        at = self.at
        precision = self.integer()
        scale = self.integer() if self.take_op(",") else 0
        self.expect_op(")")
        if not 1 <= precision <= t.MAX_PRECISION or scale > precision:
            message = f"DECIMAL({precision}, {scale}) is not possible"
            hint = f"the precision is 1 to {t.MAX_PRECISION}, the scale 0 to the precision"
            raise SqlValidationError(message, at=at, text=self.text, hint=hint)
        return t.DecimalType(precision, scale)

    _type_numeric = _type_dec = _type_decimal

    def _type_double(self) -> t.DataType:
        self.take("PRECISION")
        return t.DOUBLE

    def _type_time(self) -> t.DataType:
        precision = self._size(0, 9, 0)
        self.take("WITHOUT", "TIME", "ZONE")
        return t.TimeType(precision)

    def _type_timestamp(self) -> t.DataType:
        precision = self._size(0, 9, 6)
        if self.take("WITH", "LOCAL", "TIME", "ZONE"):
            return t.LocalZonedTimestampType(precision)
        if self.is_word("WITH", "TIME", "ZONE"):
            message = "TIMESTAMP WITH TIME ZONE is not supported"
            raise SqlValidationError(message, at=self.at, text=self.text, hint="use TIMESTAMP_LTZ")
        self.take("WITHOUT", "TIME", "ZONE")
        return t.TimestampType(precision)

    def _type_timestamp_ltz(self) -> t.DataType:
        return t.LocalZonedTimestampType(self._size(0, 9, 6))

    def _type_interval(self) -> t.DataType:
        unit = self.take_any(*_UNITS) or self.fail("a unit of time")
        first = self._size(0, 9, 6 if unit == "SECOND" else 2)
        end = (self.take_any(*_UNITS) or self.fail("a unit of time")) if self.take("TO") else None
        last = self._size(0, 9, 6) if end == "SECOND" else 6
        if end is not None and not _spans(unit, end):
            message = f"there is no INTERVAL {unit} TO {end}"
            raise SqlValidationError(message, at=self.at, text=self.text)
        resolution = unit if end is None else f"{unit} TO {end}"
        if unit in ("YEAR", "MONTH"):
            return t.YearMonthIntervalType(resolution, first)
        return t.DayTimeIntervalType(resolution, first if unit == "DAY" else 2, first if unit == "SECOND" else last)

    def _angled(self) -> None:
        self.expect_op("<")

    def _closed(self) -> None:
        self.expect_op(">")

    def _type_array(self) -> t.DataType:
        self._angled()
        element = self.data_type()
        self._closed()
        return t.ArrayType(element)

    def _type_multiset(self) -> t.DataType:
        self._angled()
        element = self.data_type()
        self._closed()
        return t.MultisetType(element)

    def _type_map(self) -> t.DataType:
        self._angled()
        key = self.data_type()
        self.expect_op(",")
        value = self.data_type()
        self._closed()
        return t.MapType(key, value)

    def _type_row(self) -> t.DataType:
        if self.take_op("<>"):
            return t.RowType(())
        close = ")" if self.is_op("(") else ">"
        self.expect_op("(" if close == ")" else "<")
        if self.take_op(close):
            return t.RowType(())
        fields = self.many(self._field)
        self.expect_op(close)
        return t.RowType(fields)

    def _type_structured(self) -> t.DataType:
        self.expect_op("<")
        at = self.at
        if self.token.kind != "string":
            self.fail("the name of a class in quotes")
        named = self.advance().text
        if not t.is_class_name(named):
            message = f"'{named}' cannot be the name of a class"
            raise SqlValidationError(message, at=at, text=self.text)
        fields = self.many(self._field) if self.take_op(",") else ()
        self.expect_op(">")
        made = t.StructuredType(tuple(t.RowField(each.name, each.data_type) for each in fields), named)
        if len(set(made.names)) < len(made):
            message = f"the names of the fields of '{named}' are not all different"
            raise SqlValidationError(message, at=at, text=self.text)
        return made

    def _field(self) -> t.RowField:
        name = self.name(any_word=True)
        kind = self.data_type()
        return t.RowField(name, kind, self.advance().text if self.token.kind == "string" else None)

    def _type_raw(self) -> t.DataType:
        if self.take_op("("):
            while not self.take_op(")"):
                if self.token.kind == "end":
                    self.fail("')'")
                self.advance()
        return t.RawType()
