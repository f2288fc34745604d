"""A sink that drops all records, as Flink's `blackhole` connector does; for measurements.

Promises: records are neither converted nor stored.
Does not know: what records are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.sink import Sink, SinkWriter, WriterContext


@dataclass(frozen=True)
class BlackHoleSink(Sink):
    """Drops all records.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> ignored = env.from_collection([1, 2]).sink_to(BlackHoleSink())

    """

    commits_with_epoch = True

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer that drops records."""
        return BlackHoleWriter()


class BlackHoleWriter(SinkWriter):
    """Drops records, given as rows or as columns."""

    columnar = True
    reads = False

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Drop the records."""

    def prepare_commit(self) -> list[Any]:
        """Return nothing to commit."""
        return []
