"""Grammar of data types: INT NOT NULL, ARRAY<ROW<a INT, b STRING>>, TIMESTAMP(3) WITH LOCAL TIME ZONE.

Promises: all of Flink's logical types are parsed, by their names and synonyms; a length or a precision out of range is
an error.
Does not know: values."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.types import data_types as t

_SIMPLE_TYPES: dict[str, t.DataType] = {
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
_INTERVAL_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


class TypeParser:
    """Parses data types."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def parse_type(self) -> t.DataType:
        """Parse a type with NOT NULL and the suffixes ARRAY and MULTISET."""
        cursor = self._cursor
        data_type = self._parse_nullability(cursor.parse_nested(self._parse_base_type))
        while cursor.is_any("ARRAY", "MULTISET") and cursor.peek().key != "[":
            is_array = cursor.advance().key == "ARRAY"
            data_type = self._parse_nullability(t.ArrayType(data_type) if is_array else t.MultisetType(data_type))
        return data_type

    def parse_size(self, least: int, most: int, default: int) -> int:
        """Parse a length or a precision in parentheses, if there is one."""
        cursor = self._cursor
        if not cursor.accept("("):
            return default
        at = cursor.at
        size = cursor.parse_integer()
        if not least <= size <= most:
            message = f"{size} is out of range: {least} to {most}"
            raise SqlValidationError(message, at=at, text=cursor.text)
        cursor.expect(")")
        return size

    def _parse_nullability(self, data_type: t.DataType) -> t.DataType:
        if self._cursor.accept("NOT", "NULL"):
            return data_type.not_null()
        self._cursor.accept("NULL")
        return data_type

    def _parse_base_type(self) -> t.DataType:
        cursor = self._cursor
        token = cursor.token
        if token.type != "word":
            cursor.reject("a type")
        simple = _SIMPLE_TYPES.get(token.key)
        if simple is not None:
            cursor.advance()
            return simple
        parse = _TYPE_PARSERS.get(token.key)
        if parse is None:
            message = f"unknown type '{token.text}'"
            hint = nearest(token.text, (*_SIMPLE_TYPES, *_TYPE_PARSERS))
            raise SqlValidationError(message, at=token.start, text=cursor.text, hint=hint)
        cursor.advance()
        return parse(self)

    # ------------------------------------------------------------------------------- strings, numbers, points in time

    def _parse_char(self) -> t.DataType:
        if self._cursor.accept("VARYING"):
            return self._parse_varchar()
        return t.CharType(self.parse_size(1, t.MAX_LENGTH, 1))

    def _parse_varchar(self) -> t.DataType:
        return t.VarCharType(self.parse_size(1, t.MAX_LENGTH, t.MAX_LENGTH))

    def _parse_binary(self) -> t.DataType:
        if self._cursor.accept("VARYING"):
            return self._parse_varbinary()
        return t.BinaryType(self.parse_size(1, t.MAX_LENGTH, 1))

    def _parse_varbinary(self) -> t.DataType:
        return t.VarBinaryType(self.parse_size(1, t.MAX_LENGTH, t.MAX_LENGTH))

    def _parse_decimal(self) -> t.DataType:
        cursor = self._cursor
        if not cursor.accept("("):
            return t.DecimalType(10, 0)
        at = cursor.at
        precision = cursor.parse_integer()
        scale = cursor.parse_integer() if cursor.accept(",") else 0
        cursor.expect(")")
        if not 1 <= precision <= t.MAX_PRECISION or scale > precision:
            message = f"DECIMAL({precision}, {scale}) is not a valid type"
            hint = f"the precision is 1 to {t.MAX_PRECISION}, the scale is 0 to the precision"
            raise SqlValidationError(message, at=at, text=cursor.text, hint=hint)
        return t.DecimalType(precision, scale)

    def _parse_double(self) -> t.DataType:
        self._cursor.accept("PRECISION")
        return t.DOUBLE

    def _parse_time(self) -> t.DataType:
        precision = self.parse_size(0, 9, 0)
        self._cursor.accept("WITHOUT", "TIME", "ZONE")
        return t.TimeType(precision)

    def _parse_timestamp(self) -> t.DataType:
        cursor = self._cursor
        precision = self.parse_size(0, 9, 6)
        if cursor.accept("WITH", "LOCAL", "TIME", "ZONE"):
            return t.LocalZonedTimestampType(precision)
        if cursor.is_next("WITH", "TIME", "ZONE"):
            message = "TIMESTAMP WITH TIME ZONE is not supported"
            raise SqlValidationError(message, at=cursor.at, text=cursor.text, hint="use TIMESTAMP_LTZ")
        cursor.accept("WITHOUT", "TIME", "ZONE")
        return t.TimestampType(precision)

    def _parse_timestamp_ltz(self) -> t.DataType:
        return t.LocalZonedTimestampType(self.parse_size(0, 9, 6))

    def _parse_interval(self) -> t.DataType:
        cursor = self._cursor
        unit = self._parse_interval_unit()
        first = self.parse_size(0, 9, 6 if unit == "SECOND" else 2)
        end = self._parse_interval_unit() if cursor.accept("TO") else None
        last = self.parse_size(0, 9, 6) if end == "SECOND" else 6
        if end is not None and not _is_interval_range(unit, end):
            message = f"INTERVAL {unit} TO {end} is not a valid type"
            raise SqlValidationError(message, at=cursor.at, text=cursor.text)
        resolution = unit if end is None else f"{unit} TO {end}"
        if unit in ("YEAR", "MONTH"):
            return t.YearMonthIntervalType(resolution, first)
        return t.DayTimeIntervalType(resolution, first if unit == "DAY" else 2, first if unit == "SECOND" else last)

    def _parse_interval_unit(self) -> str:
        unit = self._cursor.accept_any(*_INTERVAL_UNITS)
        if unit is None:
            self._cursor.reject("a unit of time")
        return unit

    # --------------------------------------------------------------------------------------------------- nested types

    def _parse_element(self) -> t.DataType:
        self._cursor.expect("<")
        element = self.parse_type()
        self._cursor.expect(">")
        return element

    def _parse_array(self) -> t.DataType:
        return t.ArrayType(self._parse_element())

    def _parse_multiset(self) -> t.DataType:
        return t.MultisetType(self._parse_element())

    def _parse_map(self) -> t.DataType:
        self._cursor.expect("<")
        key = self.parse_type()
        self._cursor.expect(",")
        value = self.parse_type()
        self._cursor.expect(">")
        return t.MapType(key, value)

    def _parse_row(self) -> t.DataType:
        cursor = self._cursor
        if cursor.accept("<>"):
            return t.RowType(())
        opening, closing = ("(", ")") if cursor.is_next("(") else ("<", ">")
        cursor.expect(opening)
        if cursor.accept(closing):
            return t.RowType(())
        fields = cursor.parse_list(self._parse_field)
        cursor.expect(closing)
        return t.RowType(fields)

    def _parse_structured(self) -> t.DataType:
        cursor = self._cursor
        cursor.expect("<")
        at = cursor.at
        class_name = cursor.parse_string("the name of a class in quotes")
        if not t.is_class_name(class_name):
            message = f"'{class_name}' is not a valid name of a class"
            raise SqlValidationError(message, at=at, text=cursor.text)
        fields = cursor.parse_list(self._parse_field) if cursor.accept(",") else ()
        cursor.expect(">")
        structured = t.StructuredType(tuple(t.RowField(field.name, field.data_type) for field in fields), class_name)
        if len(set(structured.names)) < len(structured):
            message = f"two fields of '{class_name}' have the same name"
            raise SqlValidationError(message, at=at, text=cursor.text)
        return structured

    def _parse_field(self) -> t.RowField:
        name = self._cursor.parse_name(any_word=True)
        data_type = self.parse_type()
        comment = self._cursor.advance().text if self._cursor.token.type == "string" else None
        return t.RowField(name, data_type, comment)

    def _parse_raw(self) -> t.DataType:
        cursor = self._cursor
        if cursor.accept("("):
            while not cursor.accept(")"):
                if cursor.token.type == "end":
                    cursor.reject("')'")
                cursor.advance()
        return t.RawType()


