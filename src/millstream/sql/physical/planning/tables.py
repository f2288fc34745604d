"""Physical planning of tables: scans, sinks and lookups, through the connector of the table.

Promises: what a connector cannot do is refused with the name of the table; a source that can do so reads only the
columns that the query needs.
Does not know: queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millstream.sql.catalog.catalog import StreamTable, TableDefinition
from millstream.sql.columns import INSERT
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSource
from millstream.sql.connectors.registry import find_connector
from millstream.sql.errors import SqlNotSupported
from millstream.sql.expressions.nodes import Apply, Convert, Expression
from millstream.sql.functions.casts import can_cast
from millstream.sql.logical import nodes as l
from millstream.sql.operators import calc
from millstream.sql.operators.changelog.changelog_rows import SetRowKindSpec
from millstream.sql.operators.enter import EnterSpec, narrow_row_type
from millstream.sql.operators.rank.sort import MaterializeSpec
from millstream.sql.physical.changelog import normalize_source, normalize_upserts, plan_sink_input
from millstream.sql.physical.nodes import FORWARD, SINGLE, Operation, Origin, ScanOrigin, distribute_by_hash
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.physical.planning.lookup_joins import plan_lookup_join
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode


@dataclass(frozen=True)
class Tables:
    """Plans the tables of one session. `options` reads an option of the session."""

    options: Callable[[str], str | None]
    settings: Settings

    def context(
        self, name: tuple[str, ...], table: TableDefinition, hints: tuple[tuple[str, str], ...]
    ) -> TableContext:
        """Return the context of a table for its connector."""
        options = {**table.options, **dict(hints)}
        return TableContext(name, table, options, self.settings.zone, self.settings.batch)

    def scan(self, node: l.Scan) -> Operation:
        """Plan a scan: the source of the connector, and the columns in the types of the table."""
        detail = f"table=[[{', '.join(node.name)}]], fields=[{', '.join(node.schema.names)}]"
        if isinstance(node.table, StreamTable):
            key = tuple(node.schema.names.index(name) for name in node.table.primary_key)
            keys = frozenset((key,)) if key else frozenset()
            scan: Operation = node.table.origin(detail, node.schema, node.table.mode, keys)
            is_upsert = node.table.mode is ChangelogMode.UPSERT
            return normalize_upserts(scan, key, self.settings.ttl) if is_upsert else scan
        context = self.context(node.name, node.table, node.options)
        connector = find_connector(context)
        if connector.read is None:
            message = f"connector '{connector.name}' cannot be read"
            raise context.fail(message)
        _check_metadata(context, connector)
        source = connector.read(context)
        reads_all = self.settings.batch or source.schema.names != node.schema.names
        origin = ScanOrigin(node.name, node.table, node.options, None if reads_all else node.wanted)
        source, enter = narrow_source(source, origin)
        scan = Operation(
            "TableSourceScan", detail, source.schema, source=source.source, spec=enter, mode=source.mode,
            parallelism=source.parallelism, origin=origin,
        )  # fmt: skip
        if source.schema.types != node.schema.types or source.schema.names != node.schema.names:
            exprs = _convert_columns(source.schema, node.schema, context)
            spec = calc.CalcSpec(source.schema, node.schema, None, exprs, self.settings.zone)
            scan = Operation("Calc", "", node.schema, (scan,), (FORWARD,), spec, mode=source.mode, origin=origin)
        return normalize_source(scan, context, self.options, self.settings.ttl)

    def lookup(self, node: l.TemporalJoin, left: Operation) -> Operation | None:
        """Plan a temporal join as a lookup join; None if the table on its right cannot be looked up."""
        return plan_lookup_join(node, left, self.context, self.options, self.settings.zone)

    def row_level_method(self, name: tuple[str, ...], table: TableDefinition, statement: str) -> str:
        """Return how UPDATE or DELETE changes a table: rewrite or changes; raise if its connector cannot."""
        context = self.context(name, table, ())
        connector = find_connector(context)
        _check_batch(context, statement)
        if connector.row_level is None:
            message = f"connector '{connector.name}' does not support {statement}"
            raise context.fail(message)
        if connector.row_level == "changes" and not table.primary_key:
            message = f"connector '{connector.name}' finds rows by primary key, and the table has none"
            raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
        return connector.row_level

    def truncate(self, name: tuple[str, ...], table: TableDefinition) -> bool:
        """Remove all rows of a table; return False if that is a rewrite, and raise if its connector cannot."""
        context = self.context(name, table, ())
        connector = find_connector(context)
        _check_batch(context, "TRUNCATE TABLE")
        if connector.truncate is None and connector.row_level != "rewrite":
            message = f"connector '{connector.name}' does not support TRUNCATE TABLE"
            raise context.fail(message)
        if connector.truncate is not None:
            connector.truncate(context)
        return connector.truncate is not None

    def sink(self, node: l.Sink, plan: Callable[[bool], Operation]) -> Operation:
        """Plan a sink. `plan` creates its input, with or without -U rows."""
        context = self.context(node.name, node.table, node.options)
        connector = find_connector(context)
        if connector.write is None:
            message = f"connector '{connector.name}' cannot be written to"
            raise context.fail(message)
        if node.overwrite:
            _check_overwrite(context, connector)
        if context.definition.distribution is not None:
            message = f"it is DISTRIBUTED into buckets, which connector '{connector.name}' does not support"
            raise context.fail(message, "ALTER TABLE ... DROP DISTRIBUTION")
        _check_metadata(context, connector)
        table_sink = connector.write(replace(context, overwrite=node.overwrite, row_level=node.row_level))
        child = plan_sink_input(
            lambda before: materialize(plan(before), self.settings), table_sink.accepts, context, self.options,
            self.settings.ttl, node.conflict,
        )  # fmt: skip
        if node.row_kind != INSERT:
            spec = SetRowKindSpec(child.schema, node.row_kind)
            row_kind = f"rowKind=[{l.ROW_KINDS[node.row_kind]}]"
            child = Operation(
                "RowLevelChanges", row_kind, child.schema, (child,), (FORWARD,), spec, mode=ChangelogMode.UPSERT
            )
        detail = f"table=[{'.'.join(node.name)}], fields=[{', '.join(child.schema.names)}]"
        distribution = FORWARD
        if table_sink.parallelism is not None and node.table.primary_key:
            distribution = distribute_by_hash(tuple(child.schema.names.index(name) for name in node.table.primary_key))
        return Operation(
            "Sink",
            detail,
            child.schema,
            (child,),
            (distribution,),
            sink=table_sink.sink,
            mode=child.mode,
            parallelism=table_sink.parallelism,
            origin=Origin(node.name, node.table, node.options),
        )


def materialize(operation: Operation, settings: Settings) -> Operation:
    """In batch mode, collect a changelog into its final rows."""
    if not settings.batch or operation.mode.insert_only:
        return operation
    spec = MaterializeSpec(operation.schema)
    return Operation("Materialize", "", operation.schema, (operation,), (SINGLE,), spec, parallelism=1)


def narrow_source(source: TableSource, origin: ScanOrigin) -> tuple[TableSource, EnterSpec | None]:
    """Return a source that reads only wanted columns, if it supports that, and the spec that converts its records."""
    if not source.needs_conversion:
        return source, None
    if origin.wanted is not None and hasattr(source.source, "only"):
        narrower = source.source.only(origin.wanted)
        if narrower is not None:
            return replace(source, source=narrower), EnterSpec(
                narrow_row_type(source.schema, origin.wanted), shown=source.schema
            )
    return source, EnterSpec(source.schema)


def _check_overwrite(context: TableContext, connector: TableConnector) -> None:
    if not connector.overwrites:
        message = f"connector '{connector.name}' does not support INSERT OVERWRITE"
        raise context.fail(message, "use INSERT INTO")
    if not context.batch:
        message = "INSERT OVERWRITE needs batch mode: a stream never has all rows"
        raise context.fail(message, "SET 'execution.runtime-mode' = 'batch', or use INSERT INTO")


def _check_batch(context: TableContext, statement: str) -> None:
    if not context.batch:
        message = f"{statement} needs batch mode"
        raise context.fail(message, "SET 'execution.runtime-mode' = 'batch'")


def _check_metadata(context: TableContext, connector: TableConnector) -> None:
    if context.metadata and not connector.metadata:
        message = f"connector '{connector.name}' has no metadata columns (column '{context.metadata[0].name}')"
        raise context.fail(message)


def _convert_columns(
    source_schema: t.RowType, target_schema: t.RowType, context: TableContext
) -> tuple[Expression, ...]:
    exprs: list[Expression] = []
    for name, data_type in zip(target_schema.names, target_schema.types, strict=True):
        index = source_schema.names.index(name)
        source = source_schema.types[index]
        reference: Expression = l.Values(source_schema, ()).refs()[index]
        exprs.append(_convert(reference, source, data_type, context))
    return tuple(exprs)


def _convert(ref: Expression, source: t.DataType, data_type: t.DataType, _context: TableContext) -> Expression:
    """Convert a column of a source to the declared type; generated numbers become dates and times."""
    if source.same(data_type):
        return ref
    if t.is_timestamp(data_type) and isinstance(source, t.BigIntType):
        return Apply(data_type, "$PAST", (ref,))
    if isinstance(data_type, t.DateType | t.TimeType) and isinstance(source, t.BigIntType):
        return Convert(data_type, Apply(t.LocalZonedTimestampType(3), "$PAST", (ref,)))
    if not can_cast(source, data_type):
        message = f"the source has {source}, which cannot be converted to {data_type}"
        raise SqlNotSupported(message)
    return Convert(data_type, ref)
