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
    `FileSink`."""

    class BaseBuilder(FileSink.BaseBuilder):
        """Builds a StreamingFileSink."""

        def with_rolling_policy(self, policy: RollingPolicy) -> Self:
            """Set the rolling policy."""
            return super().with_rolling_policy(policy)

    class DefaultRowFormatBuilder(BaseBuilder):
        """Builds a StreamingFileSink that writes record by record."""

    class DefaultBulkFormatBuilder(BaseBuilder):
        """Builds a StreamingFileSink of bulk-encoded files."""

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
