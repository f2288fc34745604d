"""The only loops over rows: they call user functions.

Promises: a failure names the operator, the key and the record, and carries the user's own traceback; results keep the
order and the timestamp of the record they came from.
Does not know: what the functions do."""

from __future__ import annotations

import functools
import itertools
import operator as operators
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import GeneratorType
from typing import Any

import numpy as np

from millstream.errors import ExternalError, InternalError, MillstreamError, UserError
from millstream.functions.elements import AggregateFunction
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.operator import OperatorContext
from millstream.runtime.report import TaskFailure
from millstream.state.key_groups import UnusableKey
from millstream.state.views import Scope
from millstream.state_descriptors.output_tag import OutputTag
from millstream.types.factory import TypeInformation, TypeMismatch

_HERE = str(Path(__file__).resolve().parent.parent) + os.sep
_NOTHING = object()


class UserFunctionFailed(UserError):
    """A user function raised, or returned a value that is not allowed."""

    def __init__(
        self,
        operator: str,
        problem: str,
        trace: str,
        *,
        key: str | None = None,
        record: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.operator, self.problem, self.trace, self.key, self.record = operator, problem, trace, key, record
        where = f"in operator '{operator}'"
        where += f", key {key}" if key is not None else ""
        where += f", record {record}" if record is not None else ""
        super().__init__(f"{trace.rstrip()}\n{where}" if trace else f"{problem} {where}", hint=hint)

    def to_failure(self, vertex: str) -> TaskFailure:
        """Return the form that travels to the driver."""
        return TaskFailure(
            "user",
            vertex,
            self.problem,
            hint=self.hint,
            operator=self.operator,
            trace=self.trace,
            key=self.key,
            record=self.record,
        )

    @classmethod
    def from_failure(cls, failure: TaskFailure) -> UserFunctionFailed:
        """Return the inverse of `to_failure`."""
        return cls(
            failure.operator,
            failure.problem,
            failure.trace,
            key=failure.key,
            record=failure.record,
            hint=failure.hint,
        )


def failure(operator: str, problem: BaseException, key: Any = _NOTHING, record: Any = _NOTHING) -> MillstreamError:
    """The failure to raise for `problem` out of user code; what is not the user's fault stays what it is."""
    if isinstance(problem, UserFunctionFailed | ExternalError | InternalError):
        return problem
    hint = None
    if isinstance(problem, UserError):
        what, trace, hint = problem.message, "", problem.hint  # its message is enough
    else:
        called = isinstance(problem, SystemExit)
        text = f"the function called sys.exit({problem.code!r})" if called else str(problem)  # type: ignore[attr-defined]
        what, trace = f"{type(problem).__name__}: {text}", user_traceback(problem)
    return UserFunctionFailed(
        operator,
        what,
        trace,
        key=None if key is _NOTHING else shorten(key),
        record=None if record is _NOTHING else shorten(record),
        hint=hint,
    )


def user_traceback(problem: BaseException) -> str:
    """The traceback from the first frame outside millstream on; the whole one when there is none."""
    frames = traceback.extract_tb(problem.__traceback__)
    first = next((i for i, frame in enumerate(frames) if not frame.filename.startswith(_HERE)), 0)
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames[first:])]
    return "".join([*lines, *traceback.format_exception_only(type(problem), problem)])


def shorten(value: Any, limit: int = 200) -> str:
    """A value as text that fits into a message."""
    try:
        text = repr(value)
    except Exception as problem:  # a repr of the user's own
        text = f"<{type(value).__name__} whose repr raises {type(problem).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def conform(operator: str, kind: TypeInformation, rows: list[Any]) -> list[Any]:
    """The rows as values of `kind`; a row that does not fit is the user's error."""
    try:
        return kind.conform(rows)
    except TypeMismatch as problem:
        raise UserFunctionFailed(
            operator, f"the function's result does not fit its output type: {problem}", ""
        ) from None


def map_rows(operator: str, function: Callable[[Any], Any], rows: Sequence[Any]) -> list[Any]:
    """function(row) for every row."""
    out: list[Any] = []
    try:
        out.extend(map(function, rows))
    except (Exception, SystemExit) as problem:
        raise failure(operator, problem, record=rows[len(out)]) from problem
    return out


