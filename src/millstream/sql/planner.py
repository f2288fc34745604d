"""From a statement's plan to a program: the whole path on one page.

Promises: bind, rewrite, plan, translate; nothing is added to a program unless all of it could be planned.
Does not know: environments, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from millstream.datastream.program import Program
from millstream.graph.transformations import Input
from millstream.sql.catalog.catalog import StreamTable, TableDefinition
from millstream.sql.catalyst.fragments import BatchLowering
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSource, connector_of
from millstream.sql.connectors import filesystem as file_connector
from millstream.sql.connectors import jdbc as jdbc_connector
from millstream.sql.connectors import kafka as kafka_connector
from millstream.sql.connectors import lakehouse as lake_connectors
from millstream.sql.connectors import simple as builtin_connectors
from millstream.sql.errors import SqlNotSupported, SqlValidationError, nearest
from millstream.sql.expressions.nodes import Apply, Convert, Expression, Lit
from millstream.sql.functions.casts import can_cast
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session, coerced
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.logical.rules import rewritten
from millstream.sql.operators import calc
from millstream.sql.operators.enter import EnterSpec, narrowed
from millstream.sql.operators.rank.sort import MaterializeSpec
from millstream.sql.physical.changelog import completed, consumed
from millstream.sql.physical.nodes import FORWARD, SINGLE, ChangelogMode, Operation, Origin, ScanOrigin, by_hash
from millstream.sql.physical.planner import PhysicalPlanner
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.physical.planning.lookup_joins import lookup_join
from millstream.sql.physical.translate import Translation
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t

assert builtin_connectors  # registers connectors, as all of these do
assert file_connector
assert jdbc_connector
assert kafka_connector
assert lake_connectors


class Planner:
    """Plans queries of one session."""

    def __init__(self, session: Session, settings: Settings, clock: Callable[[], int]) -> None:
        self.session, self.settings = session, settings
        self._clock = clock

    def optimized(self, plan: l.Plan) -> l.Plan:
        """The plan after all rewrites."""
        return rewritten(plan)

    def physical(self, plans: Sequence[l.Plan]) -> list[Operation]:
        """Physical plans, sharing what they share."""
        return self._physical(plans, single=False)

    def _physical(self, plans: Sequence[l.Plan], *, single: bool) -> list[Operation]:
        made = [rewritten(plan) for plan in plans]
        lower = BatchLowering(self._scan, self.settings, made, single=single)
        planner = PhysicalPlanner(self.settings, self._scan, self._sink, self._lookup, lower)
        return [planner.plan(plan) for plan in made]

    def collected(self, plan: l.Plan) -> Operation:
        """The physical plan of a query whose rows are wanted here."""
        (operation,) = self._physical([plan], single=True)
        return self._materialized(operation)

    def add(self, operation: Operation, program: Program) -> tuple[Input, ...]:
        """Add a physical plan to a program."""
        (inputs,) = self.add_all((operation,), program)
        return inputs

    def add_all(self, operations: Sequence[Operation], program: Program) -> list[tuple[Input, ...]]:
        """Add several physical plans that may share parts."""
        return Translation(program, zone=self.settings.zone, now=self._clock()).add_all(operations)

    def _materialized(self, operation: Operation) -> Operation:
        if not self.settings.batch or operation.mode.insert_only:
            return operation
        spec = MaterializeSpec(operation.schema)
        return Operation("Materialize", "", operation.schema, (operation,), (SINGLE,), spec, parallelism=1)

    # ------------------------------------------------------------------------------------------------------- tables

    def context(
        self, name: tuple[str, ...], table: TableDefinition, hints: tuple[tuple[str, str], ...]
    ) -> TableContext:
        """A table as its connector sees it."""
        options = {**table.options, **dict(hints)}
        return TableContext(name, table, options, self.settings.zone, self.settings.batch)

    def _scan(self, node: l.Scan) -> Operation:
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
        found, enter = narrowed_source(found, origin)
        scan = Operation(
            "TableSourceScan", shown, found.schema, source=found.source, spec=enter, mode=found.mode,
            parallelism=found.parallelism, origin=origin,
        )  # fmt: skip
        if found.schema.types != node.schema.types or found.schema.names != node.schema.names:
            exprs = _adapted(found.schema, node.schema, context)
            spec = calc.CalcSpec(found.schema, node.schema, None, exprs, self.settings.zone)
            scan = Operation("Calc", "", node.schema, (scan,), (FORWARD,), spec, mode=found.mode, origin=origin)
        return completed(scan, context, self.session.options, self.settings.ttl)

    def _lookup(self, node: l.TemporalJoin, left: Operation) -> Operation | None:
        """The lookup join that a temporal join is, where the table on its right can be looked up."""
        return lookup_join(node, left, self.context, self.session.options, self.settings.zone)

    def with_partition(
        self,
        table: TableDefinition,
        query: l.Plan,
        columns: Sequence[str],
        partition: Sequence[tuple[str, s.Expr | None]],
    ) -> tuple[l.Plan, Sequence[str]]:
        """A query with the values of INSERT ... PARTITION (a = 1, b) behind it, and the columns it is for."""
        given = {name: expr for name, expr in partition if expr is not None}
        for name, _ in partition:
            if name not in table.partitions:
                message = f"PARTITION names '{name}', which the table is not partitioned by"
                raise SqlValidationError(message, hint=nearest(name, table.partitions))
        if not given:
            return query, columns
        binder = ExpressionBinder(self.session, Scope(), clause="in PARTITION")
        kinds = {each.name: each.type for each in table.columns}
        values = [_cast(binder.bind(expr), kinds[name].nullable()) for name, expr in given.items()]
        chosen = list(columns) or [c.name for c in table.columns if c.is_persisted and c.name not in given]
        made = l.project(query, [*query.refs(), *values], [*query.schema.names, *given])
        return made, [*chosen, *given]

    def sink_plan(
        self,
        name: tuple[str, str, str],
        table: TableDefinition,
        query: l.Plan,
        columns: Sequence[str],
        hints: tuple[tuple[str, str], ...] = (),
        *,
        overwrite: bool = False,
        conflict: str | None = None,
    ) -> l.Plan:
        """The plan that writes a query into a table, its columns brought to the table's."""
        target = [each for each in table.columns if each.is_persisted]
        chosen = list(columns) or [each.name for each in target]
        if len(chosen) != len(query.schema):
            have = ", ".join(f"{f.name} {f.data_type}" for f in query.schema.fields)
            want = ", ".join(f"{each.name} {each.type}" for each in target)
            target_text = f"table '{'.'.join(name)}' wants {len(chosen)} ({want})"
            message = f"the query has {len(query.schema)} columns ({have}), {target_text}"
            raise SqlValidationError(message)
        _check_columns(chosen, [each.name for each in target], name)
        exprs: list[Expression] = []
        for each in target:
            if each.name not in chosen:
                if not each.type.null or each.name in table.primary_key:
                    message = f"column '{each.name}' of '{'.'.join(name)}' is NOT NULL, and has no value in the INSERT"
                    raise SqlValidationError(message)
                exprs.append(Lit(each.type.nullable(), None))
                continue
            place = chosen.index(each.name)
            ref = query.refs()[place]
            if not _assignable(ref.type, each.type):
                source = f"column '{query.schema.names[place]}' is {ref.type}"
                message = f"{source}, but '{each.name}' of '{'.'.join(name)}' is {each.type}"
                raise SqlValidationError(message, hint=f"CAST it to {each.type.nullable()}")
            exprs.append(_brought(ref, each.type.with_null(ref.type.null)))
        made = l.project(query, exprs, [each.name for each in target])
        return l.Sink(made.schema, made, table, name, hints, overwrite, conflict)

    def _sink(self, node: l.Sink, plan: Callable[[bool], Operation]) -> Operation:
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
            lambda before: self._materialized(plan(before)), found.accepts, context, self.session.options,
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


