"""Iceberg sink: one snapshot of the table for each checkpoint.

Promises: rows are in the table after the checkpoint that holds them, all at once, and exactly once: a property of the
table, set with the snapshot, names the last staged output, so a repeated commit is recognised, with the attempt
that made it. The number of these properties is bounded. A sink that overwrites removes, in the same snapshot, the rows
that were in the table when the job began: all rows, or those of the partitions that get rows.
Does not know: storage beyond what Arrow opens."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connectors.lakehouse.columns import table_schema
from millstream.connectors.lakehouse.commits import CommittedByAnother, TableCommitter, warn_of_repeat
from millstream.connectors.lakehouse.iceberg_catalog import NoSuchTable, TableLoader, pyiceberg
from millstream.connectors.lakehouse.staging import ParquetWriter, StagedDataFile, digest
from millstream.errors import UserError
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.files.errors import ConnectorStorageFailure
from millstream.types.factory import RowTypeInfo

_STAGED, _CHECKPOINT, _EPOCH = "millstream.staged", "millstream.checkpoint", "millstream.epoch"
_MAX_MARKS = 50  # a table has the mark of the last commit of this many jobs


class CannotAppend(UserError):
    """A table to which this sink cannot append."""


@dataclass(frozen=True)
class TableForm:
    """The location, columns and partition columns of a table."""

    location: str
    schema: pa.Schema
    partition_by: tuple[str, ...]


@dataclass(frozen=True)
class IcebergSink(Sink):
    """Appends rows to a table. `seen` is its form when the sink was built, None for a table that is created when the
    job starts, partitioned `by` columns. If it `overwrites`, `replaces` is the snapshot whose rows are replaced, None
    if there was none. With `replaces_all`, rows of partitions that get no rows are replaced too."""

    loader: TableLoader
    row_type: RowTypeInfo
    seen: TableForm | None
    by: tuple[str, ...] = ()
    replaces: int | None = None
    overwrites: bool = False
    replaces_all: bool = False

    @staticmethod
    def for_row(loader: TableLoader, row_type: RowTypeInfo) -> IcebergSink.Builder:
        """Return a builder of a sink for rows of a type."""
        return IcebergSink.Builder(loader, row_type)

    @functools.cached_property
    def form(self) -> TableForm:
        """Load the form of the table, which must exist."""
        if self.seen is not None:
            return self.seen
        with self.loader.open_table() as (_, table):
            return _form(self.loader, table, self.row_type)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer of Parquet files, which become part of the table with their commit."""
        columns = (self.row_type, self.form.schema, self.form.partition_by)
        return ParquetWriter(self.form.location, "data", *columns, context, partition_columns_inside=True)

    def create_committer(self) -> Committer:
        """Create a committer that adds the files to the table."""
        return IcebergCommitter(self)

    def check(self) -> None:
        """Check that the table is as it was when the sink was built; create it if the builder asks for it."""
        with self.loader.open_table() as (catalog, table):
            if table is None and self.seen is None:
                table = _create_table(catalog, self.loader, self.row_type, self.by)
            form = _form(self.loader, table, self.row_type)
            if form != (self.seen or replace(form, partition_by=self.by or form.partition_by)):
                message = f"the table {self.loader.table} has changed since the sink was built"
                raise CannotAppend(message, hint="build the sink again")

    class Builder:
        """Builds an IcebergSink; `build` reads the form of the table."""

        def __init__(self, loader: TableLoader, row_type: RowTypeInfo) -> None:
            self._loader, self._row_type = loader, row_type
            self._create = self._overwrite = self._all_partitions = False
            self._by: tuple[str, ...] = ()

        def overwrite(self, overwrite: bool = True, *, all_partitions: bool = False) -> IcebergSink.Builder:
            """Replace the rows that the table has when `build` is called: all rows or, in a partitioned table, the rows
            of the partitions that get rows, unless `all_partitions` is set. For bounded input. A job that is restored
            from a checkpoint or savepoint replaces the rows of its first start."""
            self._overwrite, self._all_partitions = overwrite, all_partitions
            return self

        def create_table_if_missing(self, *partition_by: str) -> IcebergSink.Builder:
            """Create the table and its namespace when the job starts, with the columns of the rows."""
            self._create, self._by = True, partition_by
            return self

        def build(self) -> IcebergSink:
            """Build the sink."""
            with self._loader.open_table() as (_, table):
                if table is None and self._create:
                    if unknown := set(self._by) - set(self._row_type.get_field_names()):
                        message = f"the table cannot be partitioned by {sorted(unknown)}: its rows have no such field"
                        raise CannotAppend(message, hint=f"they have {self._row_type.get_field_names()}")
                    return IcebergSink(self._loader, self._row_type, None, self._by, overwrites=self._overwrite)
                seen = _form(self._loader, table, self._row_type)
                current = table.current_snapshot() if self._overwrite else None
                replaces = None if current is None else current.snapshot_id
                return IcebergSink(
                    self._loader,
                    self._row_type,
                    seen,
                    replaces=replaces,
                    overwrites=self._overwrite,
                    replaces_all=self._all_partitions,
                )


