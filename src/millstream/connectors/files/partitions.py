"""Partition commit: a complete bucket gets a file such as `_SUCCESS`.

Promises: the file appears after the part files of the checkpoint that completed the bucket, and can be
written again; a bucket that is not complete yet is recorded in a hidden file, across restarts. At the end of the input
every bucket is complete.
Does not know: what a partition means to a catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from millstream.connector.sink import Committer
from millstream.connectors.files.commit import FileCommitter
from millstream.connectors.files.compaction import CompactingCommitter
from millstream.connectors.files.partition_time import BucketTime, PartitionTime
from millstream.connectors.files.rolling import BadOutputFile
from millstream.connectors.files.staging import STAGING, StagedFile
from millstream.errors import UserError
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.files.contract import FileSystem
from millstream.files.errors import ConnectorStorageFailure
from millstream.files.locations import join_path
from millstream.times import Duration

_MARKS = f"{STAGING}/partitions"
PROCESS_TIME, PARTITION_TIME = "process-time", "partition-time"
SUCCESS_FILE = "_SUCCESS"

_COMMIT, _TIME = "sink.partition-commit.", "partition.time-extractor."
OPTIONS = (
    *(f"{_COMMIT}{name}" for name in ("trigger", "delay", "policy.kind", "success-file.name", "watermark-time-zone")),
    *(f"{_TIME}{name}" for name in ("kind", "timestamp-pattern", "timestamp-formatter")),
)


class BadPartitionCommit(UserError):
    """An option of partition commit has an unknown value."""

    def __init__(self, option: str, value: str, supported: Sequence[str]) -> None:
        super().__init__(f"'{option}' is '{value}', which is not supported", hint=f"use one of {', '.join(supported)}")


@dataclass(frozen=True)
class PartitionCommit:
    """When a bucket is complete.

    By `process-time`, `delay` milliseconds after its first record: at once, by default. By `partition-time`, when the
    watermark of the sink has passed the time of the bucket, which `time` returns, and the delay.

    Example:
        >>> PartitionCommit.of_options({"sink.partition-commit.policy.kind": "success-file"}).success_file
        '_SUCCESS'

    """

    delay: int = 0
    success_file: str = SUCCESS_FILE
    trigger: str = PROCESS_TIME
    time: BucketTime | None = None

    def __post_init__(self) -> None:
        if self.delay < 0 or "/" in self.success_file or not self.success_file.startswith(("_", ".")):
            message = f"a partition commit with delay {self.delay} and success file {self.success_file!r}"
            raise BadOutputFile(
                message, hint="the delay must not be negative; the file's name must begin with _ and have no /"
            )
        if self.trigger not in (PROCESS_TIME, PARTITION_TIME):
            option = f"{_COMMIT}trigger"
            raise BadPartitionCommit(option, self.trigger, (PROCESS_TIME, PARTITION_TIME))

    @staticmethod
    def of_options(options: Mapping[str, str]) -> PartitionCommit | None:
        """Read the options of Flink's filesystem table; None without `sink.partition-commit.policy.kind`.

        Args:
            options: The options of the table, by their names.

        """
        policy = options.get(f"{_COMMIT}policy.kind")
        if policy is None:
            return None
        for option, value, supported in (
            (f"{_COMMIT}policy.kind", policy, "success-file"),
            (f"{_TIME}kind", options.get(f"{_TIME}kind", "default"), "default"),
        ):
            if value != supported:
                raise BadPartitionCommit(option, value, (supported,))
        return PartitionCommit(
            Duration.parse(options.get(f"{_COMMIT}delay", "0 ms")).to_milliseconds(),
            options.get(f"{_COMMIT}success-file.name", SUCCESS_FILE),
            options.get(f"{_COMMIT}trigger", PROCESS_TIME),
            PartitionTime(
                options.get(f"{_TIME}timestamp-pattern"),
                options.get(f"{_TIME}timestamp-formatter"),
                options.get(f"{_COMMIT}watermark-time-zone", "UTC"),
            ),
        )


class PartitionCommitter(Committer):
    """Commits files, then writes success files of complete buckets."""

    def __init__(
        self, base: str, files: FileSystem, inner: FileCommitter | CompactingCommitter, policy: PartitionCommit
    ) -> None:
        self._base, self._files, self._inner, self._policy = base, files, inner, policy
        self._time = policy.time or PartitionTime()
        self._watermark, self._now = MIN_WATERMARK, 0

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """Call the inner committer; then record the buckets, and write success files of those that are complete."""
        staged = [StagedFile.from_json(data) for data in committables]
        with self._raise_storage_failure():
            first: dict[str, int] = {}
            for part in staged:
                first[part.bucket] = min(first.get(part.bucket, part.time), part.time)
            for bucket, time in first.items():
                self._note(bucket, time)
            self._inner.commit(checkpoint, committables)
            self._now = max([self._now, *(part.time for part in staged)])
            self._write_success_files()

    def reached(self, watermark: int, now: int) -> None:
        """Write success files of buckets that became complete without new records."""
        self._watermark, self._now = max(self._watermark, watermark), max(self._now, now)
        self._inner.reached(watermark, now)
        with self._raise_storage_failure():
            self._write_success_files()

    def abort(self, committables: Sequence[Any]) -> None:
        """Call the inner committer."""
        self._inner.abort(committables)

    def finish(self) -> None:
        """Call the inner committer; then write success files of buckets that waited only for compaction."""
        self._inner.finish()
        with suppress(OSError):
            self._write_success_files()
            self._files.remove_empty_dir(join_path(self._base, _MARKS))
            self._files.remove_empty_dir(join_path(self._base, STAGING))

    def close(self) -> None:
        """Call the inner committer."""
        self._inner.close()

    @contextmanager
    def _raise_storage_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConnectorStorageFailure(str(error.filename or self._base), "commit", error) from error

    def _note(self, bucket: str, time: int) -> None:
        path = join_path(self._base, f"{_MARKS}/{quote(bucket, safe='') or '.'}@")
        if not self._files.exists(path):
            with self._files.writing(path) as stream:
                stream.write(str(time).encode())

    def _write_success_files(self) -> None:
        for name in self._files.list_if_exists(join_path(self._base, _MARKS)):
            path = join_path(self._base, f"{_MARKS}/{name}")
            with self._files.open(path) as stream:
                text = stream.read()
            first_record_time = int(text) if text.isdigit() else 0
            bucket = "" if name == ".@" else unquote(name.removesuffix("@"))
            compacting = isinstance(self._inner, CompactingCommitter) and self._inner.has_pending(bucket)
            if compacting or not self._is_complete(bucket, first_record_time):
                continue
            success_file = f"{bucket}/{self._policy.success_file}" if bucket else self._policy.success_file
            with self._files.writing(join_path(self._base, success_file)):
                pass
            self._files.remove(path)

    def _is_complete(self, bucket: str, first_record_time: int) -> bool:
        if self._watermark == MAX_WATERMARK:
            return True
        if self._policy.trigger == PARTITION_TIME:
            return self._watermark > self._time.time_of(bucket) + self._policy.delay
        return not self._policy.delay or first_record_time + self._policy.delay <= self._now
