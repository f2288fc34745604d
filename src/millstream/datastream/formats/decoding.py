"""Bytes to records inside a program, with the records that cannot be read as a side output.

Promises: what the format's policy says about a bad record: the job fails and names it, or it is left out and counted,
or it goes to the side output of dead letters, exactly once like every other record.
Does not know: where the bytes came from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from millstream.connector import source
from millstream.datastream.data_stream import DataStream
from millstream.formats import Format, OnError, apply_error_policy
from millstream.functions import ProcessFunction, RuntimeContext
from millstream.job.metrics import Counter
from millstream.state_descriptors.output_tag import OutputTag
from millstream.types.factory import Types
from millstream.types.row import Row

__all__ = ["DEAD_LETTERS", "Decode", "decode"]

#: Where the dead letters of a decoder or of a source go: rows with the bytes of the record and the reason why it could
#: not be read.
DEAD_LETTERS = OutputTag(
    source.DEAD_LETTERS, Types.ROW_NAMED(["data", "reason"], [Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.STRING()])
)


class Decode(ProcessFunction):
    """Decodes records; the metric `numRecordsSkipped` counts those that were left out or became dead letters."""

    def __init__(self, record_format: Format) -> None:
        self._format = record_format
        self._skipped: Counter | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Make the counter."""
        self._skipped = runtime_context.get_metrics_group().counter("numRecordsSkipped")

    def process_element(self, value: bytes, ctx: ProcessFunction.Context) -> Iterable[Any]:
        """The records in some bytes."""
        decoded = self._format.decode([value])
        for bad in apply_error_policy(self._format, decoded, lambda _: "a record"):
            if self._skipped is not None:
                self._skipped.inc()
            if self._format.on_error is OnError.DEAD_LETTER:
                yield DEAD_LETTERS, Row(data=bad.data, reason=bad.reason)
        yield from decoded.rows(self._format.type_info)


def decode(stream: DataStream, record_format: Format) -> DataStream:
    """The records in a stream of bytes; `get_side_output(DEAD_LETTERS)` gives those that could not be read."""
    return stream.process(Decode(record_format), record_format.type_info).name(f"decode {record_format.name}")
