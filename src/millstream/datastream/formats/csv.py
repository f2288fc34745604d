"""PyFlink's `datastream.formats.csv`: rows as CSV, in messages and in files.

Promises: PyFlink's builders and readers; columns in the order of the schema, with the declared types.
Does not know: how CSV is read; `millstream.formats` does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.connector.serialization_schema import BulkWriterFactory
from millstream.connectors.files import CsvFiles, LineWriterFactory, StreamFormat
from millstream.connectors.files.ranges import OpenRange
from millstream.datastream.formats.row_types import array_type, format_type_of
from millstream.errors import UserError
from millstream.formats import (
    FormatDeserializationSchema,
    FormatSerializationSchema,
    FormatType,
    TypeRoot,
    format_named,
)
from millstream.formats.csv import CsvFormat
from millstream.types.factory import RowTypeInfo, TypeInformation, Types

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


class BadCsvSchema(UserError, ValueError):
    """A CSV schema that cannot be used, or a file that does not fit its schema."""


@dataclass(frozen=True)
class _CsvDialect:
    """The separators, special characters and header of CSV files."""

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
        """Return the options of the format `csv`."""
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
    """The columns of CSV files, and their separators and special characters."""

    def __init__(
        self, columns: list[tuple[str, FormatType]], dialect: _CsvDialect, array_separators: dict[str, str]
    ) -> None:
        self._columns, self._dialect = list(columns), dialect
        self._array_separators = dict(array_separators)

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Create a builder."""
        return CsvSchemaBuilder()

    def size(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    def row_type(self) -> RowTypeInfo:
        """Return the type of the rows."""
        return RowTypeInfo([column.type_info() for _, column in self._columns], [name for name, _ in self._columns])

    def dialect(self) -> _CsvDialect:
        """Return the separators and special characters."""
        return self._dialect

    def columns(self) -> list[tuple[str, FormatType]]:
        """Return the names and types of the columns."""
        return list(self._columns)

    def array_separators(self) -> dict[str, str]:
        """Return the separators of the array columns that have one of their own, by name."""
        return dict(self._array_separators)

    def _record_type(self) -> FormatType:
        """Return the type of the lines, with precision and scale."""
        names = tuple(name for name, _ in self._columns)
        types = tuple(data_type for _, data_type in self._columns)
        return FormatType(TypeRoot.ROW, names=names, children=types, declared=self.row_type())

    def line_format(self, **options: Any) -> CsvFormat:
        """Return the format of the lines, with more options of the format `csv`."""
        return CsvFormat(self._record_type(), {**self._dialect.options(), **options}, self._array_separators)

    def __len__(self) -> int:
        return self.size()

    def __str__(self) -> str:
        return f"[CsvSchema: columns={[name for name, _ in self._columns]}, header? {self._dialect.use_header}]"

    def __repr__(self) -> str:
        return str(self)


class CsvSchemaBuilder:
    """Builds a CsvSchema."""

    def __init__(self) -> None:
        self._columns: list[tuple[str, FormatType]] = []
        self._array_separators: dict[str, str] = {}
        self._dialect = _CsvDialect()

    def build(self) -> CsvSchema:
        """Build the schema."""
        return CsvSchema(self._columns, self._dialect, self._array_separators)

    def add_array_column(self, name: str, separator: str = ";", element_type: Any = None) -> CsvSchemaBuilder:
        """Add a column of arrays.

        Args:
            name: The name of the column.
            separator: The separator between the elements in this column. If it is empty, the separator of
                `set_array_element_separator` is used.
            element_type: The type of the elements, of `Types` or `DataTypes`; STRING by default.

        """
        element = format_type_of(Types.STRING() if element_type is None else element_type)
        self._columns.append((name, FormatType.of(array_type(element.type_info()))))
        if separator:
            self._array_separators[name] = separator
        return self

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of booleans."""
        self._columns.append((name, FormatType.of(Types.BOOLEAN())))
        return self

    def add_number_column(self, name: str, number_type: Any = None) -> CsvSchemaBuilder:
        """Add a column of numbers; their type is BIGINT by default."""
        self._columns.append((name, format_type_of(Types.LONG() if number_type is None else number_type)))
        return self

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of strings."""
        self._columns.append((name, FormatType.of(Types.STRING())))
        return self

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema."""
        self._columns += schema.columns()
        self._array_separators |= schema.array_separators()
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Remove all columns."""
        self._columns.clear()
        self._array_separators.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Set whether lines that begin with # are skipped."""
        return self._with(comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Refuse: a row has no field for undeclared columns."""
        message = f"undeclared columns cannot be collected in a column {name!r}"
        raise BadCsvSchema(message, hint="declare every column")

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Use no separator for array columns without their own, so that an array has one element."""
        return self._with(array_separator="\0")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Change the array column with this index to a column of its element type."""
        name, data_type = self._columns[index]
        self._columns[index] = (name, data_type.children[0] if data_type.root is TypeRoot.ARRAY else data_type)
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the separator between the elements of arrays, for array columns without their own."""
        return self._with(array_separator=separator)

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the separator between columns."""
        return self._with(column_separator=_char(char, "Column separator"))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Use no escape character."""
        return self._with(escape=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Set the escape character."""
        return self._with(escape=_char(char, "Escape char"))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the line separator for writing; readers accept any line ending."""
        return self._with(line_separator=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the text that represents null."""
        return self._with(null_value=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Use no quote character."""
        return self._with(quote=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set the quote character."""
        return self._with(quote=_char(char, "Quote char"))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Set whether the first record after the header is skipped."""
        return self._with(skip_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Set whether the header must have the names of the columns, in their order."""
        return self._with(strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Set whether the first line is a header with the names of the columns."""
        return self._with(use_header=use)

    def size(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    def __len__(self) -> int:
        return self.size()

    def _with(self, **changes: Any) -> CsvSchemaBuilder:
        self._dialect = replace(self._dialect, **changes)
        return self


def _char(char: str, setting: str) -> str:
    if len(char) != 1:
        message = f"{setting} must be a single char, got {char}"
        raise ValueError(message)
    return char


class CsvReaderFormat(CsvFiles):
    """Reads CSV files as rows."""

    def __init__(self, schema: CsvSchema, on_error: str = "fail") -> None:
        dialect = schema.dialect()
        super().__init__(
            schema.line_format(**{"on-error": on_error}),
            quote=dialect.quote,
            escape=dialect.escape,
            skip=int(dialect.use_header) + int(dialect.skip_first_data_row),
            comments=dialect.comments,
        )
        self._names = [name for name, _ in schema.columns()] if dialect.use_header and dialect.strict_headers else None
        self._separator, self._quote_character = dialect.column_separator, dialect.quote or ""

    @staticmethod
    def for_schema(schema: CsvSchema, on_error: str = "fail") -> StreamFormat:
        """Create a reader for files with a schema.

        Args:
            schema: The columns and separators.
            on_error: What to do with invalid records: `fail`, `skip` or `dead-letter`.

        """
        return CsvReaderFormat(schema, on_error)

    def check_head(self, part: OpenRange, record: bytes) -> None:
        """Raise if headers are strict and the header does not have the names of the schema."""
        if self._names is None:
            return
        header = [name.strip(self._quote_character) for name in record.decode("utf-8").split(self._separator)]
        if header != self._names:
            message = f"the first line of {part.path} names the columns {header}, not {self._names}"
            raise BadCsvSchema(message, hint="correct the file or the schema, or call set_strict_headers(False)")


class CsvBulkWriters:
    """Factories of writers of CSV files, for `FileSink.for_bulk_format`."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Create a factory of writers of rows; they write a header if the schema says so."""
        dialect = schema.dialect()
        names = [name for name, _ in schema.columns()]
        head_format = format_named("csv", RowTypeInfo([Types.STRING()] * len(names), names), dialect.options())
        head = head_format.encode([names])[0] if dialect.use_header else None
        return LineWriterFactory(
            schema.row_type(), schema.line_format(), end=dialect.line_separator.encode(), head=head
        )


class CsvRowDeserializationSchema(FormatDeserializationSchema):
    """Deserializes CSV lines to rows."""

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
            """Set the separator between fields."""
            return self._set("field-delimiter", delimiter)

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Set whether lines that begin with # are skipped."""
            return self._set("allow-comments", allow_comments)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the separator between the elements of arrays."""
            return self._set("array-element-delimiter", delimiter)

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the quote character."""
            return self._set("quote-character", c)

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the escape character."""
            return self._set("escape-character", c)

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Set the text that represents null."""
            return self._set("null-literal", null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Set whether invalid fields are None and invalid lines are skipped, instead of failing the job."""
            return self._set("ignore-parse-errors", ignore_parse_errors)

        def build(self) -> CsvRowDeserializationSchema:
            """Build the schema."""
            return CsvRowDeserializationSchema(format_named("csv", self._type_info, self._options))


class CsvRowSerializationSchema(FormatSerializationSchema):
    """Serializes rows as CSV lines, with line endings."""

    def __init__(self, message_format: Any, line_delimiter: str = "\n") -> None:
        super().__init__(message_format)
        self._end = line_delimiter.encode()

    def serialize(self, element: Any) -> bytes:
        """Serialize a row as one line."""
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
            """Set the separator between fields."""
            return self._set("field-delimiter", c)

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the line ending."""
            self._end = delimiter
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the separator between the elements of arrays."""
            return self._set("array-element-delimiter", delimiter)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Use no quote character."""
            return self._set("disable-quote-character", True)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the quote character."""
            return self._set("quote-character", c)

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the escape character."""
            return self._set("escape-character", c)

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Set the text that represents null."""
            return self._set("null-literal", s)

        def build(self) -> CsvRowSerializationSchema:
            """Build the schema."""
            return CsvRowSerializationSchema(format_named("csv", self._type_info, self._options), self._end)
