"""CSV: one line per record.

Promises: the results of Flink's csv format, for every option. Batches without quotes, escapes and comments are parsed
by Arrow, and columns of scalar values are written at once, with the same results.
Does not know: headers, files."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from millstream.config.configuration import ConfigOption
from millstream.formats import texts
from millstream.formats.contract import BadFormat, Decoded, Format, UnencodableRecord, decode_each
from millstream.formats.csv_columns import LONG, ColumnWriter, SpecialCharacters
from millstream.formats.format_types import BITS, FormatType, TypeRoot
from millstream.formats.options import IGNORE_PARSE_ERRORS, Settings
from millstream.formats.vectors import array_of_texts, arrow_leaf, decode_in_pieces
from millstream.types.row import Row, RowKind

FIELD_DELIMITER = ConfigOption("field-delimiter", ",", "The field delimiter, one character.", str)
DISABLE_QUOTE = ConfigOption("disable-quote-character", False, "Whether fields are never quoted.", bool)
QUOTE = ConfigOption("quote-character", '"', "The quote character for fields that contain special characters.", str)
ALLOW_COMMENTS = ConfigOption("allow-comments", False, "Whether lines that begin with # are ignored as comments.", bool)
ARRAY_DELIMITER = ConfigOption(
    "array-element-delimiter", ";", "The delimiter between elements of arrays and nested rows.", str
)
ESCAPE = ConfigOption("escape-character", None, "The escape character. Escaping is disabled by default.", str)
NULL_LITERAL = ConfigOption("null-literal", None, "The text that stands for NULL.", str)
SCIENTIFIC = ConfigOption(
    "write-bigdecimal-in-scientific-notation", True, "Whether decimals can be written with an exponent.", bool
)
IGNORE_SURPLUS = ConfigOption(
    "ignore-surplus-fields",
    False,
    "Whether fields after the last column are ignored, as by Flink's legacy CSV format.",
    bool,
)
OPTIONS: tuple[ConfigOption[Any], ...] = (
    FIELD_DELIMITER,
    DISABLE_QUOTE,
    QUOTE,
    ALLOW_COMMENTS,
    IGNORE_PARSE_ERRORS,
    ARRAY_DELIMITER,
    ESCAPE,
    NULL_LITERAL,
    SCIENTIFIC,
    IGNORE_SURPLUS,
)
REFUSED = (ValueError, TypeError, OverflowError)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\", "'": "'", '"': '"', "b": "\b", "f": "\f"}
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


class BadLine(ValueError):
    """A line is not a valid record."""


def _unclosed_quote(quote: str) -> BadLine:
    return BadLine(f"missing closing quote {quote}")


def unescape(text: str) -> str:
    r"""Replace escape sequences such as `\t` by their characters, as in Java."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2]), text)


def _read_character(settings: Settings, option: ConfigOption[Any]) -> str | None:
    value = settings.get(option)
    if value is None:
        return None
    text = unescape(value) if len(value) > 1 else value
    if len(text) != 1:
        message = f"csv.{option.key} is {value!r}"
        raise BadFormat(message, hint="give one character")
    return text


