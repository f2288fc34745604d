"""Delta sink: one commit of the table for each checkpoint.

Promises: rows are in the table after the checkpoint that holds them, all at once, and exactly once: the commit has
Delta's transaction identifiers, so a repeated commit is recognised, with the attempt that made it. A sink that
overwrites removes, in the same commit, the rows that were in the table when the job began: all rows, or those of the
partitions that get rows. A sink with a primary key changes and deletes rows by it: the changes of a checkpoint are
merged into the table in one commit.
Does not know: catalogs; a table is a directory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connector.slot_task import SlotTask
from millstream.connectors.lakehouse.changes import ChangeWriter, check_primary_key
from millstream.connectors.lakehouse.columns import NoColumn, table_schema
from millstream.connectors.lakehouse.commits import TableCommitter, warn_of_repeat
from millstream.connectors.lakehouse.delta_changes import MergeTask
from millstream.connectors.lakehouse.delta_commits import commit_properties, deltalake, is_committed, live_files
from millstream.connectors.lakehouse.staging import ParquetWriter, StagedDataFile
from millstream.errors import UserError
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.files.errors import ConnectorStorageFailure
from millstream.types.factory import RowTypeInfo


class CannotReplace(UserError):
    """The installed release of deltalake cannot remove files."""

    hint = "pip install --upgrade deltalake"

    def __init__(self, version: str) -> None:
        super().__init__(f"rows of a Delta table cannot be replaced with deltalake {version}, which is too old for it")


class TableMismatch(UserError):
    """The table has other columns than the records."""

    def __init__(self, location: str, records: str, table: str) -> None:
        super().__init__(f"the records for {location} have {records}, the table has {table}")


@dataclass(frozen=True)
class DeltaSink(Sink):
    """Appends rows to a table, which is created if it does not exist. If it `overwrites`, `replaces` is the version
    whose rows are replaced, None if there was no table. With `replaces_all`, rows of partitions that get no rows are
    replaced too. With a `primary_key`, rows replace those with the same key, and deletions are applied.

    Example:
        >>> from millstream.common import Types
        >>> row_type = Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()])
        >>> builder = DeltaSink.for_row_data("/data/totals", row_type).with_primary_key("id")

    """

    location: str
    row_type: RowTypeInfo
    partition_by: tuple[str, ...] = ()
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # may contain secrets
    replaces: int | None = None
    overwrites: bool = False
    replaces_all: bool = False
    primary_key: tuple[str, ...] = ()

    @staticmethod
    def for_row_data(base_path: str, row_type: RowTypeInfo) -> DeltaSink.RowDataDeltaSinkBuilder:
        """Return a builder of a sink for rows of a type.

        Args:
            base_path: The path or URI of the table.
            row_type: The type of the rows.

        """
        return DeltaSink.RowDataDeltaSinkBuilder(DeltaSink(base_path, row_type))

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer of Parquet files, which become part of the table with their commit."""
        schema = delta_schema(self.row_type)
        if self.primary_key:
            return ChangeWriter(self.location, self.row_type, schema, self.primary_key, context)
        columns = (self.row_type, schema, self.partition_by)
        return ParquetWriter(self.location, "", *columns, context, partition_columns_inside=False)

    def create_committer(self) -> Committer:
        """Create a committer that adds the files to the table."""
        return DeltaCommitter(self)

    def check(self) -> None:
        """Check that the table has the columns of the records; a missing table is created."""
        schema = delta_schema(self.row_type)
        missing = [name for name in self.partition_by if name not in schema.names]
        if missing:
            raise TableMismatch(
                self.location, f"no column {', '.join(missing)} to partition by", "to be partitioned by it"
            )
        table = self.table()
        table_types = {field.name: _comparable(field.type) for field in pa.schema(table.schema().to_arrow())}
        record_types = {field.name: _comparable(field.type) for field in schema}
        if table_types != record_types or tuple(table.metadata().partition_columns) != self.partition_by:
            by = ", partitioned by {}".format
            raise TableMismatch(
                self.location,
                f"{record_types}{by(list(self.partition_by))}",
                f"{table_types}{by(list(table.metadata().partition_columns))}",
            )

    def table(self, version: int | None = None) -> Any:
        """Load the table, at a version if given; a missing table is created.

        Args:
            version: The version; the latest without one.

        """
        package = deltalake()
        options = dict(self.storage_options) or None
        try:
            if not package.DeltaTable.is_deltatable(self.location, storage_options=options):
                package.DeltaTable.create(
                    self.location,
                    package.Schema.from_arrow(delta_schema(self.row_type)),
                    mode="ignore",
                    partition_by=list(self.partition_by) or None,
                    storage_options=options,
                )
            return package.DeltaTable(self.location, version=version, storage_options=options)
        except (package.exceptions.DeltaError, OSError) as problem:
            raise ConnectorStorageFailure(self.location, "open", problem) from problem

    def version(self) -> int | None:
        """Return the version of the table; None if there is no table."""
        package, options = deltalake(), dict(self.storage_options) or None
        try:
            if not package.DeltaTable.is_deltatable(self.location, storage_options=options):
                return None
            return int(package.DeltaTable(self.location, storage_options=options).version())
        except (package.exceptions.DeltaError, OSError) as problem:
            raise ConnectorStorageFailure(self.location, "open", problem) from problem

    class RowDataDeltaSinkBuilder:
        """Builds a DeltaSink."""

        def __init__(self, sink: DeltaSink) -> None:
            self._sink = sink
            self._overwrite = self._all_partitions = False

        def overwrite(
            self, overwrite: bool = True, *, all_partitions: bool = False
        ) -> DeltaSink.RowDataDeltaSinkBuilder:
            """Replace the rows that the table has when `build` is called: all rows or, in a partitioned table, the rows
            of the partitions that get rows, unless `all_partitions` is set. For bounded input. A job that is restored
            from a checkpoint or savepoint replaces the rows of its first start.

            Args:
                overwrite: Whether rows are replaced.
                all_partitions: Whether the rows of partitions that get no rows are replaced too.

            """
            self._overwrite, self._all_partitions = overwrite, all_partitions
            return self

        def with_partition_columns(self, *columns: str) -> DeltaSink.RowDataDeltaSinkBuilder:
            """Set the columns that the table is partitioned by.

            Args:
                *columns: The names of the columns, in their order.

            """
            self._sink = replace(self._sink, partition_by=columns)
            return self

        def with_primary_key(self, *columns: str) -> DeltaSink.RowDataDeltaSinkBuilder:
            """Change and delete rows by these columns, instead of appending rows.

            Args:
                *columns: The names of the columns.

            """
            self._sink = replace(self._sink, primary_key=columns)
            return self

        def with_storage_options(self, options: dict[str, str]) -> DeltaSink.RowDataDeltaSinkBuilder:
            """Set the `storage_options` of deltalake, with which the log is written.

            Args:
                options: The values of the options by name.

            """
            self._sink = replace(self._sink, storage_options=tuple(sorted(options.items())))
            return self

        def build(self) -> DeltaSink:
            """Build the sink."""
            delta_schema(self._sink.row_type)
            check_primary_key(self._sink.primary_key, self._sink.row_type, overwrites=self._overwrite)
            if not self._overwrite:
                return self._sink
            if not hasattr(deltalake().transaction, "RemoveAction"):
                raise CannotReplace(deltalake().__version__)
            version = self._sink.version()
            return replace(self._sink, replaces=version, overwrites=True, replaces_all=self._all_partitions)


