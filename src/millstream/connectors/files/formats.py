"""How the lines of a file become records.

Promises: a format is a picklable description; a line that is no record either fails, naming file, byte and text, or is
skipped and counted, as the format was told.
Does not know: ranges, files' names before an error needs them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.connectors.files.lines import Block
from millstream.errors import UserError
from millstream.model.serialization import SimpleStringSchema
from millstream.model.types import (
    DataclassTypeInfo,
    NamedTupleTypeInfo,
    TypeInformation,
    TypeMismatch,
    Types,
)

_SHOWN = 200


class MalformedLine(UserError):
    """A line that is no record of the format."""

    hint = "mend the file, or read on without such lines: on_error='skip'"

    def __init__(self, path: str, offset: int, line: str, reason: str) -> None:
        self.path, self.offset, self.line, self.reason = path, offset, line, reason
        shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
        super().__init__(f"malformed line in {path} at byte {offset}: {reason}: {shown!r}")


class BadFormatOption(UserError):
    """A format was given an option it does not have."""


class StreamFormat(ABC):
    """Reads the records of a file from its lines."""

    @property
    def charset(self) -> str:
        """The character set of the lines."""
        return "utf-8"

    @property
    def splittable(self) -> bool:
        """Whether a line can be found from any byte on: in every set where a line feed is one byte of its own."""
        return "\n".encode(self.charset) == b"\n"

    @abstractmethod
    def type_info(self) -> TypeInformation:
        """The type of the records."""

    @abstractmethod
    def decode(self, path: str, block: Block) -> tuple[Any, int]:
        """The records of whole lines, as values or an Arrow array, and how many lines were skipped."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Each line is a string. Bytes outside the character set become the replacement character, as in Java."""
        return TextLines(charset_name)

    @staticmethod
    def json_lines(type_info: TypeInformation | None = None, on_error: str = "fail") -> StreamFormat:
        """Each line that is not blank is a JSON value, of the given type or as Python has it.

        A line that is not goes by `on_error`: "fail", or "skip", which counts it."""
        return JsonLines(type_info, on_error)


class TextLines(StreamFormat):
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

    def decode(self, path: str, block: Block) -> tuple[Any, int]:
        """The lines as an Arrow array."""
        if self._charset == "utf-8":
            data = block.data
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            try:
                text = pa.array([data.removesuffix(b"\n")], pa.binary()).cast(pa.string())
                return pc.split_pattern(text, "\n").flatten(), 0
            except pa.ArrowInvalid:
                pass  # not all of it is UTF-8: the slower way knows what to do
        return pa.array([line.decode(self._charset, "replace") for line in block.lines()], pa.string()), 0


class JsonLines(StreamFormat):
    """Lines as JSON values."""

    def __init__(self, type_info: TypeInformation | None = None, on_error: str = "fail") -> None:
        if on_error not in ("fail", "skip"):
            message = f"on_error is {on_error!r}"
            raise BadFormatOption(message, hint='use "fail" or "skip"')
        self._kind = type_info or Types.PICKLED_BYTE_ARRAY()
        self._skip = on_error == "skip"

    def type_info(self) -> TypeInformation:
        """The declared type, or Python objects."""
        return self._kind

    def decode(self, path: str, block: Block) -> tuple[Any, int]:
        """The values of the lines."""
        numbers: list[int] = []
        values: list[Any] = []
        skipped = 0
        build = _builder(self._kind)
        for number, line in enumerate(block.lines()):
            if not line or line.isspace():
                continue
            try:
                values.append(build(json.loads(line)))
                numbers.append(number)
            except (ValueError, TypeError, RecursionError) as problem:
                skipped += self._refused(path, block, number, problem)
        try:
            return self._kind.conform(values), skipped
        except TypeMismatch as mismatch:
            if not self._skip:
                self._refused(path, block, numbers[mismatch.index], mismatch)
        kept: list[Any] = []
        for value in values:
            try:
                kept += self._kind.conform([value])
            except TypeMismatch:
                skipped += 1
        return kept, skipped

    def _refused(self, path: str, block: Block, number: int, problem: Exception) -> int:
        if self._skip:
            return 1
        text = block.lines()[number].decode("utf-8", "replace")
        reason = problem.message if isinstance(problem, TypeMismatch) else str(problem)
        raise MalformedLine(path, block.offset_of(number), text, reason) from None


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
