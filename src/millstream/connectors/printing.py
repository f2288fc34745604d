"""The print sink: records as lines on the standard output of the driver.

Promises: Flink's line format; a line appears once, when its epoch is accepted, whatever attempts failed before.
Does not know: terminals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from millstream.connector.serialization_schema import text_of
from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.types.factory import PickledBytesTypeInfo, RowTypeInfo, TypeInformation
from millstream.types.row import Row


class Spelling(Enum):
    """The notation of records: Java's `+I[1, null]` or `(1,a)`, PyFlink's `+I[1,None]` for rows, or Python's own."""

    JAVA = "java"
    ROW = "row"
    PYTHON = "python"

    @staticmethod
    def of(kind: TypeInformation) -> Spelling:
        """Return PyFlink's notation for a type: Python's for pickled objects, its own for rows, else Java's."""
        if isinstance(kind, PickledBytesTypeInfo):
            return Spelling.PYTHON
        return Spelling.ROW if isinstance(kind, RowTypeInfo) else Spelling.JAVA


@dataclass(frozen=True)
class PrintSink(Sink):
    """Lines as Flink prints them: `identifier:subtask> value`, where the subtask appears if there are several.

    Values are printed in Java's notation by default."""

    identifier: str | None = None
    to_stderr: bool = False
    spelling: Spelling = Spelling.JAVA
    commits_with_epoch = True
    driver_only = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer that formats lines."""
        number = str(context.subtask + 1) if context.parallelism > 1 else ""
        mark = ":".join(part for part in (self.identifier, number) if part)
        return PrintWriter(f"{mark}> " if mark else "", _TEXTS[self.spelling])

    def create_committer(self) -> Committer:
        """Create a committer that prints lines."""
        return PrintCommitter(self.to_stderr)


class PrintWriter(SinkWriter):
    """Formats the records of an epoch as lines."""

    def __init__(self, prefix: str, text: Callable[[Any], str]) -> None:
        self._prefix, self._text = prefix, text
        self._lines: list[str] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Format each record as a line."""
        self._lines.extend(f"{self._prefix}{self._text(value)}" for value in values)

    def prepare_commit(self) -> list[Any]:
        """Return the lines."""
        return self._lines


def _text_of_row(value: Any) -> str:
    return f"{value.get_row_kind()}[{','.join(map(str, value))}]" if isinstance(value, Row) else text_of(value)


_TEXTS: dict[Spelling, Callable[[Any], str]] = {
    Spelling.JAVA: text_of,
    Spelling.ROW: _text_of_row,
    Spelling.PYTHON: str,
}


class PrintCommitter(Committer):
    """Prints the lines of an accepted epoch."""

    def __init__(self, to_stderr: bool) -> None:
        self._to_stderr = to_stderr

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Print the lines."""
        target = sys.stderr if self._to_stderr else sys.stdout
        target.write("".join(f"{line}\n" for line in committables))
        target.flush()
