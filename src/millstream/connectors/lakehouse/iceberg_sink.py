"""Iceberg sink: one snapshot of the table for each checkpoint.

Promises: rows are in the table after the checkpoint that holds them, all at once, and exactly once: a property of the
table, set with the snapshot, names the last staged output, so a repeated commit is recognised, with the attempt
that made it. The number of these properties is bounded. A sink that overwrites removes, in the same snapshot, the rows
that were in the table when the job began: all rows, or those of the partitions that get rows. A sink with a primary
key changes and deletes rows by it.
Does not know: storage beyond what Arrow opens."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connector.slot_task import SlotTask
from millstream.connectors.lakehouse.changes import ChangeWriter, check_primary_key
from millstream.connectors.lakehouse.columns import table_schema
from millstream.connectors.lakehouse.commits import TableCommitter, warn_of_repeat
from millstream.connectors.lakehouse.iceberg_catalog import NoSuchTable, TableLoader, pyiceberg
from millstream.connectors.lakehouse.iceberg_changes import IcebergMergeTask, TableForm
from millstream.connectors.lakehouse.iceberg_commits import (
    add_name_mapping,
    commit_once,
    is_committed,
    paths_of,
    without_retries,
)
from millstream.connectors.lakehouse.staging import ParquetWriter, StagedDataFile
from millstream.errors import UserError
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.types.factory import RowTypeInfo


class CannotAppend(UserError):
    """A table to which this sink cannot append."""


@dataclass(frozen=True)
class IcebergSink(Sink):
    """Appends rows to a table. `seen` is its form when the sink was built, None for a table that is created when the
    job starts, partitioned `by` columns. If it `overwrites`, `replaces` is the snapshot whose rows are replaced, None
    if there was none. With `replaces_all`, rows of partitions that get no rows are replaced too. With a `primary_key`,
    rows replace those with the same key, and deletions are applied.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.connectors.iceberg import TableLoader
        >>> loader = TableLoader.from_catalog("lake", {"type": "rest", "uri": "http://localhost:8181"}, "shop.totals")
        >>> row_type = Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()])
        >>> builder = IcebergSink.for_row(loader, row_type).create_table_if_missing()  # .build() connects

    """

    loader: TableLoader
    row_type: RowTypeInfo
    seen: TableForm | None
    by: tuple[str, ...] = ()
    replaces: int | None = None
    overwrites: bool = False
    replaces_all: bool = False
    primary_key: tuple[str, ...] = ()

    @staticmethod
    def for_row(loader: TableLoader, row_type: RowTypeInfo) -> IcebergSink.Builder:
        """Return a builder of a sink for rows of a type.

        Args:
            loader: The table.
            row_type: The type of the rows.

        """
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
        if self.primary_key:
            return ChangeWriter(self.form.location, self.row_type, self.form.schema, self.primary_key, context)
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
        """Builds an IcebergSink; `build` reads the form of the table.

        Example:
            >>> from millstream.common import Types
            >>> from millstream.datastream.connectors.iceberg import TableLoader
            >>> properties = {"type": "rest", "uri": "http://localhost:8181"}
            >>> loader = TableLoader.from_catalog("lake", properties, "shop.totals")
            >>> row_type = Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()])
            >>> builder = IcebergSink.for_row(loader, row_type).equality_field_columns("id")

        """

        def __init__(self, loader: TableLoader, row_type: RowTypeInfo) -> None:
            self._loader, self._row_type = loader, row_type
            self._create = self._overwrite = self._all_partitions = False
            self._by: tuple[str, ...] = ()
            self._primary_key: tuple[str, ...] = ()

        def equality_field_columns(self, *columns: str) -> IcebergSink.Builder:
            """Change and delete rows by these columns, the primary key, instead of appending rows.

            Args:
                *columns: The names of the columns.

            """
            self._primary_key = columns
            return self

        def overwrite(self, overwrite: bool = True, *, all_partitions: bool = False) -> IcebergSink.Builder:
            """Replace the rows that the table has when `build` is called: all rows or, in a partitioned table, the rows
            of the partitions that get rows, unless `all_partitions` is set. For bounded input. A job that is restored
            from a checkpoint or savepoint replaces the rows of its first start.

            Args:
                overwrite: Whether rows are replaced.
                all_partitions: Whether the rows of partitions that get no rows are replaced too.

            """
            self._overwrite, self._all_partitions = overwrite, all_partitions
            return self

        def create_table_if_missing(self, *partition_by: str) -> IcebergSink.Builder:
            """Create the table and its namespace when the job starts, with the columns of the rows.

            Args:
                *partition_by: The names of the columns that the table is partitioned by; without them, it is not
                    partitioned.

            """
            self._create, self._by = True, partition_by
            return self

        def build(self) -> IcebergSink:
            """Build the sink."""
            check_primary_key(self._primary_key, self._row_type, overwrites=self._overwrite)
            with self._loader.open_table() as (_, table):
                if table is None and self._create:
                    if unknown := set(self._by) - set(self._row_type.get_field_names()):
                        message = f"the table cannot be partitioned by {sorted(unknown)}: its rows have no such field"
                        raise CannotAppend(message, hint=f"they have {self._row_type.get_field_names()}")
                    return IcebergSink(
                        self._loader,
                        self._row_type,
                        None,
                        self._by,
                        overwrites=self._overwrite,
                        primary_key=self._primary_key,
                    )
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
                    primary_key=self._primary_key,
                )


def _form(loader: TableLoader, table: Any, row_type: RowTypeInfo) -> TableForm:
    if table is None:
        raise NoSuchTable(loader.table)
    return TableForm(table.location(), _columns(table, row_type), _partition_by(table))


def _create_table(catalog: Any, loader: TableLoader, row_type: RowTypeInfo, by: tuple[str, ...]) -> Any:
    """Create the table, unless another driver has created it, and load it."""
    catalog.create_namespace_if_not_exists(loader.table.rpartition(".")[0])
    wide = pa.schema([iceberg_field(field) for field in table_schema(row_type)])
    with (
        contextlib.suppress(pyiceberg("exceptions").TableAlreadyExistsError),
        catalog.create_table_transaction(loader.table, schema=wide) as creation,
        creation.update_spec() as spec,
    ):
        for name in by:
            spec.add_identity(name)
    return catalog.load_table(loader.table)


def iceberg_field(field: pa.Field) -> pa.Field:
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
        removes_staged = bool(sink.primary_key)
        super().__init__(overwrites=sink.overwrites, replaces=sink.replaces, removes_staged=removes_staged)
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
        if is_committed(self.location, table, owner, files):
            warn_of_repeat(self._sink.loader.table, checkpoint, files)
            return
        if self._sink.primary_key:
            merge = IcebergMergeTask(self._sink.loader, self._sink.form, self._sink.primary_key)
            self.workers.run_tasks([SlotTask(0, partial(merge.run, checkpoint, owner, tuple(files)))])
            return
        paths = paths_of(self.location, files)

        def add(table: Any, transaction: Any, summary: dict[str, str]) -> None:
            if self._replaces is None:
                transaction.add_files(paths, snapshot_properties=summary, check_duplicate_files=False)
            else:
                self._overwrite(table, transaction, paths, summary)

        commit_once(self.location, table, checkpoint, owner, files, add)

    def _overwrite(self, table: Any, transaction: Any, paths: list[str], summary: dict[str, str]) -> None:
        """Add files and remove those that they replace; if repeated, nothing is left to remove."""
        add_name_mapping(transaction)
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
                with without_retries(table).transaction() as transaction:
                    self._overwrite(table, transaction, [], {})
