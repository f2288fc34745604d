"""Iceberg source: the rows of one snapshot, and of those that later snapshots append.

Promises: all rows of one snapshot, its data files in parallel; delete files and columns that were added later are
applied. A streaming source reads what each later snapshot appends, once. A snapshot that changes or deletes rows is
refused, unless such snapshots are skipped; one that only compacts files is skipped.
Does not know: how deletions could be emitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from millstream.connector.source import (
    Boundedness,
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.connectors.lakehouse.columns import row_type_of, to_rows
from millstream.connectors.lakehouse.file_splits import DataFile, FileEnumerator
from millstream.connectors.lakehouse.iceberg_catalog import NoSuchTable, TableLoader, pyiceberg
from millstream.errors import ExternalError, UserError
from millstream.types.factory import RowTypeInfo, TypeInformation


class FileGone(ExternalError):
    """A file that was planned is no longer in the snapshot's list."""

    hint = "the snapshot may have expired while the job read it; start the job from the beginning"

    def __init__(self, path: str) -> None:
        super().__init__(f"the snapshot no longer has the file {path}")


class NotAppendOnly(UserError):
    """A later snapshot of a table that is followed changes or deletes rows."""

    def __init__(self, table: str, snapshot: int, operation: str) -> None:
        super().__init__(
            f"snapshot {snapshot} of the table {table} changes or deletes rows ({operation})",
            hint="a streaming source reads tables that only grow; 'streaming-skip-overwrite-snapshots' skips others",
        )


class SnapshotExpired(ExternalError):
    """The snapshot at which a streaming source continues is no longer in the table's history."""

    hint = "start the job without this state, with a later snapshot"

    def __init__(self, table: str, snapshot: int) -> None:
        super().__init__(f"the table {table} has no snapshot after {snapshot} in its history")


class NoSuchSnapshot(UserError):
    """The table's history does not have the snapshot at which the source is to start."""


class StreamingStartingStrategy(Enum):
    """Where a streaming source begins.

    Example:
        >>> strategy = StreamingStartingStrategy.TABLE_SCAN_THEN_INCREMENTAL
        >>> builder = IcebergSource.builder().streaming().streaming_starting_strategy(strategy)

    """

    TABLE_SCAN_THEN_INCREMENTAL = "TABLE_SCAN_THEN_INCREMENTAL"
    INCREMENTAL_FROM_LATEST_SNAPSHOT = "INCREMENTAL_FROM_LATEST_SNAPSHOT"
    INCREMENTAL_FROM_EARLIEST_SNAPSHOT = "INCREMENTAL_FROM_EARLIEST_SNAPSHOT"
    INCREMENTAL_FROM_SNAPSHOT_ID = "INCREMENTAL_FROM_SNAPSHOT_ID"
    INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP = "INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP"


@dataclass(frozen=True)
class Following:
    """How later snapshots are read: where to begin, and the interval between checks for new snapshots, in
    milliseconds."""

    strategy: StreamingStartingStrategy = StreamingStartingStrategy.INCREMENTAL_FROM_LATEST_SNAPSHOT
    snapshot: int | None = None
    timestamp: int | None = None
    interval: int = 60_000
    skips_overwrites: bool = False