def keys_of(operator: str, selector: Callable[[Any], Any], rows: Sequence[Any]) -> list[Any]:
    """The key of every row."""
    return map_rows(f"key_by of {operator}", selector, rows)


def flat_map_rows(
    operator: str, function: Callable[[Any], Iterable[Any] | None], rows: Sequence[Any]
) -> tuple[list[Any], np.ndarray]:
    """Return all results of function(row), and their number for each row."""
    out: list[Any] = []
    marks: list[int] = []
    row = _NOTHING
    try:
        for row in rows:
            results = function(row)
            if results is not None:
                out.extend(results)
            marks.append(len(out))
    except (Exception, SystemExit) as problem:
        raise failure(operator, problem, record=row) from problem
    return out, np.diff(np.array(marks, dtype=np.int64), prepend=0)


def keyed_call(context: OperatorContext, call: Callable[[Any], Any], keys: Sequence[Any]) -> Callable[[Any], Any]:
    """`call` for rows that come with `keys`, one by one: the scope is moved to the key, and a failure names it."""
    following, scope, name = iter(keys), context.scope, context.name

    def keyed(row: Any) -> Any:
        scope.key = next(following)
        try:
            result = call(row)
            return list(result) if isinstance(result, GeneratorType) else result  # its code runs here, not later
        except (Exception, SystemExit) as problem:
            raise failure(name, problem, scope.key, row) from problem

    return keyed


def by_side(methods: Sequence[Callable[..., Any]], sides: np.ndarray) -> Callable[..., Any]:
    """One function for records of several inputs: for each of them, in turn, the method of its side."""
    following = iter(sides.tolist())
    return lambda *args: methods[next(following)](*args)


def repeat_timestamps(timestamps: np.ndarray | None, counts: np.ndarray) -> np.ndarray | None:
    """Return the timestamp of each result: that of its input record."""
    return None if timestamps is None else np.repeat(timestamps, counts)


class Collector:
    """Takes what a process function yields: main results, and (tag, value) pairs for side outputs."""

    __slots__ = ("_operator", "_side_rows", "_side_times", "_times", "rows")

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self.rows: list[Any] = []
        self._times: list[int] = []
        self._side_rows: dict[str, list[Any]] = {}
        self._side_times: dict[str, list[int]] = {}

    def take(self, results: Iterable[Any] | None, time: int) -> None:
        """Take the results of one call, which all get `time`."""
        if results is None:
            return
        rows = self.rows
        before = len(rows)
        for result in results:
            if result.__class__ is tuple and len(result) == 2 and isinstance(result[0], OutputTag):
                self.side(result[0].tag_id, result[1], time)
            else:
                rows.append(result)
        if len(rows) != before:
            self._times.extend([time] * (len(rows) - before))

    def side(self, tag: str, value: Any, time: int) -> None:
        """Take one record for a side output."""
        self._side_rows.setdefault(tag, []).append(value)
        self._side_times.setdefault(tag, []).append(time)

    def flush(self, context: OperatorContext) -> None:
        """Emit all collected results."""
        if self.rows:
            rows = conform(self._operator, context.output_type, self.rows)
            context.out.emit(Batch(context.output_type, rows=rows, timestamps=_times(self._times)))
            self.rows, self._times = [], []
        for tag, values in self._side_rows.items():
            kind = context.side_types.get(tag)
            if kind is not None:
                rows = conform(self._operator, kind, values)
                context.out.emit_side(tag, Batch(kind, rows=rows, timestamps=_times(self._side_times[tag])))
        self._side_rows, self._side_times = {}, {}


def _times(times: list[int]) -> np.ndarray | None:
    column = np.array(times, dtype=np.int64)
    return None if (column == NO_TIMESTAMP).all() else column


