"""Values of a pattern: expressions over the rows that a match has taken.

Promises: a reference to a variable is its last row unless FIRST or an offset says otherwise; an aggregate is over all
of its rows; a variable without rows gives NULL.
Does not know: automata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from millstream.functions import Function
from millstream.runtime.nfa.conditions import BatchPredicate, Paths
from millstream.runtime.random_numbers import RandomNumbers
from millstream.sql.columns import array_of, arrow_type, converter, external, internal_values
from millstream.sql.evaluation.evaluate import Computed, EvaluationFailed, Frame, Projection, compiled, truth
from millstream.sql.expressions.datums import as_array
from millstream.sql.expressions.nodes import Expression, Ref
from millstream.sql.functions.aggregates import aggregation
from millstream.sql.functions.function_context import ASYNC_DEFAULTS
from millstream.sql.functions.user_functions import UserFunction, functions_in
from millstream.sql.logical.patterns import PatternRef
from millstream.sql.operators.pattern.pattern_paths import Aggregate, Carried, FirstRow, LastRow
from millstream.sql.types import data_types as t

Rows = Callable[[str | None], Sequence[Any]]


class PatternExpression:
    """An expression over values of a match.

    It is compiled where it is first asked for, so that every subtask computes with functions of its own."""

    def __init__(self, expression: Expression, refs: Sequence[PatternRef], schema: t.RowType, zone: str) -> None:
        self._expression, self._refs = expression, refs
        self._schema, self._zone = schema, zone
        self._type = expression.type
        self._kinds = [ref.expr.type if ref.call is None and ref.expr is not None else _result(ref) for ref in refs]
        self._compiled: tuple[Computed, list[Projection]] | None = None
        self.draws: RandomNumbers | None = None

    def functions(self) -> list[UserFunction]:
        """The users' functions in it."""
        return functions_in((self._expression, self._refs))

    def _ready(self) -> tuple[Computed, list[Projection]]:
        if self._compiled is None:
            self._convert = [converter(kind) for kind in self._schema.types]
            self._show = external(self._type)
            self._arrow = list(map(arrow_type, self._kinds))
            refs = (list(ref.args) if ref.call is not None or ref.expr is None else [ref.expr] for ref in self._refs)
            self._compiled = compiled(self._expression), list(map(Projection, refs))
        return self._compiled

    def value(self, rows: Rows, now: int) -> Any:
        """The value, as users see it."""
        compute, projections = self._ready()
        columns = [
            pa.array([self._one(ref, projection, rows, now)], arrow_type(kind))
            for ref, projection, kind in zip(self._refs, projections, self._kinds, strict=True)
        ]
        array = as_array(compute(Frame(columns, 1, now, self._zone, draws=self.draws)), 1)
        (found,) = internal_values(array, self._type)
        return found if self._show is None or found is None else self._show(found)

    def carried(self) -> list[Carried]:
        """What must be known of the rows of a match, value by value."""
        _, projections = self._ready()
        made: list[Carried] = []
        for ref, projection in zip(self._refs, projections, strict=True):
            if ref.call is not None:
                made.append(Aggregate(ref.variable, self._of_row(projection, ref.args, whole=True), ref.call))
            else:
                assert ref.expr is not None
                of_row = self._of_row(projection, (ref.expr,), whole=False)
                kind = FirstRow if ref.first else LastRow
                made.append(kind(ref.variable, of_row, ref.offset))
        return made

    def _of_row(
        self, projection: Projection, expressions: Sequence[Expression], *, whole: bool
    ) -> Callable[[Any], Any]:
        """The values of expressions for a row, or of the only one: a column needs no computing."""
        convert = self._convert

        def column(index: int) -> Callable[[Any], Any]:
            return lambda row: None if row[index] is None else convert[index](row[index])

        def computed(row: Any) -> tuple[Any, ...]:
            columns = projection.columns(self._frame([row], 0))
            return tuple(internal_values(found, each.type)[0] for found, each in zip(columns, expressions, strict=True))

        columns = [column(each.index) for each in expressions if isinstance(each, Ref)]
        if len(columns) < len(expressions):
            return computed if whole else lambda row: computed(row)[0]
        return (lambda row: tuple([each(row) for each in columns])) if whole else columns[0]

    def holds(self, values: Sequence[Sequence[Any]], count: int, now: int) -> list[bool]:
        """Where a condition is true: `values` are those of what is carried, one for each match."""
        compute, _ = self._ready()
        columns = [pa.array(column, kind) for column, kind in zip(values, self._arrow, strict=True)]
        return truth(compute(Frame(columns, count, now, self._zone, draws=self.draws)), count).tolist()  # type: ignore[no-any-return]

    def _one(self, ref: PatternRef, projection: Projection, rows: Rows, now: int) -> Any:
        found = rows(ref.variable)
        if ref.call is not None:
            return self._aggregated(ref, projection, found, now)
        place = ref.offset if ref.first else len(found) - 1 - ref.offset
        if not 0 <= place < len(found):
            return None
        assert ref.expr is not None
        (column,) = projection.columns(self._frame([found[place]], now))
        return internal_values(column, ref.expr.type)[0]

    def _aggregated(self, ref: PatternRef, projection: Projection, found: Sequence[Any], now: int) -> Any:
        assert ref.call is not None
        function = aggregation(ref.call, retracts=False)
        acc = function.create()
        columns = projection.columns(self._frame(found, now)) if ref.args and found else []
        values = [internal_values(c, a.type) for c, a in zip(columns, ref.args, strict=False)]
        for row in zip(*values, strict=True) if values else [()] * len(found):
            function.add(acc, row)
        return function.value(acc)

    def _frame(self, found: Sequence[Any], now: int) -> Frame:
        made = [
            tuple(None if v is None else convert(v) for v, convert in zip(row, self._convert, strict=True))
            for row in found
        ]
        array = array_of(made, None, self._schema)
        return Frame([array.field(i) for i in range(len(self._schema))], len(made), now, self._zone, draws=self.draws)


