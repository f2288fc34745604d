"""Physical planning of tables: scans, sinks and lookups, through the connector of the table.

Promises: what a connector cannot do is refused with the name of the table; a source that can do so reads only the
columns that the query needs.
Does not know: queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millstream.sql.catalog.catalog import StreamTable, TableDefinition
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSource
from millstream.sql.connectors.registry import connector_of
from millstream.sql.errors import SqlNotSupported
from millstream.sql.expressions.nodes import Apply, Convert, Expression
from millstream.sql.functions.casts import can_cast
from millstream.sql.logical import nodes as l
from millstream.sql.operators import calc
from millstream.sql.operators.enter import EnterSpec, narrowed
from millstream.sql.operators.rank.sort import MaterializeSpec
from millstream.sql.physical.changelog import completed, consumed
from millstream.sql.physical.nodes import FORWARD, SINGLE, Operation, Origin, ScanOrigin, by_hash
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.physical.planning.lookup_joins import lookup_join
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
        """A table as its connector sees it."""
        options = {**table.options, **dict(hints)}
        return TableContext(name, table, options, self.settings.zone, self.settings.batch)

    def scan(self, node: l.Scan) -> Operation:
        """Plan a scan: the source of the connector, and the columns in the types of the table."""
        shown = f"table=[[{', '.join(node.name)}]], fields=[{', '.join(node.schema.names)}]"
        if isinstance(node.table, StreamTable):
            mode = ChangelogMode.INSERT_ONLY if node.table.insert_only else ChangelogMode.RETRACT
            keys: frozenset[tuple[int, ...]] = frozenset()
            if node.table.primary_key:
                keys = frozenset((tuple(node.schema.names.index(k) for k in node.table.primary_key),))
            made: Operation = node.table.origin(shown, node.schema, mode, keys)
            return made
        context = self.context(node.name, node.table, node.options)
        connector = connector_of(context)
        if connector.read is None:
            message = f"connector '{connector.name}' cannot be read"
            raise context.fail(message)
        _check_metadata(context, connector)
        found = connector.read(context)
        whole = self.settings.batch or found.schema.names != node.schema.names
        origin = ScanOrigin(node.name, node.table, node.options, None if whole else node.wanted)
        found, enter = narrow_source(found, origin)
        scan = Operation(
            "TableSourceScan", shown, found.schema, source=found.source, spec=enter, mode=found.mode,
            parallelism=found.parallelism, origin=origin,
        )  # fmt: skip
        if found.schema.types != node.schema.types or found.schema.names != node.schema.names:
            exprs = _adapted(found.schema, node.schema, context)
            spec = calc.CalcSpec(found.schema, node.schema, None, exprs, self.settings.zone)
            scan = Operation("Calc", "", node.schema, (scan,), (FORWARD,), spec, mode=found.mode, origin=origin)
        return completed(scan, context, self.options, self.settings.ttl)

    def lookup(self, node: l.TemporalJoin, left: Operation) -> Operation | None:
        """The lookup join that a temporal join is, where the table on its right can be looked up."""
        return lookup_join(node, left, self.context, self.options, self.settings.zone)

    def sink(self, node: l.Sink, plan: Callable[[bool], Operation]) -> Operation:
        """Plan a sink. `plan` creates its input, with or without -U rows."""
        context = self.context(node.name, node.table, node.options)
        connector = connector_of(context)
        if connector.write is None:
            message = f"connector '{connector.name}' cannot be written to"
            raise context.fail(message)
        if node.overwrite:
            _check_overwrite(context, connector)
        if context.definition.distribution is not None:
            message = f"it is DISTRIBUTED into buckets, and connector '{connector.name}' has none"
            raise context.fail(message, "ALTER TABLE ... DROP DISTRIBUTION")
        _check_metadata(context, connector)
        found = connector.write(replace(context, overwrite=node.overwrite))
        child = consumed(
            lambda before: materialize(plan(before), self.settings), found.accepts, context, self.options,
            self.settings.ttl, node.conflict,
        )  # fmt: skip
        shown = f"table=[{'.'.join(node.name)}], fields=[{', '.join(child.schema.names)}]"
        where = FORWARD
        if found.parallelism is not None and node.table.primary_key:
            where = by_hash(tuple(child.schema.names.index(name) for name in node.table.primary_key))
        return Operation(
            "Sink",
            shown,
            child.schema,
            (child,),
            (where,),
            sink=found.sink,
            mode=child.mode,
            parallelism=found.parallelism,
            origin=Origin(node.name, node.table, node.options),
        )


def materialize(operation: Operation, settings: Settings) -> Operation:
    """In batch mode, collect a changelog into its final rows."""
    if not settings.batch or operation.mode.insert_only:
        return operation
    spec = MaterializeSpec(operation.schema)
    return Operation("Materialize", "", operation.schema, (operation,), (SINGLE,), spec, parallelism=1)


def narrow_source(found: TableSource, origin: ScanOrigin) -> tuple[TableSource, EnterSpec | None]:
    """A source that reads no more than is wanted, where it can, and what turns its records into rows."""
    if not found.foreign:
        return found, None
    if origin.wanted is not None and hasattr(found.source, "only"):
        narrower = found.source.only(origin.wanted)
        if narrower is not None:
            return replace(found, source=narrower), EnterSpec(narrowed(found.schema, origin.wanted), shown=found.schema)
    return found, EnterSpec(found.schema)


def _check_overwrite(context: TableContext, connector: TableConnector) -> None:
    if not connector.overwrites:
        message = f"connector '{connector.name}' cannot replace rows, as INSERT OVERWRITE asks"
        raise context.fail(message, "use INSERT INTO")
    if not context.batch:
        message = "INSERT OVERWRITE is not for streaming mode: a stream never has all the rows that replace the others"
        raise context.fail(message, "SET 'execution.runtime-mode' = 'batch', or use INSERT INTO")


def _check_metadata(context: TableContext, connector: TableConnector) -> None:
    if context.metadata and not connector.metadata:
        message = f"connector '{connector.name}' tells no metadata (column '{context.metadata[0].name}')"
        raise context.fail(message)


def _adapted(have: t.RowType, want: t.RowType, context: TableContext) -> tuple[Expression, ...]:
    made: list[Expression] = []
    for name, kind in zip(want.names, want.types, strict=True):
        place = have.names.index(name)
        source = have.types[place]
        reference: Expression = l.Values(have, ()).refs()[place]
        made.append(_converted(reference, source, kind, context))
    return tuple(made)


def _converted(ref: Expression, source: t.DataType, kind: t.DataType, _context: TableContext) -> Expression:
    """A generated number as a value of the declared type."""
    if source.same(kind):
        return ref
    if t.is_timestamp(kind) and isinstance(source, t.BigIntType):
        return Apply(kind, "$PAST", (ref,))
    if isinstance(kind, t.DateType | t.TimeType) and isinstance(source, t.BigIntType):
        return Apply(kind, "$NUMBERED", (ref,))
    if not can_cast(source, kind):
        message = f"{source} cannot become {kind}"
        raise SqlNotSupported(message)
    return Convert(kind, ref)
