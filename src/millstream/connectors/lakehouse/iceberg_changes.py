"""Changes of an Iceberg table by primary key: data files that contain changed rows are rewritten without these rows.

Promises: the changes of a checkpoint are one snapshot with the mark of the checkpoint, so that they are applied once,
however often and wherever it is attempted. Files that cannot contain a changed key are not read. pyiceberg writes no
delete files, so rows are removed by rewriting their file.
Does not know: who runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from millstream.connectors.lakehouse.changes import DELETED, read_changes, remove_keys
from millstream.connectors.lakehouse.iceberg_catalog import NoSuchTable, TableLoader, pyiceberg
from millstream.connectors.lakehouse.iceberg_commits import add_name_mapping, commit_once, is_committed
from millstream.connectors.lakehouse.staging import StagedDataFile, digest, open_location, split_by_partition, tag
from millstream.files.errors import ConnectorStorageFailure
from millstream.types.arrow_types import to_python_values

# the number of keys whose ranges are compared with those of files
_COMPARED = (pa.types.is_integer, pa.types.is_string, pa.types.is_date)


@dataclass(frozen=True)
class TableForm:
    """The location, columns and partition columns of a table."""

    location: str
    schema: pa.Schema
    partition_by: tuple[str, ...]


@dataclass(frozen=True)
class IcebergMergeTask:
    """Applies staged changes to the table; it runs in a worker of the job."""

    loader: TableLoader
    form: TableForm
    key: tuple[str, ...]

    def run(self, checkpoint: int, owner: str, files: Sequence[StagedDataFile]) -> None:
        """Apply the changes, if no other attempt has done so."""
        staged, location = list(files), self.form.location
        with self.loader.open_table() as (_, table):
            if table is None:
                raise NoSuchTable(self.loader.table)
            if is_committed(location, table, owner, staged):
                return

            def merge(table: Any, transaction: Any, summary: dict[str, str]) -> None:
                changes = read_changes(location, staged, self.key)
                removed, added = self._rewrite(table, changes, digest(staged))
                if removed or added:
                    _replace_files(table, transaction, removed, added, summary)

            commit_once(location, table, checkpoint, owner, staged, merge)

    def _rewrite(self, table: Any, changes: pa.Table, name: str) -> tuple[list[Any], list[str]]:
        """Write the files that replace files of the table, and those of new rows; return both."""
        removed: list[Any] = []
        writer = _FileWriter(self.form, f"{name}-{tag(str(table.metadata.current_snapshot_id))}")
        arrow, everything = pyiceberg("io.pyarrow"), table.scan()
        scan = arrow.ArrowScan(table.metadata, table.io, everything.projection(), everything.row_filter)
        condition = self._range_of(changes)
        candidates = (everything if condition is None else everything.filter(condition)).plan_files()
        whole = {task.file.file_path: task for task in everything.plan_files()} if condition is not None else None
        for task in sorted(candidates, key=lambda task: str(task.file.file_path)):
            unfiltered = task if whole is None else whole[task.file.file_path]
            rows = scan.to_table([unfiltered]).cast(self.form.schema)
            remaining = remove_keys(rows, changes, self.key)
            if remaining.num_rows < rows.num_rows:
                removed.append(unfiltered.file)
                writer.write(remaining)
        upserts = changes.filter(pc.invert(changes.column(DELETED))).drop_columns([DELETED])
        writer.write(upserts.cast(self.form.schema))
        return removed, writer.paths

    def _range_of(self, changes: pa.Table) -> Any:
        """Return a condition that every row with a changed key satisfies; None if there is no such condition."""
        expressions = pyiceberg("expressions")
        conditions = []
        for name in self.key:
            column = changes.column(name)
            if any(matches(column.type) for matches in _COMPARED):
                ends = pc.min_max(column)
                lowest, highest = to_python_values(pa.array([ends["min"], ends["max"]], column.type))
                conditions.append(expressions.GreaterThanOrEqual(name, lowest))
                conditions.append(expressions.LessThanOrEqual(name, highest))
        return reduce(expressions.And, conditions) if conditions else None


def _replace_files(
    table: Any, transaction: Any, removed: Sequence[Any], paths: Sequence[str], summary: dict[str, str]
) -> None:
    if not removed:  # streaming readers can read a snapshot that only appends
        transaction.add_files(list(paths), snapshot_properties=summary, check_duplicate_files=False)
        return
    add_name_mapping(transaction)
    to_data_file = pyiceberg("io.pyarrow").parquet_file_to_data_file
    added = [to_data_file(table.io, transaction.table_metadata, path) for path in paths]
    with transaction.update_snapshot(snapshot_properties=summary).overwrite() as files:
        for file in added:
            files.append_data_file(file)
        for file in removed:
            files.delete_data_file(file)


class _FileWriter:
    """Writes data files. Their names and contents follow from `name`, so another attempt writes the same files."""

    def __init__(self, form: TableForm, name: str) -> None:
        self._form, self._name = form, name
        self.paths: list[str] = []

    def write(self, rows: pa.Table) -> None:
        """Write rows, a file for each partition."""
        files, base = open_location(self._form.location)
        scheme = "" if "://" in self._form.location else "file://"
        for _, part in split_by_partition(rows, self._form.partition_by) if rows.num_rows else ():
            path = f"data/merged-{self._name}-{len(self.paths):05d}.parquet"
            try:
                if isinstance(files, pafs.LocalFileSystem):
                    files.create_dir(f"{base}/data", recursive=True)
                with files.open_output_stream(f"{base}/{path}") as stream:
                    pq.write_table(part, stream, compression="zstd")
            except (pa.ArrowException, OSError) as problem:
                raise ConnectorStorageFailure(path, "write", problem) from problem
            self.paths.append(f"{scheme}{self._form.location}/{path}")
