"""Topics of Kafka as tables: 'kafka' for streams of records or changes, 'upsert-kafka' for the last row of each key.

Promises: Flink's options, columns of key and value, metadata columns.
Does not know: how messages are read and written."""

from __future__ import annotations

import re
from collections.abc import Iterable

from millstream.connectors.kafka import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaSource
from millstream.connectors.kafka.offsets import KafkaTopicPartition
from millstream.connectors.kafka.records import KafkaRecordDeserializationSchema, ValueOnly
from millstream.connectors.kafka.sink import Delivery
from millstream.formats import FormatType, TypeRoot, format_metadata
from millstream.sql.catalog.catalog import ColumnDefinition
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connector.table_formats import (
    Columns,
    ColumnsFormat,
    TableFormat,
    message_format,
    table_format,
    told,
)
from millstream.sql.connectors.kafka_messages import (
    METADATA,
    WRITABLE,
    HeadersAt,
    TableKafkaSink,
    TableMessages,
    TableSerializer,
)
from millstream.sql.errors import nearest
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.sql.types.durations import duration_millis

_FORMATS = ("format", "key.format", "value.format")
_COMMON = ("topic", *_FORMATS, "key.fields-prefix", "value.fields-include", "sink.parallelism", "scan.parallelism")
_STARTUP = ("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
_BOUNDED = ("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
_SCAN = (
    "scan.startup.mode", "scan.startup.specific-offsets", "scan.startup.timestamp-millis", "scan.bounded.mode",
    "scan.bounded.specific-offsets", "scan.bounded.timestamp-millis", "scan.topic-partition-discovery.interval",
)  # fmt: skip
_SINK = ("sink.delivery-guarantee", "sink.transactional-id-prefix", "sink.staging-directory")
_RESETS = {
    "earliest": KafkaOffsetResetStrategy.EARLIEST,
    "latest": KafkaOffsetResetStrategy.LATEST,
    "none": KafkaOffsetResetStrategy.NONE,
}
_OFFSET = re.compile(r"\s*partition:(\d+)\s*,\s*offset:(\d+)\s*")
_PROPERTIES = "properties."


class _Table:
    """What the options of a table say."""

    def __init__(self, context: TableContext, *, upserts: bool) -> None:
        self.context, self.upserts = context, upserts
        own = (
            ("sink.buffer-flush.max-rows", "sink.buffer-flush.interval")
            if upserts
            else ("key.fields", "sink.partitioner")
        )
        value = table_format(context, "value.format", "format")
        key = table_format(context, "key.format")
        known = [*_COMMON, *_SCAN, *_SINK, *own, "topic-pattern"]
        context.check(known, [_PROPERTIES, *(each.prefix for each in (value, key) if each is not None)])
        if value is None or (upserts and key is None):
            missing = "key.format" if value is not None else "value.format" if upserts else "format"
            message = f"option '{missing}' is missing"
            raise context.fail(message)
        self.value_format, self.key_format = value, key
        self.properties = {
            k.removeprefix(_PROPERTIES): v for k, v in context.options.items() if k.startswith(_PROPERTIES)
        }
        if "bootstrap.servers" not in self.properties:
            message = f"option '{_PROPERTIES}bootstrap.servers' is missing"
            raise context.fail(message)
        self._choose_columns()

    def _choose_columns(self) -> None:
        """Which columns are in the key, which in the value, and what they are called there."""
        context, names = self.context, self.context.schema.names
        if self.upserts:
            if not context.definition.primary_key:
                message = "upsert-kafka needs a primary key: it is the key of the messages"
                raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
            if self.value_format.mode is not ChangelogMode.INSERT_ONLY:
                message = f"upsert-kafka cannot use the changelog format '{self.value_format.name}'"
                raise context.fail(message, "use connector 'kafka' with it")
            self.keys = list(context.definition.primary_key)
        else:
            if context.definition.primary_key and self.value_format.mode.insert_only:
                message = f"records of format '{self.value_format.name}' cannot keep what a primary key promises"
                raise context.fail(message, "use connector 'upsert-kafka', or a changelog format")
            listed = context.options.get("key.fields", "")
            self.keys = [name.strip() for name in listed.split(";") if name.strip()]
            if bool(self.keys) != (self.key_format is not None):
                message = "'key.format' and 'key.fields' go together"
                raise context.fail(message)
        for name in self.keys:
            if name not in names:
                message = f"'key.fields' names '{name}', which is no column"
                raise context.fail(message, nearest(name, names))
        prefix = context.options.get("key.fields-prefix", "")
        include = context.word("value.fields-include", ("all", "except-key"), "all")
        if prefix and include == "all":
            message = "with 'key.fields-prefix' the value must not hold the key's columns"
            raise context.fail(message, "set 'value.fields-include' = 'EXCEPT_KEY'")
        wrong = [name for name in self.keys if not name.startswith(prefix)]
        if wrong:
            message = f"column '{wrong[0]}' is in 'key.fields' but does not begin with '{prefix}'"
            raise context.fail(message)
        self.called = [name.removeprefix(prefix) for name in self.keys]
        self.values = [name for name in names if include == "all" or name not in self.keys]

    def row(self, names: Iterable[str], called: Iterable[str]) -> t.RowType:
        """Some columns under other names."""
        schema = self.context.schema
        return t.row_of(called, [schema.types[schema.names.index(name)] for name in names], null=False)

    def format_for(self, chosen: TableFormat, side: str) -> TableFormat:
        """The format, with the subject that a schema registry knows the topic by."""
        options = dict(chosen.options)
        if chosen.name == "avro-confluent" and "subject" not in options and "topic" in self.context.options:
            options["subject"] = f"{self.context.options['topic']}-{side}"
        return TableFormat(chosen.name, chosen.prefix, tuple(sorted(options.items())))

    def topics(self) -> list[str]:
        """The topics by name."""
        return [name.strip() for name in self.context.options.get("topic", "").split(";") if name.strip()]


# ------------------------------------------------------------------------------------------------------------ reading


def _read(context: TableContext, *, upserts: bool) -> TableSource:
    table = _Table(context, upserts=upserts)
    properties = {k: v for k, v in table.properties.items() if (k, v) != ("auto.offset.reset", "latest")}
    builder = KafkaSource.builder().set_properties(properties)
    topics, pattern = table.topics(), context.options.get("topic-pattern")
    if bool(topics) == (pattern is not None):
        message = "one of 'topic' and 'topic-pattern' must be set"
        raise context.fail(message)
    builder = builder.set_topics(*topics) if pattern is None else builder.set_topic_pattern(pattern)
    interval = context.options.get("scan.topic-partition-discovery.interval")
    if interval is not None:
        builder = builder.set_property("partition.discovery.interval.ms", str(duration_millis(interval)))
    start = "earliest-offset" if upserts else "group-offsets"
    start = context.word("scan.startup.mode", _STARTUP, start)
    builder = builder.set_starting_offsets(_offsets(table, start, "scan.startup.", topics))
    stop = context.word("scan.bounded.mode", _BOUNDED, "unbounded")
    if stop != "unbounded":
        builder = builder.set_bounded(_offsets(table, stop, "scan.bounded.", topics))
    schema, messages = _messages(table)
    source = told(context, builder.set_deserializer(messages).build)
    mode = ChangelogMode.UPSERT if upserts else table.value_format.mode
    foreign = isinstance(messages, ValueOnly)
    return TableSource(source, schema, mode, foreign, context.integer("scan.parallelism"))


def _offsets(table: _Table, mode: str, prefix: str, topics: list[str]) -> KafkaOffsetsInitializer:
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
            if reset not in _RESETS:
                message = f"option 'properties.auto.offset.reset' must be earliest, latest or none, not '{reset}'"
                raise context.fail(message)
            return KafkaOffsetsInitializer.committed_offsets(_RESETS[reset])
    text = context.required(f"{prefix}specific-offsets")
    found = [_OFFSET.fullmatch(part) for part in text.split(";") if part.strip()]
    if not found or None in found or len(topics) != 1:
        message = f"'{prefix}specific-offsets' is '{text}'"
        raise context.fail(message, "name one topic, and write partition:0,offset:42;partition:1,offset:300")
    given = {KafkaTopicPartition(topics[0], int(each[1])): int(each[2]) for each in found if each is not None}
    return KafkaOffsetsInitializer.offsets(given)


def _messages(table: _Table) -> tuple[t.RowType, KafkaRecordDeserializationSchema]:
    """What makes rows of messages, and their type."""
    context = table.context
    metadata = [(each, each.metadata_key or "") for each in context.metadata]
    beside = [(each, key.removeprefix("value.")) for each, key in metadata if key.startswith("value.")]
    own = [(each, key) for each, key in metadata if not key.startswith("value.")]
    for each, key in own:
        if key not in METADATA:
            message = f"messages of Kafka do not tell '{key}' (column '{each.name}')"
            raise context.fail(message, nearest(key, METADATA))
    value = message_format(
        context, table.format_for(table.value_format, "value"), table.row(table.values, table.values),
        [key for _, key in beside],
    )  # fmt: skip
    physical = context.schema
    if not metadata and not table.keys:
        return physical, ValueOnly(value)
    kinds = format_metadata(table.value_format.name)
    extra = [(each.name, METADATA[key]) for each, key in own]
    extra += [(each.name, _sql_type(FormatType.of(kinds[key]))) for each, key in beside]
    schema = t.row_of(
        [*physical.names, *(name for name, _ in extra)], [*physical.types, *(kind for _, kind in extra)], null=False
    )

    def places(names: Iterable[str]) -> tuple[int, ...]:
        return tuple(schema.names.index(name) for name in names)

    keyed = None
    if table.key_format is not None:
        form = message_format(context, table.format_for(table.key_format, "key"), table.row(table.keys, table.called))
        keyed = (form, places(table.keys))
    pairs = tuple((key, schema.names.index(each.name)) for each, key in own)
    names = [*table.values, *(each.name for each, _ in beside)]
    return schema, TableMessages(schema, (value, places(names)), keyed, pairs, upserts=table.upserts)


def _sql_type(data_type: FormatType) -> t.DataType:
    """The type of what a format tells beside its records."""
    match data_type.root:
        case TypeRoot.TIMESTAMP_LTZ:
            return t.LocalZonedTimestampType(3)
        case TypeRoot.INT:
            return t.INT
        case TypeRoot.BIGINT:
            return t.BIGINT
        case TypeRoot.MAP:
            return t.MapType(_sql_type(data_type.children[0]), _sql_type(data_type.children[1]))
        case TypeRoot.ARRAY:
            return t.ArrayType(_sql_type(data_type.children[0]))
    return t.STRING


# ------------------------------------------------------------------------------------------------------------ writing


def _write(context: TableContext, *, upserts: bool) -> TableSink:
    table = _Table(context, upserts=upserts)
    topics = table.topics()
    if len(topics) != 1:
        message = "a table that is written to has one topic"
        raise context.fail(message, "set 'topic'")
    row = context.written
    value = message_format(
        context, table.format_for(table.value_format, "value"), table.row(table.values, table.values)
    )
    changes = table.value_format.mode is not ChangelogMode.INSERT_ONLY
    value = ColumnsFormat(value, Columns(row, table.values, kinds=changes), tombstones=upserts)
    key = None
    if table.key_format is not None:
        form = message_format(context, table.format_for(table.key_format, "key"), table.row(table.keys, table.called))
        key = ColumnsFormat(form, Columns(row, table.keys, called=table.called))
    headers, time = _written_metadata(context, row)
    serializer = TableSerializer(
        value, topics[0], None, key, None if headers is None else HeadersAt(headers), None, time,
        _partitioner(context, table), _buffered(context, table, row),
    )  # fmt: skip
    guarantee = context.word("sink.delivery-guarantee", ("none", "at-least-once", "exactly-once"), "at-least-once")
    delivery = Delivery[guarantee.upper().replace("-", "_")]
    prefix = context.options.get("sink.transactional-id-prefix", "")
    if delivery is Delivery.EXACTLY_ONCE and not prefix:
        message = "exactly-once needs the option 'sink.transactional-id-prefix'"
        raise context.fail(message, "give each job a name of its own at these brokers")
    properties = {k: v for k, v in table.properties.items() if k not in ("bootstrap.servers", "group.id")}
    sink = TableKafkaSink(
        table.properties["bootstrap.servers"], serializer, delivery, prefix or "kafka-sink",
        context.options.get("sink.staging-directory", ""), properties,
    )  # fmt: skip
    mode = ChangelogMode.UPSERT if upserts else table.value_format.mode
    return TableSink(sink, mode, context.integer("sink.parallelism"))


def _written_metadata(context: TableContext, row: t.RowType) -> tuple[int | None, int | None]:
    """The places of headers and timestamp."""
    found: dict[str, ColumnDefinition] = {}
    for each in context.metadata:
        if each.virtual:
            continue
        key = each.metadata_key or ""
        if key not in WRITABLE:
            message = f"metadata '{key}' (column '{each.name}') cannot be written"
            raise context.fail(message, "declare the column METADATA VIRTUAL")
        if each.type.nullable() != METADATA[key]:
            message = f"column '{each.name}' holds '{key}', so it must be {METADATA[key]}, not {each.type}"
            raise context.fail(message)
        found[key] = each
    places = [row.names.index(found[key].name) if key in found else None for key in WRITABLE]
    return places[0], places[1]


def _partitioner(context: TableContext, table: _Table) -> str:
    if table.upserts:
        return "default"
    spread = context.word("sink.partitioner", ("default", "fixed", "round-robin"), "default")
    if spread == "round-robin" and table.keys:
        message = "'sink.partitioner' = 'round-robin' is for messages without a key"
        raise context.fail(message)
    return spread


def _buffered(context: TableContext, table: _Table, row: t.RowType) -> tuple[int, ...]:
    """The key whose last row of a block is enough, where a buffer was asked for."""
    most = context.integer("sink.buffer-flush.max-rows", 0) or 0
    span = duration_millis(context.options.get("sink.buffer-flush.interval", "0 ms"))
    if bool(most) != bool(span):
        message = "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' go together"
        raise context.fail(message)
    return tuple(row.names.index(name) for name in table.keys) if most else ()


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
