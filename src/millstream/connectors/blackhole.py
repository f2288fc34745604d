"""A sink that takes everything and keeps nothing; for measuring.

Promises: counts nothing, stores nothing.
Does not know: anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.sink import Sink, SinkWriter, WriterContext


@dataclass(frozen=True)
class BlackHoleSink(Sink):
    """Nowhere."""

    commits_with_epoch = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer that forgets."""
        return Forgetting()


class Forgetting(SinkWriter):
    """Drops records, also as columns."""

    columnar = True
    reads = False

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Forget."""

    def prepare_commit(self) -> list[Any]:
        """Nothing to commit."""
        return []
