"""Rows made of rows: grouping sets, UNNEST and table functions.

Promises: a made row has the kind of change of the row it was made of, and follows the order of making.
Does not know: state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.runtime.rowwise import failure
from millstream.sql.columns import arrow_type, converter, external, internal_values, optional, struct_of
from millstream.sql.evaluation.evaluate import EvaluationFailed, Projection
from millstream.sql.expressions.nodes import Expression
from millstream.sql.expressions.stable_text import expression_text, shorten
from millstream.sql.functions.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.functions.user_functions import UserFunction, WrongResult
from millstream.sql.logical.nodes import Unnest
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.spec import (
    STATELESS,
    ColumnTexts,
    PlanContext,
    RowPassingSpec,
    SqlOperatorSpec,
    StateTraits,
)
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class ExpandSpec(SqlOperatorSpec):
    """Each row once for each grouping set."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return ExpandOperator(context, self)


class ExpandOperator(TableOperator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: ExpandSpec) -> None:
        super().__init__(context, spec.output)
        self._spec = spec

    def on_batch(self, batch: Batch, side: int) -> None:
        """Make the copies; those of one row stand together."""
        spec, array = self._spec, batch.array()
        count, width, sets = len(array), len(spec.input), len(spec.sets)
        rows = np.repeat(np.arange(count), sets)
        number = np.tile(np.arange(sets), count)
        columns = []
        for i in range(width):
            taken = array.field(i).take(pa.array(rows))
            if i in spec.keys:
                kept = np.array([i in chosen for chosen in spec.sets])[number]
                taken = taken.take(pa.array(np.arange(len(rows)), mask=~kept))
            columns.append(taken)
        columns.append(pa.array(number.astype(np.int64)))
        kinds = array.field(width).take(pa.array(rows))
        self.emit_array(struct_of(columns, kinds, self.output, len(rows)))


@dataclass(frozen=True)
class CorrelateSpec(RowPassingSpec):
    """Each row with the rows a function makes of it; with `outer`, with NULLs where it makes none."""

    input: t.RowType
    output: t.RowType
    function: Unnest | UserFunction
    args: tuple[Expression, ...]
    outer: bool
    zone: str = "UTC"
    asynchronous: AsyncOptions = ASYNC_DEFAULTS

    def _call_text(self, plan: PlanContext) -> str:
        return f"{self.function.name}({', '.join(expression_text(arg, plan.inputs[0]) for arg in self.args)})"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits(free={"function": self._call_text(plan)})

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,), call = plan.inputs, self._call_text(plan)
        return [*columns, *(shorten(f"{call}.{i}") for i in range(len(plan.output) - len(columns)))]

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return CorrelateOperator(context, self)


class CorrelateOperator(TableOperator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: CorrelateSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec, spec.asynchronous)
        self._spec = spec
        self._projection = Projection(spec.args)
        self._made = spec.output.types[len(spec.input) :]
        self._shows = [external(arg.type) for arg in spec.args]
        self._converters = [optional(converter(kind)) for kind in self._made]

    def on_batch(self, batch: Batch, side: int) -> None:
        """Make rows."""
        spec, array = self._spec, batch.array()
        width = len(spec.input)
        try:
            arrays = self._projection.columns(self.frame(array, width))
        except EvaluationFailed as problem:
            raise self.fail(problem) from None
        columns = [internal_values(a, arg.type) for a, arg in zip(arrays, spec.args, strict=True)]
        places: list[int] = []
        rows: list[tuple[Any, ...]] = []
        given = list(zip(*columns, strict=True)) if columns else [()] * len(array)
        for place, made in enumerate(self._rows_of_all(given)):
            if not made and spec.outer:
                rows.append((None,) * len(self._made))
                places.append(place)
            rows.extend(made)
            places.extend([place] * len(made))
        if not rows:
            return
        chosen = pa.array(places, pa.int64())
        left = [array.field(i).take(chosen) for i in range(width)]
        right = [
            pa.array(values, arrow_type(kind)) for values, kind in zip(zip(*rows, strict=True), self._made, strict=True)
        ]
        self.emit_array(struct_of([*left, *right], array.field(width).take(chosen), self.output, len(rows)))

    def _rows_of_all(self, given: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
        function = self._spec.function
        if isinstance(function, Unnest):
            yield from (self._unnested(values[0], function) for values in given)
            return
        shown = [self._argued(values) for values in given]
        if function.asynchronous:
            yield from (self._rows_of(function, _listed(results)) for results in function.call_concurrently(shown))
            return
        evaluate = function.function.eval if hasattr(function.function, "eval") else function.function
        for values in shown:
            try:
                listed = _listed(evaluate(*values))
            except (Exception, SystemExit) as problem:
                raise failure(function.name, problem, record=values) from problem
            yield self._rows_of(function, listed)

    def _argued(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(v if s is None or v is None else s(v) for v, s in zip(values, self._shows, strict=True))

    def _unnested(self, value: Any, function: Unnest) -> list[tuple[Any, ...]]:
        if value is None:
            return []
        kind = self._spec.args[0].type
        made: list[tuple[Any, ...]]
        match kind:
            case t.MapType():
                made = list(value)
            case t.MultisetType(element=element):
                flat = [each for each, count in value for _ in range(count)]
                made = _as_rows(flat, element)
            case t.ArrayType(element=element):
                made = _as_rows(list(value), element)
            case _:
                raise AssertionError(kind)
        if function.ordinality:
            made = [(*row, place) for place, row in enumerate(made, 1)]
        return made

    def _rows_of(self, function: UserFunction, results: list[Any]) -> list[tuple[Any, ...]]:
        made: list[tuple[Any, ...]] = []
        for result in results:
            row = tuple(result) if isinstance(result, tuple | list) or hasattr(result, "_values") else (result,)
            if len(row) != len(self._converters):
                raise WrongResult(
                    function.name, f"it made {row!r}, which has {len(row)} columns, not {len(self._converters)}"
                )
            try:
                made.append(tuple(convert(v) for convert, v in zip(self._converters, row, strict=True)))
            except (TypeError, ValueError):
                raise WrongResult(function.name, f"it made {row!r}, which does not fit its type") from None
        return made


def _listed(results: Any) -> list[Any]:
    """What a table function gave: many rows, one, or none."""
    if results is None:
        return []
    return list(results) if hasattr(results, "__iter__") and not isinstance(results, str | tuple) else [results]


def _as_rows(values: list[Any], element: t.DataType) -> list[tuple[Any, ...]]:
    if isinstance(element, t.RowType):
        return [(None,) * len(element) if value is None else tuple(value) for value in values]
    return [(value,) for value in values]
