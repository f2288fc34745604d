"""Values of a pattern: expressions over the rows that a match has taken.

Promises: a reference to a variable is its last row unless FIRST or an offset says otherwise; an aggregate is over all
of its rows; a variable without rows gives NULL.
Does not know: automata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.model.functions import Function
from millstream.sql import types as t
from millstream.sql.columns import array_of, arrow_type, converter, external, internal_values
from millstream.sql.evaluate import Computed, Frame, Projection, as_array, compiled
from millstream.sql.expressions import AggregateCall, Expression
from millstream.sql.function_context import ASYNC_DEFAULTS
from millstream.sql.functions.aggregates import aggregation
from millstream.sql.user_functions import UserFunction, functions_in


@dataclass(frozen=True)
class PatternRef:
    """One value a pattern's expression needs: a row of a variable (None for all), or an aggregate over its rows."""

    variable: str | None
    first: bool = False
    offset: int = 0
    expr: Expression | None = None
    call: AggregateCall | None = None
    args: tuple[Expression, ...] = ()


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

    def functions(self) -> list[UserFunction]:
        """The users' functions in it."""
        return functions_in((self._expression, self._refs))

    def _ready(self) -> tuple[Computed, list[Projection]]:
        if self._compiled is None:
            self._convert = [converter(kind) for kind in self._schema.types]
            self._show = external(self._type)
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
        array = as_array(compute(Frame(columns, 1, now, self._zone)), 1)
        (found,) = internal_values(array, self._type)
        return found if self._show is None or found is None else self._show(found)

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
        return Frame([array.field(i) for i in range(len(self._schema))], len(made), now, self._zone)


def _result(ref: PatternRef) -> t.DataType:
    assert ref.call is not None
    return ref.call.type


class PatternFunctions(Function):
    """The users' functions of a pattern, opened and closed with it."""

    def __init__(self, functions: Sequence[UserFunction]) -> None:
        self._functions = functions

    def open(self, runtime_context: Any) -> None:
        """Open them."""
        for function in self._functions:
            function.open(runtime_context._context, ASYNC_DEFAULTS)

    def close(self) -> None:
        """Close them."""
        for function in self._functions:
            function.close()


class Defined:
    """A condition of DEFINE, asked of an event and the partial match."""

    def __init__(self, variable: str, expression: PatternExpression, order: Sequence[str]) -> None:
        self._variable, self._expression, self._order = variable, expression, order

    def __call__(self, event: Any, context: Any) -> bool:
        """Whether the event can be taken."""

        def rows(name: str | None) -> Sequence[Any]:
            if name is None:
                before = [row for each in self._order for row in context.get_events_for_pattern(each)]
                return [*before, event]
            found = list(context.get_events_for_pattern(name))
            return [*found, event] if name == self._variable else found

        return self._expression.value(rows, context.current_processing_time()) is True


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