def _form(loader: TableLoader, table: Any, row_type: RowTypeInfo) -> TableForm:
    if table is None:
        raise NoSuchTable(loader.table)
    return TableForm(table.location(), _columns(table, row_type), _partition_by(table))


def _create_table(catalog: Any, loader: TableLoader, row_type: RowTypeInfo, by: tuple[str, ...]) -> Any:
    """Create the table, unless another driver has created it, and load it."""
    catalog.create_namespace_if_not_exists(loader.table.rpartition(".")[0])
    wide = pa.schema([_iceberg_field(field) for field in table_schema(row_type)])
    with (
        contextlib.suppress(pyiceberg("exceptions").TableAlreadyExistsError),
        catalog.create_table_transaction(loader.table, schema=wide) as creation,
        creation.update_spec() as spec,
    ):
        for name in by:
            spec.add_identity(name)
    return catalog.load_table(loader.table)


def _iceberg_field(field: pa.Field) -> pa.Field:
    """Widen small integers: Iceberg's smallest integer type has 32 bits."""
    small = pa.types.is_int8(field.type) or pa.types.is_int16(field.type)
    return pa.field(field.name, pa.int32()) if small else field


def _columns(table: Any, row_type: RowTypeInfo) -> pa.Schema:
    """Return the columns of the table, which must be those of the rows, without field ids: added files have none."""
    arrow = pyiceberg("io.pyarrow").schema_to_pyarrow(table.schema(), include_field_ids=False)
    if list(arrow.names) != row_type.get_field_names():
        message = f"the rows have the fields {row_type.get_field_names()}, the table has {list(arrow.names)}"
        raise CannotAppend(message, hint="map the stream to rows with the table's columns, in order")
    table_schema(row_type)
    return arrow


def _partition_by(table: Any) -> tuple[str, ...]:
    by: list[str] = []
    for field in table.spec().fields:
        if str(field.transform) != "identity":
            message = f"the table is partitioned by {field.transform} of a column"
            raise CannotAppend(message, hint="the sink can write tables that are partitioned by columns as they are")
        by.append(table.schema().find_column_name(field.source_id))
    return tuple(by)


