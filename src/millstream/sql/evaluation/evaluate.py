"""Vectorized evaluation of expressions.

Promises: `compile_expression` returns a function from a `Frame` of columns to a column or scalar, built once for an
operator. A branch that is not evaluated (CASE, AND, OR) cannot fail. Repeated subexpressions are computed once for a
frame.
Does not know: operators, rows; functions declare how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.runtime.random_numbers import RandomNumbers
from millstream.sql.columns import arrow_type, create_external_converter, scalar_value, to_internal_values
from millstream.sql.evaluation.repeated import Shared, find_repeated
from millstream.sql.expressions.datums import as_array, get_field
from millstream.sql.expressions.nodes import Apply, Choose, Convert, Expression, FieldRef, Lit, Ref, Sym, UserCall
from millstream.sql.functions import casts
from millstream.sql.functions.library import get_function
from millstream.sql.types import data_types as t

Datum = Any  # pa.Array or pa.Scalar


class EvaluationFailed(UserError):
    """An expression cannot be computed for some row: division by zero, a string that is not a number."""


@dataclass(slots=True)
class Frame:
    """The columns that expressions are computed on, with the time, zone and random numbers of the operator."""

    columns: Sequence[pa.Array]
    count: int
    now: int = 0
    zone: str = "UTC"
    watermark: int | None = None
    draws: RandomNumbers | None = None  # the random numbers of the operator
    site: int = 0  # index of the current call among the calls of non-deterministic functions
    known: dict[Hashable, Any] = field(default_factory=dict)  # cached results of repeated subexpressions
    chosen: tuple[Frame, pa.Array] | None = None  # the frame from which rows were selected, and their indexes

    def take(self, rows: np.ndarray) -> Frame:
        """Select rows by their indexes."""
        return self.some(pa.array(rows))

    def some(self, rows: pa.Array, columns: Sequence[pa.Array] | None = None) -> Frame:
        """Select rows; columns and cached results are gathered when they are read. `columns` are the selected rows,
        if they exist."""
        selected = SelectedColumns(self.columns, rows) if columns is None else columns
        return Frame(selected, len(rows), self.now, self.zone, self.watermark, self.draws, chosen=(self, rows))

    def cached_result(self, key: Hashable) -> Datum | None:
        """Return a cached result, of this frame or of the frame from which its rows were selected."""
        value = self.known.get(key)
        if value is None and self.chosen is not None:
            source, rows = self.chosen
            value = source.cached_result(key)
            if value is not None:
                self.known[key] = value = value if isinstance(value, pa.Scalar) else value.take(rows)
        return value

    def part(self, column: int, index: int) -> pa.Array:
        """Return a field of a row column."""
        columns = self.columns
        return (
            columns.part(column, index) if isinstance(columns, SelectedColumns) else get_field(columns[column], index)
        )


class SelectedColumns(Sequence[pa.Array]):
    """Selected rows of columns; a column, or a field of one, is gathered when it is first read."""

    def __init__(self, columns: Sequence[pa.Array], rows: pa.Array) -> None:
        self._columns, self._rows = columns, rows
        self._gathered: dict[int | tuple[int, int], pa.Array] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._gathered:
            self._gathered[index] = self._columns[index].take(self._rows)
        return self._gathered[index]

    def part(self, column: int, index: int) -> pa.Array:
        """Return a field of a row column."""
        key = column, index
        if key not in self._gathered:
            self._gathered[key] = get_field(self._columns[column], index).take(self._rows)
        return self._gathered[key]


Computed = Callable[[Frame], Datum]


def compile_expression(expression: Expression, shared: Shared | None = None) -> Computed:
    """Compile an expression to a function; `shared` are subexpressions to cache, by default the repeated ones."""
    cached = find_repeated([expression]) if shared is None else shared
    key = cached.get(expression)
    compute = _compile_node(expression, cached)
    return compute if key is None else _cache_result(key, compute)


def _cache_result(key: Hashable, compute: Computed) -> Computed:
    def run(frame: Frame) -> Datum:
        value = frame.cached_result(key)
        if value is None:
            value = frame.known[key] = compute(frame)
        return value

    return run


def _compile_node(expression: Expression, shared: Shared) -> Computed:
    match expression:
        case Ref(index=index):
            return lambda frame: frame.columns[index]
        case Lit(type=data_type, value=value):
            constant = pa.scalar(value, arrow_type(data_type))
            return lambda _frame: constant
        case Sym(word=word):
            return lambda _frame: word
        case Convert():
            return _compile_cast(expression, shared)
        case FieldRef(operand=Ref(index=column), index=index):
            return lambda frame: frame.part(column, index)
        case FieldRef(operand=operand, index=index):
            row = compile_expression(operand, shared)
            return lambda frame: get_field(row(frame), index)
        case Choose():
            return _compile_case(expression, shared)
        case UserCall():
            return _compile_user_call(expression, shared)
        case Apply(function="AND" | "OR"):
            return _compile_logic(expression, shared)
        case Apply():
            return _compile_call(expression, shared)
    raise AssertionError(expression)


def _compile_call(expression: Apply, shared: Shared) -> Computed:
    function = get_function(expression.function)
    args = [compile_expression(arg, shared) for arg in expression.args]
    evaluate, result_type = function.evaluate, expression.type
    arg_types = [arg.type for arg in expression.args]
    site = None if function.deterministic else shared.next_site()

    def run(frame: Frame) -> Datum:
        if site is not None:
            frame = replace(frame, site=site)
        try:
            return evaluate(frame, [arg(frame) for arg in args], arg_types, result_type)
        except (pa.ArrowException, ArithmeticError, ValueError) as problem:
            raise EvaluationFailed(_describe_problem(expression.function, problem)) from None

    return run


def _describe_problem(name: str, problem: BaseException) -> str:
    text = str(problem)
    if "divide by zero" in text.lower() or isinstance(problem, ZeroDivisionError):
        return "division by zero"
    return f"{name}: {text or type(problem).__name__}"


def _compile_cast(expression: Convert, shared: Shared) -> Computed:
    operand = compile_expression(expression.operand, shared)
    source, target, safe = expression.operand.type, expression.type, expression.safe

    def run(frame: Frame) -> Datum:
        try:
            return casts.cast(frame, operand(frame), source, target, safe=safe)
        except (pa.ArrowException, ArithmeticError, ValueError) as problem:
            raise EvaluationFailed(_describe_problem(f"CAST to {target}", problem)) from None

    return run


def find_true_rows(datum: Datum, count: int) -> np.ndarray:
    """Return where a condition is true; NULL is not."""
    array = as_array(datum, count)
    filled = pc.fill_null(array, False) if array.null_count else array
    is_true: np.ndarray = filled.to_numpy(zero_copy_only=False).astype(bool, copy=False)
    return is_true


def _compile_logic(expression: Apply, shared: Shared) -> Computed:
    left, right = (compile_expression(operand, shared) for operand in expression.args)
    is_and = expression.function == "AND"
    combine = pc.and_kleene if is_and else pc.or_kleene

    def run(frame: Frame) -> Datum:
        first = left(frame)
        try:
            return combine(first, right(frame))
        except EvaluationFailed:
            first_array = as_array(first, frame.count)
            decided = pc.fill_null(pc.invert(first_array) if is_and else first_array, False)
            open_rows = np.flatnonzero(~decided.to_numpy(zero_copy_only=False).astype(bool))
            if not len(open_rows):
                return first_array
            second = _scatter(as_array(right(frame.take(open_rows)), len(open_rows)), open_rows, frame.count)
            return combine(first_array, second)

    return run


def _scatter(values: pa.Array, rows: np.ndarray, count: int) -> pa.Array:
    """Return the values at their rows, NULL elsewhere."""
    indexes = np.full(count, -1, dtype=np.int64)
    indexes[rows] = np.arange(len(rows))
    return values.take(pa.array(indexes, mask=indexes < 0))


def _compile_case(expression: Choose, shared: Shared) -> Computed:
    args = [compile_expression(arg, shared) for arg in expression.args]
    conditions, results, otherwise = args[0:-1:2], args[1:-1:2], args[-1]
    arrow = arrow_type(expression.type)

    def run(frame: Frame) -> Datum:
        try:
            chosen = otherwise(frame)
            branches = list(zip([c(frame) for c in conditions], [r(frame) for r in results], strict=True))
        except EvaluationFailed:
            return compute_by_branch(frame)
        for condition, result in reversed(branches):
            if isinstance(condition, pa.Scalar):
                chosen = result if condition.is_valid and scalar_value(condition) else chosen
            else:
                chosen = pc.if_else(pc.fill_null(condition, False), result, chosen)
        return chosen

    def compute_by_branch(frame: Frame) -> Datum:
        """Compute each result for its own rows only."""
        remaining = np.arange(frame.count)
        pieces: list[pa.Array] = []
        row_indexes: list[np.ndarray] = []
        for condition, result in zip(conditions, results, strict=True):
            frame_of_remaining = frame.take(remaining)
            is_true = find_true_rows(condition(frame_of_remaining), frame_of_remaining.count)
            rows = remaining[is_true]
            if len(rows):
                pieces.append(as_array(result(frame.take(rows)), len(rows)))
                row_indexes.append(rows)
            remaining = remaining[~is_true]
        if len(remaining):
            pieces.append(as_array(otherwise(frame.take(remaining)), len(remaining)))
            row_indexes.append(remaining)
        if not pieces:
            return pa.nulls(0, arrow)
        order = np.argsort(np.concatenate(row_indexes), kind="stable")
        concatenated = pa.concat_arrays([piece.cast(arrow) if piece.type != arrow else piece for piece in pieces])
        return concatenated.take(pa.array(order))

    return run


def _compile_user_call(expression: UserCall, shared: Shared) -> Computed:
    args = [compile_expression(arg, shared) for arg in expression.args]
    arg_types = [arg.type for arg in expression.args]
    to_external = [create_external_converter(arg_type) for arg_type in arg_types]
    function, result_type = expression.function, expression.type

    constants = _find_constants(expression) if function.pandas else {}

    def run_vectorized(frame: Frame) -> Datum:
        arguments = [
            (constants[i], None) if i in constants else (as_array(arg(frame), frame.count), arg_types[i])
            for i, arg in enumerate(args)
        ]
        return function.call_vectorized(arguments, frame.count, result_type, frame.zone)

    def run(frame: Frame) -> Datum:
        columns = []
        for arg, arg_type, convert in zip(args, arg_types, to_external, strict=True):
            values = to_internal_values(as_array(arg(frame), frame.count), arg_type)
            columns.append(values if convert is None else [None if v is None else convert(v) for v in values])
        return function.call(columns, frame.count, result_type)

    return run_vectorized if function.vectorized else run


def _find_constants(call: UserCall) -> dict[int, Any]:
    """Return the literals among the arguments of a pandas function, which are passed as values instead of Series.

    A call that has only literals gets Series: the function cannot know the number of rows otherwise."""
    literals = {i: arg for i, arg in enumerate(call.args) if isinstance(arg, Lit)}
    if len(literals) == len(call.args):
        return {}
    conversions = {i: create_external_converter(literal.type) for i, literal in literals.items()}
    return {
        i: literal.value if convert is None or literal.value is None else convert(literal.value)
        for (i, literal), convert in zip(literals.items(), conversions.values(), strict=True)
    }


class Projection:
    """Several expressions, computed on a frame together."""

    def __init__(self, expressions: Sequence[Expression], shared: Shared | None = None) -> None:
        cached = find_repeated(expressions) if shared is None else shared
        self._computed = [compile_expression(expression, cached) for expression in expressions]
        self._types = [arrow_type(expression.type) for expression in expressions]

    def columns(self, frame: Frame) -> list[pa.Array]:
        """Return the columns, each in its Arrow type."""
        columns = []
        for compute, arrow in zip(self._computed, self._types, strict=True):
            array = as_array(compute(frame), frame.count)
            columns.append(array if array.type == arrow else array.cast(arrow))
        return columns


class Condition:
    """A condition, computed on a frame."""

    def __init__(self, expression: Expression, shared: Shared | None = None) -> None:
        self._computed = compile_expression(expression, shared)

    def holds(self, frame: Frame) -> np.ndarray:
        """Return where the condition is true."""
        return find_true_rows(self._computed(frame), frame.count)


def evaluate_constant(expression: Expression, *, now: int = 0, zone: str = "UTC") -> Any:
    """Evaluate an expression without columns, and return its internal value."""
    data_type = expression.type
    array = as_array(compile_expression(expression)(Frame([], 1, now, zone)), 1)
    return to_internal_values(array, data_type)[0] if not isinstance(data_type, t.NullType) else None
