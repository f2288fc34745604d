"""Decodes a stream of bytes with a format, with a side output for invalid records.

Promises: an invalid record is handled by the error policy of the format: the job fails and names the record, or the
record is skipped and counted, or it is emitted to the dead-letter side output, exactly once like every other record.
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

#: The side output of invalid records of a decoder or a source: rows with the bytes of the record and the reason why it
#: could not be decoded.
DEAD_LETTERS = OutputTag(
    source.DEAD_LETTERS, Types.ROW_NAMED(["data", "reason"], [Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.STRING()])
)


class Decode(ProcessFunction):
    """Decodes records; the metric `numRecordsSkipped` counts those that were skipped or became dead letters.

    Example:
        >>> from millstream.formats import format_named
        >>> from millstream.testing import harness_for
        >>> order = Types.ROW_NAMED(["name"], [Types.STRING()])
        >>> with harness_for(Decode(format_named("json", order)), output_type=order) as harness:
        ...     harness.process(b'{"name": "tea"}')
        ...     harness.values()
        [Row(name='tea')]

    """

    def __init__(self, record_format: Format) -> None:
        self._format = record_format
        self._skipped: Counter | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Register the counter."""
        self._skipped = runtime_context.get_metrics_group().counter("numRecordsSkipped")

    def process_element(self, value: bytes, ctx: ProcessFunction.Context) -> Iterable[Any]:
        """Decode bytes to records."""
        decoded = self._format.decode([value])
        for invalid in apply_error_policy(self._format, decoded, lambda _: "a record"):
            if self._skipped is not None:
                self._skipped.inc()
            if self._format.on_error is OnError.DEAD_LETTER:
                yield DEAD_LETTERS, Row(data=invalid.data, reason=invalid.reason)
        yield from decoded.rows(self._format.type_info)


def decode(stream: DataStream, record_format: Format) -> DataStream:
    """Decode a stream of bytes to a stream of records.

    Args:
        stream: The stream of bytes.
        record_format: The format. Its option `on-error` decides what happens to invalid records.

    Returns:
        The stream of records; its `get_side_output(DEAD_LETTERS)` is the stream of invalid records, if the format emits
        them as dead letters.

    """
    return stream.process(Decode(record_format), record_format.type_info).name(f"decode {record_format.name}")
