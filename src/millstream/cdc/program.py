"""The program of a pipeline: one source, one stream for each table, and an INSERT for each route.

Promises: the source keeps its state from one program to the next, whatever the columns; sinks are not stateful.
Does not know: when a program is started; when columns change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from millstream import sql_options
from millstream.cdc.definition import Pipeline, Transform
from millstream.cdc.errors import InvalidPipeline
from millstream.cdc.projection import EVENT_TYPE, query, quote, uses_event_type
from millstream.cdc.records import KeyOfRow, SeparateTables, TableRows, unchanged
from millstream.cdc.sinks import PipelineSink, SinkTable
from millstream.cdc.sources import Capture, SourceTable
from millstream.cdc.table_names import matches, route
from millstream.common import Configuration, WatermarkStrategy
from millstream.datastream import OutputTag, StreamExecutionEnvironment
from millstream.sql.columns import SqlTypeInfo
from millstream.sql.types import data_types as t
from millstream.table import Schema, StatementSet, StreamTableEnvironment, Table
from millstream.types.factory import RowTypeInfo, Types

SOURCE_UID = "cdc-source"


@dataclass(frozen=True)
class Program:
    """The statements of a pipeline, ready to execute."""

    statements: StatementSet
    inserts: tuple[str, ...]


def create_program(
    pipeline: Pipeline,
    capture: Capture,
    sink: PipelineSink,
    configuration: Mapping[str, str],
    earlier: Capture | None = None,
) -> Program:
    """Create the program for the current columns; sink tables are created, or get the columns that they lack."""
    settings = Configuration()
    for key, value in {
        # changes are written in the order of the source, without materializing the changelog first
        sql_options.SINK_UPSERT_MATERIALIZE.key: "NONE",
        **configuration,
    }.items():
        settings.set_string(key, value)
    stream_env = StreamExecutionEnvironment.get_execution_environment(settings)
    env = StreamTableEnvironment.create(stream_env)
    if pipeline.time_zone is not None:
        env.get_config().set_local_timezone(pipeline.time_zone)
    transforms = [_find_transform(pipeline.transforms, table) for table in capture.tables]
    tables = _split_by_table(stream_env, env, capture, transforms, earlier, halt=pipeline.behavior != "ignore")
    targets: dict[str, list[tuple[Table, SinkTable]]] = {}
    for n, (source, transform, table) in enumerate(zip(capture.tables, transforms, tables, strict=True)):
        view = f"source_{n}_{source.name}"
        env.create_temporary_view(quote(view), table)
        text, names = query(transform, source.name, list(source.columns), view)
        result = env.sql_query(text)
        types = dict(zip(names, result.get_schema().get_field_data_types(), strict=True))
        for target in route(pipeline.routes, source.name):
            targets.setdefault(target, []).append((result, _sink_table(target, types, source, transform, sink)))
    statements = env.create_statement_set()
    inserts = [_insert(env, statements, sink, name, inputs, n) for n, (name, inputs) in enumerate(targets.items())]
    return Program(statements, tuple(inserts))


def _find_transform(transforms: Sequence[Transform], table: SourceTable) -> Transform | None:
    matching = [transform for transform in transforms if matches(transform.source_table, table.name)]
    if len(matching) > 1:
        message = f"the table {table.name} matches {len(matching)} transforms"
        raise InvalidPipeline(message, hint="let each table match only one transform; combine filters with OR")
    return matching[0] if matching else None


def _split_by_table(
    stream_env: StreamExecutionEnvironment,
    env: StreamTableEnvironment,
    capture: Capture,
    transforms: Sequence[Transform | None],
    earlier: Capture | None,
    *,
    halt: bool,
) -> list[Table]:
    """Return a table of the changes of each captured table."""
    with_kind = any(uses_event_type(transform) for transform in transforms)
    columns = {table.id: (n, tuple(table.columns)) for n, table in enumerate(capture.tables)}
    source = capture.read_with(TableRows(columns, with_kind), earlier, halt=halt)
    tags = [OutputTag(f"table-{n}", _row_type(table, with_kind)) for n, table in enumerate(capture.tables)]
    stream = stream_env.from_source(source, WatermarkStrategy.no_watermarks(), "CDC source").uid(SOURCE_UID)
    # changes of a row keep their order: one subtask processes all changes, or those of the row's key
    separated = stream.process(SeparateTables(tags), Types.PICKLED_BYTE_ARRAY()).name("tables").set_parallelism(1)
    result = []
    for table, tag in zip(capture.tables, tags, strict=True):
        rows = separated.get_side_output(tag)
        builder = Schema.new_builder()
        if table.key:
            builder.primary_key(*table.key)
            if stream_env.get_parallelism() > 1:
                key = KeyOfRow(tuple(list(table.columns).index(name) for name in table.key))
                rows = rows.key_by(key).map(unchanged, tag.type_info)
        result.append(env.from_changelog_stream(rows, builder.build()))
    return result


def _row_type(table: SourceTable, with_kind: bool) -> RowTypeInfo:
    types = dict(table.columns) | ({EVENT_TYPE: t.STRING} if with_kind else {})
    return RowTypeInfo([SqlTypeInfo(data_type) for data_type in types.values()], list(types))


def _sink_table(
    name: str, types: Mapping[str, t.DataType], source: SourceTable, transform: Transform | None, sink: PipelineSink
) -> SinkTable:
    key = (transform.primary_keys if transform is not None else ()) or source.key
    missing = [column for column in key if column not in types]
    if missing or (sink.needs_key and not key):
        reason = f"its column {missing[0]} is not in the projection" if missing else "the table has none"
        message = f"the sink table {name} needs a primary key, and {reason}"
        raise InvalidPipeline(message, hint="add the columns to the projection, or set primary-keys of the transform")
    return SinkTable(name, {n: d.not_null() if n in key else d.nullable() for n, d in types.items()}, key)


def _merge(inputs: Sequence[SinkTable]) -> SinkTable:
    """Return the table for rows of several tables: it has the columns of all of them."""
    columns: dict[str, t.DataType] = {}
    for table in inputs:
        for name, data_type in table.columns.items():
            if columns.setdefault(name, data_type) != data_type:
                message = f"the column {name} of {table.name} is {columns[name]} and {data_type} in tables routed to it"
                raise InvalidPipeline(message, hint=f"cast it in a projection: CAST({name} AS ...) AS {name}")
    if len({table.key for table in inputs}) > 1:
        message = f"the tables that are routed to {inputs[0].name} have different primary keys"
        raise InvalidPipeline(message, hint="set the same primary-keys in their transforms")
    return SinkTable(inputs[0].name, columns, inputs[0].key)


def _insert(
    env: StreamTableEnvironment,
    statements: StatementSet,
    sink: PipelineSink,
    name: str,
    inputs: Sequence[tuple[Table, SinkTable]],
    number: int,
) -> str:
    """Add the INSERT into a sink table; return a description of it."""
    table = _merge([described for _, described in inputs])
    columns = sink.prepare(table)
    target = quote(f"sink_{number}_{name}")
    lines = [f"{quote(column)} {data_type}" for column, data_type in columns.items()]
    if table.key:
        lines.append(f"PRIMARY KEY ({', '.join(quote(column) for column in table.key)}) NOT ENFORCED")
    options = ", ".join(f"{_literal(k)} = {_literal(v)}" for k, v in sink.connector_options(table).items())
    env.execute_sql(f"CREATE TEMPORARY TABLE {target} ({', '.join(lines)}) WITH ({options})")
    selects = []
    for n, (result, described) in enumerate(inputs):
        view = quote(f"input_{number}_{n}_{name}")
        env.create_temporary_view(view, result)
        values = [
            quote(column) if column in described.columns else f"CAST(NULL AS {data_type.nullable()})"
            for column, data_type in columns.items()
        ]
        selects.append(f"SELECT {', '.join(values)} FROM {view}")
    statements.add_insert_sql(f"INSERT INTO {target} {' UNION ALL '.join(selects)}")
    return f"{name} ({', '.join(columns)})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
