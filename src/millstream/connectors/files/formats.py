"""How the lines of a file become records.

Promises: a format is a picklable description; a line that is no record either fails, naming file, byte and text, or is
skipped and counted, or kept as a dead letter, as the format was told.
Does not know: ranges, files' names before an error needs them."""

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
from millstream.connectors.files.ranges import FileFormat, Found, OpenRange, Rejected
from millstream.errors import UserError
from millstream.formats import Format, OnError
from millstream.formats.contract import reason_of
from millstream.formats.format_types import FieldSelection
from millstream.types.factory import DataclassTypeInfo, NamedTupleTypeInfo, TypeInformation, TypeMismatch, Types


class BadFormatOption(UserError):
    """A format was given an option it does not have."""


class StreamFormat(FileFormat):
    """Reads the records of a file one after another."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Each line is a string. Bytes outside the character set become the replacement character, as in Java."""
        return TextLines(charset_name)

    @staticmethod
    def json_lines(type_info: TypeInformation | None = None, on_error: str = "fail") -> StreamFormat:
        """Each line that is not blank is a JSON value, of the given type or as Python has it.

        A line that is not goes by `on_error`: "fail", "skip", which counts it, or "dead-letter", which keeps it."""
        return JsonLines(type_info, on_error)

    @staticmethod
    def lines_of(line_format: Format) -> StreamFormat:
        """Each line that is not empty is a record of a format of messages, such as `format_named("json", ...)`."""
        return FormatLines(line_format)


class LineFormat(StreamFormat):
    """Reads the records of a file from its lines."""

    @property
    def charset(self) -> str:
        """The character set of the lines."""
        return "utf-8"

    @property
    def splittable(self) -> bool:
        """Whether a line can be found from any byte on: in every set where a line feed is one byte of its own."""
        return "\n".encode(self.charset) == b"\n"

    def read(self, part: OpenRange, block: int) -> Iterator[Found]:
        """As FileFormat promises."""
        for lines in blocks(part.stream, part.start, part.end, part.size):
            yield self.decode(part.path, lines)

    @abstractmethod
    def decode(self, path: str, block: Block) -> Found:
        """The records of whole lines, as values or an Arrow array, and the lines that are none."""


class TextLines(LineFormat):
    """Lines as strings."""

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = SimpleStringSchema(charset).charset

    @property
    def charset(self) -> str:
        """The character set of the lines."""
        return self._charset

    def type_info(self) -> TypeInformation:
        """Strings."""
        return Types.STRING()

    def read(self, part: OpenRange, block: int) -> Iterator[Found]:
        """As FileFormat promises; in a set whose line feeds are more than one byte a file is read as text."""
        if self.splittable:
            yield from super().read(part, block)
            return
        with io.TextIOWrapper(part.stream, encoding=self.charset, errors="replace", newline=None) as text:
            while lines := [line.removesuffix("\n") for line in islice(text, block)]:
                yield Found(pa.array(lines, pa.string()))

    def decode(self, path: str, block: Block) -> Found:
        """The lines as an Arrow array."""
        if self._charset == "utf-8":
            data = block.data
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            try:
                text = pa.array([data.removesuffix(b"\n")], pa.binary()).cast(pa.string())
                return Found(pc.split_pattern(text, "\n").flatten())
            except pa.ArrowInvalid:
                pass  # not all of it is UTF-8: the slower way knows what to do
        return Found(pa.array([line.decode(self._charset, "replace") for line in block.lines()], pa.string()))


class FormatLines(LineFormat):
    """Lines as records of a format of messages."""

    def __init__(self, line_format: Format) -> None:
        self._format = line_format
        self.on_error = line_format.on_error

    def type_info(self) -> TypeInformation:
        """Return the type that the format produces."""
        return self._format.type_info

    def only(self, wanted: FieldSelection) -> FormatLines | None:
        """As FileFormat promises."""
        line_format = self._format.only(wanted)
        return None if line_format is None else FormatLines(line_format)

    def decode(self, path: str, block: Block) -> Found:
        """The values of the lines that are not empty."""
        together = None if b"\r" in block.data else self._format.decode_lines(block.data)
        if together is not None:
            return Found(together)
        lines = block.lines()
        numbers = [number for number, line in enumerate(lines) if line]
        decoded = self._format.decode(lines if len(numbers) == len(lines) else [lines[number] for number in numbers])
        rejected = [Rejected(path, block.offset_of(numbers[bad.index]), bad.data, bad.reason) for bad in decoded.errors]
        return self.settled(Found(decoded.values, rejected))


class JsonLines(LineFormat):
    """Lines as JSON values."""

    def __init__(self, type_info: TypeInformation | None = None, on_error: str = "fail") -> None:
        self._kind = type_info or Types.PICKLED_BYTE_ARRAY()
        try:
            self.on_error = OnError.of(on_error)
        except UserError as refused:
            raise BadFormatOption(refused.message, hint=refused.hint) from None

    def type_info(self) -> TypeInformation:
        """The declared type, or Python objects."""
        return self._kind

    def decode(self, path: str, block: Block) -> Found:
        """The values of the lines."""
        numbers: list[int] = []
        values: list[Any] = []
        refused: dict[int, str] = {}
        build = _builder(self._kind)
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
            values = self._kind.conform(values)
        except TypeMismatch:
            kept: list[Any] = []
            for number, value in zip(numbers, values, strict=True):
                try:
                    kept += self._kind.conform([value])
                except TypeMismatch as mismatch:
                    refused[number] = mismatch.message
            values = kept
        rejected = [Rejected(path, block.offset_of(at), lines[at], refused[at]) for at in sorted(refused)]
        return self.settled(Found(values, rejected))


def _builder(kind: TypeInformation) -> Callable[[Any], Any]:
    """What makes a record of a JSON value: rows take objects as they are, a class is called with their members."""
    if not isinstance(kind, (DataclassTypeInfo, NamedTupleTypeInfo)):
        return _same
    cls, names = kind.cls, kind.field_names

    def build(value: Any) -> Any:
        if not isinstance(value, dict):
            message = f"expected an object with members {names}"
            raise TypeError(message)
        return cls(**{name: value[name] for name in names if name in value})

    return build


def _same(value: Any) -> Any:
    return value