def process_rows(
    context: OperatorContext,
    function: Callable[[Any, Any], Iterable[Any] | None],
    batch: Batch,
    call: Any,
) -> None:
    """function(row, call) for every row, with call.time set; the results are emitted."""
    rows, name = batch.rows(), context.name
    collector = Collector(name)
    take = collector.take
    row = _NOTHING
    try:
        for row, time in zip(rows, batch.times(), strict=True):
            call.time = time
            take(function(row, call), time)
    except (Exception, SystemExit) as problem:
        raise failure(name, problem, record=row) from problem
    collector.flush(context)


def process_keyed_rows(
    context: OperatorContext,
    function: Callable[[Any, Any], Iterable[Any] | None],
    batch: Batch,
    keys: Sequence[Any],
    call: Any,
) -> None:
    """As `process_rows`, with the scope moved to each row's key."""
    rows, name, scope = batch.rows(), context.name, context.scope
    if batch.timestamps is None:
        _process_keyed_untimed(context, function, rows, keys, call)
        return
    collector = Collector(name)
    take = collector.take
    row = key = _NOTHING
    try:
        for key, row, time in zip(keys, rows, batch.times(), strict=True):
            scope.key = key
            call.time = time
            take(function(row, call), time)
    except (Exception, SystemExit) as problem:
        raise failure(name, problem, key, row) from problem
    collector.flush(context)


def _process_keyed_untimed(
    context: OperatorContext, function: Callable[[Any, Any], Any], rows: Sequence[Any], keys: Sequence[Any], call: Any
) -> None:
    """The hottest loop of all: no timestamps, results straight into one list."""
    name, scope = context.name, context.scope
    collector = Collector(name)
    out = collector.rows
    append = out.append
    call.time = NO_TIMESTAMP
    row = key = _NOTHING
    try:
        for key, row in zip(keys, rows, strict=True):
            scope.key = key
            results = function(row, call)
            if results is not None:
                for result in results:
                    if result.__class__ is tuple and len(result) == 2 and result[0].__class__ is OutputTag:
                        collector.side(result[0].tag_id, result[1], NO_TIMESTAMP)
                    else:
                        append(result)
    except (Exception, SystemExit) as problem:
        raise failure(name, problem, key, row) from problem
    collector.rows = []
    if out:
        context.out.emit(Batch(context.output_type, rows=conform(name, context.output_type, out)))
    collector.flush(context)


def fold_keyed_rows(
    context: OperatorContext,
    fold: Callable[[Any, Any], Any],
    batch: Batch,
    keys: Sequence[Any],
    get: Callable[[Any], Any],
    put: Callable[[Any, Any], None],
) -> list[Any]:
    """Running values: for every row, put(key, fold(get(key), row)); the new value of each step."""
    out: list[Any] = []
    row = key = _NOTHING
    try:
        for key, row in zip(keys, batch.rows(), strict=True):
            value = fold(get(key), row)
            put(key, value)
            out.append(value)
    except (Exception, SystemExit) as problem:
        raise failure(context.name, problem, key, row) from problem
    return out


def fold_runs(
    operator: str, fold: Callable[[Any, Any], Any], rows: list[Any], starts: np.ndarray, keys: Sequence[Any] | None
) -> list[Any]:
    """For each run of rows, which begin at `starts`, fold(... fold(fold(first, second), third) ...)."""
    edges = starts.tolist()
    return fold_ranges(operator, fold, rows, edges, [*edges[1:], len(rows)], keys)


def fold_ranges(
    operator: str,
    fold: Callable[[Any, Any], Any],
    rows: list[Any],
    starts: Sequence[int],
    stops: Sequence[int],
    keys: Sequence[Any] | None,
) -> list[Any]:
    """As `fold_runs`, for ranges that may overlap or leave rows out."""
    out: list[Any] = []
    left: Iterator[Any] = iter(())
    try:
        for start, stop in zip(starts, stops, strict=True):
            if stop - start == 1:
                out.append(rows[start])
            else:
                left = iter(rows[start:stop])
                out.append(functools.reduce(fold, left))
    except (Exception, SystemExit) as problem:
        at = stops[len(out)] - 1 - sum(1 for _ in left)
        raise failure(operator, problem, _NOTHING if keys is None else keys[at], rows[at]) from problem
    return out


