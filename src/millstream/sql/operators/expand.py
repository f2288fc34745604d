"""Operators that emit several rows for a row: grouping sets, UNNEST and table functions.

Promises: an output row has the row kind of its input row; the order of the input rows is kept.
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
from millstream.sql.columns import (
    accept_none,
    arrow_type,
    combine_columns,
    create_external_converter,
    create_internal_converter,
    to_internal_values,
)
from millstream.sql.evaluation.evaluate import EvaluationFailed, Projection
from millstream.sql.expressions.nodes import Expression
from millstream.sql.expressions.stable_text import format_expression, shorten
from millstream.sql.functions.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.functions.model_functions import ModelFunction
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
from millstream.types.copies import copy_value


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
        """Create the operator."""
        return ExpandOperator(context, self)


class ExpandOperator(TableOperator):
    """Copies rows for grouping sets."""

    def __init__(self, context: OperatorContext, spec: ExpandSpec) -> None:
        super().__init__(context, spec.output)
        self._spec = spec

    def on_batch(self, batch: Batch, side: int) -> None:
        """Emit a copy of each row for each grouping set; the copies of a row follow one another."""
        spec, array = self._spec, batch.array()
        count, width, sets = len(array), len(spec.input), len(spec.sets)
        rows = np.repeat(np.arange(count), sets)
        set_index = np.tile(np.arange(sets), count)
        columns = []
        for i in range(width):
            column = array.field(i).take(pa.array(rows))
            if i in spec.keys:
                kept = np.array([i in grouping_set for grouping_set in spec.sets])[set_index]
                column = column.take(pa.array(np.arange(len(rows)), mask=~kept))
            columns.append(column)
        columns.append(pa.array(set_index.astype(np.int64)))
        row_kinds = array.field(width).take(pa.array(rows))
        self.emit_array(combine_columns(columns, row_kinds, self.output, len(rows)))


@dataclass(frozen=True)
class CorrelateSpec(RowPassingSpec):
    """Each row with the rows that a table function returns for it; with `outer`, with NULLs if there are none."""

    input: t.RowType
    output: t.RowType
    function: Unnest | UserFunction
    args: tuple[Expression, ...]
    outer: bool
    zone: str = "UTC"
    asynchronous: AsyncOptions = ASYNC_DEFAULTS

    def _call_text(self, plan: PlanContext) -> str:
        return f"{self.function.name}({', '.join(format_expression(arg, plan.inputs[0]) for arg in self.args)})"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits(free={"function": self._call_text(plan)})

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column."""
        (columns,), call = plan.inputs, self._call_text(plan)
        return [*columns, *(shorten(f"{call}.{i}") for i in range(len(plan.output) - len(columns)))]

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return CorrelateOperator(context, self)


class CorrelateOperator(TableOperator):
    """Calls the table function for each row."""

    def __init__(self, context: OperatorContext, spec: CorrelateSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec, spec.asynchronous)
        self._spec = spec
        self._projection = Projection(spec.args)
        self._result_types = spec.output.types[len(spec.input) :]
        self._to_external = [create_external_converter(arg.type) for arg in spec.args]
        self._converters = [accept_none(create_internal_converter(data_type)) for data_type in self._result_types]

    def on_batch(self, batch: Batch, side: int) -> None:
        """Call the function for each row, and emit the results with the row."""
        spec, array = self._spec, batch.array()
        width = len(spec.input)
        try:
            arrays = self._projection.columns(self.create_frame(array, width))
        except EvaluationFailed as problem:
            raise self.fail(problem) from None
        columns = [to_internal_values(a, arg.type) for a, arg in zip(arrays, spec.args, strict=True)]
        row_indexes: list[int] = []
        rows: list[tuple[Any, ...]] = []
        arguments = list(zip(*columns, strict=True)) if columns else [()] * len(array)
        for row_index, results in enumerate(self._call_all(arguments)):
            if not results and spec.outer:
                rows.append((None,) * len(self._result_types))
                row_indexes.append(row_index)
            rows.extend(results)
            row_indexes.extend([row_index] * len(results))
        if not rows:
            return
        indexes = pa.array(row_indexes, pa.int64())
        left = [array.field(i).take(indexes) for i in range(width)]
        right = [
            pa.array(values, arrow_type(data_type))
            for values, data_type in zip(zip(*rows, strict=True), self._result_types, strict=True)
        ]
        self.emit_array(combine_columns([*left, *right], array.field(width).take(indexes), self.output, len(rows)))

    def _call_all(self, arguments: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
        function = self._spec.function
        if isinstance(function, Unnest):
            yield from (self._unnest(values[0], function) for values in arguments)
            return
        external_arguments = [self._to_arguments(values) for values in arguments]
        if isinstance(function, ModelFunction) and function.takes_batches:
            yield from (
                self._convert_results(function, results) for results in function.predict_rows(external_arguments)
            )
            return
        if function.asynchronous:
            yield from (
                self._convert_results(function, _to_list(results))
                for results in function.call_concurrently(external_arguments)
            )
            return
        evaluate = function.function.eval if hasattr(function.function, "eval") else function.function
        for values in external_arguments:
            try:
                results = _to_list(evaluate(*values))
            except (Exception, SystemExit) as problem:
                raise failure(function.name, problem, record=values) from problem
            yield self._convert_results(function, results)

    def _to_arguments(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(v if s is None or v is None else s(v) for v, s in zip(values, self._to_external, strict=True))

    def _unnest(self, value: Any, function: Unnest) -> list[tuple[Any, ...]]:
        if value is None:
            return []
        data_type = self._spec.args[0].type
        rows: list[tuple[Any, ...]]
        match data_type:
            case t.MapType():
                rows = list(value)
            case t.MultisetType(element=element):
                flat = [element_value for element_value, count in value for _ in range(count)]
                rows = _as_rows(flat, element)
            case t.ArrayType(element=element):
                rows = _as_rows(list(value), element)
            case _:
                raise AssertionError(data_type)
        if function.ordinality:
            rows = [(*row, ordinality) for ordinality, row in enumerate(rows, 1)]
        return rows

    def _convert_results(self, function: UserFunction, results: list[Any]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for result in results:
            row = tuple(result) if isinstance(result, tuple | list) or hasattr(result, "_values") else (result,)
            if len(row) != len(self._converters):
                raise WrongResult(
                    function.name, f"it returned {row!r}, which has {len(row)} columns, not {len(self._converters)}"
                )
            try:
                rows.append(tuple(convert(v) for convert, v in zip(self._converters, row, strict=True)))
            except (TypeError, ValueError):
                raise WrongResult(
                    function.name, f"it returned {row!r}, which does not match its declared result type"
                ) from None
        return rows


def _to_list(results: Any) -> list[Any]:
    """Return the results of a table function as a list: it may return many rows, one or None."""
    if results is None:
        return []
    many = hasattr(results, "__iter__") and not isinstance(results, str | tuple)
    return list(map(copy_value, results)) if many else [results]  # a generator may change a row after it yielded it


def _as_rows(values: list[Any], element: t.DataType) -> list[tuple[Any, ...]]:
    if isinstance(element, t.RowType):
        return [(None,) * len(element) if value is None else tuple(value) for value in values]
    return [(value,) for value in values]