def narrowed_source(found: TableSource, origin: ScanOrigin) -> tuple[TableSource, EnterSpec | None]:
    """A source that reads no more than is wanted, where it can, and what turns its records into rows."""
    if not found.foreign:
        return found, None
    if origin.wanted is not None and hasattr(found.source, "only"):
        narrower = found.source.only(origin.wanted)
        if narrower is not None:
            return replace(found, source=narrower), EnterSpec(narrowed(found.schema, origin.wanted), shown=found.schema)
    return found, EnterSpec(found.schema)


def _check_columns(chosen: Sequence[str], target: Sequence[str], table: tuple[str, ...]) -> None:
    """Refuse an INSERT into columns that are not there, or into one twice."""
    for place, column in enumerate(chosen):
        if column not in target:
            message = f"'{'.'.join(table)}' has no column '{column}' that can be written to"
            raise SqlValidationError(message, hint=nearest(column, target))
        if column in chosen[:place]:
            message = f"column '{column}' is written to twice"
            raise SqlValidationError(message)


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


def _cast(value: Expression, kind: t.DataType) -> Expression:
    """The value of a partition in the type of its column, as CAST would bring it there."""
    return Convert(kind, value) if not value.type.same(kind) and can_cast(value.type, kind) else value


def _brought(ref: Expression, kind: t.DataType) -> Expression:
    """A column in the type of the table's; text that may be longer than that is cut, as a cast does."""
    if isinstance(kind, t.VarCharType) and isinstance(ref.type, t.CharType | t.VarCharType):
        return Convert(kind, ref) if ref.type.length > kind.length else ref
    return coerced(ref, kind)


def _assignable(source: t.DataType, target: t.DataType) -> bool:
    """Whether INSERT may bring one type to the other without being told."""
    if source.same(target) or isinstance(source, t.NullType):
        return True
    match source, target:
        case t.NumericType(), t.NumericType():
            return True
        case (t.CharType(), t.CharType()) | ((t.CharType() | t.VarCharType()), t.VarCharType()):
            return True
        case (t.BinaryType(), t.BinaryType()) | ((t.BinaryType() | t.VarBinaryType()), t.VarBinaryType()):
            return True
        case ((t.TimestampType() | t.LocalZonedTimestampType()), (t.TimestampType() | t.LocalZonedTimestampType())):
            return True
        case t.DateType(), t.TimestampType():
            return True
        case t.TimeType(), t.TimeType():
            return True
        case t.YearMonthIntervalType(), t.YearMonthIntervalType():
            return True
        case t.DayTimeIntervalType(), t.DayTimeIntervalType():
            return True
        case t.ArrayType(), t.ArrayType():
            return _assignable(source.element, target.element)
        case t.MultisetType(), t.MultisetType():
            return _assignable(source.element, target.element)
        case t.MapType(), t.MapType():
            return _assignable(source.key, target.key) and _assignable(source.value, target.value)
        case t.RowType(), t.RowType():
            return len(source) == len(target) and all(map(_assignable, source.types, target.types))
    return False