class DeltaCommitter(TableCommitter):
    """Commits staged files to a Delta table, one commit for each owner."""

    def __init__(self, sink: DeltaSink) -> None:
        removes_staged = bool(sink.primary_key)
        super().__init__(overwrites=sink.overwrites, replaces=sink.replaces, removes_staged=removes_staged)
        self._sink = sink

    @property
    def location(self) -> str:
        """The directory of the table."""
        return self._sink.location

    def commit_files(self, checkpoint: int, owner: str, files: list[StagedDataFile]) -> None:
        """Commit the files with transaction identifiers, so that a repeated commit is recognised."""
        package, table = deltalake(), self._sink.table()
        if is_committed(self._sink.location, table, owner, files):
            warn_of_repeat(self._sink.location, checkpoint, files)
            return
        if self._sink.primary_key:
            merge = MergeTask(self._sink.location, self._sink.storage_options, self._sink.primary_key)
            self.workers.run_tasks([SlotTask(0, partial(merge.run, checkpoint, owner, tuple(files)))])
            return
        properties = commit_properties(package, checkpoint, owner, files)
        actions = [
            package.transaction.AddAction(
                path=file.path,
                size=file.size,
                partition_values=file.partition,
                modification_time=file.at,
                data_change=True,
                stats=json.dumps({"numRecords": file.rows, "nullCount": file.nulls}),
            )
            for file in files
        ]
        removals = self._remove_actions(table, [file.partition for file in files], max(file.at for file in files))
        by = list(self._sink.partition_by)
        try:
            table.create_write_transaction(
                [*actions, *removals], "append", table.schema(), partition_by=by, commit_properties=properties
            )
        except (package.exceptions.DeltaError, OSError) as problem:
            # another driver of the same job may have been faster
            if is_committed(self._sink.location, self._sink.table(), owner, files):
                return
            raise ConnectorStorageFailure(
                self._sink.location, f"commit checkpoint {checkpoint} to", problem
            ) from problem

    @property
    def _replaces_whole_table(self) -> bool:
        return self._sink.replaces_all or not self._sink.partition_by

    def reached(self, watermark: int, now: int) -> None:
        """At the end of the input, remove the rows of a table that is replaced as a whole, even without output."""
        if self._replaces is None or not self._replaces_whole_table or watermark != MAX_WATERMARK:
            return
        package, table = deltalake(), self._sink.table()
        removals = self._remove_actions(table, [], now)
        if removals:
            try:
                by = list(self._sink.partition_by)
                table.create_write_transaction(removals, "append", table.schema(), partition_by=by)
            except (package.exceptions.DeltaError, OSError) as problem:
                raise ConnectorStorageFailure(self._sink.location, "replace the rows of", problem) from problem

    def _remove_actions(self, table: Any, written: list[dict[str, str | None]], now: int) -> list[Any]:
        """Return actions that remove the files of the replaced version that still exist; none if repeated."""
        if self._replaces is None:
            return []
        before, package = live_files(self._sink.table(self._replaces)), deltalake()
        return [
            package.transaction.RemoveAction(path, True, now, partition_values=partition)
            for path, partition in live_files(table).items()
            if path in before and (partition in written or self._replaces_whole_table)
        ]


def delta_schema(row_type: RowTypeInfo) -> pa.Schema:
    """Return the columns of a Delta table for rows of a type."""
    schema = table_schema(row_type)
    for name, data_type in zip(schema.names, schema.types, strict=True):
        if pa.types.is_time(data_type):
            raise NoColumn(name, "time of day")
    return schema


def _comparable(data_type: pa.DataType) -> str:
    """Return the name of a type without details that differ between formats: large types, names of list elements."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"list<{_comparable(data_type.value_type)}>"
    if pa.types.is_struct(data_type):
        fields = [data_type.field(index) for index in range(data_type.num_fields)]
        return f"struct<{', '.join(f'{field.name}: {_comparable(field.type)}' for field in fields)}>"
    if pa.types.is_map(data_type):
        return f"map<{_comparable(data_type.key_type)}, {_comparable(data_type.item_type)}>"
    return str(data_type).removeprefix("large_").removesuffix("_view")
