"""Iceberg source: the rows of one snapshot.

Promises: all rows of one snapshot, its data files in parallel; delete files and columns
that were added later are applied.
Does not know: later snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.connector.source import ReaderContext, Records, Source, SourceReader, SplitEnumerator, SplitRange
from millstream.connectors.lakehouse.columns import row_type_of, to_rows
from millstream.connectors.lakehouse.file_splits import DataFile, FileEnumerator
from millstream.connectors.lakehouse.iceberg_catalog import NoSuchTable, TableLoader, pyiceberg
from millstream.errors import ExternalError
from millstream.types.factory import RowTypeInfo, TypeInformation


class FileGone(ExternalError):
    """A file that was planned is no longer in the snapshot's list."""

    hint = "the snapshot may have expired while the job read it; start the job from the beginning"

    def __init__(self, path: str) -> None:
        super().__init__(f"the snapshot no longer has the file {path}")


@dataclass(frozen=True)
class IcebergSource(Source):
    """Reads a snapshot. `snapshot` None: the current one when the job starts."""

    loader: TableLoader
    row_type: RowTypeInfo
    columns: tuple[str, ...]
    snapshot: int | None = None

    @staticmethod
    def builder() -> IcebergSource.Builder:
        """Return a new builder."""
        return IcebergSource.Builder()

    def type_info(self) -> TypeInformation:
        """Return a row type with the columns of the table."""
        return self.row_type

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of the files of the snapshot."""
        return _IcebergEnumerator(self, parallelism, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of data files."""
        return _IcebergReader(self, context.block_records)

    class Builder:
        """Builds an IcebergSource; `build` reads the columns of the table."""

        def __init__(self) -> None:
            self._loader: TableLoader | None = None
            self._columns: tuple[str, ...] = ()
            self._snapshot: int | None = None

        def table_loader(self, loader: TableLoader) -> IcebergSource.Builder:
            """Set the loader of the table."""
            self._loader = loader
            return self

        def project(self, *columns: str) -> IcebergSource.Builder:
            """Read only these columns."""
            self._columns = columns
            return self

        def snapshot_id(self, snapshot: int) -> IcebergSource.Builder:
            """Read this snapshot."""
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
                return IcebergSource(self._loader, row_type_of(schema), tuple(schema.names), self._snapshot)


def _scan(table: Any, columns: tuple[str, ...], snapshot: int | None) -> Any:
    return table.scan(selected_fields=columns or ("*",), snapshot_id=snapshot)


class _IcebergEnumerator(FileEnumerator):
    def __init__(self, source: IcebergSource, parallelism: int, state: Any) -> None:
        self._source = source
        super().__init__(parallelism, state)

    def continuous(self) -> bool:
        return False

    def discover(self, version: int | None) -> tuple[int | None, list[DataFile]]:
        source = self._source
        with source.loader.open_table() as (_, table):
            if table is None:
                raise NoSuchTable(source.loader.table)
            current = table.current_snapshot()
            snapshot = source.snapshot if source.snapshot is not None else (current.snapshot_id if current else None)
            if snapshot is None:
                return -1, []
            # a range holds the snapshot of each of its files
            files = [
                DataFile(task.file.file_path, task.file.record_count, {"snapshot": str(snapshot)})
                for task in _scan(table, source.columns, snapshot).plan_files()
            ]
            return snapshot, sorted(files, key=lambda file: file.path)


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
                    tasks = {task.file.file_path: task for task in scan.plan_files()}
                    self._tasks = (file.partition["snapshot"], tasks)
                if file.path not in self._tasks[1]:
                    raise FileGone(file.path)
                arrow_scan = arrow.ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
                for batch in arrow_scan.to_record_batches([self._tasks[1][file.path]]):
                    for first in range(0, batch.num_rows, self._block):
                        yield Records(to_rows(batch.slice(first, self._block), source.row_type))
