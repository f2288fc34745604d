"""Files as a sink, exactly once.

Promises: a record is in exactly one part file, which is complete when it appears, after the checkpoint that holds the
record; parts are in buckets below the base path.
Does not know: what records are; an encoder does."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace

from millstream.connectors.files.buckets import BucketAssigner
from millstream.connectors.files.commit import FileCommitter
from millstream.connectors.files.paths import UnusablePath, local
from millstream.connectors.files.rolling import OutputFileConfig, RollingPolicy
from millstream.connectors.files.staging import FileWriter
from millstream.model.serialization import Encoder
from millstream.model.sink import Committer, Sink, SinkWriter, WriterContext

_log = logging.getLogger("millstream.files")


@dataclass(frozen=True)
class FileSink(Sink):
    """Writes records to part files below `base_path`, which driver and executors see under the same name."""

    base_path: str
    encoder: Encoder
    bucket_assigner: BucketAssigner
    rolling_policy: RollingPolicy
    output_file_config: OutputFileConfig

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """A sink that writes record by record; without other orders, into one bucket for each hour."""
        return FileSink.RowFormatBuilder(
            FileSink(
                local(base_path),
                encoder,
                BucketAssigner.date_time_bucket_assigner(),
                RollingPolicy.default_rolling_policy(),
                OutputFileConfig(),
            )
        )

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer of hidden files."""
        return FileWriter(
            self.base_path,
            self.encoder,
            self.bucket_assigner,
            self.rolling_policy.part_size,
            self.output_file_config,
            context,
        )

    def create_committer(self) -> Committer:
        """Makes hidden files part files."""
        return FileCommitter(self.base_path)

    def check(self) -> None:
        """The base path must be a directory one can write to, or its parent must."""
        base = self.base_path
        if os.path.isdir(base):
            writable = base
        elif os.path.lexists(base):
            raise UnusablePath(base, "is not a directory", hint="a file sink writes part files into a directory")
        else:
            writable = os.path.dirname(base)
            if not os.path.isdir(writable):
                hint = "create it, or give a path that exists on the driver and all executors"
                raise UnusablePath(base, f"cannot be made: there is no directory {writable}", hint=hint)
        if not os.access(writable, os.W_OK | os.X_OK):
            raise UnusablePath(writable, "is not writable", hint="give the user of the job permission to write there")

    class RowFormatBuilder:
        """Makes a FileSink."""

        def __init__(self, sink: FileSink) -> None:
            self._sink = sink

        def with_bucket_check_interval(self, interval: int) -> FileSink.RowFormatBuilder:
            """Accepted for Flink's sake: buckets are looked at with every epoch."""
            _log.warning("with_bucket_check_interval has no effect: every checkpoint finishes all parts")
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> FileSink.RowFormatBuilder:
            """Say which record goes into which bucket."""
            self._sink = replace(self._sink, bucket_assigner=bucket_assigner)
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSink.RowFormatBuilder:
            """Say how part files are called."""
            self._sink = replace(self._sink, output_file_config=output_file_config)
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.RowFormatBuilder:
            """Say when a part file is finished."""
            self._sink = replace(self._sink, rolling_policy=rolling_policy)
            return self

        def build(self) -> FileSink:
            """The sink."""
            return self._sink
