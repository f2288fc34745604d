"""The print sink: records as lines on the standard output of the driver.

Promises: Flink's line format; a line appears once, when its epoch is accepted, whatever attempts failed before.
Does not know: terminals, and SQL types."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.types.basic_types import BasicType, BasicTypeInfo
from millstream.types.collection_types import MapTypeInfo, SequenceTypeInfo
from millstream.types.factory import PickledBytesTypeInfo, RowTypeInfo, TypeInformation
from millstream.types.java_texts import create_text_format
from millstream.types.row import Row


class RecordFormat(ABC):
    """Formats records as text; it is a value that can be sent to a task."""

    #: True if records may be given as an Arrow array.
    columnar: bool = False

    @abstractmethod
    def format(self, records: Sequence[Any]) -> list[str]:
        """Return the text of each record."""

    @staticmethod
    def of(type_info: TypeInformation) -> RecordFormat:
        """Return PyFlink's format for a type: Python's text for pickled objects and fields of rows, else Java's."""
        if isinstance(type_info, PickledBytesTypeInfo):
            return PythonFormat()
        return PythonRowFormat(type_info) if isinstance(type_info, RowTypeInfo) else JavaFormat(type_info)


@dataclass(frozen=True)
class PythonFormat(RecordFormat):
    """Python's text of records."""

    def format(self, records: Sequence[Any]) -> list[str]:
        """Return the text of each record."""
        return list(map(str, records))


@dataclass(frozen=True)
class PythonRowFormat(RecordFormat):
    """Rows such as `+I[1,None]`: the fields have Python's text, as PyFlink prints rows of a stream."""

    type_info: RowTypeInfo

    def format(self, records: Sequence[Any]) -> list[str]:
        """Return the text of each row."""
        shown = [_shown_value(field_type) for field_type in self.type_info.field_types]
        return [
            f"{row.get_row_kind()}[{','.join(str(show(value)) for show, value in zip(shown, row, strict=True))}]"
            for row in records
        ]


def _shown_value(type_info: TypeInformation) -> Callable[[Any], Any]:
    """Return the conversion to the value that PyFlink shows: FLOAT with the fewest digits, inner rows without names."""
    if isinstance(type_info, BasicTypeInfo) and type_info.basic_type is BasicType.FLOAT:
        return lambda value: None if value is None else float(str(np.float32(value)))
    if isinstance(type_info, RowTypeInfo):
        fields = [_shown_value(field_type) for field_type in type_info.field_types]
        return lambda row: None if row is None else Row(*(f(v) for f, v in zip(fields, row, strict=True)))
    if isinstance(type_info, SequenceTypeInfo):
        element = _shown_value(type_info.elem_type)
        return lambda values: None if values is None else list(map(element, values))
    if isinstance(type_info, MapTypeInfo):
        item = _shown_value(type_info.value_type)
        return lambda pairs: None if pairs is None else {key: item(value) for key, value in pairs.items()}
    return lambda value: value


@dataclass(frozen=True)
class JavaFormat(RecordFormat):
    """Java's text of typed records."""

    type_info: TypeInformation

    def format(self, records: Sequence[Any]) -> list[str]:
        """Return the text of each record."""
        return list(map(create_text_format(self.type_info), records))


@dataclass(frozen=True)
class PrintSink(Sink):
    """Prints lines in Flink's format, `identifier:subtask> value`; the subtask is shown if there are several."""

    record_format: RecordFormat
    identifier: str | None = None
    to_stderr: bool = False
    commits_with_epoch = True
    driver_only = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer that formats lines."""
        number = str(context.subtask + 1) if context.parallelism > 1 else ""
        label = ":".join(part for part in (self.identifier, number) if part)
        return PrintWriter(f"{label}> " if label else "", self.record_format)

    def create_committer(self) -> Committer:
        """Create a committer that prints lines."""
        return PrintCommitter(self.to_stderr)


class PrintWriter(SinkWriter):
    """Formats the records of an epoch as lines."""

    def __init__(self, prefix: str, record_format: RecordFormat) -> None:
        self.columnar = record_format.columnar
        self._prefix, self._format = prefix, record_format
        self._lines: list[str] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Format each record as a line."""
        self._lines.extend(f"{self._prefix}{text}" for text in self._format.format(values))

    def prepare_commit(self) -> list[Any]:
        """Return the lines."""
        return self._lines


class PrintCommitter(Committer):
    """Prints the lines of an accepted epoch."""

    def __init__(self, to_stderr: bool) -> None:
        self._to_stderr = to_stderr

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Print the lines."""
        target = sys.stderr if self._to_stderr else sys.stdout
        target.write("".join(f"{line}\n" for line in committables))
        target.flush()
