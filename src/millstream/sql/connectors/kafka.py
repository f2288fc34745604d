"""The Kafka connectors: 'kafka' for append-only and changelog topics, 'upsert-kafka' for topics of upserts by key.

Promises: Flink's options, key and value columns, and metadata columns.
Does not know: how messages are read and written."""

from __future__ import annotations

import re
from collections.abc import Iterable

from millstream.connectors.kafka import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaSource
from millstream.connectors.kafka.offsets import KafkaTopicPartition
from millstream.connectors.kafka.records import KafkaRecordDeserializationSchema, ValueOnly
from millstream.connectors.kafka.sink import Delivery
from millstream.formats import Format, FormatType, TypeRoot, format_metadata
from millstream.sql.catalog.catalog import ColumnDefinition
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connector.table_formats import (
    Columns,
    ColumnsFormat,
    TableFormat,
    call_for_table,
    create_format,
    read_format,
)
from millstream.sql.connectors.kafka_messages import (
    METADATA,
    WRITABLE,
    HeadersOfColumn,
    TableKafkaSink,
    TableMessages,
    TableSerializer,
)
from millstream.sql.errors import nearest
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import parse_duration_millis

_FORMAT_OPTIONS = ("format", "key.format", "value.format")
_COMMON_OPTIONS = (
    "topic",
    *_FORMAT_OPTIONS,
    "key.fields-prefix",
    "value.fields-include",
    "sink.parallelism",
    "scan.parallelism",
)
_STARTUP_MODES = ("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
_BOUNDED_MODES = ("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
_SCAN_OPTIONS = (
    "scan.startup.mode", "scan.startup.specific-offsets", "scan.startup.timestamp-millis", "scan.bounded.mode",
    "scan.bounded.specific-offsets", "scan.bounded.timestamp-millis", "scan.topic-partition-discovery.interval",
)  # fmt: skip
_SINK_OPTIONS = ("sink.delivery-guarantee", "sink.transactional-id-prefix", "sink.staging-directory")
_RESET_STRATEGIES = {
    "earliest": KafkaOffsetResetStrategy.EARLIEST,
    "latest": KafkaOffsetResetStrategy.LATEST,
    "none": KafkaOffsetResetStrategy.NONE,
}
_OFFSET = re.compile(r"\s*partition:(\d+)\s*,\s*offset:(\d+)\s*")
_PROPERTIES_PREFIX = "properties."


class _KafkaTable:
    """The options of a table: formats, Kafka properties, and the columns of key and value.

    `key_columns` and `value_columns` are column names; `key_fields` are the names of key columns in messages."""

    def __init__(self, context: TableContext, *, upserts: bool) -> None:
        self.context, self.upserts = context, upserts
        connector_options = (
            ("sink.buffer-flush.max-rows", "sink.buffer-flush.interval")
            if upserts
            else ("key.fields", "sink.partitioner")
        )
        value_format = read_format(context, "value.format", "format")
        key_format = read_format(context, "key.format")
        known = [*_COMMON_OPTIONS, *_SCAN_OPTIONS, *_SINK_OPTIONS, *connector_options, "topic-pattern"]
        format_prefixes = [
            table_format.prefix for table_format in (value_format, key_format) if table_format is not None
        ]
        context.check(known, [_PROPERTIES_PREFIX, *format_prefixes])
        if value_format is None or (upserts and key_format is None):
            missing = "key.format" if value_format is not None else "value.format" if upserts else "format"
            message = f"option '{missing}' is missing"
            raise context.fail(message)
        self.value_format, self.key_format = value_format, key_format
        self.properties = {
            k.removeprefix(_PROPERTIES_PREFIX): v
            for k, v in context.options.items()
            if k.startswith(_PROPERTIES_PREFIX)
        }
        if "bootstrap.servers" not in self.properties:
            message = f"option '{_PROPERTIES_PREFIX}bootstrap.servers' is missing"
            raise context.fail(message)
        self._choose_columns()

    def _choose_columns(self) -> None:
        """Set the columns of key and value, and the names of the key columns in the messages."""
        context, names = self.context, self.context.schema.names
        if self.upserts:
            if not context.definition.primary_key:
                message = "upsert-kafka needs a primary key: it is the key of the messages"
                raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
            if self.value_format.mode is not ChangelogMode.INSERT_ONLY:
                message = f"upsert-kafka cannot use the changelog format '{self.value_format.name}'"
                raise context.fail(message, "use connector 'kafka' with it")
            self.key_columns = list(context.definition.primary_key)
        else:
            if context.definition.primary_key and self.value_format.mode.insert_only:
                message = f"a primary key needs a changelog format, and '{self.value_format.name}' is not one"
                raise context.fail(message, "use connector 'upsert-kafka', or a changelog format")
            key_fields = context.options.get("key.fields", "")
            self.key_columns = [name.strip() for name in key_fields.split(";") if name.strip()]
            if bool(self.key_columns) != (self.key_format is not None):
                message = "'key.format' and 'key.fields' must be set together"
                raise context.fail(message)
        for name in self.key_columns:
            if name not in names:
                message = f"'key.fields' names '{name}', which is not a column"
                raise context.fail(message, nearest(name, names))
        prefix = context.options.get("key.fields-prefix", "")
        include = context.word("value.fields-include", ("all", "except-key"), "all")
        if prefix and include == "all":
            message = "with 'key.fields-prefix', the value must not contain the key columns"
            raise context.fail(message, "set 'value.fields-include' = 'EXCEPT_KEY'")
        unprefixed = [name for name in self.key_columns if not name.startswith(prefix)]
        if unprefixed:
            message = f"column '{unprefixed[0]}' is in 'key.fields' but does not start with '{prefix}'"
            raise context.fail(message)
        self.key_fields = [name.removeprefix(prefix) for name in self.key_columns]
        self.value_columns = [name for name in names if include == "all" or name not in self.key_columns]

    def row_type(self, names: Iterable[str], field_names: Iterable[str]) -> t.RowType:
        """Return the type of rows of some columns under other names."""
        schema = self.context.schema
        return t.row_of(field_names, [schema.types[schema.names.index(name)] for name in names], null=False)

    def add_subject(self, table_format: TableFormat, side: str) -> TableFormat:
        """Return the format with the schema registry's default subject for the topic; `side` is key or value."""
        options = dict(table_format.options)
        if table_format.name == "avro-confluent" and "subject" not in options and "topic" in self.context.options:
            options["subject"] = f"{self.context.options['topic']}-{side}"
        return TableFormat(table_format.name, table_format.prefix, tuple(sorted(options.items())))

    def topics(self) -> list[str]:
        """Return the topics of the option 'topic'."""
        return [name.strip() for name in self.context.options.get("topic", "").split(";") if name.strip()]


# ------------------------------------------------------------------------------------------------------------ reading


def _read(context: TableContext, *, upserts: bool) -> TableSource:
    table = _KafkaTable(context, upserts=upserts)
    properties = {k: v for k, v in table.properties.items() if (k, v) != ("auto.offset.reset", "latest")}
    builder = KafkaSource.builder().set_properties(properties)
    topics, pattern = table.topics(), context.options.get("topic-pattern")
    if bool(topics) == (pattern is not None):
        message = "exactly one of 'topic' and 'topic-pattern' must be set"
        raise context.fail(message)
    builder = builder.set_topics(*topics) if pattern is None else builder.set_topic_pattern(pattern)
    interval = context.options.get("scan.topic-partition-discovery.interval")
    if interval is not None:
        builder = builder.set_property("partition.discovery.interval.ms", str(parse_duration_millis(interval)))
    default_mode = "earliest-offset" if upserts else "group-offsets"
    startup_mode = context.word("scan.startup.mode", _STARTUP_MODES, default_mode)
    builder = builder.set_starting_offsets(_read_offsets(table, startup_mode, "scan.startup.", topics))
    bounded_mode = context.word("scan.bounded.mode", _BOUNDED_MODES, "unbounded")
    if bounded_mode != "unbounded":
        builder = builder.set_bounded(_read_offsets(table, bounded_mode, "scan.bounded.", topics))
    schema, deserializer = _create_deserializer(table)
    source = call_for_table(context, builder.set_deserializer(deserializer).build)
    mode = ChangelogMode.UPSERT if upserts else table.value_format.mode
    needs_conversion = isinstance(deserializer, ValueOnly)
    return TableSource(source, schema, mode, needs_conversion, context.integer("scan.parallelism"))


def _read_offsets(table: _KafkaTable, mode: str, prefix: str, topics: list[str]) -> KafkaOffsetsInitializer:
    context = table.context
    match mode:
        case "earliest-offset":
            return KafkaOffsetsInitializer.earliest()
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "timestamp":
            context.required(f"{prefix}timestamp-millis")
            return KafkaOffsetsInitializer.timestamp(context.integer(f"{prefix}timestamp-millis") or 0)
        case "group-offsets":
            if "group.id" not in table.properties:
                message = f"'{prefix}mode' is 'group-offsets', but option 'properties.group.id' is missing"
                raise context.fail(message, f"set it, or set '{prefix}mode' = 'earliest-offset'")
            reset = table.properties.get("auto.offset.reset", "none")
            if reset not in _RESET_STRATEGIES:
                message = f"option 'properties.auto.offset.reset' must be earliest, latest or none, not '{reset}'"
                raise context.fail(message)
            return KafkaOffsetsInitializer.committed_offsets(_RESET_STRATEGIES[reset])
    text = context.required(f"{prefix}specific-offsets")
    matches = [_OFFSET.fullmatch(part) for part in text.split(";") if part.strip()]
    if not matches or None in matches or len(topics) != 1:
        message = f"option '{prefix}specific-offsets' is not valid: '{text}'"
        raise context.fail(message, "name one topic, and write partition:0,offset:42;partition:1,offset:300")
    offsets = {KafkaTopicPartition(topics[0], int(match[1])): int(match[2]) for match in matches if match is not None}
    return KafkaOffsetsInitializer.offsets(offsets)


def _create_deserializer(table: _KafkaTable) -> tuple[t.RowType, KafkaRecordDeserializationSchema]:
    """Return the type of the source's rows, and the deserializer that creates them from messages."""
    context = table.context
    metadata = [(column, column.metadata_key or "") for column in context.metadata]
    of_format = [(column, key.removeprefix("value.")) for column, key in metadata if key.startswith("value.")]
    of_message = [(column, key) for column, key in metadata if not key.startswith("value.")]
    for column, key in of_message:
        if key not in METADATA:
            message = f"Kafka messages have no metadata '{key}' (column '{column.name}')"
            raise context.fail(message, nearest(key, METADATA))
    value_format = create_format(
        context, table.add_subject(table.value_format, "value"),
        table.row_type(table.value_columns, table.value_columns), [key for _, key in of_format],
    )  # fmt: skip
    physical = context.schema
    if not metadata and not table.key_columns:
        return physical, ValueOnly(value_format)
    types_by_key = format_metadata(table.value_format.name)
    metadata_fields = [(column.name, METADATA[key]) for column, key in of_message]
    metadata_fields += [(column.name, _find_sql_type(FormatType.of(types_by_key[key]))) for column, key in of_format]
    schema = t.row_of(
        [*physical.names, *(name for name, _ in metadata_fields)],
        [*physical.types, *(data_type for _, data_type in metadata_fields)],
        null=False,
    )

    def indexes_of(names: Iterable[str]) -> tuple[int, ...]:
        return tuple(schema.names.index(name) for name in names)

    key_part = None
    if table.key_format is not None:
        key_part = (_create_key_format(table, table.key_format), indexes_of(table.key_columns))
    message_metadata = tuple((key, schema.names.index(column.name)) for column, key in of_message)
    value_part = (value_format, indexes_of([*table.value_columns, *(column.name for column, _ in of_format)]))
    return schema, TableMessages(schema, value_part, key_part, message_metadata, upserts=table.upserts)


def _create_key_format(table: _KafkaTable, key_format: TableFormat) -> Format:
    key_type = table.row_type(table.key_columns, table.key_fields)
    return create_format(table.context, table.add_subject(key_format, "key"), key_type)


def _find_sql_type(data_type: FormatType) -> t.DataType:
    """Return the SQL type of a metadata field of a format."""
    match data_type.root:
        case TypeRoot.TIMESTAMP_LTZ:
            return t.LocalZonedTimestampType(3)
        case TypeRoot.INT:
            return t.INT
        case TypeRoot.BIGINT:
            return t.BIGINT
        case TypeRoot.MAP:
            return t.MapType(_find_sql_type(data_type.children[0]), _find_sql_type(data_type.children[1]))
        case TypeRoot.ARRAY:
            return t.ArrayType(_find_sql_type(data_type.children[0]))
    return t.STRING


# ------------------------------------------------------------------------------------------------------------ writing


def _write(context: TableContext, *, upserts: bool) -> TableSink:
    table = _KafkaTable(context, upserts=upserts)
    topics = table.topics()
    if len(topics) != 1:
        message = "a sink table needs exactly one topic"
        raise context.fail(message, "set 'topic'")
    row = context.sink_schema
    value_type = table.row_type(table.value_columns, table.value_columns)
    value_format = create_format(context, table.add_subject(table.value_format, "value"), value_type)
    keep_row_kind = table.value_format.mode is not ChangelogMode.INSERT_ONLY
    value_columns = Columns(row, table.value_columns, keep_row_kind=keep_row_kind)
    value = ColumnsFormat(value_format, value_columns, tombstones=upserts)
    key = None
    if table.key_format is not None:
        key_columns = Columns(row, table.key_columns, renamed_to=table.key_fields)
        key = ColumnsFormat(_create_key_format(table, table.key_format), key_columns)
    headers_index, timestamp_index = _find_metadata_columns(context, row)
    serializer = TableSerializer(
        value, topics[0], None, key, None if headers_index is None else HeadersOfColumn(headers_index), None,
        timestamp_index, _read_partitioner(context, table), _read_deduplication_key(context, table, row),
    )  # fmt: skip
    guarantee = context.word("sink.delivery-guarantee", ("none", "at-least-once", "exactly-once"), "at-least-once")
    delivery = Delivery[guarantee.upper().replace("-", "_")]
    prefix = context.options.get("sink.transactional-id-prefix", "")
    if delivery is Delivery.EXACTLY_ONCE and not prefix:
        message = "exactly-once needs the option 'sink.transactional-id-prefix'"
        raise context.fail(message, "set a prefix that no other job at these brokers uses")
    properties = {k: v for k, v in table.properties.items() if k not in ("bootstrap.servers", "group.id")}
    sink = TableKafkaSink(
        table.properties["bootstrap.servers"], serializer, delivery, prefix or "kafka-sink",
        context.options.get("sink.staging-directory", ""), properties,
    )  # fmt: skip
    mode = ChangelogMode.UPSERT if upserts else table.value_format.mode
    return TableSink(sink, mode, context.integer("sink.parallelism"))


def _find_metadata_columns(context: TableContext, row: t.RowType) -> tuple[int | None, int | None]:
    """Return the column indexes of headers and timestamp; None for a column that does not exist."""
    columns: dict[str, ColumnDefinition] = {}
    for column in context.metadata:
        if column.virtual:
            continue
        key = column.metadata_key or ""
        if key not in WRITABLE:
            message = f"metadata '{key}' (column '{column.name}') cannot be written"
            raise context.fail(message, "declare the column METADATA VIRTUAL")
        if column.type.nullable() != METADATA[key]:
            message = f"column '{column.name}' is metadata '{key}', so it must be {METADATA[key]}, not {column.type}"
            raise context.fail(message)
        columns[key] = column
    indexes = [row.names.index(columns[key].name) if key in columns else None for key in WRITABLE]
    return indexes[0], indexes[1]


def _read_partitioner(context: TableContext, table: _KafkaTable) -> str:
    if table.upserts:
        return "default"
    partitioner = context.word("sink.partitioner", ("default", "fixed", "round-robin"), "default")
    if partitioner == "round-robin" and table.key_columns:
        message = "'sink.partitioner' = 'round-robin' cannot be used with 'key.fields'"
        raise context.fail(message)
    return partitioner


def _read_deduplication_key(context: TableContext, table: _KafkaTable, row: t.RowType) -> tuple[int, ...]:
    """Return the column indexes of the key by which buffered rows are deduplicated; empty without a buffer."""
    max_rows = context.integer("sink.buffer-flush.max-rows", 0) or 0
    interval = parse_duration_millis(context.options.get("sink.buffer-flush.interval", "0 ms"))
    if bool(max_rows) != bool(interval):
        message = "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set together"
        raise context.fail(message)
    return tuple(row.names.index(name) for name in table.key_columns) if max_rows else ()


def _read_records(context: TableContext) -> TableSource:
    return _read(context, upserts=False)


def _write_records(context: TableContext) -> TableSink:
    return _write(context, upserts=False)


def _read_upserts(context: TableContext) -> TableSource:
    return _read(context, upserts=True)


def _write_upserts(context: TableContext) -> TableSink:
    return _write(context, upserts=True)


CONNECTORS = (
    TableConnector("kafka", read=_read_records, write=_write_records, metadata=METADATA),
    TableConnector("upsert-kafka", read=_read_upserts, write=_write_upserts, metadata=METADATA),
)