class Dialect:
    """The special characters of a CSV dialect."""

    def __init__(self, settings: Settings) -> None:
        self.delimiter = _read_character(settings, FIELD_DELIMITER) or ","
        self.quote = None if settings.get(DISABLE_QUOTE) else _read_character(settings, QUOTE)
        self.escape = _read_character(settings, ESCAPE)
        self.comments = bool(settings.get(ALLOW_COMMENTS))
        self.null: str | None = settings.get(NULL_LITERAL)
        self.element_delimiter: str = unescape(settings.get(ARRAY_DELIMITER))

    def split(self, text: str) -> list[str | None]:
        """Return the fields of the first line of a text."""
        quote, escape = self.quote, self.escape
        if (quote is None or quote not in text) and (escape is None or escape not in text):
            line = _first_line(text)
            fields: list[str | None] = list(line.split(self.delimiter))
        else:
            fields = self._scan(text)
        if self.null is not None:
            fields = [None if field == self.null else field for field in fields]
        return fields

    def _scan(self, text: str) -> list[str | None]:
        fields: list[str | None] = []
        at, end = 0, len(text)
        while True:
            at, value = self._field(text, at, end)
            fields.append(value)
            if at >= end or text[at] in "\r\n":
                return fields
            at += 1

    def _field(self, text: str, at: int, end: int) -> tuple[int, str]:
        """Parse the field at an offset; return its end and its text."""
        quote, escape, delimiter = self.quote, self.escape, self.delimiter
        quoted = quote is not None and at < end and text[at] == quote
        at += quoted
        characters: list[str] = []
        while True:
            if at >= end:
                if quoted:
                    raise _unclosed_quote(str(quote))
                return at, "".join(characters)
            character = text[at]
            if character == escape:
                characters.append(_ESCAPED_CHARACTERS.get(text[at + 1 : at + 2], text[at + 1 : at + 2]))
                at += 2
            elif quoted and character == quote:
                if text[at + 1 : at + 2] != quote:
                    return self._skip_blanks(text, at + 1, end), "".join(characters)
                characters.append(character)
                at += 2
            elif not quoted and (character == delimiter or character in "\r\n"):
                return at, "".join(characters)
            else:
                characters.append(character)
                at += 1

    def _skip_blanks(self, text: str, at: int, end: int) -> int:
        """Return the offset of the delimiter after a closing quote."""
        while at < end and text[at] == " " != self.delimiter:
            at += 1
        if at < end and text[at] != self.delimiter and text[at] not in "\r\n":
            message = f"expected a separator after the closing quote, got {text[at]!r}"
            raise BadLine(message)
        return at


_ESCAPED_CHARACTERS = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


def _first_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        return text.replace("\r", "\n").split("\n", 1)[0]
    return text


Reader = Callable[[Any], Any]


class CsvReader:
    """Converts fields to records."""

    def __init__(
        self,
        data_type: FormatType,
        dialect: Dialect,
        ignores_errors: bool,
        element_delimiters: Sequence[str],
        ignores_surplus: bool,
    ) -> None:
        self._dialect, self._ignores_errors, self._ignores_surplus = dialect, ignores_errors, ignores_surplus
        self._readers = [
            self.reader(child, delimiter)
            for child, delimiter in zip(data_type.children, element_delimiters, strict=True)
        ]
        self._make = data_type.maker()

    def reader(self, data_type: FormatType, element_delimiter: str) -> Reader:
        """Return the parser of a field; it returns None for None, and for an error if errors are ignored."""
        read = self._reader(data_type, element_delimiter)
        if not self._ignores_errors:
            return lambda text: None if text is None else read(text)

        def read_or_none(text: Any) -> Any:
            try:
                return None if text is None else read(text)
            except REFUSED:
                return None

        return read_or_none

    def _reader(self, data_type: FormatType, element_delimiter: str) -> Reader:
        root = data_type.root
        if root in BITS:
            return texts.integer_reader(root)
        if root is TypeRoot.DECIMAL:
            return texts.decimal_reader(data_type)
        if root is TypeRoot.TIMESTAMP or root is TypeRoot.TIMESTAMP_LTZ:
            read_timestamp = texts.timestamp_reader(texts.SQL, root is TypeRoot.TIMESTAMP_LTZ)
            return lambda text: read_timestamp(text.strip(texts.BLANKS))
        if root is TypeRoot.TIME:
            return texts.iso_time_reader(data_type.precision)
        if root is TypeRoot.ARRAY:
            element = self.reader(data_type.children[0], element_delimiter)
            return lambda text: [element(item) for item in _items(text, element_delimiter)]
        if root is TypeRoot.ROW:
            members = [self.reader(child, element_delimiter) for child in data_type.children]
            make = data_type.maker()

            def read_row(text: str) -> Any:
                items = _items(text, element_delimiter)
                if not items:
                    return None
                if len(items) < len(members):
                    message = f"{len(members)} members expected, got {len(items)}"
                    raise BadLine(message)
                return make([member(item) for member, item in zip(members, items, strict=False)])

            return read_row
        if root not in _LEAVES:
            message = f"csv cannot represent {root.value}"
            raise BadFormat(message, hint="use json, or arrays and rows of scalar values")
        return _LEAVES[root]

    def read(self, text: str) -> Any:
        """Parse a line to a record."""
        fields = self._dialect.split(text)
        count = len(self._readers)
        if self._ignores_surplus:
            fields = fields[:count]
        if len(fields) != count and not (self._ignores_errors and len(fields) < count):
            if len(fields) > count:
                message = f"too many entries: expected at most {count} (value #{count} ({fields[count]!r:.100}))"
            else:
                message = f"row length mismatch. {count} fields expected but was {len(fields)}"
            raise BadLine(message)
        fields += [None] * (count - len(fields))
        return self._make([reader(field) for reader, field in zip(self._readers, fields, strict=True)])


