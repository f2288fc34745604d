"""A Delta table as a sink: one commit for each checkpoint, carrying its id.

Promises: rows are in the table after the checkpoint that holds them, all at once, and exactly once: the commit has a
transaction identifier of Delta's own, so another try sees that it is done.
Does not know: catalogs; a table is where its files are."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from millstream.connectors.lakehouse.columns import NoColumn, table_schema
from millstream.connectors.lakehouse.staging import OutputFailure, ParquetWriter, StagedFile, digest, remove
from millstream.errors import UserError
from millstream.model.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.model.types import RowTypeInfo

_STAGED, _CHECKPOINT = "millstream.staged", "millstream.checkpoint"


class MissingDelta(UserError):
    """deltalake is not installed."""

    hint = "pip install 'millstream[delta]'"

    def __init__(self, problem: ImportError) -> None:
        super().__init__(f"Delta tables need the package deltalake, which cannot be imported: {problem}")


class TableMismatch(UserError):
    """The table has other columns than the records."""

    def __init__(self, location: str, wanted: str, found: str) -> None:
        super().__init__(f"the records for {location} have {wanted}, the table has {found}")


def deltalake() -> Any:
    """The deltalake package."""
    try:
        return importlib.import_module("deltalake")
    except ImportError as problem:
        raise MissingDelta(problem) from problem


@dataclass(frozen=True)
class DeltaSink(Sink):
    """Appends rows to a table, which is made if it is not there."""

    location: str
    row_type: RowTypeInfo
    partition_by: tuple[str, ...] = ()
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # may hold secrets

    @staticmethod
    def for_row_data(base_path: str, row_type: RowTypeInfo) -> DeltaSink.RowDataDeltaSinkBuilder:
        """A sink for rows of a type."""
        return DeltaSink.RowDataDeltaSinkBuilder(DeltaSink(base_path, row_type))

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Writes Parquet files that are no part of the table yet."""
        schema = _delta_schema(self.row_type)
        columns = (self.row_type, schema, self.partition_by)
        return ParquetWriter(self.location, "", *columns, context, partition_columns_inside=False)

    def create_committer(self) -> Committer:
        """Makes them part of it."""
        return DeltaCommitter(self)

    def check(self) -> None:
        """The table must have the columns of the records; it is made now if there is none."""
        schema = _delta_schema(self.row_type)
        missing = [name for name in self.partition_by if name not in schema.names]
        if missing:
            raise TableMismatch(
                self.location, f"no column {', '.join(missing)} to partition by", "to be partitioned by it"
            )
        table = self.table()
        found = pa.schema(table.schema().to_arrow())
        plain = {field.name: _comparable(field.type) for field in found}
        wanted = {field.name: _comparable(field.type) for field in schema}
        if plain != wanted or tuple(table.metadata().partition_columns) != self.partition_by:
            by = ", partitioned by {}".format
            raise TableMismatch(
                self.location,
                f"{wanted}{by(list(self.partition_by))}",
                f"{plain}{by(list(table.metadata().partition_columns))}",
            )

    def table(self) -> Any:
        """The table, new if there was none."""
        package = deltalake()
        options = dict(self.storage_options) or None
        try:
            if not package.DeltaTable.is_deltatable(self.location, storage_options=options):
                package.DeltaTable.create(
                    self.location,
                    package.Schema.from_arrow(_delta_schema(self.row_type)),
                    mode="ignore",
                    partition_by=list(self.partition_by) or None,
                    storage_options=options,
                )
            return package.DeltaTable(self.location, storage_options=options)
        except (package.exceptions.DeltaError, OSError) as problem:
            raise OutputFailure(self.location, "open", problem) from problem

    class RowDataDeltaSinkBuilder:
        """Makes a DeltaSink."""

        def __init__(self, sink: DeltaSink) -> None:
            self._sink = sink

        def with_partition_columns(self, *columns: str) -> DeltaSink.RowDataDeltaSinkBuilder:
            """Say by which columns the table is partitioned."""
            self._sink = replace(self._sink, partition_by=columns)
            return self

        def with_storage_options(self, options: dict[str, str]) -> DeltaSink.RowDataDeltaSinkBuilder:
            """Say how the log's storage is reached, as deltalake's `storage_options`."""
            self._sink = replace(self._sink, storage_options=tuple(sorted(options.items())))
            return self

        def build(self) -> DeltaSink:
            """The sink."""
            _delta_schema(self._sink.row_type)
            return self._sink


class DeltaCommitter(Committer):
    """Commits staged files."""

    def __init__(self, sink: DeltaSink) -> None:
        self._sink = sink

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        """As Committer promises: one commit for each owner, which is one unless the job was another's before."""
        owners: dict[str, list[StagedFile]] = {}
        for data in committables:
            file = StagedFile.from_json(data)
            owners.setdefault(file.owner, []).append(file)
        for owner, files in owners.items():
            self._commit(checkpoint, owner, files)

    def _commit(self, checkpoint: int, owner: str, files: list[StagedFile]) -> None:
        package, table = deltalake(), self._sink.table()
        epoch = max(file.epoch for file in files)
        if self._is_committed(table, owner, epoch, digest(files)):
            return
        properties = package.CommitProperties(
            custom_metadata={_CHECKPOINT: str(checkpoint), _STAGED: digest(files)},
            app_transactions=[package.Transaction(owner, epoch)],
        )
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
        by = list(self._sink.partition_by)
        try:
            table.create_write_transaction(
                actions, "append", table.schema(), partition_by=by, commit_properties=properties
            )
        except (package.exceptions.DeltaError, OSError) as problem:
            # another driver of the same job may have been faster
            if self._is_committed(self._sink.table(), owner, epoch, digest(files)):
                return
            raise OutputFailure(self._sink.location, f"commit checkpoint {checkpoint} to", problem) from problem

    @staticmethod
    def _is_committed(table: Any, owner: str, epoch: int, staged: str) -> bool:
        """Whether the table's history has these files. When its beginning is cleaned up, the epoch must do."""
        known = table.transaction_version(owner)
        if known is None or known < epoch:
            return False
        history = table.history()
        found = any(entry.get(_STAGED) == staged for entry in history)
        return found or min((entry.get("version", 0) for entry in history), default=0) > 0

    def abort(self, committables: Sequence[Any]) -> None:
        """Remove files that will never be committed."""
        remove(self._sink.location, [StagedFile.from_json(data) for data in committables])


def _delta_schema(row_type: RowTypeInfo) -> pa.Schema:
    schema = table_schema(row_type)
    for name, kind in zip(schema.names, schema.types, strict=True):
        if pa.types.is_time(kind):
            raise NoColumn(name, "time of day")
    return schema


def _comparable(kind: pa.DataType) -> str:
    """A type's name without what formats write differently: large or not, names of list elements."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{_comparable(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        return f"struct<{', '.join(f'{field.name}: {_comparable(field.type)}' for field in fields)}>"
    if pa.types.is_map(kind):
        return f"map<{_comparable(kind.key_type)}, {_comparable(kind.item_type)}>"
    return str(kind).removeprefix("large_").removesuffix("_view")
