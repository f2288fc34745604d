"""Expressions of a pattern, evaluated over the rows of a match.

Promises: a reference to a variable is its last row unless FIRST or an offset is given; an aggregate reads all of its
rows; a variable without rows is NULL.
Does not know: automata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from millstream.functions import Function
from millstream.runtime.nfa.conditions import BatchPredicate, Paths
from millstream.runtime.random_numbers import RandomNumbers
from millstream.sql.columns import (
    arrow_type,
    create_external_converter,
    create_internal_converter,
    create_row_array,
    to_internal_values,
)
from millstream.sql.evaluation.evaluate import (
    Computed,
    EvaluationFailed,
    Frame,
    Projection,
    compile_expression,
    find_true_rows,
)
from millstream.sql.expressions.datums import as_array
from millstream.sql.expressions.nodes import Expression, Ref
from millstream.sql.functions.aggregates import create_aggregation
from millstream.sql.functions.function_context import ASYNC_DEFAULTS
from millstream.sql.functions.user_functions import UserFunction, find_user_functions
from millstream.sql.logical.patterns import PatternRef
from millstream.sql.operators.pattern.pattern_paths import Accumulated, Aggregate, FirstRow, LastRow
from millstream.sql.types import data_types as t

Rows = Callable[[str | None], Sequence[Any]]


class PatternExpression:
    """An expression over values of a match.

    It is compiled on first use, so that every subtask has its own instances of functions."""

    def __init__(self, expression: Expression, refs: Sequence[PatternRef], schema: t.RowType, zone: str) -> None:
        self._expression, self._refs = expression, refs
        self._schema, self._zone = schema, zone
        self._type = expression.type
        self._kinds = [
            ref.expr.type if ref.call is None and ref.expr is not None else _find_result(ref) for ref in refs
        ]
        self._compiled: tuple[Computed, list[Projection]] | None = None
        self.draws: RandomNumbers | None = None

    def functions(self) -> list[UserFunction]:
        """Return the user-defined functions in the expression."""
        return find_user_functions((self._expression, self._refs))

    def _compile(self) -> tuple[Computed, list[Projection]]:
        if self._compiled is None:
            self._convert = [create_internal_converter(data_type) for data_type in self._schema.types]
            self._show = create_external_converter(self._type)
            self._arrow = list(map(arrow_type, self._kinds))
            refs = (list(ref.args) if ref.call is not None or ref.expr is None else [ref.expr] for ref in self._refs)
            self._compiled = compile_expression(self._expression), list(map(Projection, refs))
        return self._compiled

    def value(self, rows: Rows, now: int) -> Any:
        """Evaluate the expression, and return the value in its external representation."""
        compute, projections = self._compile()
        columns = [
            pa.array([self._evaluate_ref(ref, projection, rows, now)], arrow_type(data_type))
            for ref, projection, data_type in zip(self._refs, projections, self._kinds, strict=True)
        ]
        array = as_array(compute(Frame(columns, 1, now, self._zone, draws=self.draws)), 1)
        (value,) = to_internal_values(array, self._type)
        return value if self._show is None or value is None else self._show(value)

    def create_accumulators(self) -> list[Accumulated]:
        """Return an accumulator for each value that the expression reads."""
        _, projections = self._compile()
        accumulators: list[Accumulated] = []
        for ref, projection in zip(self._refs, projections, strict=True):
            if ref.call is not None:
                accumulators.append(
                    Aggregate(ref.variable, self._evaluate_for_row(projection, ref.args, whole=True), ref.call)
                )
            else:
                assert ref.expr is not None
                of_row = self._evaluate_for_row(projection, (ref.expr,), whole=False)
                row_type = FirstRow if ref.first else LastRow
                accumulators.append(row_type(ref.variable, of_row, ref.offset))
        return accumulators

    def _evaluate_for_row(
        self, projection: Projection, expressions: Sequence[Expression], *, whole: bool
    ) -> Callable[[Any], Any]:
        """Return a function that computes expressions for a row: a tuple of all with `whole`, else the only one."""
        convert = self._convert

        def column(index: int) -> Callable[[Any], Any]:
            return lambda row: None if row[index] is None else convert[index](row[index])

        def compute_row(row: Any) -> tuple[Any, ...]:
            columns = projection.columns(self._create_frame([row], 0))
            return tuple(
                to_internal_values(column_values, expression.type)[0]
                for column_values, expression in zip(columns, expressions, strict=True)
            )

        columns = [column(expression.index) for expression in expressions if isinstance(expression, Ref)]
        if len(columns) < len(expressions):
            return compute_row if whole else lambda row: compute_row(row)[0]
        return (lambda row: tuple([expression(row) for expression in columns])) if whole else columns[0]

    def holds(self, values: Sequence[Sequence[Any]], count: int, now: int) -> list[bool]:
        """Return for each match whether the condition is true; `values` are the accumulated values."""
        compute, _ = self._compile()
        columns = [pa.array(column, data_type) for column, data_type in zip(values, self._arrow, strict=True)]
        return find_true_rows(compute(Frame(columns, count, now, self._zone, draws=self.draws)), count).tolist()  # type: ignore[no-any-return]

    def _evaluate_ref(self, ref: PatternRef, projection: Projection, rows: Rows, now: int) -> Any:
        variable_rows = rows(ref.variable)
        if ref.call is not None:
            return self._aggregate(ref, projection, variable_rows, now)
        position = ref.offset if ref.first else len(variable_rows) - 1 - ref.offset
        if not 0 <= position < len(variable_rows):
            return None
        assert ref.expr is not None
        (column,) = projection.columns(self._create_frame([variable_rows[position]], now))
        return to_internal_values(column, ref.expr.type)[0]

    def _aggregate(self, ref: PatternRef, projection: Projection, variable_rows: Sequence[Any], now: int) -> Any:
        assert ref.call is not None
        function = create_aggregation(ref.call, retracts=False)
        acc = function.create()
        columns = projection.columns(self._create_frame(variable_rows, now)) if ref.args and variable_rows else []
        values = [to_internal_values(c, a.type) for c, a in zip(columns, ref.args, strict=False)]
        for row in zip(*values, strict=True) if values else [()] * len(variable_rows):
            function.add(acc, row)
        return function.value(acc)

    def _create_frame(self, external_rows: Sequence[Any], now: int) -> Frame:
        internal_rows = [
            tuple(None if v is None else convert(v) for v, convert in zip(row, self._convert, strict=True))
            for row in external_rows
        ]
        array = create_row_array(internal_rows, None, self._schema)
        return Frame(
            [array.field(i) for i in range(len(self._schema))], len(internal_rows), now, self._zone, draws=self.draws
        )


def _find_result(ref: PatternRef) -> t.DataType:
    assert ref.call is not None
    return ref.call.type


class PatternFunctions(Function):
    """The user-defined functions of a pattern, opened and closed with it; sets the random numbers of its
    expressions."""

    def __init__(self, functions: Sequence[UserFunction], expressions: Sequence[PatternExpression]) -> None:
        self._functions, self._expressions = functions, expressions

    def open(self, runtime_context: Any) -> None:
        """Open the functions."""
        for expression in self._expressions:
            expression.draws = runtime_context._context.draws
        for function in self._functions:
            function.open(runtime_context._context, ASYNC_DEFAULTS)

    def close(self) -> None:
        """Close the functions."""
        for function in self._functions:
            function.close()


class DefineCondition(BatchPredicate):
    """A condition of DEFINE, evaluated for an event and a partial match."""

    def __init__(self, variable: str, expression: PatternExpression, order: Sequence[str]) -> None:
        self._variable, self._expression, self._order = variable, expression, order
        self._calls_users = bool(expression.functions())  # user-defined functions are called only if they are needed
        self._carried: list[Accumulated] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_carried": None}

    def __call__(self, event: Any, context: Any) -> bool:
        """Return whether the condition is true for the event."""

        def rows(name: str | None) -> Sequence[Any]:
            if name is None:
                before = [row for variable in self._order for row in context.get_events_for_pattern(variable)]
                return [*before, event]
            variable_rows = list(context.get_events_for_pattern(name))
            return [*variable_rows, event] if name == self._variable else variable_rows

        return self._expression.value(rows, context.current_processing_time()) is True

    def evaluate_all(self, event: Any, paths: Paths, nodes: Sequence[int], now: int) -> list[bool] | None:
        """Evaluate the condition for several partial matches; None if they must be evaluated one by one."""
        if self._calls_users:
            return None
        if self._carried is None:
            self._carried = self._expression.create_accumulators()
        accumulators = self._carried
        try:
            accumulated = [paths.accumulated(self, node) for node in nodes]
            columns = []
            for index, accumulator in enumerate(accumulators):
                if accumulator.takes(self._variable):
                    value = accumulator.of_row(event)
                    columns.append(
                        [accumulator.value(accumulator.after(values[index], value)) for values in accumulated]
                    )
                else:
                    columns.append([accumulator.value(values[index]) for values in accumulated])
            return self._expression.holds(columns, len(nodes), now)
        except EvaluationFailed:
            return None

    def initial(self) -> tuple[Any, ...]:
        """Return the accumulators of no rows."""
        return tuple([accumulator.nothing() for accumulator in self._carried or ()])

    def values_of(self, name: str, event: Any) -> tuple[Any, ...]:
        """Return the values of an event that are accumulated."""
        return tuple(
            [accumulator.of_row(event) if accumulator.takes(name) else None for accumulator in self._carried or ()]
        )

    def accumulate(self, accumulated: tuple[Any, ...], name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the accumulators with one more event."""
        entries = zip(self._carried or (), accumulated, values, strict=True)
        return tuple(
            [
                accumulator.after(before, value) if accumulator.takes(name) else before
                for accumulator, before, value in entries
            ]
        )


class MatchOutput:
    """Computes the output row of a match: partition columns, then measures."""

    def __init__(
        self,
        partition: Sequence[int],
        measures: Sequence[PatternExpression],
        order: Sequence[str],
        subsets: Mapping[str, Sequence[str]],
    ) -> None:
        self._partition, self._measures, self._order, self._subsets = partition, measures, order, subsets

    def process_match(self, match: Mapping[str, Sequence[Any]], context: Any) -> Any:
        """Yield the output row of a match."""
        every = [row for name in self._order for row in match.get(name, ())]

        def rows(name: str | None) -> Sequence[Any]:
            if name is None:
                return every
            if name in self._subsets:
                return [
                    row
                    for variable in self._order
                    if variable in self._subsets[name]
                    for row in match.get(variable, ())
                ]
            return match.get(name, ())

        now = context.current_processing_time()
        head = [every[-1][i] for i in self._partition]
        yield tuple([*head, *(measure.value(rows, now) for measure in self._measures)])
