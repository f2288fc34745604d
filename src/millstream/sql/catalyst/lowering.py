"""Logical plans become relations: queries in Spark's SQL, with steps of our own between them.

Promises: a plan is lowered whole or not at all, and then gives the rows that the operators of a stream would leave
after bounded input. Event time plays no part: nothing is late when all input is there.
Does not know: Spark; which plans are worth it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.connector.source import Boundedness, Records
from millstream.connectors.collection import CollectionSource
from millstream.engine.relational import LocalTable, Mapped, Query, Read, Relation, RelationalSource, Step
from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.catalyst import aggregates, mapped
from millstream.sql.catalyst.columns import spell_columns, to_spark
from millstream.sql.catalyst.expressions import can_be_mapped, spell_expression
from millstream.sql.columns import arrow_type, row_type_info
from millstream.sql.evaluation.evaluate import constant
from millstream.sql.expressions.nodes import Expression, Ref, conjunction, conjuncts, shifted
from millstream.sql.functions.spark import spark_type
from millstream.sql.logical import nodes as l
from millstream.sql.logical.nodes import Unnest
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.operators.enter import EnterSpec
from millstream.sql.physical.nodes import Operation
from millstream.sql.types import data_types as t

_names = itertools.count(1)
_LOCAL_ROWS = 100_000
_JOINS = {
    "inner": "INNER", "left": "LEFT OUTER", "right": "RIGHT OUTER", "full": "FULL OUTER", "semi": "LEFT SEMI",
    "anti": "LEFT ANTI",
}  # fmt: skip


class NotLowered(Exception):
    """The plan has something that only our operators compute."""


def lowered(
    plan: l.Plan, scan: Callable[[l.Scan], Operation], zone: str, *, single: bool = False
) -> RelationalSource | None:
    """The plan as a source of its rows; None where it cannot be lowered."""
    making = Lowering(scan, zone)
    try:
        root = making.step(plan, ordered=True)
        relation = making.relation(root)
    except NotLowered:
        return None
    return RelationalSource(f"relation-{next(_names)}", relation, row_type_info(plan.schema), single or _ordered(plan))


def _ordered(plan: l.Plan) -> bool:
    while isinstance(plan, l.Project):
        plan = plan.input
    return isinstance(plan, l.Sort)


class Lowering:
    """One relation in the making: parts of text that are one query, and steps between queries."""

    def __init__(self, scan: Callable[[l.Scan], Operation], zone: str) -> None:
        self._scan_table, self._zone = scan, zone
        self._steps: dict[str, Step] = {}
        self._parts: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._done: dict[tuple[int, bool], tuple[l.Plan, str]] = {}
        self._numbers = itertools.count()

    def relation(self, root: str) -> Relation:
        """All steps, the one named `root` last."""
        last = self._flushed(root)
        steps = {name: step for name, step in self._steps.items() if name != last}
        return Relation((*steps.items(), (last, self._steps[last])))

    # ------------------------------------------------------------------------------------------------- parts and steps

    def step(self, plan: l.Plan, *, ordered: bool = False) -> str:
        """The name under which the rows of a plan can be read."""
        known = self._done.get((id(plan), ordered))
        if known is None:
            if spell_columns(plan.schema) is None:
                raise NotLowered(plan.schema)
            known = self._done[(id(plan), ordered)] = (plan, self._step(plan, ordered))
        return known[1]

    def _part(self, text: str, *inputs: str) -> str:
        name = f"n{next(self._numbers)}"
        self._parts[name] = (text, inputs)
        return name

    def _added(self, step: Step) -> str:
        name = f"s{next(self._numbers)}"
        self._steps[name] = step
        return name

    def _flushed(self, name: str) -> str:
        """The name of a step with the rows of a part."""
        if name in self._steps:
            return name
        reached: dict[str, str] = {}

        def reach(part: str) -> None:
            if part in self._parts and part not in reached:
                text, inputs = self._parts[part]
                for each in inputs:
                    reach(each)
                reached[part] = text

        reach(name)
        *before, (_, last) = reached.items()
        shared = ", ".join(f"{part} AS ({text})" for part, text in before)
        return self._added(Query(f"WITH {shared} {last}" if shared else last))

    def _mapped(self, source: str, function: object, row: t.RowType) -> str:
        columns = spell_columns(row)
        if columns is None:
            raise NotLowered(row)
        return self._added(Mapped(self._flushed(source), function, columns))  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------------------------------ nodes

    def _step(self, plan: l.Plan, ordered: bool) -> str:
        match plan:
            case l.Scan():
                return self._scan(plan)
            case l.Values():
                return self._values(plan)
            case l.Project():
                return self._project(plan, ordered)
            case l.Filter():
                return self._filter(plan, plan.condition, self.step(plan.input))
            case l.WatermarkAssigner():
                return self.step(plan.input)
            case l.Aggregate():
                return self._aggregate(plan)
            case l.Expand():
                return self._expand(plan)
            case l.Correlate():
                return self._correlate(plan)
            case l.WindowTable():
                return self._window_table(plan)
            case l.Over():
                return self._over(plan)
            case l.Join():
                return self._join(plan)
            case l.SetOperation():
                return self._set_operation(plan)
            case l.Rank():
                return self._rank(plan)
            case l.Sort():
                return self._sort(plan, ordered)
        raise NotLowered(plan)

    def _scan(self, plan: l.Scan) -> str:
        operation = self._scan_table(plan)
        adapted: tuple[Expression, ...] | None = None
        if isinstance(operation.spec, CalcSpec):
            adapted, (operation,) = operation.spec.exprs, operation.inputs
        source = operation.source
        if source is None or not operation.mode.insert_only or isinstance(source, l.Values):
            raise NotLowered(plan)
        if source.boundedness() is not Boundedness.BOUNDED:
            raise NotLowered(plan)
        if adapted is not None and not all(map(can_be_mapped, adapted)):
            raise NotLowered(plan)
        foreign = operation.spec is not None
        if foreign and not (isinstance(operation.spec, EnterSpec) and operation.spec == EnterSpec(operation.schema)):
            raise NotLowered(plan)
        entered = mapped.Entered(source.type_info(), operation.schema, plan.schema, foreign, adapted, self._zone)
        if isinstance(source, CollectionSource) and len(source.elements) <= _LOCAL_ROWS:
            batch = entered(Records(list(source.elements)), 0)
            return self._added(LocalTable(pa.Table.from_batches([batch])))
        columns = spell_columns(plan.schema)
        assert columns is not None
        path, files = _parquet(plan)
        return self._added(Read(source, columns, entered, path, files))

    def _values(self, plan: l.Values) -> str:
        if not all(can_be_mapped(each) for row in plan.rows for each in row):
            raise NotLowered(plan)
        rows = [[constant(each, zone=self._zone) for each in row] for row in plan.rows]
        columns = [pa.array([row[i] for row in rows], arrow_type(kind)) for i, kind in enumerate(plan.schema.types)]
        return self._added(LocalTable(pa.Table.from_batches([to_spark(columns, plan.schema, len(rows))])))

    def _project(self, plan: l.Project, ordered: bool) -> str:
        below = self.step(plan.input, ordered=ordered)
        texts = [spell_expression(each, _columns(plan.input, "i"), self._zone) for each in plan.exprs]
        if None in texts:
            if not all(map(can_be_mapped, plan.exprs)):
                raise NotLowered(plan)
            calc = mapped.Calc(plan.input.schema, plan.schema, None, plan.exprs, self._zone)
            return self._mapped(below, calc, plan.schema)
        return self._part(f"SELECT {_selected([text or '' for text in texts])} FROM {below} AS i", below)

    def _filter(self, plan: l.Plan, condition: Expression, below: str) -> str:
        quick: list[str] = []
        slow: list[Expression] = []
        for part in conjuncts(condition):
            text = spell_expression(part, _columns(plan, "i"), self._zone)
            if text is None:
                slow.append(part)
            else:
                quick.append(text)
        if not all(map(can_be_mapped, slow)):
            raise NotLowered(plan)
        if quick:
            below = self._part(f"SELECT * FROM {below} AS i WHERE {' AND '.join(quick)}", below)
        if slow:
            calc = mapped.Calc(plan.schema, plan.schema, conjunction(slow), None, self._zone)
            below = self._mapped(below, calc, plan.schema)
        return below

    def _aggregate(self, plan: l.Aggregate) -> str:
        columns = _columns(plan.input, "i")
        keys = [columns[i] for i in plan.keys]
        calls = [aggregates.spell_aggregate(call, columns) for call in plan.calls]
        if None in calls or not (keys or calls):
            raise NotLowered(plan)
        if any(_has_map(plan.input.schema.types[i]) for i in plan.keys):
            raise NotLowered(plan)
        below = self.step(plan.input)
        tail = f" GROUP BY {', '.join(keys)}" if keys else ""
        return self._part(f"SELECT {_selected([*keys, *(c or '' for c in calls)])} FROM {below} AS i{tail}", below)

    def _expand(self, plan: l.Expand) -> str:
        below = self.step(plan.input)
        columns = _columns(plan.input, "i")
        rows = []
        for number, kept in enumerate(plan.sets):
            cells = [
                f"CAST(NULL AS {spark_type(kind)})" if i in plan.keys and i not in kept else columns[i]
                for i, kind in enumerate(plan.input.schema.types)
            ]
            cells.append(f"CAST({number} AS BIGINT)")
            rows.append(f"STRUCT({_selected(cells)})")
        return self._part(f"SELECT INLINE(ARRAY({', '.join(rows)})) FROM {below} AS i", below)

    def _correlate(self, plan: l.Correlate) -> str:
        if not isinstance(plan.function, Unnest) or not isinstance(plan.args[0].type, t.ArrayType):
            raise NotLowered(plan)
        columns = _columns(plan.input, "i")
        array = spell_expression(plan.args[0], columns, self._zone)
        if array is None:
            raise NotLowered(plan)
        below = self.step(plan.input)
        element = plan.args[0].type.element
        made = [f"e.v.`{i}`" for i in range(len(element))] if isinstance(element, t.RowType) else ["e.v"]
        if plan.function.ordinality:
            made.append("(e.p + 1)")
        outer = "OUTER " if plan.outer else ""
        text = f"SELECT {_selected([*columns, *made])} FROM {below} AS i LATERAL VIEW {outer}POSEXPLODE({array}) e"
        return self._part(f"{text} AS p, v", below)

    def _window_table(self, plan: l.WindowTable) -> str:
        if plan.window.kind == "SESSION" or plan.window.processing:
            raise NotLowered(plan)
        below = self.step(plan.input)
        windows = mapped.Windows(plan.input.schema, plan.schema, plan.window, self._zone)
        return self._mapped(below, windows, plan.schema)

    def _over(self, plan: l.Over) -> str:
        columns = _columns(plan.input, "i")
        for each in plan.calls:
            _check_order(plan.input, each.order)
        calls = [aggregates.spell_over(each, columns) for each in plan.calls]
        if None in calls:
            raise NotLowered(plan)
        below = self.step(plan.input)
        return self._part(f"SELECT {_selected([*columns, *(c or '' for c in calls)])} FROM {below} AS i", below)

    def _rank(self, plan: l.Rank) -> str:
        _check_order(plan.input, plan.order)
        below = self.step(plan.input)
        columns = _columns(plan.input, "i")
        partition = f"PARTITION BY {', '.join(columns[i] for i in plan.partition)} " if plan.partition else ""
        order = aggregates.spell_order(plan.order, columns) or "1"
        number = f"CAST({plan.function}() OVER ({partition}ORDER BY {order}) AS BIGINT)"
        ranked = self._part(f"SELECT {_selected([*columns, number])} FROM {below} AS i", below)
        place = f"i.c{len(columns)}"
        kept = [*_columns(plan.input, "i"), *([place] if plan.with_rank else [])]
        where = f"{place} <= {plan.last}" + (f" AND {place} >= {plan.first}" if plan.first > 1 else "")
        return self._part(f"SELECT {_selected(kept)} FROM {ranked} AS i WHERE {where}", ranked)

    def _join(self, plan: l.Join) -> str:
        if plan.kind == "inner":
            made = self._inner_joins(plan)
            if made is not None:
                return made
        return self._two(plan)

    def _inner_joins(self, plan: l.Join) -> str | None:
        """Inner joins of many as one list, which Spark puts into an order; None where a condition has no spelling."""
        flat = flattened(plan)
        names = [f"j{n}.c{i}" for n, leaf in enumerate(flat.leaves) for i in range(len(leaf.schema))]
        texts = [spell_expression(part, names, self._zone) for part in flat.conditions]
        if None in texts:
            return None
        steps = [self.step(leaf) for leaf in flat.leaves]
        listed = ", ".join(f"{step} AS j{n}" for n, step in enumerate(steps))
        where = " AND ".join(text or "" for text in texts)
        text = f"SELECT {_selected([names[i] for i in flat.columns])} FROM {listed}"
        return self._part(f"{text} WHERE {where}" if where else text, *steps)

    def _two(self, plan: l.Join) -> str:
        columns = [*_columns(plan.left, "a"), *_columns(plan.right, "b")]
        parts = [(part, spell_expression(part, columns, self._zone)) for part in conjuncts(plan.condition)]
        slow = [part for part, text in parts if text is None]
        if slow and plan.kind != "inner":
            raise NotLowered(plan)
        left, right = self.step(plan.left), self.step(plan.right)
        on = " AND ".join(text for _, text in parts if text is not None)
        chosen = _columns(plan.left, "a") if plan.kind in ("semi", "anti") else columns
        word = "CROSS" if plan.kind == "inner" and not on else _JOINS[plan.kind]
        tail = "" if word == "CROSS" else f" ON {on or 'TRUE'}"
        text = f"SELECT {_selected(chosen)} FROM {left} AS a {word} JOIN {right} AS b{tail}"
        made = self._part(text, left, right)
        rest = conjunction(slow)
        return made if rest is None else self._filter(plan, rest, made)

    def _set_operation(self, plan: l.SetOperation) -> str:
        steps = [self.step(each) for each in plan.parts]
        word = f" {plan.operator}{' ALL' if plan.all or plan.operator == 'UNION' else ''} "
        return self._part(word.join(f"(SELECT * FROM {each})" for each in steps), *steps)

    def _sort(self, plan: l.Sort, ordered: bool) -> str:
        below = self.step(plan.input)
        order = aggregates.spell_order(plan.order, _columns(plan.input, "i"))
        if plan.limit is None and not plan.offset:
            if not ordered:
                return below
            gathered = self._part(f"SELECT /*+ REPARTITION(1) */ * FROM {below} AS i", below)
            return self._part(f"SELECT * FROM {gathered} AS i SORT BY {order}", gathered)
        text = f"SELECT * FROM {below} AS i" + (f" ORDER BY {order}" if order else "")
        text += "" if plan.limit is None else f" LIMIT {plan.limit}"
        return self._part(text + (f" OFFSET {plan.offset}" if plan.offset else ""), below)


@dataclass(frozen=True)
class Flat:
    """Inner joins of many: what is joined, all conditions, and the columns wanted, over the columns of all leaves."""

    leaves: tuple[l.Plan, ...]
    conditions: tuple[Expression, ...]
    columns: tuple[int, ...]


def flattened(plan: l.Plan) -> Flat:
    """The inner joins below a plan, through filters and through projections that only pick."""
    match plan:
        case l.Join(kind="inner", left=left, right=right, condition=condition):
            one, other = flattened(left), flattened(right)
            width = sum(len(leaf.schema) for leaf in one.leaves)
            columns = (*one.columns, *(i + width for i in other.columns))
            moved = [shifted(each, lambda i: i + width) for each in other.conditions]
            own = [shifted(each, columns.__getitem__) for each in conjuncts(condition)]
            return Flat((*one.leaves, *other.leaves), (*one.conditions, *moved, *own), columns)
        case l.Filter(input=l.Join(kind="inner") as inner, condition=condition):
            below = flattened(inner)
            own = [shifted(each, below.columns.__getitem__) for each in conjuncts(condition)]
            return replace(below, conditions=(*below.conditions, *own))
        case l.Project(input=(l.Join(kind="inner") | l.Filter(input=l.Join(kind="inner"))) as inner, exprs=exprs):
            picked = [each.index for each in exprs if isinstance(each, Ref)]
            if len(picked) == len(exprs):
                below = flattened(inner)
                return replace(below, columns=tuple(below.columns[i] for i in picked))
    return Flat((plan,), (), tuple(range(len(plan.schema))))


def _check_order(plan: l.Plan, order: tuple[tuple[int, bool, bool], ...]) -> None:
    """The order of processing time is that of arrival, which Spark does not keep."""
    if any(t.attribute_of(plan.schema.types[i]) == t.PROCTIME for i, _, _ in order):
        raise NotLowered(order)


def _columns(plan: l.Plan, alias: str) -> list[str]:
    return [f"{alias}.c{i}" for i in range(len(plan.schema))]


def _selected(texts: list[str]) -> str:
    return ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts)) or "0 AS d"


def _has_map(kind: t.DataType) -> bool:
    return isinstance(kind, t.MapType | t.MultisetType)


def _parquet(plan: l.Scan) -> tuple[str | None, pa.Schema | None]:
    """Where the table is one of Parquet files that the engine can read itself: their path and columns."""
    if not isinstance(plan.table, TableDefinition):
        return None, None
    options = {**plan.table.options, **dict(plan.options)}
    plain = set(options) <= {"connector", "path", "format"}
    known = all(
        isinstance(kind, t.NumericType | t.BooleanType | t.DateType) or t.is_text(kind) for kind in plan.schema.types
    )
    if not plain or not known or (options.get("connector"), options.get("format")) != ("filesystem", "parquet"):
        return None, None
    fields = [pa.field(name, arrow_type(kind)) for name, kind in zip(plan.schema.names, plan.schema.types, strict=True)]
    return options["path"], pa.schema(fields)
