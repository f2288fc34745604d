"""PyFlink's `datastream.formats.csv`: rows as CSV, in messages and in files.

Promises: PyFlink's builders and readers; columns by the schema's order, types as declared.
Does not know: how CSV is read; `millstream.formats` does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.connector.serialization_schema import BulkWriterFactory
from millstream.connectors.files import CsvFiles, LineWriterFactory, StreamFormat
from millstream.connectors.files.ranges import OpenRange
from millstream.datastream.formats.row_types import array_type, type_of
from millstream.errors import UserError
from millstream.formats import FormatDeserializationSchema, FormatSerializationSchema, format_named
from millstream.types.factory import RowTypeInfo, TypeInformation, Types

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


class BadCsvSchema(UserError):
    """A CSV schema that cannot be followed."""


@dataclass(frozen=True)
class _Signs:
    """How a CSV file is written."""

    column_separator: str = ","
    array_separator: str = ";"
    quote: str | None = '"'
    escape: str | None = None
    null_value: str | None = None
    line_separator: str = "\n"
    comments: bool = False
    use_header: bool = False
    skip_first_data_row: bool = False
    strict_headers: bool = False

    def options(self) -> dict[str, Any]:
        """As the csv format has them."""
        options: dict[str, Any] = {
            "field-delimiter": self.column_separator,
            "array-element-delimiter": self.array_separator,
            "allow-comments": self.comments,
        }
        if self.quote is None:
            options["disable-quote-character"] = True
        else:
            options["quote-character"] = self.quote
        if self.escape is not None:
            options["escape-character"] = self.escape
        if self.null_value is not None:
            options["null-literal"] = self.null_value
        return options


class CsvSchema:
    """The columns of CSV files, and the signs between them."""

    def __init__(self, columns: list[tuple[str, TypeInformation]], signs: _Signs) -> None:
        self._columns, self._signs = list(columns), signs

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Builds one step by step."""
        return CsvSchemaBuilder()

    def size(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def row_type(self) -> RowTypeInfo:
        """The type of the rows."""
        return RowTypeInfo([kind for _, kind in self._columns], [name for name, _ in self._columns])

    def signs(self) -> _Signs:
        """The signs between the columns."""
        return self._signs

    def columns(self) -> list[tuple[str, TypeInformation]]:
        """The columns with their types."""
        return list(self._columns)

    def __len__(self) -> int:
        return self.size()

    def __str__(self) -> str:
        return f"[CsvSchema: columns={[name for name, _ in self._columns]}, header? {self._signs.use_header}]"

    def __repr__(self) -> str:
        return str(self)


class CsvSchemaBuilder:
    """Builds a CsvSchema."""

    def __init__(self) -> None:
        self._columns: list[tuple[str, TypeInformation]] = []
        self._signs = _Signs()

    def build(self) -> CsvSchema:
        """The schema."""
        return CsvSchema(self._columns, self._signs)

    def add_array_column(self, name: str, separator: str = ";", element_type: Any = None) -> CsvSchemaBuilder:
        """Add a column of arrays. All array columns have one separator here."""
        element = Types.STRING() if element_type is None else type_of(element_type)
        self._columns.append((name, array_type(element)))
        return self._with(array_separator=separator)

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of true and false."""
        self._columns.append((name, Types.BOOLEAN()))
        return self

    def add_number_column(self, name: str, number_type: Any = None) -> CsvSchemaBuilder:
        """Add a column of numbers, whole numbers of 64 bits unless told otherwise."""
        self._columns.append((name, Types.LONG() if number_type is None else type_of(number_type)))
        return self

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of text."""
        self._columns.append((name, Types.STRING()))
        return self

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema."""
        self._columns += schema.columns()
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Take all columns away."""
        self._columns.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Whether lines that begin with # are left out."""
        return self._with(comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Refused: a row has no place for columns that were not declared."""
        message = f"there is no column {name!r} for what was not declared"
        raise BadCsvSchema(message, hint="declare every column")

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Elements of arrays stand together with nothing between them: an array has one element."""
        return self._with(array_separator="\0")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """The column with this index holds no array."""
        name, kind = self._columns[index]
        self._columns[index] = (name, getattr(kind, "elem_type", kind))
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """What stands between elements of arrays."""
        return self._with(array_separator=separator)

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """What stands between columns."""
        return self._with(column_separator=_char(char, "Column separator"))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """No sign takes the meaning of the next one."""
        return self._with(escape=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """The sign that takes the meaning of the next one."""
        return self._with(escape=_char(char, "Escape char"))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """What is written behind each record; any line end is read."""
        return self._with(line_separator=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """The text that stands for null."""
        return self._with(null_value=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """No sign stands around texts."""
        return self._with(quote=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """The sign around texts that hold other signs."""
        return self._with(quote=_char(char, "Quote char"))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Whether the first record, behind the names if there are such, is left out."""
        return self._with(skip_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Whether the names in the first line must be those of the columns, in their order."""
        return self._with(strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Whether the first line holds the names of the columns."""
        return self._with(use_header=use)

    def size(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def __len__(self) -> int:
        return self.size()

    def _with(self, **changes: Any) -> CsvSchemaBuilder:
        self._signs = replace(self._signs, **changes)
        return self


def _char(char: str, what: str) -> str:
    if len(char) != 1:
        message = f"{what} must be a single char, got {char}"
        raise ValueError(message)
    return char


class CsvReaderFormat(CsvFiles):
    """Reads CSV files as rows."""

    def __init__(self, schema: CsvSchema, on_error: str = "fail") -> None:
        signs = schema.signs()
        options = {**signs.options(), "on-error": on_error}
        super().__init__(
            format_named("csv", schema.row_type(), options),
            quote=signs.quote,
            escape=signs.escape,
            skip=int(signs.use_header) + int(signs.skip_first_data_row),
            comments=signs.comments,
        )
        self._names = [name for name, _ in schema.columns()] if signs.use_header and signs.strict_headers else None
        self._separator, self._quote_sign = signs.column_separator, signs.quote or ""

    @staticmethod
    def for_schema(schema: CsvSchema, on_error: str = "fail") -> StreamFormat:
        """A format for files of that schema; `on_error` says what is done about bad records."""
        return CsvReaderFormat(schema, on_error)

    def check_head(self, part: OpenRange, record: bytes) -> None:
        """The names in the first line must be those of the schema, if that was asked for."""
        if self._names is None:
            return
        found = [name.strip(self._quote_sign) for name in record.decode("utf-8").split(self._separator)]
        if found != self._names:
            message = f"the first line of {part.path} names the columns {found}, not {self._names}"
            raise BadCsvSchema(message, hint="mend the file or the schema, or set_strict_headers(False)")


class CsvBulkWriters:
    """Writers of CSV files."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Writers of rows by a schema; the names of the columns stand in the first line if it says so."""
        signs = schema.signs()
        names = [name for name, _ in schema.columns()]
        head_format = format_named("csv", RowTypeInfo([Types.STRING()] * len(names), names), signs.options())
        head = head_format.encode([names])[0] if signs.use_header else None
        line_format = format_named("csv", schema.row_type(), signs.options())
        return LineWriterFactory(schema.row_type(), line_format, end=signs.line_separator.encode(), head=head)


class CsvRowDeserializationSchema(FormatDeserializationSchema):
    """CSV lines as rows."""

    class Builder:
        """Builds a CsvRowDeserializationSchema."""

        def __init__(self, type_info: TypeInformation | None) -> None:
            if type_info is None:
                message = "Type information must not be None"
                raise TypeError(message)
            self._type_info = type_info
            self._options: dict[str, Any] = {}

        def _set(self, key: str, value: Any) -> CsvRowDeserializationSchema.Builder:
            self._options[key] = value
            return self

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """What stands between fields."""
            return self._set("field-delimiter", delimiter)

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Whether lines that begin with # are left out."""
            return self._set("allow-comments", allow_comments)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """What stands between elements of arrays."""
            return self._set("array-element-delimiter", delimiter)

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """The sign around fields that hold other signs."""
            return self._set("quote-character", c)

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """The sign that takes the meaning of the next one."""
            return self._set("escape-character", c)

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """The text that stands for null."""
            return self._set("null-literal", null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Whether fields that cannot be read are None, and lines are left out."""
            return self._set("ignore-parse-errors", ignore_parse_errors)

        def build(self) -> CsvRowDeserializationSchema:
            """The schema."""
            return CsvRowDeserializationSchema(format_named("csv", self._type_info, self._options))


class CsvRowSerializationSchema(FormatSerializationSchema):
    """Rows as CSV lines, each with its line end."""

    def __init__(self, message_format: Any, line_delimiter: str = "\n") -> None:
        super().__init__(message_format)
        self._end = line_delimiter.encode()

    def serialize(self, element: Any) -> bytes:
        """The line of a row."""
        return super().serialize(element) + self._end

    class Builder:
        """Builds a CsvRowSerializationSchema."""

        def __init__(self, type_info: TypeInformation | None) -> None:
            if type_info is None:
                message = "Type information must not be None"
                raise TypeError(message)
            self._type_info = type_info
            self._options: dict[str, Any] = {}
            self._end = "\n"

        def _set(self, key: str, value: Any) -> CsvRowSerializationSchema.Builder:
            self._options[key] = value
            return self

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """What stands between fields."""
            return self._set("field-delimiter", c)

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What stands behind each row."""
            self._end = delimiter
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What stands between elements of arrays."""
            return self._set("array-element-delimiter", delimiter)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """No sign stands around fields."""
            return self._set("disable-quote-character", True)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """The sign around fields that hold other signs."""
            return self._set("quote-character", c)

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """The sign that takes the meaning of the next one."""
            return self._set("escape-character", c)

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """The text that stands for null."""
            return self._set("null-literal", s)

        def build(self) -> CsvRowSerializationSchema:
            """The schema."""
            return CsvRowSerializationSchema(format_named("csv", self._type_info, self._options), self._end)
