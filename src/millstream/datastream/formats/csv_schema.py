"""The columns and the dialect of CSV, under PyFlink's names.

Promises: columns in the order in which they were added; settings that CSV cannot have are refused.
Does not know: readers and writers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.datastream.formats.row_types import array_type, format_type_of
from millstream.errors import UserError
from millstream.formats import FormatType, TypeRoot
from millstream.formats.csv import CsvFormat
from millstream.types.factory import RowTypeInfo, Types


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
    """The columns of CSV files, and their separators and special characters.

    Example:
        >>> schema = CsvSchema.builder().add_string_column("name").add_number_column("amount").set_use_header().build()
        >>> schema.size()
        2

    """

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
        """Return the format of the lines, with more options of the format `csv`.

        Args:
            **options: Options of the format, such as `on-error`.

        """
        return CsvFormat(self._record_type(), {**self._dialect.options(), **options}, self._array_separators)

    def __len__(self) -> int:
        return self.size()

    def __str__(self) -> str:
        return f"[CsvSchema: columns={[name for name, _ in self._columns]}, header? {self._dialect.use_header}]"

    def __repr__(self) -> str:
        return str(self)


class CsvSchemaBuilder:
    """Builds a CsvSchema.

    Example:
        >>> builder = CsvSchemaBuilder().add_string_column("name").add_boolean_column("paid")
        >>> builder.set_column_separator(";").build().row_type()
        RowTypeInfo(name: String, paid: Boolean)

    """

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
        """Add a column of booleans.

        Args:
            name: The name of the column.

        """
        self._columns.append((name, FormatType.of(Types.BOOLEAN())))
        return self

    def add_number_column(self, name: str, number_type: Any = None) -> CsvSchemaBuilder:
        """Add a column of numbers; their type is BIGINT by default.

        Args:
            name: The name of the column.
            number_type: A numeric type of `DataTypes`; None for BIGINT.

        """
        self._columns.append((name, format_type_of(Types.LONG() if number_type is None else number_type)))
        return self

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of strings.

        Args:
            name: The name of the column.

        """
        self._columns.append((name, FormatType.of(Types.STRING())))
        return self

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema.

        Args:
            schema: The other schema.

        """
        self._columns += schema.columns()
        self._array_separators |= schema.array_separators()
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Remove all columns."""
        self._columns.clear()
        self._array_separators.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Set whether lines that begin with # are skipped.

        Args:
            allow: True to skip them.

        """
        return self._with(comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Refuse: a row has no field for undeclared columns.

        Args:
            name: Not used.

        """
        message = f"undeclared columns cannot be collected in a column {name!r}"
        raise BadCsvSchema(message, hint="declare every column")

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Use no separator for array columns without their own, so that an array has one element."""
        return self._with(array_separator="\0")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Change the array column with this index to a column of its element type.

        Args:
            index: The index of the column.

        """
        name, data_type = self._columns[index]
        self._columns[index] = (name, data_type.children[0] if data_type.root is TypeRoot.ARRAY else data_type)
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the separator between the elements of arrays, for array columns without their own.

        Args:
            separator: The separator.

        """
        return self._with(array_separator=separator)

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the separator between columns.

        Args:
            char: One character.

        """
        return self._with(column_separator=_char(char, "Column separator"))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Use no escape character."""
        return self._with(escape=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Set the escape character.

        Args:
            char: One character.

        """
        return self._with(escape=_char(char, "Escape char"))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the line separator for writing; readers accept any line ending.

        Args:
            separator: The text at the end of each line.

        """
        return self._with(line_separator=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the text that represents null.

        Args:
            null_value: The text.

        """
        return self._with(null_value=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Use no quote character."""
        return self._with(quote=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set the quote character.

        Args:
            char: One character.

        """
        return self._with(quote=_char(char, "Quote char"))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Set whether the first record after the header is skipped.

        Args:
            skip: True to skip it.

        """
        return self._with(skip_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Set whether the header must have the names of the columns, in their order.

        Args:
            strict: True to check the header.

        """
        return self._with(strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Set whether the first line is a header with the names of the columns.

        Args:
            use: True for files with a header.

        """
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
