"""Formats of files of lines.

Promises: a format is a picklable description. By its error policy, an invalid line fails the job with an error that
names file, offset and text, or it is skipped and counted, or it becomes a dead letter.
Does not know: ranges; the name of a file, except for errors."""

from __future__ import annotations

import io
import json
from abc import abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.connector.serialization_schema import SimpleStringSchema
from millstream.connectors.files.lines import Block, blocks
from millstream.connectors.files.ranges import FileFormat, OpenRange, ReadRecords, Rejected
from millstream.errors import UserError
from millstream.formats import Format, OnError
from millstream.formats.contract import reason_of
from millstream.formats.format_types import FieldSelection
from millstream.types.factory import DataclassTypeInfo, NamedTupleTypeInfo, TypeInformation, TypeMismatch, Types


class BadFormatOption(UserError):
    """An option of a format is invalid."""


class StreamFormat(FileFormat):
    """Reads the records of a file one after another.

    Example:
        >>> from millstream.datastream.connectors.file_system import FileSource
        >>> lines = StreamFormat.json_lines(on_error="skip")
        >>> source = FileSource.for_record_stream_format(lines, "/data/orders").build()

    """

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Create a format that reads each line as a string; invalid bytes become the replacement character, as in
        Java.

        Args:
            charset_name: The name of the character set.

        """
        return TextLines(charset_name)

    @staticmethod
    def json_lines(type_info: TypeInformation | None = None, on_error: str = "fail") -> StreamFormat:
        """Create a format that reads each line that is not blank as a JSON value.

        Args:
            type_info: The type of the records; by default Python values.
            on_error: What to do with an invalid line: "fail", "skip" (it is counted), or "dead-letter".

        """
        return JsonLines(type_info, on_error)

    @staticmethod
    def lines_of(line_format: Format) -> StreamFormat:
        """Create a format that reads each line that is not empty with a message format, such as `format_named("json",
        ...)`.

        Args:
            line_format: The format of a line.

        """
        return FormatLines(line_format)


class LineFormat(StreamFormat):
    """Reads the records of a file from its lines."""

    @property
    def charset(self) -> str:
        """The character set of the lines."""
        return "utf-8"

    @property
    def splittable(self) -> bool:
        """Whether lines can be found from any offset: in every character set in which a line feed is one byte."""
        return "\n".encode(self.charset) == b"\n"

    def read(self, part: OpenRange, block: int) -> Iterator[ReadRecords]:
        """Yield the records of a range."""
        for lines in blocks(part.stream, part.start, part.end, part.size):
            yield self.decode(part.path, lines)

    @abstractmethod
    def decode(self, path: str, block: Block) -> ReadRecords:
        """Return the records of complete lines, as values or an Arrow array, and the invalid lines."""


class TextLines(LineFormat):
    """Lines as strings."""

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = SimpleStringSchema(charset).charset

    @property
    def charset(self) -> str:
        """The character set of the lines."""
        return self._charset

    def type_info(self) -> TypeInformation:
        """Return the type of strings."""
        return Types.STRING()

    def read(self, part: OpenRange, block: int) -> Iterator[ReadRecords]:
        """Yield the lines of a range; if a line feed is more than one byte in the character set, the file is read as
        text."""
        if self.splittable:
            yield from super().read(part, block)
            return
        with io.TextIOWrapper(part.stream, encoding=self.charset, errors="replace", newline=None) as text:
            while lines := [line.removesuffix("\n") for line in islice(text, block)]:
                yield ReadRecords(pa.array(lines, pa.string()))

    def decode(self, path: str, block: Block) -> ReadRecords:
        """Return the lines as an Arrow array."""
        if self._charset == "utf-8":
            data = block.data
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            try:
                text = pa.array([data.removesuffix(b"\n")], pa.binary()).cast(pa.string())
                return ReadRecords(pc.split_pattern(text, "\n").flatten())
            except pa.ArrowInvalid:
                pass  # not valid UTF-8: decoded line by line below, with replacement characters
        return ReadRecords(pa.array([line.decode(self._charset, "replace") for line in block.lines()], pa.string()))


class FormatLines(LineFormat):
    """Lines as records of a message format."""

    def __init__(self, line_format: Format) -> None:
        self._format = line_format
        self.on_error = line_format.on_error

    def type_info(self) -> TypeInformation:
        """Return the type that the format produces."""
        return self._format.type_info

    def only(self, selection: FieldSelection) -> FormatLines | None:
        """Return the format with only some of the fields; None if it must read all of them."""
        line_format = self._format.only(selection)
        return None if line_format is None else FormatLines(line_format)

    def decode(self, path: str, block: Block) -> ReadRecords:
        """Return the records of the lines that are not empty."""
        values = None if b"\r" in block.data else self._format.decode_lines(block.data)
        if values is not None:
            return ReadRecords(values)
        lines = block.lines()
        numbers = [number for number, line in enumerate(lines) if line]
        decoded = self._format.decode(lines if len(numbers) == len(lines) else [lines[number] for number in numbers])
        rejected = [
            Rejected(path, block.offset_of(numbers[invalid.index]), invalid.data, invalid.reason)
            for invalid in decoded.errors
        ]
        return self.apply_error_policy(ReadRecords(decoded.values, rejected))


class JsonLines(LineFormat):
    """Lines as JSON values."""

    def __init__(self, type_info: TypeInformation | None = None, on_error: str = "fail") -> None:
        self._record_type = type_info or Types.PICKLED_BYTE_ARRAY()
        try:
            self.on_error = OnError.of(on_error)
        except UserError as refused:
            raise BadFormatOption(refused.message, hint=refused.hint) from None

    def type_info(self) -> TypeInformation:
        """Return the declared type, or that of Python objects."""
        return self._record_type

    def decode(self, path: str, block: Block) -> ReadRecords:
        """Return the records of the lines."""
        numbers: list[int] = []
        values: list[Any] = []
        refused: dict[int, str] = {}
        build = _record_builder(self._record_type)
        lines = block.lines()
        for number, line in enumerate(lines):
            if not line or line.isspace():
                continue
            try:
                values.append(build(json.loads(line)))
                numbers.append(number)
            except (ValueError, TypeError, RecursionError) as problem:
                refused[number] = reason_of(problem)
        try:
            values = self._record_type.conform(values)
        except TypeMismatch:
            conforming: list[Any] = []
            for number, value in zip(numbers, values, strict=True):
                try:
                    conforming += self._record_type.conform([value])
                except TypeMismatch as mismatch:
                    refused[number] = mismatch.message
            values = conforming
        rejected = [Rejected(path, block.offset_of(at), lines[at], refused[at]) for at in sorted(refused)]
        return self.apply_error_policy(ReadRecords(values, rejected))


def _record_builder(record_type: TypeInformation) -> Callable[[Any], Any]:
    """Return a function from a JSON value to a record: classes are called with the members of objects."""
    if not isinstance(record_type, (DataclassTypeInfo, NamedTupleTypeInfo)):
        return _identity
    cls, names = record_type.cls, record_type.field_names

    def build(value: Any) -> Any:
        if not isinstance(value, dict):
            message = f"expected an object with members {names}"
            raise TypeError(message)
        return cls(**{name: value[name] for name in names if name in value})

    return build


def _identity(value: Any) -> Any:
    return value
