"""The file sink, exactly once.

Promises: a record is in exactly one part file, which is complete when it appears, after the checkpoint that contains
the record; part files are in buckets below the base path, on a local disk or a file system that fsspec or Arrow
supports.
Does not know: what records are; an encoder or a bulk writer does."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Self

from millstream.connector.serialization_schema import BulkWriterFactory, Encoder
from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connectors.files.buckets import BucketAssigner
from millstream.connectors.files.commit import FileCommitter, Merge, concatenate
from millstream.connectors.files.compaction import CompactingCommitter, FileCompactor, FileCompactStrategy
from millstream.connectors.files.encoders import FormatEncoder
from millstream.connectors.files.partition_time import BucketTime
from millstream.connectors.files.partitions import PROCESS_TIME, SUCCESS_FILE, PartitionCommit, PartitionCommitter
from millstream.connectors.files.paths import UnusablePath, check_output_scheme, resolve_path
from millstream.connectors.files.rolling import (
    BadOutputFile,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from millstream.connectors.files.staging import MERGED, Bulk, FileWriter, PartFiles, Rows
from millstream.connectors.files.writers import MergingFactory
from millstream.files.locations import scheme_of
from millstream.files.remote import get_file_system
from millstream.times import Duration, Time, millis

_log = logging.getLogger("millstream.files")


@dataclass(frozen=True)
class FileSink(Sink):
    """Writes records to part files below `base_path`, which has the same name on the driver and all executors.

    Example:
        >>> from millstream.common import Encoder
        >>> from millstream.datastream.connectors.file_system import OutputFileConfig
        >>> builder = FileSink.for_row_format("/data/totals", Encoder.simple_string_encoder())
        >>> names = OutputFileConfig.builder().with_part_prefix("totals").with_part_suffix(".txt").build()
        >>> sink = builder.with_output_file_config(names).build()

    """

    base_path: str
    content: Encoder | BulkWriterFactory
    bucket_assigner: BucketAssigner
    rolling_policy: RollingPolicy
    output_file_config: OutputFileConfig
    compaction: tuple[FileCompactStrategy, FileCompactor] | None = None
    partition_commit: PartitionCommit | None = None

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Return a builder of a sink that writes record by record; by default, into one bucket for each hour.

        Args:
            base_path: The directory or URI of the output.
            encoder: Writes a record to a file.

        """
        policy: RollingPolicy = RollingPolicy.default_rolling_policy()
        return FileSink.RowFormatBuilder(FileSink(*default_settings(base_path, encoder, policy)))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """Return a builder of a sink of bulk-encoded files; by default, in one bucket for each hour.

        Args:
            base_path: The directory or URI of the output.
            writer_factory: Creates a writer for each file, such as `ParquetBulkWriters.for_row_type(...)`.

        """
        settings = default_settings(base_path, writer_factory, OnCheckpointRollingPolicy())
        return FileSink.BulkFormatBuilder(FileSink(*settings))

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer of staged files."""
        content = self.content
        is_bulk = isinstance(content, BulkWriterFactory)
        parts = PartFiles(
            content=partial(Bulk, content) if isinstance(content, BulkWriterFactory) else partial(Rows, content),
            reopens=not is_bulk,
            part_size=self.rolling_policy.part_size,
            merged=MERGED if not is_bulk or isinstance(content, MergingFactory) else 0,
            names=self.output_file_config,
            columnar=isinstance(content, FormatEncoder) and content.columnar,
        )
        return FileWriter(self.base_path, get_file_system(self.base_path), parts, self.bucket_assigner, context)

    def create_committer(self) -> Committer:
        """Create a committer that turns staged files into part files."""
        files, merge = get_file_system(self.base_path), self._merge()
        committer: FileCommitter | CompactingCommitter
        if self.compaction is None:
            committer = FileCommitter(self.base_path, files, merge or concatenate)
        else:
            strategy, compactor = self.compaction
            committer = CompactingCommitter(
                self.base_path, files, strategy, compactor, merge or concatenate, self.output_file_config, merge
            )
        if self.partition_commit is None:
            return committer
        policy = self.partition_commit
        if policy.time is None and isinstance(self.bucket_assigner, BucketTime):
            policy = replace(policy, time=self.bucket_assigner)
        return PartitionCommitter(self.base_path, files, committer, policy)

    def _merge(self) -> Merge | None:
        """Return the function that merges files of the format; None if they cannot be merged."""
        if isinstance(self.content, MergingFactory):
            return self.content.merge
        return None if isinstance(self.content, BulkWriterFactory) else concatenate

    def check(self) -> None:
        """Check that the base path is a writable directory, or can be created; remote file systems are not checked."""
        base = self.base_path
        if scheme_of(base) is not None:
            check_output_scheme(base)
            return
        writable = os.path.abspath(base)
        while not os.path.lexists(writable):  # missing directories are created by the writers
            writable = os.path.dirname(writable)
        if not os.path.isdir(writable):
            raise UnusablePath(writable, "is not a directory", hint="a file sink writes part files into a directory")
        if not os.access(writable, os.W_OK | os.X_OK):
            raise UnusablePath(writable, "is not writable", hint="give the user of the job permission to write there")

    class BaseBuilder:
        """Builds a FileSink."""

        def __init__(self, sink: FileSink) -> None:
            self._sink = sink

        def with_bucket_check_interval(self, interval: int) -> Self:
            """Accept the interval without effect: buckets are checked with every epoch.

            Args:
                interval: The interval in milliseconds; it has no effect but a warning.

            """
            _log.warning("with_bucket_check_interval has no effect: every checkpoint finishes all parts")
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
            """Set the bucket assigner.

            Args:
                bucket_assigner: Returns the bucket of a record.

            """
            self._sink = replace(self._sink, bucket_assigner=bucket_assigner)
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
            """Set the prefix and suffix of part files.

            Args:
                output_file_config: The prefix and the suffix.

            """
            self._sink = replace(self._sink, output_file_config=output_file_config)
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Set the rolling policy.

            Args:
                rolling_policy: When part files are closed.

            """
            self._sink = replace(self._sink, rolling_policy=rolling_policy)
            return self

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Self:
            """Compact small files into larger ones before they become visible.

            Args:
                strategy: When files are compacted.
                compactor: How files are merged.

            """
            self._sink = replace(self._sink, compaction=(strategy, compactor))
            compactor.merge(self._sink._merge())
            return self

        def disable_compact(self) -> Self:
            """Make files visible as they are committed: the default."""
            self._sink = replace(self._sink, compaction=None)
            return self

        def with_partition_commit(
            self,
            delay: Duration | Time | timedelta | int = 0,
            success_file: str = SUCCESS_FILE,
            trigger: str = PROCESS_TIME,
            partition_time: BucketTime | None = None,
        ) -> Self:
            """Write a success file into each complete bucket.

            With the trigger `process-time` that is `delay` of processing time after the bucket's first record; without
            a delay, with every checkpoint that added to it. With `partition-time` it is when the watermark has passed
            the time of the bucket and the delay; `partition_time` reads that time from the bucket's name, and is not
            needed for buckets by date and time.

            Args:
                delay: The time to wait; a number is in milliseconds.
                success_file: The name of the file, which begins with `_` or `.`.
                trigger: `process-time` or `partition-time`.
                partition_time: Returns the time of a bucket.

            """
            policy = PartitionCommit(millis(delay), success_file, trigger, partition_time)
            self._sink = replace(self._sink, partition_commit=policy)
            return self

        def build(self) -> FileSink:
            """Build the sink."""
            return self._sink

    class RowFormatBuilder(BaseBuilder):
        """Builds a FileSink that writes record by record."""

    class BulkFormatBuilder(BaseBuilder):
        """Builds a FileSink of bulk-encoded files."""

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
            """Set the rolling policy: bulk-encoded files are finished with every checkpoint."""
            if not isinstance(rolling_policy, OnCheckpointRollingPolicy):
                message = "rolling_policy must be OnCheckpointRollingPolicy for bulk format"
                raise BadOutputFile(message, hint="use RollingPolicy.on_checkpoint_rolling_policy()")
            return super().with_rolling_policy(rolling_policy)


def default_settings(
    base_path: str, content: Encoder | BulkWriterFactory, policy: RollingPolicy
) -> tuple[str, Encoder | BulkWriterFactory, BucketAssigner, RollingPolicy, OutputFileConfig]:
    """Return the first fields of a sink: one bucket for each hour, and default names of files."""
    return resolve_path(base_path), content, BucketAssigner.date_time_bucket_assigner(), policy, OutputFileConfig()
