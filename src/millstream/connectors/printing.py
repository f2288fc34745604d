"""print(): records as lines on the driver's standard output.

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
    """How a record becomes text: `+I[1, null]` or `(1,a)`, `+I[1,None]` for rows, `(1, 'a')`."""

    JAVA = "java"
    ROW = "row"
    PYTHON = "python"

    @staticmethod
    def of(kind: TypeInformation) -> Spelling:
        """As PyFlink spells records of a type: what has none in Python's way, rows in its own, all others in Java's."""
        if isinstance(kind, PickledBytesTypeInfo):
            return Spelling.PYTHON
        return Spelling.ROW if isinstance(kind, RowTypeInfo) else Spelling.JAVA


@dataclass(frozen=True)
class PrintSink(Sink):
    """Lines as Flink prints them: `identifier:subtask> value`, where each part appears only if it tells something.

    Values are spelt as Java does unless told otherwise."""

    identifier: str | None = None
    to_stderr: bool = False
    spelling: Spelling = Spelling.JAVA
    commits_with_epoch = True
    driver_only = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Makes lines."""
        number = str(context.subtask + 1) if context.parallelism > 1 else ""
        mark = ":".join(part for part in (self.identifier, number) if part)
        return Lines(f"{mark}> " if mark else "", _TEXTS[self.spelling])

    def create_committer(self) -> Committer:
        """Prints lines."""
        return Printing(self.to_stderr)


class Lines(SinkWriter):
    """The lines of an epoch."""

    def __init__(self, prefix: str, text: Callable[[Any], str]) -> None:
        self._prefix, self._text = prefix, text
        self._lines: list[str] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """One line per record."""
        self._lines.extend(f"{self._prefix}{self._text(value)}" for value in values)

    def prepare_commit(self) -> list[Any]:
        """The lines."""
        return self._lines


def _text_of_row(value: Any) -> str:
    return f"{value.get_row_kind()}[{','.join(map(str, value))}]" if isinstance(value, Row) else text_of(value)


_TEXTS: dict[Spelling, Callable[[Any], str]] = {
    Spelling.JAVA: text_of,
    Spelling.ROW: _text_of_row,
    Spelling.PYTHON: str,
}


class Printing(Committer):
    """Prints on the driver."""

    def __init__(self, to_stderr: bool) -> None:
        self._to_stderr = to_stderr

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Print."""
        target = sys.stderr if self._to_stderr else sys.stdout
        target.write("".join(f"{line}\n" for line in committables))
        target.flush()