def _items(text: str, element_delimiter: str) -> list[str]:
    return text.split(element_delimiter) if text else []


def _read_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        message = f"invalid Base64: {problem}"
        raise ValueError(message) from None


_LEAVES: dict[TypeRoot, Reader] = {
    TypeRoot.STRING: lambda text: text,
    TypeRoot.BOOLEAN: texts.read_boolean,
    TypeRoot.FLOAT: texts.read_float,
    TypeRoot.DOUBLE: texts.read_float,
    TypeRoot.BYTES: _read_bytes,
    TypeRoot.DATE: texts.read_sql_date,
    TypeRoot.BIG_INTEGER: int,
}


class CsvWriter:
    """Converts records to lines."""

    def __init__(
        self, data_type: FormatType, dialect: Dialect, plain_decimals: bool, element_delimiters: Sequence[str]
    ) -> None:
        self._dialect, self._plain = dialect, plain_decimals
        self._split = data_type.splitter()
        self._writers = [
            self.writer(child, delimiter)
            for child, delimiter in zip(data_type.children, element_delimiters, strict=True)
        ]
        self._greatest = max(dialect.delimiter, dialect.quote or "", "\n")

    def columns(self, data_type: FormatType) -> ColumnWriter:
        """Return the writer that converts columns to the same lines."""
        dialect = self._dialect
        special = SpecialCharacters(
            dialect.delimiter, dialect.quote, dialect.escape, dialect.null or "", self._greatest
        )
        return ColumnWriter(data_type, special, lambda child: self._writer(child, dialect.element_delimiter)[0])

    def writer(self, data_type: FormatType, element_delimiter: str) -> Callable[[Any], tuple[str, bool]]:
        """Return the formatter of a field, and whether its text can need quotes."""
        write, is_text = self._writer(data_type, element_delimiter)
        nothing = (self._dialect.null or "", False)
        return lambda value: nothing if value is None else (write(value), is_text)

    def _writer(self, data_type: FormatType, element_delimiter: str) -> tuple[Callable[[Any], str], bool]:
        root, precision = data_type.root, data_type.precision
        if root in BITS or root is TypeRoot.BIG_INTEGER:
            return lambda value: str(int(value)), False
        if root is TypeRoot.FLOAT or root is TypeRoot.DOUBLE:
            return lambda value: texts.write_float(value, root), False
        if root is TypeRoot.DECIMAL:
            return lambda value: texts.write_decimal(value, data_type, self._plain), False
        if root is TypeRoot.TIME:
            return lambda value: texts.write_time(value, precision), True
        if root is TypeRoot.TIMESTAMP:
            return lambda value: texts.write_timestamp(value, texts.SQL, precision), True
        if root is TypeRoot.TIMESTAMP_LTZ:
            return lambda value: texts.write_instant(value, texts.SQL, precision), True
        if root is TypeRoot.ARRAY:
            element = self.writer(data_type.children[0], element_delimiter)
            return lambda value: element_delimiter.join([element(item)[0] for item in value]), True
        if root is TypeRoot.ROW:
            members = [self.writer(child, element_delimiter) for child in data_type.children]
            split = data_type.splitter()

            def write_row(value: Any) -> str:
                return element_delimiter.join([m(item)[0] for m, item in zip(members, split(value), strict=True)])

            return write_row, True
        if root not in _TEXTS:
            message = f"csv cannot represent {root.value}"
            raise BadFormat(message, hint="use json, or arrays and rows of scalar values")
        return _TEXTS[root], root is not TypeRoot.BOOLEAN

    def write(self, value: Any) -> str:
        """Format a record as a line, without a line feed."""
        line = io.StringIO()
        for index, (writer, item) in enumerate(zip(self._writers, self._split(value), strict=True)):
            if index:
                line.write(self._dialect.delimiter)
            text, is_text = writer(item)
            line.write(self._field(text) if is_text else text)
        return line.getvalue()

    def _field(self, text: str) -> str:
        quote, escape = self._dialect.quote, self._dialect.escape
        if quote is None or not self._needs_quotes(text):
            return text
        if escape is not None:
            text = text.replace(escape, escape + escape)
        return f"{quote}{text.replace(quote, quote + quote)}{quote}"

    def _needs_quotes(self, text: str) -> bool:
        """Whether a text is quoted, by the rule of Flink's CSV library: long texts, and texts with a character up to
        the greatest special character."""
        has_escape = self._dialect.escape is not None and self._dialect.escape in text
        return has_escape or len(text) > LONG or (bool(text) and min(text) <= self._greatest)