def _is_interval_range(unit: str, end: str) -> bool:
    """Whether an interval can go from one unit to another: to a finer one, and not from months to days."""
    is_months, ends_in_months = unit in ("YEAR", "MONTH"), end in ("YEAR", "MONTH")
    return _INTERVAL_UNITS.index(unit) < _INTERVAL_UNITS.index(end) and is_months == ends_in_months


_TYPE_PARSERS: dict[str, Callable[[TypeParser], t.DataType]] = {
    "CHAR": TypeParser._parse_char,
    "CHARACTER": TypeParser._parse_char,
    "VARCHAR": TypeParser._parse_varchar,
    "BINARY": TypeParser._parse_binary,
    "VARBINARY": TypeParser._parse_varbinary,
    "DECIMAL": TypeParser._parse_decimal,
    "NUMERIC": TypeParser._parse_decimal,
    "DEC": TypeParser._parse_decimal,
    "DOUBLE": TypeParser._parse_double,
    "TIME": TypeParser._parse_time,
    "TIMESTAMP": TypeParser._parse_timestamp,
    "TIMESTAMP_LTZ": TypeParser._parse_timestamp_ltz,
    "INTERVAL": TypeParser._parse_interval,
    "ARRAY": TypeParser._parse_array,
    "MULTISET": TypeParser._parse_multiset,
    "MAP": TypeParser._parse_map,
    "ROW": TypeParser._parse_row,
    "STRUCTURED": TypeParser._parse_structured,
    "RAW": TypeParser._parse_raw,
}
