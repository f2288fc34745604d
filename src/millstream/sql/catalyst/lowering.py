"""Lowering of logical plans to relations: Spark SQL queries, with steps of our own between them.

Promises: a plan is lowered completely or not at all. The result has the final rows that streaming operators compute for
bounded input. Event time has no effect: nothing is late if all input is available.
Does not know: Spark; which plans are worth lowering."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from millstream.connector.source import Boundedness, Records
from millstream.connectors.arrow import ArrowSource
from millstream.connectors.collection import CollectionSource
from millstream.engine.relational import LocalTable, Mapped, Query, Read, Relation, RelationalSource, Step
from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.catalyst import aggregates, mapped
from millstream.sql.catalyst.columns import spell_columns, to_spark
from millstream.sql.catalyst.expressions import can_be_mapped, spell_expression
from millstream.sql.columns import arrow_type, create_row_type_info
from millstream.sql.evaluation.evaluate import evaluate_constant
from millstream.sql.expressions.nodes import Expression, Ref, combine_conjuncts, shift_references, split_conjuncts
from millstream.sql.functions.spark import get_spark_type
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
    """The plan has a part that only our operators compute."""


def lower_plan(
    plan: l.Plan, scan: Callable[[l.Scan], Operation], zone: str, *, single: bool = False
) -> RelationalSource | None:
    """Lower a plan to a source of its rows; None if it cannot be lowered."""
    lowering = Lowering(scan, zone)
    try:
        root = lowering.step(plan, ordered=True)
        relation = lowering.relation(root)
    except NotLowered:
        return None
    return RelationalSource(
        f"relation-{next(_names)}", relation, create_row_type_info(plan.schema), single or _is_ordered(plan)
    )


def _is_ordered(plan: l.Plan) -> bool:
    while isinstance(plan, l.Project):
        plan = plan.input
    return isinstance(plan, l.Sort)


class Lowering:
    """Collects the parts of one relation: texts that are combined into a query, and steps between queries."""

    def __init__(self, scan: Callable[[l.Scan], Operation], zone: str) -> None:
        self._scan_table, self._zone = scan, zone
        self._steps: dict[str, Step] = {}
        self._parts: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._done: dict[tuple[int, bool], tuple[l.Plan, str]] = {}
        self._numbers = itertools.count()

    def relation(self, root: str) -> Relation:
        """Return all steps, the one named `root` last."""
        last = self._to_step(root)
        steps = {name: step for name, step in self._steps.items() if name != last}
        return Relation((*steps.items(), (last, self._steps[last])))

    # ------------------------------------------------------------------------------------------------- parts and steps

    def step(self, plan: l.Plan, *, ordered: bool = False) -> str:
        """Lower a plan, and return the name under which its rows can be read."""
        lowered_plan = self._done.get((id(plan), ordered))
        if lowered_plan is None:
            if spell_columns(plan.schema) is None:
                raise NotLowered(plan.schema)
            lowered_plan = self._done[(id(plan), ordered)] = (plan, self._step(plan, ordered))
        return lowered_plan[1]

    def _add_part(self, text: str, *inputs: str) -> str:
        name = f"n{next(self._numbers)}"
        self._parts[name] = (text, inputs)
        return name

    def _add_step(self, step: Step) -> str:
        name = f"s{next(self._numbers)}"
        self._steps[name] = step
        return name

    def _to_step(self, name: str) -> str:
        """Return the name of a step with the rows of a part."""
        if name in self._steps:
            return name
        used_parts: dict[str, str] = {}

        def visit(part: str) -> None:
            if part in self._parts and part not in used_parts:
                text, inputs = self._parts[part]
                for part_input in inputs:
                    visit(part_input)
                used_parts[part] = text

        visit(name)
        *before, (_, last) = used_parts.items()
        shared = ", ".join(f"{part} AS ({text})" for part, text in before)
        return self._add_step(Query(f"WITH {shared} {last}" if shared else last))

    def _add_mapped(self, source: str, function: object, row: t.RowType) -> str:
        columns = spell_columns(row)
        if columns is None:
            raise NotLowered(row)
        return self._add_step(Mapped(self._to_step(source), function, columns))  # type: ignore[arg-type]

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
        column_exprs: tuple[Expression, ...] | None = None
        if isinstance(operation.spec, CalcSpec):
            column_exprs, (operation,) = operation.spec.exprs, operation.inputs
        source = operation.source
        if source is None or not operation.mode.insert_only or isinstance(source, l.Values):
            raise NotLowered(plan)
        if source.boundedness() is not Boundedness.BOUNDED:
            raise NotLowered(plan)
        if column_exprs is not None and not all(map(can_be_mapped, column_exprs)):
            raise NotLowered(plan)
        needs_conversion = operation.spec is not None
        if needs_conversion and not (
            isinstance(operation.spec, EnterSpec) and operation.spec == EnterSpec(operation.schema)
        ):
            raise NotLowered(plan)
        convert = mapped.Entered(
            source.type_info(), operation.schema, plan.schema, needs_conversion, column_exprs, self._zone
        )
        if isinstance(source, CollectionSource) and len(source.elements) <= _LOCAL_ROWS:
            return self._add_local(convert(Records(list(source.elements)), 0), plan.schema)
        if isinstance(source, ArrowSource) and 0 < source.count_rows() <= _LOCAL_ROWS:
            return self._add_local(convert(Records(pa.concat_arrays(source.chunks)), 0), plan.schema)
        columns = spell_columns(plan.schema)
        assert columns is not None
        path, files = _find_parquet(plan)
        return self._add_step(Read(source, columns, convert, path, files))

    def _values(self, plan: l.Values) -> str:
        if not all(can_be_mapped(expr) for row in plan.rows for expr in row):
            raise NotLowered(plan)
        rows = [[evaluate_constant(expr, zone=self._zone) for expr in row] for row in plan.rows]
        columns = [
            pa.array([row[i] for row in rows], arrow_type(data_type)) for i, data_type in enumerate(plan.schema.types)
        ]
        return self._add_local(to_spark(columns, plan.schema, len(rows)), plan.schema)

    def _add_local(self, batch: pa.RecordBatch, row: t.RowType) -> str:
        columns = spell_columns(row)
        assert columns is not None
        return self._add_step(LocalTable(pa.Table.from_batches([batch]), columns))

    def _project(self, plan: l.Project, ordered: bool) -> str:
        below = self.step(plan.input, ordered=ordered)
        texts = [spell_expression(expr, _list_columns(plan.input, "i"), self._zone) for expr in plan.exprs]
        if None in texts:
            if not all(map(can_be_mapped, plan.exprs)):
                raise NotLowered(plan)
            calc = mapped.Calc(plan.input.schema, plan.schema, None, plan.exprs, self._zone)
            return self._add_mapped(below, calc, plan.schema)
        return self._add_part(f"SELECT {_select_list([text or '' for text in texts])} FROM {below} AS i", below)

    def _filter(self, plan: l.Plan, condition: Expression, below: str) -> str:
        spelled: list[str] = []
        unspelled: list[Expression] = []
        for part in split_conjuncts(condition):
            text = spell_expression(part, _list_columns(plan, "i"), self._zone)
            if text is None:
                unspelled.append(part)
            else:
                spelled.append(text)
        if not all(map(can_be_mapped, unspelled)):
            raise NotLowered(plan)
        if spelled:
            below = self._add_part(f"SELECT * FROM {below} AS i WHERE {' AND '.join(spelled)}", below)
        if unspelled:
            calc = mapped.Calc(plan.schema, plan.schema, combine_conjuncts(unspelled), None, self._zone)
            below = self._add_mapped(below, calc, plan.schema)
        return below

    def _aggregate(self, plan: l.Aggregate) -> str:
        columns = _list_columns(plan.input, "i")
        keys = [columns[i] for i in plan.keys]
        calls = [aggregates.spell_aggregate(call, columns) for call in plan.calls]
        if None in calls or not (keys or calls) or plan.count_window is not None:
            raise NotLowered(plan)
        if any(_has_map(plan.input.schema.types[i]) for i in plan.keys):
            raise NotLowered(plan)
        below = self.step(plan.input)
        tail = f" GROUP BY {', '.join(keys)}" if keys else ""
        return self._add_part(
            f"SELECT {_select_list([*keys, *(c or '' for c in calls)])} FROM {below} AS i{tail}", below
        )

    def _expand(self, plan: l.Expand) -> str:
        below = self.step(plan.input)
        columns = _list_columns(plan.input, "i")
        rows = []
        for set_index, kept in enumerate(plan.sets):
            cells = [
                f"CAST(NULL AS {get_spark_type(data_type)})" if i in plan.keys and i not in kept else columns[i]
                for i, data_type in enumerate(plan.input.schema.types)
            ]
            cells.append(f"CAST({set_index} AS BIGINT)")
            rows.append(f"STRUCT({_select_list(cells)})")
        return self._add_part(f"SELECT INLINE(ARRAY({', '.join(rows)})) FROM {below} AS i", below)

    def _correlate(self, plan: l.Correlate) -> str:
        if not isinstance(plan.function, Unnest) or not isinstance(plan.args[0].type, t.ArrayType):
            raise NotLowered(plan)
        columns = _list_columns(plan.input, "i")
        array = spell_expression(plan.args[0], columns, self._zone)
        if array is None:
            raise NotLowered(plan)
        below = self.step(plan.input)
        element = plan.args[0].type.element
        element_columns = [f"e.v.`{i}`" for i in range(len(element))] if isinstance(element, t.RowType) else ["e.v"]
        if plan.function.ordinality:
            element_columns.append("(e.p + 1)")
        outer = "OUTER " if plan.outer else ""
        select = f"SELECT {_select_list([*columns, *element_columns])} FROM {below} AS i"
        return self._add_part(f"{select} LATERAL VIEW {outer}POSEXPLODE({array}) e AS p, v", below)

    def _window_table(self, plan: l.WindowTable) -> str:
        if plan.window.kind == "SESSION" or plan.window.processing:
            raise NotLowered(plan)
        below = self.step(plan.input)
        windows = mapped.Windows(plan.input.schema, plan.schema, plan.window, self._zone)
        return self._add_mapped(below, windows, plan.schema)

    def _over(self, plan: l.Over) -> str:
        columns = _list_columns(plan.input, "i")
        for over in plan.calls:
            _check_order(plan.input, over.order)
        calls = [aggregates.spell_over(over, columns) for over in plan.calls]
        if None in calls:
            raise NotLowered(plan)
        below = self.step(plan.input)
        return self._add_part(f"SELECT {_select_list([*columns, *(c or '' for c in calls)])} FROM {below} AS i", below)

    def _rank(self, plan: l.Rank) -> str:
        _check_order(plan.input, plan.order)
        below = self.step(plan.input)
        columns = _list_columns(plan.input, "i")
        partition = f"PARTITION BY {', '.join(columns[i] for i in plan.partition)} " if plan.partition else ""
        order = aggregates.spell_order(plan.order, columns) or "1"
        number = f"CAST({plan.function}() OVER ({partition}ORDER BY {order}) AS BIGINT)"
        ranked = self._add_part(f"SELECT {_select_list([*columns, number])} FROM {below} AS i", below)
        rank_column = f"i.c{len(columns)}"
        kept = [*_list_columns(plan.input, "i"), *([rank_column] if plan.with_rank else [])]
        where = f"{rank_column} <= {plan.last}" + (f" AND {rank_column} >= {plan.first}" if plan.first > 1 else "")
        return self._add_part(f"SELECT {_select_list(kept)} FROM {ranked} AS i WHERE {where}", ranked)

    def _join(self, plan: l.Join) -> str:
        if plan.kind == "inner":
            flat_join = self._inner_joins(plan)
            if flat_join is not None:
                return flat_join
        return self._join_two(plan)

    def _inner_joins(self, plan: l.Join) -> str | None:
        """Lower nested inner joins to one list, whose order Spark chooses; None if a condition has no spelling."""
        flat = flatten_joins(plan)
        names = [f"j{n}.c{i}" for n, leaf in enumerate(flat.leaves) for i in range(len(leaf.schema))]
        texts = [spell_expression(part, names, self._zone) for part in flat.conditions]
        if None in texts:
            return None
        steps = [self.step(leaf) for leaf in flat.leaves]
        tables = ", ".join(f"{step} AS j{n}" for n, step in enumerate(steps))
        where = " AND ".join(text or "" for text in texts)
        text = f"SELECT {_select_list([names[i] for i in flat.columns])} FROM {tables}"
        return self._add_part(f"{text} WHERE {where}" if where else text, *steps)

    def _join_two(self, plan: l.Join) -> str:
        columns = [*_list_columns(plan.left, "a"), *_list_columns(plan.right, "b")]
        parts = [(part, spell_expression(part, columns, self._zone)) for part in split_conjuncts(plan.condition)]
        unspelled = [part for part, text in parts if text is None]
        if unspelled and plan.kind != "inner":
            raise NotLowered(plan)
        left, right = self.step(plan.left), self.step(plan.right)
        on = " AND ".join(text for _, text in parts if text is not None)
        output = _list_columns(plan.left, "a") if plan.kind in ("semi", "anti") else columns
        join_type = "CROSS" if plan.kind == "inner" and not on else _JOINS[plan.kind]
        tail = "" if join_type == "CROSS" else f" ON {on or 'TRUE'}"
        text = f"SELECT {_select_list(output)} FROM {left} AS a {join_type} JOIN {right} AS b{tail}"
        joined = self._add_part(text, left, right)
        rest = combine_conjuncts(unspelled)
        return joined if rest is None else self._filter(plan, rest, joined)

    def _set_operation(self, plan: l.SetOperation) -> str:
        steps = [self.step(part) for part in plan.parts]
        operator = f" {plan.operator}{' ALL' if plan.all or plan.operator == 'UNION' else ''} "
        return self._add_part(operator.join(f"(SELECT * FROM {part})" for part in steps), *steps)

    def _sort(self, plan: l.Sort, ordered: bool) -> str:
        below = self.step(plan.input)
        order = aggregates.spell_order(plan.order, _list_columns(plan.input, "i"))
        if plan.limit is None and not plan.offset:
            if not ordered:
                return below
            gathered = self._add_part(f"SELECT /*+ REPARTITION(1) */ * FROM {below} AS i", below)
            return self._add_part(f"SELECT * FROM {gathered} AS i SORT BY {order}", gathered)
        text = f"SELECT * FROM {below} AS i" + (f" ORDER BY {order}" if order else "")
        text += "" if plan.limit is None else f" LIMIT {plan.limit}"
        return self._add_part(text + (f" OFFSET {plan.offset}" if plan.offset else ""), below)


@dataclass(frozen=True)
class FlatJoins:
    """Nested inner joins: the joined plans, all conditions, and the output columns, over the columns of all leaves."""

    leaves: tuple[l.Plan, ...]
    conditions: tuple[Expression, ...]
    columns: tuple[int, ...]


def flatten_joins(plan: l.Plan) -> FlatJoins:
    """Collect the inner joins below a plan, through filters and projections to columns."""
    match plan:
        case l.Join(kind="inner", left=left, right=right, condition=condition):
            left_joins, right_joins = flatten_joins(left), flatten_joins(right)
            width = sum(len(leaf.schema) for leaf in left_joins.leaves)
            columns = (*left_joins.columns, *(i + width for i in right_joins.columns))
            right_conditions = [
                shift_references(condition_part, lambda i: i + width) for condition_part in right_joins.conditions
            ]
            own_conditions = [
                shift_references(condition_part, columns.__getitem__) for condition_part in split_conjuncts(condition)
            ]
            return FlatJoins(
                (*left_joins.leaves, *right_joins.leaves),
                (*left_joins.conditions, *right_conditions, *own_conditions),
                columns,
            )
        case l.Filter(input=l.Join(kind="inner") as inner, condition=condition):
            below = flatten_joins(inner)
            own_conditions = [
                shift_references(condition_part, below.columns.__getitem__)
                for condition_part in split_conjuncts(condition)
            ]
            return replace(below, conditions=(*below.conditions, *own_conditions))
        case l.Project(input=(l.Join(kind="inner") | l.Filter(input=l.Join(kind="inner"))) as inner, exprs=exprs):
            indexes = [expr.index for expr in exprs if isinstance(expr, Ref)]
            if len(indexes) == len(exprs):
                below = flatten_joins(inner)
                return replace(below, columns=tuple(below.columns[i] for i in indexes))
    return FlatJoins((plan,), (), tuple(range(len(plan.schema))))


def _check_order(plan: l.Plan, order: tuple[tuple[int, bool, bool], ...]) -> None:
    """Refuse an order by processing time, which is the order of arrival, and which Spark does not keep."""
    if any(t.get_time_attribute(plan.schema.types[i]) == t.PROCTIME for i, _, _ in order):
        raise NotLowered(order)


def _list_columns(plan: l.Plan, alias: str) -> list[str]:
    return [f"{alias}.c{i}" for i in range(len(plan.schema))]


def _select_list(texts: list[str]) -> str:
    return ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts)) or "0 AS d"


def _has_map(data_type: t.DataType) -> bool:
    return isinstance(data_type, t.MapType | t.MultisetType)


def _find_parquet(plan: l.Scan) -> tuple[str | None, pa.Schema | None]:
    """Return path and columns of a table of Parquet files that Spark can read itself."""
    if not isinstance(plan.table, TableDefinition):
        return None, None
    options = {**plan.table.options, **dict(plan.options)}
    has_plain_options = set(options) <= {"connector", "path", "format"}
    has_plain_types = all(
        isinstance(data_type, t.NumericType | t.BooleanType | t.DateType) or t.is_text(data_type)
        for data_type in plan.schema.types
    )
    if (
        not has_plain_options
        or not has_plain_types
        or (options.get("connector"), options.get("format")) != ("filesystem", "parquet")
    ):
        return None, None
    fields = [
        pa.field(name, arrow_type(data_type))
        for name, data_type in zip(plan.schema.names, plan.schema.types, strict=True)
    ]
    return options["path"], pa.schema(fields)