_TEXTS: dict[TypeRoot, Callable[[Any], str]] = {
    TypeRoot.STRING: lambda value: value,
    TypeRoot.BOOLEAN: lambda value: "true" if value else "false",
    TypeRoot.BYTES: lambda value: base64.b64encode(value).decode(),
    TypeRoot.DATE: lambda value: value.isoformat(),
}


def _plain_quotes(dialect: Dialect) -> re.Pattern[bytes] | None:
    """Return the pattern of lines whose quotes are around whole fields and doubled inside them."""
    if dialect.quote is None:
        return None
    quote, comma = re.escape(dialect.quote.encode()), re.escape(dialect.delimiter.encode())
    inside = b"[^%b\n]*+" % quote
    quoted = b"%b%b(?:%b%b%b)*+%b" % (quote, inside, quote, quote, inside, quote)
    field = b"(?:%b|[^%b%b\n]*+)" % (quoted, quote, comma)
    return re.compile(b"%b(?:[%b\n]%b)*+" % (field, comma, field))


class CsvFormat(Format):
    """The format `csv`.

    `element_delimiters`: the delimiter between the elements of an array or nested row, by the name of its column; the
    option `array-element-delimiter` applies to the other columns."""

    name = "csv"

    def __init__(
        self, data_type: FormatType, options: Mapping[str, Any], element_delimiters: Mapping[str, str] | None = None
    ) -> None:
        self._options = dict(options)
        self._element_delimiters = dict(element_delimiters or {})
        settings = Settings(self.name, OPTIONS, options)
        super().__init__(data_type, settings.on_error())
        self._dialect = Dialect(settings)
        self._ignores_errors = bool(settings.get(IGNORE_PARSE_ERRORS))
        delimiters = [
            self._element_delimiters.get(name, self._dialect.element_delimiter)
            for name in data_type.names or map(str, range(len(data_type.children)))
        ]
        surplus = bool(settings.get(IGNORE_SURPLUS))
        self._reader = CsvReader(data_type, self._dialect, self._ignores_errors, delimiters, surplus)
        self._writer = CsvWriter(data_type, self._dialect, not settings.get(SCIENTIFIC), delimiters)
        self._column_writer = self._writer.columns(data_type)
        self._arrow_options = self._columns()
        self._quote = (self._dialect.quote or "").encode()
        self._plain_quotes = _plain_quotes(self._dialect)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data_type, self._options, self._element_delimiters)

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """Decode lines, with Arrow where it has the same results."""
        if self._arrow_options is None:
            return self._decode_singly(records)
        return decode_in_pieces(records, self._decode_together, self._decode_singly, self.type_info)

    def _decode_singly(self, records: Sequence[bytes | None]) -> Decoded:
        return decode_each(records, self._decode_one, REFUSED)

    def _decode_one(self, data: bytes) -> Any:
        text = bytes(data).decode("utf-8")
        if not text or (self._dialect.comments and text.lstrip(" ").startswith("#")):
            if self._ignores_errors:
                return None
            message = "no content"
            raise BadLine(message)
        return self._reader.read(text)

    def _columns(self) -> tuple[arrow_csv.ParseOptions, arrow_csv.ConvertOptions] | None:
        dialect, data_type = self._dialect, self.data_type
        simple = data_type.is_flat() and dialect.escape is None and not dialect.comments
        # Arrow does not report whether the text of null was quoted
        simple = simple and (dialect.null is None or dialect.quote is None or dialect.quote not in dialect.null)
        if not simple or not data_type.names or ord(dialect.delimiter) > 127 or dialect.delimiter in "\r\n":
            return None
        parse = arrow_csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote or False,
            double_quote=True,
            escape_char=False,
            ignore_empty_lines=False,
        )
        convert = arrow_csv.ConvertOptions(
            check_utf8=True,
            column_types={name: arrow_leaf(child) or pa.string() for name, child in data_type.fields()},
            null_values=[] if dialect.null is None else [dialect.null],
            strings_can_be_null=dialect.null is not None,
            quoted_strings_can_be_null=True,
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
        )
        return parse, convert

    def _decode_together(self, records: Sequence[bytes | None]) -> pa.Array | None:
        """Parse all lines with Arrow; None if some line must be parsed by the row parser, which has Flink's rules."""
        if not all(records):
            return None
        joined = b"\n".join(records)  # type: ignore[arg-type]
        if joined.count(b"\n") != len(records) - 1 or any(
            character in joined for character in (b"\r", b"\0", b"0x", b"0X")
        ):
            return None
        if self._plain_quotes is not None and self._quote in joined and not self._plain_quotes.fullmatch(joined):
            return None
        assert self._arrow_options is not None
        parse, convert = self._arrow_options
        read = arrow_csv.ReadOptions(
            use_threads=False, block_size=len(joined) + 1, column_names=list(self.data_type.names)
        )
        try:
            table = arrow_csv.read_csv(pa.BufferReader(joined), read, parse, convert)
            if table.num_rows != len(records):
                return None
            columns = []
            for index, (_, child) in enumerate(self.data_type.fields()):
                column = table.column(index).combine_chunks()
                if child.root in (TypeRoot.FLOAT, TypeRoot.DOUBLE) and pc.sum(pc.is_finite(column)) != pa.scalar(
                    len(column) - column.null_count, pa.uint64()
                ):
                    return None  # Arrow accepts more spellings of NaN and infinity than Java
                if not arrow_leaf(child):
                    column = array_of_texts(child, column, self._reader.reader(child, self._dialect.element_delimiter))
                columns.append(column)
            return self.data_type.array_of(columns, len(records))
        except (pa.ArrowException, *REFUSED):
            return None

    def encode_lines(self, columns: Sequence[pa.Array], end: bytes) -> memoryview | None:
        """Encode columns of scalar values as lines."""
        return self._column_writer.lines(columns, end)

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Encode records as lines without line ends."""
        encoded = []
        for value in values:
            if isinstance(value, Row) and value.get_row_kind() is not RowKind.INSERT:
                raise UnencodableRecord(
                    self.name,
                    value,
                    "it is not an insert-only row",
                    hint="use debezium-json, canal-json or maxwell-json",
                )
            try:
                encoded.append(self._writer.write(value).encode("utf-8", "replace"))
            except (*REFUSED, AttributeError) as problem:
                raise UnencodableRecord(self.name, value, str(problem)) from None
        return encoded
