"""PyFlink's `datastream.formats.csv`: rows as CSV, in messages and in files.

Promises: PyFlink's builders and readers; columns in the order of the schema, with the declared types.
Does not know: how CSV is read; `millstream.formats` does."""

from __future__ import annotations

from typing import Any

from millstream.connector.serialization_schema import BulkWriterFactory
from millstream.connectors.files import CsvFiles, LineWriterFactory, StreamFormat
from millstream.connectors.files.ranges import OpenRange
from millstream.datastream.formats.csv_schema import BadCsvSchema, CsvSchema, CsvSchemaBuilder
from millstream.formats import (
    FormatDeserializationSchema,
    FormatSerializationSchema,
    format_named,
)
from millstream.types.factory import RowTypeInfo, TypeInformation, Types

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


class CsvReaderFormat(CsvFiles):
    """Reads CSV files as rows.

    Example:
        >>> from millstream.datastream.connectors.file_system import FileSource
        >>> schema = CsvSchema.builder().add_string_column("name").build()
        >>> source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), "/data/names.csv").build()

    """

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
    """Factories of writers of CSV files, for `FileSink.for_bulk_format`.

    Example:
        >>> from millstream.datastream.connectors.file_system import FileSink
        >>> schema = CsvSchema.builder().add_string_column("name").build()
        >>> sink = FileSink.for_bulk_format("/data/names", CsvBulkWriters.for_schema(schema)).build()

    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Create a factory of writers of rows; they write a header if the schema says so.

        Args:
            schema: The schema of the files.

        """
        dialect = schema.dialect()
        names = [name for name, _ in schema.columns()]
        head_format = format_named("csv", RowTypeInfo([Types.STRING()] * len(names), names), dialect.options())
        head = head_format.encode([names])[0] if dialect.use_header else None
        return LineWriterFactory(
            schema.row_type(), schema.line_format(), end=dialect.line_separator.encode(), head=head
        )


class CsvRowDeserializationSchema(FormatDeserializationSchema):
    """Deserializes CSV lines to rows.

    Example:
        >>> from millstream.common import Types
        >>> row_type = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.LONG()])
        >>> schema = CsvRowDeserializationSchema.Builder(row_type).set_field_delimiter(";").build()
        >>> schema.deserialize(b"tea;3")
        Row(name='tea', amount=3)

    """

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
            """Set the separator between fields.

            Args:
                delimiter: One character; the default is a comma.

            """
            return self._set("field-delimiter", delimiter)

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Set whether lines that begin with # are skipped.

            Args:
                allow_comments: True to skip them.

            """
            return self._set("allow-comments", allow_comments)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the separator between the elements of arrays.

            Args:
                delimiter: The separator; the default is a semicolon.

            """
            return self._set("array-element-delimiter", delimiter)

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the quote character.

            Args:
                c: One character; the default is a double quote.

            """
            return self._set("quote-character", c)

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the escape character.

            Args:
                c: One character; by default there is none.

            """
            return self._set("escape-character", c)

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Set the text that represents null.

            Args:
                null_literal: The text; by default there is none.

            """
            return self._set("null-literal", null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Set whether invalid fields are None and invalid lines are skipped, instead of failing the job.

            Args:
                ignore_parse_errors: False to fail the job.

            """
            return self._set("ignore-parse-errors", ignore_parse_errors)

        def build(self) -> CsvRowDeserializationSchema:
            """Build the schema."""
            return CsvRowDeserializationSchema(format_named("csv", self._type_info, self._options))


class CsvRowSerializationSchema(FormatSerializationSchema):
    r"""Serializes rows as CSV lines, with line endings.

    Example:
        >>> from millstream.common import Row, Types
        >>> row_type = Types.ROW_NAMED(["name", "amount"], [Types.STRING(), Types.LONG()])
        >>> CsvRowSerializationSchema.Builder(row_type).set_field_delimiter(";").build().serialize(Row("tea", 3))
        b'tea;3\n'

    """

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
            """Set the separator between fields.

            Args:
                c: One character; the default is a comma.

            """
            return self._set("field-delimiter", c)

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the line ending.

            Args:
                delimiter: The text at the end of each line.

            """
            self._end = delimiter
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the separator between the elements of arrays.

            Args:
                delimiter: The separator; the default is a semicolon.

            """
            return self._set("array-element-delimiter", delimiter)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Use no quote character."""
            return self._set("disable-quote-character", True)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the quote character.

            Args:
                c: One character; the default is a double quote.

            """
            return self._set("quote-character", c)

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the escape character.

            Args:
                c: One character; by default there is none.

            """
            return self._set("escape-character", c)

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Set the text that represents null.

            Args:
                s: The text.

            """
            return self._set("null-literal", s)

        def build(self) -> CsvRowSerializationSchema:
            """Build the schema."""
            return CsvRowSerializationSchema(format_named("csv", self._type_info, self._options), self._end)