@dataclass(frozen=True)
class IcebergSource(Source):
    """Reads a snapshot. `snapshot` None: the current one when the job starts. With `following`, reads later ones.

    Example:
        >>> from millstream.datastream.connectors.iceberg import TableLoader
        >>> loader = TableLoader.from_catalog("lake", {"type": "rest", "uri": "http://localhost:8181"}, "shop.orders")
        >>> builder = IcebergSource.builder().table_loader(loader).project("id", "total")  # .build() connects

    """

    loader: TableLoader
    row_type: RowTypeInfo
    columns: tuple[str, ...]
    snapshot: int | None = None
    following: Following | None = None

    @staticmethod
    def builder() -> IcebergSource.Builder:
        """Return a new builder."""
        return IcebergSource.Builder()

    def type_info(self) -> TypeInformation:
        """Return a row type with the columns of the table."""
        return self.row_type

    def boundedness(self) -> Boundedness:
        """Return unbounded if later snapshots are read."""
        return Boundedness.BOUNDED if self.following is None else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of the files of the snapshot."""
        return _IcebergEnumerator(self, parallelism, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of data files."""
        return _IcebergReader(self, context.block_records)

    class Builder:
        """Builds an IcebergSource; `build` reads the columns of the table.

        Example:
            >>> builder = IcebergSource.builder().streaming().monitor_interval(10_000).skip_overwrite_snapshots()

        """

        def __init__(self) -> None:
            self._loader: TableLoader | None = None
            self._columns: tuple[str, ...] = ()
            self._snapshot: int | None = None
            self._streaming = False
            self._following = Following()

        def streaming(self, streaming: bool = True) -> IcebergSource.Builder:
            """Read what later snapshots append, too; the source does not end.

            Args:
                streaming: Whether later snapshots are read.

            """
            self._streaming = streaming
            return self

        def streaming_starting_strategy(self, strategy: StreamingStartingStrategy) -> IcebergSource.Builder:
            """Set where a streaming source begins; the latest snapshot, inclusive, by default.

            Args:
                strategy: Where to begin.

            """
            self._following = replace(self._following, strategy=strategy)
            return self

        def start_snapshot_id(self, snapshot: int) -> IcebergSource.Builder:
            """Begin a streaming source with what this snapshot appends.

            Args:
                snapshot: The id of the snapshot.

            """
            strategy = StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_ID
            self._following = replace(self._following, strategy=strategy, snapshot=snapshot)
            return self

        def start_snapshot_timestamp(self, timestamp: int) -> IcebergSource.Builder:
            """Begin a streaming source with the first snapshot at or after a time, in epoch milliseconds.

            Args:
                timestamp: Milliseconds since 1970-01-01 UTC.

            """
            strategy = StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP
            self._following = replace(self._following, strategy=strategy, timestamp=timestamp)
            return self

        def monitor_interval(self, milliseconds: int) -> IcebergSource.Builder:
            """Set how often a streaming source looks for later snapshots; a minute by default.

            Args:
                milliseconds: The interval in milliseconds.

            """
            self._following = replace(self._following, interval=milliseconds)
            return self

        def skip_overwrite_snapshots(self, skip: bool = True) -> IcebergSource.Builder:
            """Set whether snapshots that change or delete rows are skipped; by default, they fail the job.

            Args:
                skip: Whether such snapshots are skipped.

            """
            self._following = replace(self._following, skips_overwrites=skip)
            return self

        def table_loader(self, loader: TableLoader) -> IcebergSource.Builder:
            """Set the loader of the table.

            Args:
                loader: The catalog and the name of the table.

            """
            self._loader = loader
            return self

        def project(self, *columns: str) -> IcebergSource.Builder:
            """Read only these columns.

            Args:
                *columns: The names of the columns.

            """
            self._columns = columns
            return self

        def snapshot_id(self, snapshot: int) -> IcebergSource.Builder:
            """Read this snapshot.

            Args:
                snapshot: The id of the snapshot.

            """
            self._snapshot = snapshot
            return self

        def build(self) -> IcebergSource:
            """Build the source."""
            if self._loader is None:
                message = "(none)"
                raise NoSuchTable(message)
            with self._loader.open_table() as (_, table):
                if table is None:
                    raise NoSuchTable(self._loader.table)
                scan = _scan(table, self._columns, self._snapshot)
                schema = pyiceberg("io.pyarrow").schema_to_pyarrow(scan.projection(), include_field_ids=False)
                following = self._following if self._streaming else None
                return IcebergSource(self._loader, row_type_of(schema), tuple(schema.names), self._snapshot, following)


def _scan(table: Any, columns: tuple[str, ...], snapshot: int | None) -> Any:
    return table.scan(selected_fields=columns or ("*",), snapshot_id=snapshot)


def _appended(table: Any, snapshot: Any) -> list[Any]:
    """Return the data files that a snapshot added, as the manifests name them."""
    manifest_module = pyiceberg("manifest")
    return [
        entry.data_file
        for manifest in snapshot.manifests(table.io)
        if manifest.content == manifest_module.ManifestContent.DATA
        and manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        if entry.status == manifest_module.ManifestEntryStatus.ADDED
    ]