class IcebergCommitter(TableCommitter):
    """Commits staged files to an Iceberg table, one snapshot for each owner."""

    def __init__(self, sink: IcebergSink) -> None:
        super().__init__(overwrites=sink.overwrites, replaces=sink.replaces)
        self._sink = sink

    @property
    def location(self) -> str:
        """The directory of the table."""
        return self._sink.form.location

    def commit_files(self, checkpoint: int, owner: str, files: list[StagedDataFile]) -> None:
        """Add the files in one snapshot, with a table property that names them, so that a repeat is recognised."""
        with self._sink.loader.open_table() as (_, table):
            if table is None:
                raise NoSuchTable(self._sink.loader.table)
            self._commit(table, checkpoint, owner, files)

    def _commit(self, table: Any, checkpoint: int, owner: str, files: list[StagedDataFile]) -> None:
        epoch, staged = max(file.epoch for file in files), digest(files)
        if self._is_committed(table, owner, files):
            warn_of_repeat(self._sink.loader.table, checkpoint, files)
            return
        paths = self._paths(files)
        exceptions = pyiceberg("exceptions")
        try:
            with table.transaction() as transaction:
                # one change of the table: the files, and up to which epoch this job has committed
                mark = {"epoch": epoch, "staged": staged, "at": max(file.at for file in files)}
                transaction.set_properties({f"{_EPOCH}.{owner}": json.dumps(mark)})
                expired = _expired_marks(table.properties, f"{_EPOCH}.{owner}")
                if expired:
                    transaction.remove_properties(*expired)
                summary = {_CHECKPOINT: str(checkpoint), _STAGED: staged, _EPOCH: str(epoch)}
                if self._replaces is None:
                    transaction.add_files(paths, snapshot_properties=summary, check_duplicate_files=False)
                else:
                    self._overwrite(table, transaction, paths, summary)
        except exceptions.CommitFailedException as problem:
            # another driver of the same job may have been faster
            if self._is_committed(table.refresh(), owner, files):
                return
            raise ConnectorStorageFailure(
                self._sink.loader.table, f"commit checkpoint {checkpoint} to", problem
            ) from problem

    def _overwrite(self, table: Any, transaction: Any, paths: list[str], summary: dict[str, str]) -> None:
        """Add files and remove those that they replace; if repeated, nothing is left to remove."""
        if transaction.table_metadata.name_mapping() is None:
            names = transaction.table_metadata.schema().name_mapping.model_dump_json()
            transaction.set_properties({"schema.name-mapping.default": names})
        to_data_file = pyiceberg("io.pyarrow").parquet_file_to_data_file
        added = [to_data_file(table.io, transaction.table_metadata, path) for path in paths]
        with transaction.update_snapshot(snapshot_properties=summary).overwrite() as files:
            for file in added:
                files.append_data_file(file)
            for file in self._replaced_files(table, [file.partition for file in added]):
                files.delete_data_file(file)

    def _replaced_files(self, table: Any, written: list[Any]) -> list[Any]:
        """Return the files of the replaced snapshot that still exist, in the partitions that get rows."""
        before = {task.file.file_path for task in table.scan(snapshot_id=self._replaces).plan_files()}
        still = [task.file for task in table.scan().plan_files() if task.file.file_path in before]
        return [file for file in still if self._replaces_whole_table or file.partition in written]

    @property
    def _replaces_whole_table(self) -> bool:
        return self._sink.replaces_all or not self._sink.form.partition_by

    def reached(self, watermark: int, now: int) -> None:
        """At the end of the input, remove the rows of a table that is replaced as a whole, even without output."""
        if self._replaces is None or not self._replaces_whole_table or watermark != MAX_WATERMARK:
            return
        with self._sink.loader.open_table() as (_, table):
            if table is not None and self._replaced_files(table, []):
                with table.transaction() as transaction:
                    self._overwrite(table, transaction, [], {})

    def _paths(self, files: Sequence[StagedDataFile]) -> list[str]:
        scheme = "" if "://" in self._sink.form.location else "file://"
        return [f"{scheme}{self._sink.form.location}/{file.path}" for file in files]

    def _is_committed(self, table: Any, owner: str, files: list[StagedDataFile]) -> bool:
        """Whether exactly these files were committed, by the mark of their owner, a snapshot, or the table's files.
        Raises `CommittedByAnother` if other files of the same epochs were.

        The number of marks is bounded; without one, a snapshot or the files of the table show the commit."""
        epoch, staged = max(file.epoch for file in files), digest(files)
        text = table.properties.get(f"{_EPOCH}.{owner}")
        mark = None if text is None else _parse_mark(text)
        if mark is not None and mark["epoch"] < epoch:
            return False
        if mark is not None and mark["staged"] == staged:
            return True
        snapshots = table.metadata.snapshots
        if any(entry.summary is not None and entry.summary.get(_STAGED) == staged for entry in snapshots):
            return True
        live = _live_paths(table)
        there = [file for file, path in zip(files, self._paths(files), strict=True) if path in live]
        if len(there) == len(files):
            return True
        if mark is None and not there:
            return False
        committed = max(file.epoch for file in there) if mark is None else int(mark["epoch"])
        raise CommittedByAnother(self._sink.loader.table, epoch, committed, len(files))


def _parse_mark(text: str) -> dict[str, Any]:
    """Parse the mark of the last commit of a job; earlier releases wrote the epoch alone."""
    mark = json.loads(text)
    return mark if isinstance(mark, dict) else {"epoch": mark, "staged": "", "at": 0}


def _live_paths(table: Any) -> set[str]:
    """Return the data files of a table from its manifests, because a scan refuses tables with equality deletes."""
    snapshot, data = table.current_snapshot(), pyiceberg("manifest").ManifestContent.DATA
    manifests = [] if snapshot is None else snapshot.manifests(table.io)
    return {
        entry.data_file.file_path
        for manifest in manifests
        if manifest.content == data
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }


def _expired_marks(properties: dict[str, str], current: str) -> list[str]:
    """Return the properties of the jobs that committed longest ago, if there are too many."""
    others = [name for name in properties if name.startswith(f"{_EPOCH}.") and name != current]
    others.sort(key=lambda name: int(_parse_mark(properties[name])["at"]))
    return others[: max(0, len(others) + 1 - _MAX_MARKS)]
