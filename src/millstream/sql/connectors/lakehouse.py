"""Lakehouse tables: 'connector' = 'delta' and 'connector' = 'iceberg'.

Promises: the options of their Flink connectors; rows are appended, with each checkpoint, or take the place of those
that are there.
Does not know: how tables are read and committed to."""

from __future__ import annotations

from millstream.connectors.lakehouse.delta_sink import DeltaSink
from millstream.connectors.lakehouse.delta_source import DeltaSource
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.connectors.lakehouse.iceberg_sink import IcebergSink
from millstream.connectors.lakehouse.iceberg_source import IcebergSource
from millstream.sql.columns import SqlTypeInfo
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connector.table_formats import check_columns, told
from millstream.sql.types import data_types as t
from millstream.types.factory import RowTypeInfo
from millstream.types.type_information import TypeInformation

_STORAGE, _CATALOG = "storage.", "catalog."
_ICEBERG = {"catalog-type": "type", "uri": "uri", "warehouse": "warehouse"}


def _row_type(row: t.RowType) -> RowTypeInfo:
    """The type of rows whose nested rows keep the names of their fields."""
    return RowTypeInfo([_type(kind) for kind in row.types], row.names)


def _type(kind: t.DataType) -> TypeInformation:
    return _row_type(kind) if isinstance(kind, t.RowType) else SqlTypeInfo(kind)


# -------------------------------------------------------------------------------------------------------------- Delta


def _delta(context: TableContext) -> tuple[str, dict[str, str]]:
    known = ["table-path", "mode", "versionAsOf", "startingVersion", "ignoreDeletes", "sink.parallelism"]
    context.check([*known, "scan.parallelism"], [_STORAGE])
    check_columns(context)
    storage = {k.removeprefix(_STORAGE): v for k, v in context.options.items() if k.startswith(_STORAGE)}
    return context.required("table-path"), storage


def _read_delta(context: TableContext) -> TableSource:
    path, storage = _delta(context)
    streaming = context.word("mode", ("batch", "streaming"), "batch") == "streaming"
    key = "startingVersion" if streaming else "versionAsOf"
    if {"startingVersion", "versionAsOf"} & set(context.options) - {key}:
        message = "'startingVersion' is for 'mode' = 'streaming', 'versionAsOf' for 'batch'"
        raise context.fail(message)
    make = DeltaSource.for_continuous_row_data if streaming else DeltaSource.for_bounded_row_data
    builder = make(path).column_names(*context.schema.names).with_storage_options(storage)
    version = context.integer(key)
    if version is not None:
        builder = builder.version_as_of(version)
    builder = builder.ignore_deletes(context.flag("ignoreDeletes"))
    source = told(context, builder.build)
    return TableSource(source, context.schema, foreign=True, parallelism=context.integer("scan.parallelism"))


def _write_delta(context: TableContext) -> TableSink:
    path, storage = _delta(context)
    builder = DeltaSink.for_row_data(path, _row_type(context.written))
    builder = builder.with_partition_columns(*context.definition.partitions).with_storage_options(storage)
    builder = builder.overwrite(context.overwrite)
    return TableSink(told(context, builder.build), parallelism=context.integer("sink.parallelism"))


# ------------------------------------------------------------------------------------------------------------ Iceberg


def _iceberg(context: TableContext) -> TableLoader:
    known = ["catalog-name", "catalog-database", "catalog-table", "snapshot-id", "sink.parallelism", *_ICEBERG]
    context.check([*known, "scan.parallelism"], [_CATALOG])
    check_columns(context)
    given = context.options
    properties = {name: given[key] for key, name in _ICEBERG.items() if key in given}
    properties.update({k.removeprefix(_CATALOG): v for k, v in given.items() if k.startswith(_CATALOG)})
    database = given.get("catalog-database", context.name[-2] if len(context.name) > 1 else "default")
    table = given.get("catalog-table", context.name[-1])
    return TableLoader.from_catalog(context.required("catalog-name"), properties, f"{database}.{table}")


def _read_iceberg(context: TableContext) -> TableSource:
    builder = IcebergSource.builder().table_loader(_iceberg(context)).project(*context.schema.names)
    snapshot = context.integer("snapshot-id")
    if snapshot is not None:
        builder = builder.snapshot_id(snapshot)
    source = told(context, builder.build)
    return TableSource(source, context.schema, foreign=True, parallelism=context.integer("scan.parallelism"))


def _write_iceberg(context: TableContext) -> TableSink:
    by = context.definition.partitions
    builder = IcebergSink.for_row(_iceberg(context), _row_type(context.written)).create_table_if_missing(*by)
    sink = told(context, builder.overwrite(context.overwrite).build)
    if by and sink.seen is not None and sink.seen.partition_by != by:
        message = f"it is PARTITIONED BY {by}, the table in the catalog is not"
        raise context.fail(message, "create the table with these partitions in the catalog, or leave them out here")
    return TableSink(sink, parallelism=context.integer("sink.parallelism"))


CONNECTORS = (
    TableConnector("delta", read=_read_delta, write=_write_delta, overwrites=True),
    TableConnector("iceberg", read=_read_iceberg, write=_write_iceberg, overwrites=True),
)
