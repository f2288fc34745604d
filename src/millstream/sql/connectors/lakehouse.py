"""The lakehouse connectors: 'connector' = 'delta' and 'connector' = 'iceberg'.

Promises: the options of the Flink connectors of Delta Lake and Iceberg. Rows are appended with each checkpoint,
or changed by primary key if the table has one; INSERT OVERWRITE replaces the existing rows. UPDATE and DELETE write all
remaining rows and replace the whole table.
Does not know: how tables are read and committed to."""

from __future__ import annotations

from millstream.connectors.lakehouse.delta_sink import DeltaSink
from millstream.connectors.lakehouse.delta_source import DeltaSource
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.connectors.lakehouse.iceberg_sink import IcebergSink
from millstream.connectors.lakehouse.iceberg_source import IcebergSource, StreamingStartingStrategy
from millstream.sql.columns import SqlTypeInfo
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connector.table_formats import call_for_table, check_columns
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import parse_duration_millis
from millstream.types.factory import RowTypeInfo
from millstream.types.type_information import TypeInformation

_STORAGE_PREFIX, _CATALOG_PREFIX = "storage.", "catalog."
_UPSERT = "write.upsert.enabled"
_STREAMING = (
    "monitor-interval", "starting-strategy", "start-snapshot-id", "start-snapshot-timestamp",
    "streaming-skip-overwrite-snapshots",
)  # fmt: skip
_CATALOG_PROPERTIES = {"catalog-type": "type", "uri": "uri", "warehouse": "warehouse"}


def _create_row_type_info(row: t.RowType) -> RowTypeInfo:
    """Return the type information of rows; nested rows keep the names of their fields."""
    return RowTypeInfo([_create_type_info(data_type) for data_type in row.types], row.names)


def _create_type_info(data_type: t.DataType) -> TypeInformation:
    return _create_row_type_info(data_type) if isinstance(data_type, t.RowType) else SqlTypeInfo(data_type)


# -------------------------------------------------------------------------------------------------------------- Delta


def _read_delta_options(context: TableContext) -> tuple[str, dict[str, str]]:
    known = ["table-path", "mode", "versionAsOf", "startingVersion", "ignoreDeletes", "sink.parallelism", _UPSERT]
    context.check([*known, "scan.parallelism"], [_STORAGE_PREFIX])
    check_columns(context)
    storage = {k.removeprefix(_STORAGE_PREFIX): v for k, v in context.options.items() if k.startswith(_STORAGE_PREFIX)}
    return context.required("table-path"), storage


def _read_delta(context: TableContext) -> TableSource:
    path, storage = _read_delta_options(context)
    streaming = context.word("mode", ("batch", "streaming"), "batch") == "streaming"
    key = "startingVersion" if streaming else "versionAsOf"
    if {"startingVersion", "versionAsOf"} & set(context.options) - {key}:
        message = "'startingVersion' needs 'mode' = 'streaming', and 'versionAsOf' needs 'mode' = 'batch'"
        raise context.fail(message)
    create_builder = DeltaSource.for_continuous_row_data if streaming else DeltaSource.for_bounded_row_data
    builder = create_builder(path).column_names(*context.schema.names).with_storage_options(storage)
    version = context.integer(key)
    if version is not None:
        builder = builder.version_as_of(version)
    builder = builder.ignore_deletes(context.flag("ignoreDeletes"))
    source = call_for_table(context, builder.build)
    return TableSource(source, context.schema, needs_conversion=True, parallelism=context.integer("scan.parallelism"))


def _write_delta(context: TableContext) -> TableSink:
    path, storage = _read_delta_options(context)
    builder = DeltaSink.for_row_data(path, _create_row_type_info(context.sink_schema))
    builder = builder.with_partition_columns(*context.definition.partitions).with_storage_options(storage)
    key = _read_key(context)
    builder = builder.overwrite(context.overwrite, all_partitions=context.row_level).with_primary_key(*key)
    sink = call_for_table(context, builder.build)
    return TableSink(sink, _choose_mode(key), context.integer("sink.parallelism"))


def _read_key(context: TableContext) -> tuple[str, ...]:
    """Return the key by which a sink changes rows: none if it replaces the table, or if upserts are disabled."""
    key = context.definition.primary_key
    if context.flag(_UPSERT) and not key:
        message = f"'{_UPSERT}' = 'true' needs a primary key"
        raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
    return key if context.flag(_UPSERT, True) and not context.overwrite and not context.row_level else ()


