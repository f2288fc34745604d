"""print(): records as lines on the driver's standard output.

Promises: Flink's line format; a line appears once, when its epoch is accepted, whatever attempts failed before.
Does not know: terminals."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.model.serialization import text_of
from millstream.model.sink import Committer, Sink, SinkWriter, WriterContext


@dataclass(frozen=True)
class PrintSink(Sink):
    """Lines as Flink prints them: `identifier:subtask> value`, where each part appears only if it tells something."""

    identifier: str | None = None
    to_stderr: bool = False
    commits_with_epoch = True
    driver_only = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Makes lines."""
        number = str(context.subtask + 1) if context.parallelism > 1 else ""
        mark = ":".join(part for part in (self.identifier, number) if part)
        return Lines(f"{mark}> " if mark else "")

    def create_committer(self) -> Committer:
        """Prints lines."""
        return Printing(self.to_stderr)


class Lines(SinkWriter):
    """The lines of an epoch."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._lines: list[str] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """One line per record."""
        self._lines.extend(f"{self._prefix}{text_of(value)}" for value in values)

    def prepare_commit(self) -> list[Any]:
        """The lines."""
        return self._lines


class Printing(Committer):
    """Prints on the driver."""

    def __init__(self, to_stderr: bool) -> None:
        self._to_stderr = to_stderr

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Print."""
        target = sys.stderr if self._to_stderr else sys.stdout
        target.write("".join(f"{line}\n" for line in committables))
        target.flush()
