"""Expressions computed over whole columns.

Promises: `compiled(expression)` is a function from a `Frame` of columns to a column or a constant, built once for an
operator; a branch that is not taken (CASE, AND, OR) cannot fail; what occurs several times is computed once a frame.
Does not know: operators, rows; functions say themselves how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.runtime.random_numbers import RandomNumbers
from millstream.sql.columns import arrow_type, external, internal_values, scalar_value
from millstream.sql.evaluation.repeated import Shared, repeated
from millstream.sql.expressions.datums import as_array, field_datum
from millstream.sql.expressions.fields import FieldRef
from millstream.sql.expressions.nodes import Apply, Choose, Convert, Expression, Lit, Ref, Sym, UserCall
from millstream.sql.functions import casts
from millstream.sql.functions.library import function_named
from millstream.sql.types import data_types as t

Datum = Any  # pa.Array or pa.Scalar


class EvaluationFailed(UserError):
    """An expression has no value for some row: division by zero, a string that is no number."""


@dataclass(slots=True)
class Frame:
    """Columns to compute over, and the moment and place in which it is done."""

    columns: Sequence[pa.Array]
    count: int
    now: int = 0
    zone: str = "UTC"
    watermark: int | None = None
    draws: RandomNumbers | None = None  # the random numbers of the operator that computes
    site: int = 0  # which call of a function that is not deterministic this is, of those compiled together
    known: dict[Hashable, Any] = field(default_factory=dict)  # what was computed of these columns, and is asked again
    chosen: tuple[Frame, pa.Array] | None = None  # the frame whose rows these are, and which of them

    def take(self, rows: np.ndarray) -> Frame:
        """Some of the rows, by their places."""
        return self.some(pa.array(rows))

    def some(self, rows: pa.Array, columns: Sequence[pa.Array] | None = None) -> Frame:
        """Some of the rows; a column is taken when it is read, and so is what is known. `columns` are those rows where
        someone has them."""
        taken = TakenColumns(self.columns, rows) if columns is None else columns
        return Frame(taken, len(rows), self.now, self.zone, self.watermark, self.draws, chosen=(self, rows))

    def found(self, key: Hashable) -> Datum | None:
        """What is known under a key, here or of the frame whose rows these are."""
        value = self.known.get(key)
        if value is None and self.chosen is not None:
            whole, rows = self.chosen
            value = whole.found(key)
            if value is not None:
                self.known[key] = value = value if isinstance(value, pa.Scalar) else value.take(rows)
        return value

    def part(self, column: int, index: int) -> pa.Array:
        """A field of a column of rows."""
        columns = self.columns
        return columns.part(column, index) if isinstance(columns, TakenColumns) else field_datum(columns[column], index)


class TakenColumns(Sequence[pa.Array]):
    """Some rows of columns; a column, or a field of one, is taken when it is first read."""

    def __init__(self, columns: Sequence[pa.Array], rows: pa.Array) -> None:
        self._columns, self._rows = columns, rows
        self._found: dict[int | tuple[int, int], pa.Array] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._found:
            self._found[index] = self._columns[index].take(self._rows)
        return self._found[index]

    def part(self, column: int, index: int) -> pa.Array:
        """A field of a column of rows."""
        place = column, index
        if place not in self._found:
            self._found[place] = field_datum(self._columns[column], index).take(self._rows)
        return self._found[place]


Computed = Callable[[Frame], Datum]


def compiled(expression: Expression, shared: Shared | None = None) -> Computed:
    """The function that computes an expression; without `shared`, what occurs in it several times is."""
    found = repeated([expression]) if shared is None else shared
    key = found.get(expression)
    compute = _computed(expression, found)
    return compute if key is None else _once(key, compute)


def _once(key: Hashable, compute: Computed) -> Computed:
    def run(frame: Frame) -> Datum:
        value = frame.found(key)
        if value is None:
            value = frame.known[key] = compute(frame)
        return value

    return run


def _computed(expression: Expression, shared: Shared) -> Computed:
    match expression:
        case Ref(index=index):
            return lambda frame: frame.columns[index]
        case Lit(type=kind, value=value):
            constant = pa.scalar(value, arrow_type(kind))
            return lambda _frame: constant
        case Sym(word=word):
            return lambda _frame: word
        case Convert():
            return _cast(expression, shared)
        case FieldRef(operand=Ref(index=column), index=index):
            return lambda frame: frame.part(column, index)
        case FieldRef(operand=operand, index=index):
            row = compiled(operand, shared)
            return lambda frame: field_datum(row(frame), index)
        case Choose():
            return _choose(expression, shared)
        case UserCall():
            return _user(expression, shared)
        case Apply(function="AND" | "OR"):
            return _logic(expression, shared)
        case Apply():
            return _apply(expression, shared)
    raise AssertionError(expression)


def _apply(expression: Apply, shared: Shared) -> Computed:
    function = function_named(expression.function)
    args = [compiled(each, shared) for each in expression.args]
    evaluate, kind = function.evaluate, expression.type
    kinds = [each.type for each in expression.args]
    site = None if function.deterministic else shared.next_site()

    def run(frame: Frame) -> Datum:
        if site is not None:
            frame = replace(frame, site=site)
        try:
            return evaluate(frame, [arg(frame) for arg in args], kinds, kind)
        except (pa.ArrowException, ArithmeticError, ValueError) as problem:
            raise EvaluationFailed(_said(expression.function, problem)) from None

    return run


def _said(name: str, problem: BaseException) -> str:
    text = str(problem)
    if "divide by zero" in text.lower() or isinstance(problem, ZeroDivisionError):
        return "division by zero"
    return f"{name}: {text or type(problem).__name__}"


def _cast(expression: Convert, shared: Shared) -> Computed:
    operand = compiled(expression.operand, shared)
    source, target, safe = expression.operand.type, expression.type, expression.safe

    def run(frame: Frame) -> Datum:
        try:
            return casts.cast(frame, operand(frame), source, target, safe=safe)
        except (pa.ArrowException, ArithmeticError, ValueError) as problem:
            raise EvaluationFailed(_said(f"CAST to {target}", problem)) from None

    return run


def truth(datum: Datum, count: int) -> np.ndarray:
    """Where a condition is true; NULL is not."""
    array = as_array(datum, count)
    known = pc.fill_null(array, False) if array.null_count else array
    made: np.ndarray = known.to_numpy(zero_copy_only=False).astype(bool, copy=False)
    return made


def _logic(expression: Apply, shared: Shared) -> Computed:
    left, right = (compiled(each, shared) for each in expression.args)
    both = expression.function == "AND"
    combine = pc.and_kleene if both else pc.or_kleene

    def run(frame: Frame) -> Datum:
        first = left(frame)
        try:
            return combine(first, right(frame))
        except EvaluationFailed:
            known = as_array(first, frame.count)
            decided = pc.fill_null(pc.invert(known) if both else known, False)
            open_rows = np.flatnonzero(~decided.to_numpy(zero_copy_only=False).astype(bool))
            if not len(open_rows):
                return known
            second = _spread(as_array(right(frame.take(open_rows)), len(open_rows)), open_rows, frame.count)
            return combine(known, second)

    return run


def _spread(values: pa.Array, rows: np.ndarray, count: int) -> pa.Array:
    """The values at their rows, NULL elsewhere."""
    places = np.full(count, -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    return values.take(pa.array(places, mask=places < 0))


def _choose(expression: Choose, shared: Shared) -> Computed:
    args = [compiled(each, shared) for each in expression.args]
    conditions, results, otherwise = args[0:-1:2], args[1:-1:2], args[-1]
    kind = arrow_type(expression.type)

    def run(frame: Frame) -> Datum:
        try:
            found = otherwise(frame)
            made = list(zip([c(frame) for c in conditions], [r(frame) for r in results], strict=True))
        except EvaluationFailed:
            return masked(frame)
        for condition, result in reversed(made):
            if isinstance(condition, pa.Scalar):
                found = result if condition.is_valid and scalar_value(condition) else found
            else:
                found = pc.if_else(pc.fill_null(condition, False), result, found)
        return found

    def masked(frame: Frame) -> Datum:
        """Each result only for its rows."""
        left = np.arange(frame.count)
        pieces: list[pa.Array] = []
        places: list[np.ndarray] = []
        for condition, result in zip(conditions, results, strict=True):
            part = frame.take(left)
            true = truth(condition(part), part.count)
            rows = left[true]
            if len(rows):
                pieces.append(as_array(result(frame.take(rows)), len(rows)))
                places.append(rows)
            left = left[~true]
        if len(left):
            pieces.append(as_array(otherwise(frame.take(left)), len(left)))
            places.append(left)
        if not pieces:
            return pa.nulls(0, kind)
        order = np.argsort(np.concatenate(places), kind="stable")
        whole = pa.concat_arrays([piece.cast(kind) if piece.type != kind else piece for piece in pieces])
        return whole.take(pa.array(order))

    return run


def _user(expression: UserCall, shared: Shared) -> Computed:
    args = [compiled(each, shared) for each in expression.args]
    kinds = [each.type for each in expression.args]
    shows = [external(kind) for kind in kinds]
    function, kind = expression.function, expression.type

    def vectorized(frame: Frame) -> Datum:
        return function.call_arrays([as_array(arg(frame), frame.count) for arg in args], frame.count, kind)

    def run(frame: Frame) -> Datum:
        columns = []
        for arg, each, show in zip(args, kinds, shows, strict=True):
            values = internal_values(as_array(arg(frame), frame.count), each)
            columns.append(values if show is None else [None if v is None else show(v) for v in values])
        return function.call(columns, frame.count, kind)

    return vectorized if function.vectorized else run


class Projection:
    """Several expressions over one frame."""

    def __init__(self, expressions: Sequence[Expression], shared: Shared | None = None) -> None:
        found = repeated(expressions) if shared is None else shared
        self._computed = [compiled(each, found) for each in expressions]
        self._types = [arrow_type(each.type) for each in expressions]

    def columns(self, frame: Frame) -> list[pa.Array]:
        """The columns, each of its own Arrow type."""
        made = []
        for compute, kind in zip(self._computed, self._types, strict=True):
            array = as_array(compute(frame), frame.count)
            made.append(array if array.type == kind else array.cast(kind))
        return made


class Condition:
    """A condition over one frame."""

    def __init__(self, expression: Expression, shared: Shared | None = None) -> None:
        self._computed = compiled(expression, shared)

    def holds(self, frame: Frame) -> np.ndarray:
        """Where it is true."""
        return truth(self._computed(frame), frame.count)


def constant(expression: Expression, *, now: int = 0, zone: str = "UTC") -> Any:
    """The value of an expression without columns, as an internal value."""
    kind = expression.type
    array = as_array(compiled(expression)(Frame([], 1, now, zone)), 1)
    return internal_values(array, kind)[0] if not isinstance(kind, t.NullType) else None