def _choose_mode(key: tuple[str, ...]) -> ChangelogMode:
    return ChangelogMode.UPSERT if key else ChangelogMode.INSERT_ONLY


# ------------------------------------------------------------------------------------------------------------ Iceberg


def _create_table_loader(context: TableContext) -> TableLoader:
    known = [
        "catalog-name",
        "catalog-database",
        "catalog-table",
        "snapshot-id",
        "sink.parallelism",
        _UPSERT,
        "streaming",
        *_STREAMING,
        *_CATALOG_PROPERTIES,
    ]
    context.check([*known, "scan.parallelism"], [_CATALOG_PREFIX])
    check_columns(context)
    options = context.options
    properties = {name: options[key] for key, name in _CATALOG_PROPERTIES.items() if key in options}
    properties.update({k.removeprefix(_CATALOG_PREFIX): v for k, v in options.items() if k.startswith(_CATALOG_PREFIX)})
    database = options.get("catalog-database", context.name[-2] if len(context.name) > 1 else "default")
    table = options.get("catalog-table", context.name[-1])
    return TableLoader.from_catalog(context.required("catalog-name"), properties, f"{database}.{table}")


def _read_iceberg(context: TableContext) -> TableSource:
    builder = IcebergSource.builder().table_loader(_create_table_loader(context)).project(*context.schema.names)
    snapshot = context.integer("snapshot-id")
    if snapshot is not None:
        builder = builder.snapshot_id(snapshot)
    builder = _follow(context, builder)
    source = call_for_table(context, builder.build)
    return TableSource(source, context.schema, needs_conversion=True, parallelism=context.integer("scan.parallelism"))


def _follow(context: TableContext, builder: IcebergSource.Builder) -> IcebergSource.Builder:
    """Set how later snapshots are read."""
    streaming, set_options = context.flag("streaming"), [key for key in _STREAMING if key in context.options]
    if not streaming:
        if set_options:
            message = f"'{set_options[0]}' needs 'streaming' = 'true'"
            raise context.fail(message)
        return builder
    if "snapshot-id" in context.options:
        message = "'snapshot-id' reads one snapshot, and 'streaming' = 'true' reads all later ones"
        raise context.fail(message, "set 'start-snapshot-id' to begin with a snapshot")
    strategies = {strategy.value.lower().replace("_", "-"): strategy for strategy in StreamingStartingStrategy}
    start_id, start_time = context.integer("start-snapshot-id"), context.integer("start-snapshot-timestamp")
    if start_id is not None:
        builder = builder.start_snapshot_id(start_id)
    if start_time is not None:
        builder = builder.start_snapshot_timestamp(start_time)
    if "starting-strategy" in context.options:
        strategy = strategies[context.word("starting-strategy", strategies, "")]
        needed = {
            StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_ID: "start-snapshot-id",
            StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP: "start-snapshot-timestamp",
        }.get(strategy)
        if needed is not None:
            context.required(needed)
        builder = builder.streaming_starting_strategy(strategy)
    interval = parse_duration_millis(context.options.get("monitor-interval", "60 s"))
    skip = context.flag("streaming-skip-overwrite-snapshots")
    return builder.streaming().monitor_interval(interval).skip_overwrite_snapshots(skip)


def _write_iceberg(context: TableContext) -> TableSink:
    partitions = context.definition.partitions
    builder = IcebergSink.for_row(
        _create_table_loader(context), _create_row_type_info(context.sink_schema)
    ).create_table_if_missing(*partitions)
    key = _read_key(context)
    builder = builder.equality_field_columns(*key)
    sink = call_for_table(context, builder.overwrite(context.overwrite, all_partitions=context.row_level).build)
    if partitions and sink.seen is not None and sink.seen.partition_by != partitions:
        message = f"it is PARTITIONED BY {partitions}, but the table in the catalog is not partitioned by these columns"
        raise context.fail(message, "create the table with these partitions in the catalog, or leave them out here")
    return TableSink(sink, _choose_mode(key), context.integer("sink.parallelism"))


CONNECTORS = (
    TableConnector("delta", read=_read_delta, write=_write_delta, overwrites=True, row_level="rewrite"),
    TableConnector("iceberg", read=_read_iceberg, write=_write_iceberg, overwrites=True, row_level="rewrite"),
)
