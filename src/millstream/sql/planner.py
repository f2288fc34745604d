"""From a statement's plan to a program: the whole path on one page.

Promises: bind, rewrite, plan, translate; nothing is added to a program unless all of it could be planned.
Does not know: environments, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millstream.datastream.program import Program
from millstream.graph.transformations import Input
from millstream.sql import builtin_connectors, file_connector
from millstream.sql import logical as l
from millstream.sql import types as t
from millstream.sql.bind.expressions import Session, coerced
from millstream.sql.catalog import StreamTable, TableDefinition
from millstream.sql.connectors import TableContext, connector_of
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.expressions import Apply, Convert, Expression, Lit
from millstream.sql.functions.casts import can_cast
from millstream.sql.operators import calc
from millstream.sql.operators.enter import EnterSpec
from millstream.sql.operators.sort import MaterializeSpec
from millstream.sql.physical import FORWARD, SINGLE, ChangelogMode, Operation
from millstream.sql.physical_planner import PhysicalPlanner, Settings
from millstream.sql.rules import rewritten
from millstream.sql.translate import Translation

assert builtin_connectors  # registers connectors
assert file_connector


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
        planner = PhysicalPlanner(self.settings, self._scan, self._sink)
        return [planner.plan(rewritten(plan)) for plan in plans]

    def collected(self, plan: l.Plan) -> Operation:
        """The physical plan of a query whose rows are wanted here."""
        (operation,) = self.physical([plan])
        return self._materialized(operation)

    def add(self, operation: Operation, program: Program) -> tuple[Input, ...]:
        """Add a physical plan to a program."""
        return Translation(program, zone=self.settings.zone, now=self._clock()).add(operation)

    def add_all(self, operations: Sequence[Operation], program: Program) -> None:
        """Add several physical plans that may share parts."""
        translation = Translation(program, zone=self.settings.zone, now=self._clock())
        for operation in operations:
            translation.add(operation)

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
        found = connector.read(context)
        enter = EnterSpec(found.schema) if found.foreign else None
        scan = Operation("TableSourceScan", shown, found.schema, source=found.source, spec=enter, mode=found.mode)
        if found.schema.types == node.schema.types and found.schema.names == node.schema.names:
            return scan
        exprs = _adapted(found.schema, node.schema, context)
        spec = calc.CalcSpec(found.schema, node.schema, None, exprs, self.settings.zone)
        return Operation("Calc", "", node.schema, (scan,), (FORWARD,), spec, mode=found.mode)

    def sink_plan(
        self,
        name: tuple[str, str, str],
        table: TableDefinition,
        query: l.Plan,
        columns: Sequence[str],
        hints: tuple[tuple[str, str], ...] = (),
        *,
        overwrite: bool = False,
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
        exprs: list[Expression] = []
        for each in target:
            if each.name not in chosen:
                exprs.append(Lit(each.type.nullable(), None))
                continue
            place = chosen.index(each.name)
            ref = query.refs()[place]
            if not _assignable(ref.type, each.type):
                source = f"column '{query.schema.names[place]}' is {ref.type}"
                message = f"{source}, but '{each.name}' of '{'.'.join(name)}' is {each.type}"
                raise SqlValidationError(message, hint=f"CAST it to {each.type.nullable()}")
            exprs.append(coerced(ref, each.type.with_null(ref.type.null)))
        made = l.project(query, exprs, [each.name for each in target])
        return l.Sink(made.schema, made, table, name, hints, overwrite)

    def _sink(self, node: l.Sink, child: Operation) -> Operation:
        child = self._materialized(child)
        context = self.context(node.name, node.table, node.options)
        connector = connector_of(context)
        if connector.write is None:
            message = f"connector '{connector.name}' cannot be written to"
            raise context.fail(message)
        found = connector.write(context)
        if found.accepts.insert_only and not child.mode.insert_only:
            message = f"it takes inserts only, but the query corrects rows it has told ({child.mode.value})"
            raise context.fail(
                message, "use a sink with a primary key that takes updates, or a query that only appends"
            )
        if found.accepts is ChangelogMode.UPSERT and not child.mode.insert_only and not node.table.primary_key:
            message = "it takes updates by key, but the table has no primary key"
            raise context.fail(message, "declare PRIMARY KEY (...) NOT ENFORCED")
        shown = f"table=[{'.'.join(node.name)}], fields=[{', '.join(child.schema.names)}]"
        return Operation(
            "Sink",
            shown,
            child.schema,
            (child,),
            (FORWARD,),
            sink=found.sink,
            mode=child.mode,
            parallelism=found.parallelism,
        )


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


def _assignable(source: t.DataType, target: t.DataType) -> bool:
    """Whether INSERT may bring one type to the other without being told."""
    if source.same(target) or isinstance(source, t.NullType):
        return True
    match source, target:
        case t.NumericType(), t.NumericType():
            return True
        case ((t.CharType() | t.VarCharType()), (t.CharType() | t.VarCharType())):
            return True
        case ((t.BinaryType() | t.VarBinaryType()), (t.BinaryType() | t.VarBinaryType())):
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