def combine(
    operator: str, fold: Callable[[Any, Any], Any], held: dict[Any, Any], keys: Sequence[Any], rows: Sequence[Any]
) -> None:
    """Fold every row into what is held of its key."""
    row = key = _NOTHING
    try:
        for key, row in zip(keys, rows, strict=True):
            held[key] = fold(held[key], row) if key in held else row
    except (Exception, SystemExit) as problem:
        raise _unusable(key) or failure(operator, problem, key, row) from problem


def combine_timed(
    operator: str,
    fold: Callable[[Any, Any], Any],
    held: dict[Any, tuple[Any, int]],
    keys: Sequence[Any],
    rows: Sequence[Any],
    times: Sequence[int],
) -> None:
    """As `combine`, with pairs of a row and its time; of two rows the earlier one comes first."""
    row = key = _NOTHING
    try:
        for key, row, time in zip(keys, rows, times, strict=True):
            if key not in held:
                held[key] = row, time
                continue
            other, at = held[key]
            held[key] = (fold(row, other), time) if time < at else (fold(other, row), at)
    except (Exception, SystemExit) as problem:
        raise _unusable(key) or failure(operator, problem, key, row) from problem


def _unusable(key: Any) -> UnusableKey | None:
    try:
        hash(key)
    except TypeError:
        return UnusableKey(key)
    return None


def aggregate_ranges(
    operator: str,
    aggregate: AggregateFunction,
    rows: list[Any],
    starts: Sequence[int],
    stops: Sequence[int],
    keys: Sequence[Any],
) -> list[Any]:
    """The result of an aggregate function for each range of rows."""
    out: list[Any] = []
    add, at = aggregate.add, 0
    try:
        for start, stop in zip(starts, stops, strict=True):
            at = start
            accumulator = aggregate.create_accumulator()
            for row in rows[start:stop]:
                accumulator = add(row, accumulator)
                at += 1
            at = stop - 1
            out.append(aggregate.get_result(accumulator))
    except (Exception, SystemExit) as problem:
        raise failure(operator, problem, keys[at], rows[at]) from problem
    return out


def ranges(rows: list[Any], starts: Iterable[int], stops: Iterable[int] | None) -> list[list[Any]]:
    """The rows of each range as a list; without `stops`, each row by itself."""
    if stops is None:
        return [[rows[start]] for start in starts]
    return [rows[start:stop] for start, stop in zip(starts, stops, strict=True)]


def each_window(
    context: OperatorContext, call: Callable[[Any, Any, Any], None], windows: Iterable[tuple[Any, Any, Any]]
) -> None:
    """call(key, window, content) for every window."""
    key = _NOTHING
    try:
        for key, window, content in windows:
            call(key, window, content)
    except (Exception, SystemExit) as problem:
        raise failure(context.name, problem, key) from problem


def changes(values: Sequence[Any], where: np.ndarray) -> bool:
    """Whether any value differs from the one before it, `where` it should not."""
    if not where.any():
        return False
    differs = np.fromiter(map(operators.ne, values, itertools.islice(values, 1, None)), bool, len(values) - 1)
    return bool((differs & where).any())


def each_keyed(
    context: OperatorContext,
    visit: Callable[[Any, int], None],
    batch: Batch,
    keys: Sequence[Any],
    scope: Scope,
) -> None:
    """visit(row, time) for every row, with the scope moved to its key; for operators with a protocol per record."""
    row = key = _NOTHING
    try:
        for key, row, time in zip(keys, batch.rows(), batch.times(), strict=True):
            scope.key = key
            visit(row, time)
    except (Exception, SystemExit) as problem:
        raise failure(context.name, problem, key, row) from problem


def guarded(context: OperatorContext, call: Callable[..., Any], *args: Any, key: Any = _NOTHING) -> Any:
    """One call into user code that has no record: open, on_timer, close."""
    try:
        return call(*args)
    except (Exception, SystemExit) as problem:
        raise failure(context.name, problem, key) from problem


def integers(operator: str, what: str, values: list[Any]) -> list[int]:
    """The values, if all are integers; else the user's error that names the first that is not."""
    for value in values:
        if not isinstance(value, int):
            raise UserFunctionFailed(operator, f"the {what} must return an int, not {shorten(value)}", "")
    return values