def _result(ref: PatternRef) -> t.DataType:
    assert ref.call is not None
    return ref.call.type


class PatternFunctions(Function):
    """The users' functions of a pattern, opened and closed with it; its expressions get their random numbers here."""

    def __init__(self, functions: Sequence[UserFunction], expressions: Sequence[PatternExpression]) -> None:
        self._functions, self._expressions = functions, expressions

    def open(self, runtime_context: Any) -> None:
        """Open them."""
        for expression in self._expressions:
            expression.draws = runtime_context._context.draws
        for function in self._functions:
            function.open(runtime_context._context, ASYNC_DEFAULTS)

    def close(self) -> None:
        """Close them."""
        for function in self._functions:
            function.close()


class Defined(BatchPredicate):
    """A condition of DEFINE, asked of an event and the partial match."""

    def __init__(self, variable: str, expression: PatternExpression, order: Sequence[str]) -> None:
        self._variable, self._expression, self._order = variable, expression, order
        self._alone = bool(expression.functions())  # what users wrote is called no oftener than it is asked for
        self._carried: list[Carried] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_carried": None}

    def __call__(self, event: Any, context: Any) -> bool:
        """Whether the event can be taken."""

        def rows(name: str | None) -> Sequence[Any]:
            if name is None:
                before = [row for each in self._order for row in context.get_events_for_pattern(each)]
                return [*before, event]
            found = list(context.get_events_for_pattern(name))
            return [*found, event] if name == self._variable else found

        return self._expression.value(rows, context.current_processing_time()) is True

    def evaluate_all(self, event: Any, paths: Paths, nodes: Sequence[int], now: int) -> list[bool] | None:
        """As BatchPredicate promises."""
        if self._alone:
            return None
        if self._carried is None:
            self._carried = self._expression.carried()
        each = self._carried
        try:
            known = [paths.accumulated(self, node) for node in nodes]
            columns = []
            for place, one in enumerate(each):
                if one.takes(self._variable):
                    value = one.of_row(event)
                    columns.append([one.value(one.after(found[place], value)) for found in known])
                else:
                    columns.append([one.value(found[place]) for found in known])
            return self._expression.holds(columns, len(nodes), now)
        except EvaluationFailed:
            return None

    def initial(self) -> tuple[Any, ...]:
        """As BatchPredicate promises."""
        return tuple([one.nothing() for one in self._carried or ()])

    def values_of(self, name: str, event: Any) -> tuple[Any, ...]:
        """As BatchPredicate promises."""
        return tuple([one.of_row(event) if one.takes(name) else None for one in self._carried or ()])

    def accumulate(self, accumulated: tuple[Any, ...], name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """As BatchPredicate promises."""
        each = zip(self._carried or (), accumulated, values, strict=True)
        return tuple([one.after(had, value) if one.takes(name) else had for one, had, value in each])


class Measured:
    """The rows of matches: partition columns, then measures."""

    def __init__(
        self,
        partition: Sequence[int],
        measures: Sequence[PatternExpression],
        order: Sequence[str],
        subsets: Mapping[str, Sequence[str]],
    ) -> None:
        self._partition, self._measures, self._order, self._subsets = partition, measures, order, subsets

    def process_match(self, match: Mapping[str, Sequence[Any]], context: Any) -> Any:
        """One row."""
        every = [row for name in self._order for row in match.get(name, ())]

        def rows(name: str | None) -> Sequence[Any]:
            if name is None:
                return every
            if name in self._subsets:
                return [row for each in self._order if each in self._subsets[name] for row in match.get(each, ())]
            return match.get(name, ())

        now = context.current_processing_time()
        head = [every[-1][i] for i in self._partition]
        yield tuple([*head, *(measure.value(rows, now) for measure in self._measures)])