class _IcebergEnumerator(FileEnumerator):
    """The version is a snapshot id: the last snapshot whose files are known, 0 before the first one."""

    def __init__(self, source: IcebergSource, parallelism: int, state: Any) -> None:
        self._source = source
        self._now = 0
        self._last_check: int | None = None
        super().__init__(parallelism, state)

    def continuous(self) -> bool:
        return self._source.following is not None

    def plan(self, budget: Budget) -> list[SplitRange]:
        self._now = budget.now
        return super().plan(budget)

    def discover(self, version: int | None) -> tuple[int | None, list[DataFile]]:
        source, following = self._source, self._source.following
        last_check = self._last_check
        if following is not None and last_check is not None and self._now - last_check < following.interval:
            return version, []
        with source.loader.open_table() as (_, table):
            if table is None:
                raise NoSuchTable(source.loader.table)
            if following is not None:
                if version is not None:
                    return self._next(table, version, following)
                if following.strategy is not StreamingStartingStrategy.TABLE_SCAN_THEN_INCREMENTAL:
                    return self._start(table, following), []
            return self._scan(table)

    def _scan(self, table: Any) -> tuple[int, list[DataFile]]:
        """Return the files of a whole snapshot."""
        source, current = self._source, table.current_snapshot()
        snapshot = source.snapshot if source.snapshot is not None else (current.snapshot_id if current else None)
        if snapshot is None:
            return 0, []
        # a range holds the snapshot of each of its files
        files = [
            DataFile(task.file.file_path, task.file.record_count, {"snapshot": str(snapshot)})
            for task in _scan(table, source.columns, snapshot).plan_files()
        ]
        return snapshot, sorted(files, key=lambda file: file.path)

    def _start(self, table: Any, following: Following) -> int:
        """Return the snapshot before the first one that is read."""
        history = _history(table)
        match following.strategy:
            case StreamingStartingStrategy.INCREMENTAL_FROM_LATEST_SNAPSHOT:
                first = history[:1]
            case StreamingStartingStrategy.INCREMENTAL_FROM_EARLIEST_SNAPSHOT:
                first = history[-1:]
            case StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP:
                first = [snapshot for snapshot in history if snapshot.timestamp_ms >= (following.timestamp or 0)][-1:]
                if not first and history:
                    return int(history[0].snapshot_id)
            case _:
                first = [snapshot for snapshot in history if snapshot.snapshot_id == following.snapshot]
                if not first:
                    message = f"the table {self._source.loader.table} has no snapshot {following.snapshot}"
                    known = ", ".join(str(snapshot.snapshot_id) for snapshot in history[:10])
                    raise NoSuchSnapshot(message, hint=f"the latest snapshots in its history are {known or 'none'}")
        return int(first[0].parent_snapshot_id or 0) if first else 0

    def _next(self, table: Any, version: int, following: Following) -> tuple[int, list[DataFile]]:
        """Return the snapshot after `version` with the files that it appends; `version` if there is none."""
        history = _history(table)
        if not history or history[0].snapshot_id == version:
            self._last_check = self._now
            return version, []
        snapshot = next((entry for entry in history if (entry.parent_snapshot_id or 0) == version), None)
        if snapshot is None:
            raise SnapshotExpired(self._source.loader.table, version)
        self._last_check = None
        number = int(snapshot.snapshot_id)
        operation = "append" if snapshot.summary is None else snapshot.summary.operation.value
        if operation in ("overwrite", "delete") and not following.skips_overwrites:
            raise NotAppendOnly(self._source.loader.table, number, operation)
        if operation != "append":
            return number, []
        kept: dict[str, str | None] = {"snapshot": str(number), "appended": "true"}
        files = [DataFile(file.file_path, file.record_count, kept) for file in _appended(table, snapshot)]
        return number, sorted(files, key=lambda file: file.path)


def _history(table: Any) -> list[Any]:
    """Return the current snapshot and those before it that still exist, the newest first."""
    history, snapshot = [], table.current_snapshot()
    while snapshot is not None:
        history.append(snapshot)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return history


class _IcebergReader(SourceReader):
    def __init__(self, source: IcebergSource, block_records: int) -> None:
        self._source = source
        self._block = max(block_records, 1)
        self._tasks: tuple[str | None, dict[str, Any]] = (None, {})

    def read(self, part: SplitRange) -> Iterator[Records]:
        source = self._source
        arrow = pyiceberg("io.pyarrow")
        with source.loader.open_table() as (_, table):
            if table is None:
                raise NoSuchTable(source.loader.table)
            for data in part.start:
                file = DataFile.from_json(data)
                scan = _scan(table, source.columns, int(file.partition["snapshot"] or 0))
                if self._tasks[0] != file.partition["snapshot"]:
                    self._tasks = (file.partition["snapshot"], self._find_tasks(table, scan, file))
                if file.path not in self._tasks[1]:
                    raise FileGone(file.path)
                arrow_scan = arrow.ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
                for batch in arrow_scan.to_record_batches([self._tasks[1][file.path]]):
                    for first in range(0, batch.num_rows, self._block):
                        yield Records(to_rows(batch.slice(first, self._block), source.row_type))

    def _find_tasks(self, table: Any, scan: Any, file: DataFile) -> dict[str, Any]:
        """Return the tasks of a snapshot by the path of their file: all of them, or those of files that it appended."""
        if "appended" not in file.partition:
            return {task.file.file_path: task for task in scan.plan_files()}
        snapshot = table.snapshot_by_id(int(file.partition["snapshot"] or 0))
        if snapshot is None:
            raise FileGone(file.path)
        create_task = pyiceberg("table").FileScanTask
        return {data_file.file_path: create_task(data_file) for data_file in _appended(table, snapshot)}
