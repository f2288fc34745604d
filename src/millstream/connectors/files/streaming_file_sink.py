"""StreamingFileSink: the older name of FileSink, for `add_sink`.

Promises: PyFlink's builders; files are written and committed as by `FileSink`.
Does not know: how files are written."""

from __future__ import annotations

from typing import Self

from millstream.connector.serialization_schema import BulkWriterFactory, Encoder
from millstream.connectors.files.rolling import BadOutputFile, OnCheckpointRollingPolicy, RollingPolicy
from millstream.connectors.files.sink import FileSink, default_settings
from millstream.functions import SinkFunction


class StreamingFileSink(FileSink, SinkFunction):
    """Writes records to part files, as `FileSink` does. Pass it to `add_sink` or `sink_to`; new programs use
    `FileSink`.

    Example:
        >>> from millstream.common import Encoder
        >>> sink = StreamingFileSink.for_row_format("/data/totals", Encoder.simple_string_encoder()).build()

    """

    class BaseBuilder(FileSink.BaseBuilder):
        """Builds a StreamingFileSink.

        Example:
            >>> from millstream.common import Encoder
            >>> from millstream.datastream.connectors.file_system import RollingPolicy
            >>> builder = StreamingFileSink.for_row_format("/data/totals", Encoder.simple_string_encoder())
            >>> sink = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=64 << 20)).build()

        """

        def with_rolling_policy(self, policy: RollingPolicy) -> Self:
            """Set the rolling policy."""
            return super().with_rolling_policy(policy)

    class DefaultRowFormatBuilder(BaseBuilder):
        """Builds a StreamingFileSink that writes record by record.

        Example:
            >>> from millstream.common import Encoder
            >>> from millstream.datastream.connectors.file_system import OutputFileConfig
            >>> names = OutputFileConfig.builder().with_part_suffix(".txt").build()
            >>> builder = StreamingFileSink.for_row_format("/data/totals", Encoder.simple_string_encoder())
            >>> sink = builder.with_output_file_config(names).build()

        """

    class DefaultBulkFormatBuilder(BaseBuilder):
        """Builds a StreamingFileSink of bulk-encoded files.

        Example:
            >>> from millstream.common import Types
            >>> from millstream.datastream.formats.parquet import ParquetBulkWriters
            >>> row_type = Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()])
            >>> writers = ParquetBulkWriters.for_row_type(row_type)
            >>> sink = StreamingFileSink.for_bulk_format("/data/totals", writers).build()

        """

        def with_rolling_policy(self, policy: RollingPolicy) -> Self:
            """Set the rolling policy: bulk-encoded files are finished with every checkpoint."""
            if not isinstance(policy, OnCheckpointRollingPolicy):
                message = "policy must be OnCheckpointRollingPolicy for bulk format"
                raise BadOutputFile(message, hint="use RollingPolicy.on_checkpoint_rolling_policy()")
            return super().with_rolling_policy(policy)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> StreamingFileSink.DefaultRowFormatBuilder:  # type: ignore[override]
        """Return a builder of a sink that writes record by record; by default, into one bucket for each hour."""
        policy: RollingPolicy = RollingPolicy.default_rolling_policy()
        return StreamingFileSink.DefaultRowFormatBuilder(
            StreamingFileSink(*default_settings(base_path, encoder, policy))
        )

    @staticmethod
    def for_bulk_format(  # type: ignore[override]
        base_path: str, writer_factory: BulkWriterFactory
    ) -> StreamingFileSink.DefaultBulkFormatBuilder:
        """Return a builder of a sink of bulk-encoded files; by default, in one bucket for each hour."""
        settings = default_settings(base_path, writer_factory, OnCheckpointRollingPolicy())
        return StreamingFileSink.DefaultBulkFormatBuilder(StreamingFileSink(*settings))
