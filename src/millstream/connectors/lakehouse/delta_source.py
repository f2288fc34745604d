"""A Delta table as a source: one version of it, or one version after another as they appear.

Promises: a version is read whole, its files in parallel; a continuous source reads what later versions add, each row
once. A version that deletes or changes rows is refused, because deleted rows cannot be emitted.
Does not know: catalogs, deletion vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.connector.source import (
    Boundedness,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.connectors.lakehouse.columns import row_type_of, to_rows
from millstream.connectors.lakehouse.delta_commits import deltalake
from millstream.connectors.lakehouse.file_splits import DataFile, FileEnumerator
from millstream.connectors.lakehouse.staging import open_location
from millstream.errors import UserError
from millstream.files.errors import ConnectorStorageFailure
from millstream.types.arrow_types import to_python_values
from millstream.types.factory import RowTypeInfo, TypeInformation

_UNREADABLE = {"deletionVectors", "columnMapping"}


class CannotRead(UserError):
    """A table that this source does not understand."""


@dataclass(frozen=True)
class DeltaSource(Source):
    """Reads a table. `version` None: the latest when the job starts.

    Example:
        >>> builder = DeltaSource.for_bounded_row_data("/data/orders").column_names("id", "amount")

    """

    location: str
    row_type: RowTypeInfo
    columns: tuple[str, ...]
    version: int | None = None
    continuous: bool = False
    ignore_deletes: bool = False
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # may contain secrets

    @staticmethod
    def for_bounded_row_data(table_path: str) -> DeltaSource.RowDataDeltaSourceBuilder:
        """Return a builder of a source of one version.

        Args:
            table_path: The path or URI of the table.

        """
        return DeltaSource.RowDataDeltaSourceBuilder(table_path, continuous=False)

    @staticmethod
    def for_continuous_row_data(table_path: str) -> DeltaSource.RowDataDeltaSourceBuilder:
        """Return a builder of a source of one version and of the rows that later versions add.

        Args:
            table_path: The path or URI of the table.

        """
        return DeltaSource.RowDataDeltaSourceBuilder(table_path, continuous=True)

    def type_info(self) -> TypeInformation:
        """Return a row type with the columns of the table."""
        return self.row_type

    def boundedness(self) -> Boundedness:
        """Return unbounded if later versions are read."""
        return Boundedness.CONTINUOUS_UNBOUNDED if self.continuous else Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of the files of versions."""
        return _DeltaEnumerator(self, parallelism, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of data files."""
        return _DeltaReader(self, context.block_records)

    def table(self, version: int | None = None) -> Any:
        """Load the table at a version.

        Args:
            version: The version; the latest without one.

        """
        package = deltalake()
        try:
            options = dict(self.storage_options) or None
            table = package.DeltaTable(self.location, version=version, storage_options=options)
        except (package.exceptions.DeltaError, OSError) as problem:
            raise ConnectorStorageFailure(self.location, "open", problem) from problem
        features = set(table.protocol().reader_features or []) & _UNREADABLE
        mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        if "deletionVectors" in features and not len(pa.table(table.deletion_vectors())):
            features.discard("deletionVectors")
        if features and (features != {"columnMapping"} or mode != "none"):
            message = f"the table {self.location} uses {', '.join(sorted(features))}"
            raise CannotRead(
                message,
                hint="read it with Spark and use from_spark, or copy the rows to a table without this feature",
            )
        return table

    class RowDataDeltaSourceBuilder:
        """Builds a DeltaSource; `build` reads the columns of the table."""

        def __init__(self, table_path: str, *, continuous: bool) -> None:
            self._source = DeltaSource(table_path, RowTypeInfo([], []), (), continuous=continuous)

        def column_names(self, *columns: str) -> DeltaSource.RowDataDeltaSourceBuilder:
            """Read only these columns.

            Args:
                *columns: The names of the columns, in the order of the fields of the rows.

            """
            self._source = replace(self._source, columns=columns)
            return self

        def version_as_of(self, version: int) -> DeltaSource.RowDataDeltaSourceBuilder:
            """Read this version; a continuous source begins with it.

            Args:
                version: The number of the version.

            """
            self._source = replace(self._source, version=version)
            return self

        def starting_version(self, version: int) -> DeltaSource.RowDataDeltaSourceBuilder:
            """Begin with this version.

            Args:
                version: The number of the version.

            """
            return self.version_as_of(version)

        def ignore_deletes(self, ignore: bool = True) -> DeltaSource.RowDataDeltaSourceBuilder:
            """Set whether later versions may delete rows; deletions are not emitted.

            Args:
                ignore: Whether deletions are ignored; without this call, they fail the job.

            """
            self._source = replace(self._source, ignore_deletes=ignore)
            return self

        def with_storage_options(self, options: dict[str, str]) -> DeltaSource.RowDataDeltaSourceBuilder:
            """Set the `storage_options` of deltalake, with which the log is read.

            Args:
                options: The values of the options by name.

            """
            self._source = replace(self._source, storage_options=tuple(sorted(options.items())))
            return self

        def build(self) -> DeltaSource:
            """Build the source."""
            schema = pa.schema(self._source.table(self._source.version).schema().to_arrow())
            unknown = [name for name in self._source.columns if name not in schema.names]
            if unknown:
                message = f"the table {self._source.location} has no column {', '.join(unknown)}"
                raise CannotRead(message, hint=f"it has {', '.join(schema.names)}")
            chosen = self._source.columns or tuple(schema.names)
            row_type = row_type_of(pa.schema([schema.field(name) for name in chosen]))
            return replace(self._source, row_type=row_type, columns=chosen)


class _DeltaEnumerator(FileEnumerator):
    def __init__(self, source: DeltaSource, parallelism: int, state: Any) -> None:
        self._source = source
        super().__init__(parallelism, state)

    def continuous(self) -> bool:
        return self._source.continuous

    def discover(self, version: int | None) -> tuple[int | None, list[DataFile]]:
        if version is None:
            table = self._source.table(self._source.version)
            actions = pa.table(table.get_add_actions(flatten=True))
            prefix = "partition."
            by = [name for name in actions.column_names if name.startswith(prefix)]
            files = [
                DataFile(
                    unquote(path),
                    rows or 0,
                    {name.removeprefix(prefix): value for name, value in zip(by, values, strict=True)},
                )
                for path, rows, *values in zip(
                    *(_values(actions, name) for name in ("path", "num_records", *by)), strict=True
                )
            ]
            return table.version(), sorted(files, key=lambda file: file.path)
        if self._source.table().version() <= version:
            return version, []
        return version + 1, self._added_files(version + 1)

    def _added_files(self, version: int) -> list[DataFile]:
        """Return the files that a version added, without those that only moved rows, as compaction does."""
        files, base = open_location(self._source.location)
        path = f"{base}/_delta_log/{version:020d}.json"
        try:
            with files.open_input_stream(path) as stream:
                actions = [json.loads(line) for line in stream.read().splitlines() if line.strip()]
        except OSError as problem:
            raise ConnectorStorageFailure(path, "read", problem) from problem
        removals = [a["remove"] for a in actions if "remove" in a and a["remove"].get("dataChange", True)]
        if removals and not self._source.ignore_deletes:
            message = f"version {version} of the table {self._source.location} deletes rows"
            raise CannotRead(
                message, hint="a continuous source reads tables that only grow; call ignore_deletes() to skip deletions"
            )
        additions = [a["add"] for a in actions if "add" in a and a["add"].get("dataChange", True)]
        added_files = [
            DataFile(
                unquote(addition["path"]),
                int(json.loads(addition.get("stats") or "{}").get("numRecords", 0)),
                dict(addition.get("partitionValues") or {}),
            )
            for addition in additions
        ]
        return sorted(added_files, key=lambda file: file.path)


def _values(actions: pa.Table, name: str) -> list[Any]:
    column = actions.column(name).combine_chunks()
    return to_python_values(column if name == "num_records" else column.cast(pa.string()))


class _DeltaReader(SourceReader):
    def __init__(self, source: DeltaSource, block_records: int) -> None:
        self._source = source
        self._block = max(block_records, 1)

    def read(self, part: SplitRange) -> Iterator[Records]:
        source = self._source
        files, base = open_location(source.location)
        for data in part.start:
            file = DataFile.from_json(data)
            inside = [name for name in source.columns if name not in file.partition]
            try:
                with files.open_input_file(f"{base}/{file.path}") as stream:
                    for batch in pq.ParquetFile(stream).iter_batches(self._block, columns=inside):
                        yield Records(to_rows(self._complete(batch, file), source.row_type))
            except (pa.ArrowException, OSError) as problem:
                raise ConnectorStorageFailure(file.path, "read", problem) from problem

    def _complete(self, batch: pa.RecordBatch, file: DataFile) -> pa.RecordBatch:
        """Add the partition columns to a batch."""
        arrays, names = list(batch.columns), list(batch.schema.names)
        types = dict(zip(self._source.row_type.get_field_names(), self._source.row_type.get_field_types(), strict=True))
        for name, text in file.partition.items():
            if name in types:
                value = pa.array([text], pa.string()).cast(types[name].arrow_type)
                arrays.append(value.take(pa.array([0] * batch.num_rows, pa.int32())))
                names.append(name)
        return pa.RecordBatch.from_arrays(arrays, names=names)
