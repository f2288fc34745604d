"""Loops over rows, which call user functions.

Promises: a failure names the operator, the key and the record, and has the traceback of the user's code; results keep
the order and the timestamp of the record they came from.
Does not know: what the functions do."""

from __future__ import annotations

import functools
import itertools
import operator as operators
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from millstream.state.store import ABSENT
from millstream.state.table import StateTable
from millstream.state.views import Scope
from millstream.state_descriptors.output_tag import OutputTag
from millstream.types.factory import TypeInformation, TypeMismatch

_PACKAGE_DIRECTORY = str(Path(__file__).resolve().parent.parent) + os.sep
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
        round: str = "",
    ) -> None:
        self.operator, self.problem, self.trace, self.key, self.record = operator, problem, trace, key, record
        self.round = round
        location = f"in operator '{operator}'"
        location += f", {round}" if round else ""
        location += f", key {key}" if key is not None else ""
        location += f", record {record}" if record is not None else ""
        super().__init__(f"{trace.rstrip() or problem}\n{location}", hint=hint)

    def to_failure(self, vertex: str) -> TaskFailure:
        """Return the form that is sent to the driver."""
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
            round=failure.round,
        )


def failure(operator: str, problem: BaseException, key: Any = _NOTHING, record: Any = _NOTHING) -> MillstreamError:
    """Return the error to raise for a problem in user code; external and internal errors are returned unchanged."""
    if isinstance(problem, UserFunctionFailed | ExternalError | InternalError):
        return problem
    hint = None
    if isinstance(problem, UserError):
        description, trace, hint = problem.message, "", problem.hint  # its message needs no traceback
    else:
        is_exit = isinstance(problem, SystemExit)
        text = f"the function called sys.exit({problem.code!r})" if is_exit else str(problem)  # type: ignore[attr-defined]
        description, trace = f"{type(problem).__name__}: {text}", user_traceback(problem)
    return UserFunctionFailed(
        operator,
        description,
        trace,
        key=None if key is _NOTHING else shorten(key),
        record=None if record is _NOTHING else shorten(record),
        hint=hint,
    )


def user_traceback(problem: BaseException) -> str:
    """Return the traceback with its causes; each begins at the first frame outside millstream, if there is one."""
    trace = traceback.TracebackException.from_exception(problem)
    chain: list[traceback.TracebackException | None] = [trace]
    while chain:
        link = chain.pop()
        if link is not None:
            first = next(
                (i for i, frame in enumerate(link.stack) if not frame.filename.startswith(_PACKAGE_DIRECTORY)), 0
            )
            link.stack[:] = link.stack[first:]
            chain += [link.__cause__, link.__context__]
    return "".join(trace.format())


def shorten(value: Any, limit: int = 200) -> str:
    """Return a value as text that is short enough for a message."""
    try:
        text = repr(value)
    except Exception as problem:  # __repr__ of a user class
        text = f"<{type(value).__name__} whose repr raises {type(problem).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def conform(operator: str, output_type: TypeInformation, rows: list[Any]) -> list[Any]:
    """Return the rows as values of a type; a row that does not fit is a user error."""
    try:
        return output_type.conform(rows)
    except TypeMismatch as problem:
        description = f"the function's result does not fit its output type: {problem.message}"
        raise UserFunctionFailed(operator, description, "", hint=problem.hint) from None


def conform_records(operator: str, record_type: TypeInformation, records: list[Any]) -> list[Any]:
    """Return the records of a source as values of its type; a record that does not fit is a user error."""
    try:
        return record_type.conform(records)
    except TypeMismatch as problem:
        description = f"a record of the source does not fit its type: {problem.message}"
        hint = "correct the records, or declare their type (type_info)"
        raise UserFunctionFailed(operator, description, "", hint=hint) from None


def map_rows(
    operator: str,
    function: Callable[[Any], Any],
    rows: Sequence[Any],
    copy_result: Callable[[Any], Any] | None = None,
) -> list[Any]:
    """Return function(row) for every row; each result is copied before the next call."""
    out: list[Any] = []
    results = map(function, rows)
    try:
        out.extend(results if copy_result is None else map(copy_result, results))
    except (Exception, SystemExit) as problem:
        raise failure(operator, problem, record=rows[len(out)]) from problem
    return out


def keys_of(operator: str, selector: Callable[[Any], Any], rows: Sequence[Any]) -> list[Any]:
    """Return the key of every row."""
    return map_rows(f"key_by of {operator}", selector, rows)


def flat_map_rows(
    operator: str,
    function: Callable[[Any], Iterable[Any] | None],
    rows: Sequence[Any],
    copy_result: Callable[[Any], Any] | None = None,
) -> tuple[list[Any], np.ndarray]:
    """Return all results of function(row), and their number for each row."""
    out: list[Any] = []
    ends: list[int] = []
    row = results = _NOTHING
    try:
        for row in rows:
            results = _NOTHING
            results = function(row)
            if results is not None:
                out.extend(results if copy_result is None else map(copy_result, results))
            ends.append(len(out))
    except (Exception, SystemExit) as problem:
        if results is not _NOTHING and not isinstance(results, Iterable):
            description = f"the function returned {shorten(results)}, which is not iterable"
            hint = "yield the results, or return a list of them, or None"
            raise UserFunctionFailed(operator, description, "", record=shorten(row), hint=hint) from None
        raise failure(operator, problem, record=row) from problem
    return out, np.diff(np.array(ends, dtype=np.int64), prepend=0)


def keyed_call(context: OperatorContext, call: Callable[[Any], Any], keys: Sequence[Any]) -> Callable[[Any], Any]:
    """Return `call` for rows with these keys, in their order: the scope is set to the key, and a failure names it."""
    next_keys, scope, name = iter(keys), context.scope, context.name

    def keyed(row: Any) -> Any:
        scope.key = next(next_keys)
        try:
            result = call(row)
            return list(result) if isinstance(result, GeneratorType) else result  # its code must run with this key
        except (Exception, SystemExit) as problem:
            raise failure(name, problem, scope.key, row) from problem

    return keyed


def keyed_flat_call(
    context: OperatorContext, call: Callable[[Any], Iterable[Any] | None], keys: Sequence[Any]
) -> Callable[[Any], Iterator[Any]]:
    """Return `keyed_call` for functions with many results, which are taken one by one: each can be copied at once."""
    next_keys, scope, name = iter(keys), context.scope, context.name

    def keyed(row: Any) -> Iterator[Any]:
        key = scope.key = next(next_keys)
        try:
            results = call(row)
            if results is not None:
                yield from results
        except (Exception, SystemExit) as problem:
            raise failure(name, problem, key, row) from problem

    return keyed


def dispatch_by_side(methods: Sequence[Callable[..., Any]], sides: np.ndarray) -> Callable[..., Any]:
    """Return one function for records of several inputs, which calls the method of each record's input in turn."""
    next_sides = iter(sides.tolist())
    return lambda *args: methods[next(next_sides)](*args)


def repeat_timestamps(timestamps: np.ndarray | None, counts: np.ndarray) -> np.ndarray | None:
    """Return the timestamp of each result: that of its input record."""
    return None if timestamps is None else np.repeat(timestamps, counts)


class Collector:
    """Collects the results of a process function: main results, and (tag, value) pairs for side outputs."""

    __slots__ = ("_context", "_copy", "_side_copies", "_side_rows", "_side_times", "_times", "rows")

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._copy = context.copier()
        self._side_copies = {tag: context.copier(tag) for tag in context.side_types}
        self.rows: list[Any] = []
        self._times: list[int] = []
        self._side_rows: dict[str, list[Any]] = {}
        self._side_times: dict[str, list[int]] = {}

    def take(self, results: Iterable[Any] | None, time: int) -> None:
        """Add the results of one call, which all get `time`."""
        if results is None:
            return
        rows, copy_result = self.rows, self._copy
        before = len(rows)
        for result in results:
            if result.__class__ is tuple and len(result) == 2 and isinstance(result[0], OutputTag):
                self.side(result[0].tag_id, result[1], time)
            else:
                rows.append(result if copy_result is None else copy_result(result))
        if len(rows) != before:
            self._times.extend([time] * (len(rows) - before))

    def side(self, tag: str, value: Any, time: int) -> None:
        """Add one record for a side output."""
        copy_value = self._side_copies.get(tag)
        self._side_rows.setdefault(tag, []).append(value if copy_value is None else copy_value(value))
        self._side_times.setdefault(tag, []).append(time)

    def flush(self) -> None:
        """Emit all collected results."""
        context = self._context
        if self.rows:
            rows = conform(context.name, context.output_type, self.rows)
            context.out.emit(Batch(context.output_type, rows=rows, timestamps=_times(self._times)))
            self.rows, self._times = [], []
        for tag, values in self._side_rows.items():
            side_type = context.side_types.get(tag)
            if side_type is not None:
                rows = conform(context.name, side_type, values)
                context.out.emit_side(tag, Batch(side_type, rows=rows, timestamps=_times(self._side_times[tag])))
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
    """Call function(row, call) for every row, with call.time set, and emit the results."""
    rows, name = batch.rows(), context.name
    collector = Collector(context)
    take = collector.take
    row = _NOTHING
    try:
        for row, time in zip(rows, batch.times(), strict=True):
            call.time = time
            take(function(row, call), time)
    except (Exception, SystemExit) as problem:
        raise failure(name, problem, record=row) from problem
    collector.flush()


def process_keyed_rows(
    context: OperatorContext,
    function: Callable[[Any, Any], Iterable[Any] | None],
    batch: Batch,
    keys: Sequence[Any],
    call: Any,
) -> None:
    """Like `process_rows`, with the scope set to the key of each row."""
    rows, name, scope = batch.rows(), context.name, context.scope
    if batch.timestamps is None:
        _process_keyed_untimed(context, function, rows, keys, call)
        return
    collector = Collector(context)
    take = collector.take
    row = key = _NOTHING
    try:
        for key, row, time in zip(keys, rows, batch.times(), strict=True):
            scope.key = key
            call.time = time
            take(function(row, call), time)
    except (Exception, SystemExit) as problem:
        raise failure(name, problem, key, row) from problem
    collector.flush()


def _process_keyed_untimed(
    context: OperatorContext, function: Callable[[Any, Any], Any], rows: Sequence[Any], keys: Sequence[Any], call: Any
) -> None:
    """Process rows without timestamps; the most frequent loop, so results are appended to one list directly."""
    name, scope = context.name, context.scope
    collector = Collector(context)
    out = collector.rows
    append, copy_result = out.append, context.copier()
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
                        append(result if copy_result is None else copy_result(result))
    except (Exception, SystemExit) as problem:
        raise failure(name, problem, key, row) from problem
    collector.rows = []
    if out:
        context.out.emit(Batch(context.output_type, rows=conform(name, context.output_type, out)))
    collector.flush()


def fold_keyed_rows(
    context: OperatorContext,
    fold: Callable[[Any, Any], Any],
    batch: Batch,
    keys: Sequence[Any],
    get: Callable[[Any], Any],
    put: Callable[[Any, Any], None],
) -> list[Any]:
    """Call put(key, fold(get(key), row)) for every row, and return the new value of each step.

    The scope is set to the key of each row, because `fold` may use keyed state."""
    out: list[Any] = []
    scope, copy_result = context.scope, context.copier()
    row = key = _NOTHING
    try:
        for key, row in zip(keys, batch.rows(), strict=True):
            scope.key = key
            value = fold(get(key), row)
            put(key, value)
            out.append(value if copy_result is None else copy_result(value))
    except (Exception, SystemExit) as problem:
        raise failure(context.name, problem, key, row) from problem
    return out


def fold_runs(
    operator: str, fold: Callable[[Any, Any], Any], rows: list[Any], starts: np.ndarray, keys: Sequence[Any] | None
) -> list[Any]:
    """Return fold(... fold(fold(first, second), third) ...) for each run of rows; runs begin at `starts`."""
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
    """Like `fold_runs`, for ranges that may overlap or skip rows."""
    out: list[Any] = []
    remaining: Iterator[Any] = iter(())
    try:
        for start, stop in zip(starts, stops, strict=True):
            if stop - start == 1:
                out.append(rows[start])
            else:
                remaining = iter(rows[start:stop])
                out.append(functools.reduce(fold, remaining))
    except (Exception, SystemExit) as problem:
        row_index = stops[len(out)] - 1 - sum(1 for _ in remaining)
        raise failure(operator, problem, _NOTHING if keys is None else keys[row_index], rows[row_index]) from problem
    return out


def combine(
    operator: str,
    fold: Callable[[Any, Any], Any],
    values_by_key: dict[Any, Any],
    keys: Sequence[Any],
    rows: Sequence[Any],
) -> None:
    """Fold every row into the value of its key."""
    row = key = _NOTHING
    try:
        for key, row in zip(keys, rows, strict=True):
            values_by_key[key] = fold(values_by_key[key], row) if key in values_by_key else row
    except (Exception, SystemExit) as problem:
        raise _unusable(key) or failure(operator, problem, key, row) from problem


def combine_timed(
    operator: str,
    fold: Callable[[Any, Any], Any],
    values_by_key: dict[Any, tuple[Any, int]],
    keys: Sequence[Any],
    rows: Sequence[Any],
    times: Sequence[int],
) -> None:
    """Like `combine`, with pairs of a value and its time; of two values the earlier one is the first argument."""
    row = key = _NOTHING
    try:
        for key, row, time in zip(keys, rows, times, strict=True):
            if key not in values_by_key:
                values_by_key[key] = row, time
                continue
            earlier_value, earlier_time = values_by_key[key]
            values_by_key[key] = (
                (fold(row, earlier_value), time) if time < earlier_time else (fold(earlier_value, row), earlier_time)
            )
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
    """Return the result of an aggregate function for each range of rows."""
    out: list[Any] = []
    add, row_index = aggregate.add, 0
    try:
        for start, stop in zip(starts, stops, strict=True):
            row_index = start
            accumulator = aggregate.create_accumulator()
            for row in rows[start:stop]:
                accumulator = add(row, accumulator)
                row_index += 1
            row_index = stop - 1
            out.append(aggregate.get_result(accumulator))
    except (Exception, SystemExit) as problem:
        raise failure(operator, problem, keys[row_index], rows[row_index]) from problem
    return out


def slice_ranges(rows: list[Any], starts: Iterable[int], stops: Iterable[int] | None) -> list[list[Any]]:
    """Return the rows of each range as a list; without `stops`, a list of one row for each start."""
    if stops is None:
        return [[rows[start]] for start in starts]
    return [rows[start:stop] for start, stop in zip(starts, stops, strict=True)]


def visit_windows(
    context: OperatorContext, call: Callable[[Any, Any, Any], None], windows: Iterable[tuple[Any, Any, Any]]
) -> None:
    """Call call(key, window, content) for every window."""
    key = _NOTHING
    try:
        for key, window, content in windows:
            call(key, window, content)
    except (Exception, SystemExit) as problem:
        raise failure(context.name, problem, key) from problem


def has_changes(values: Sequence[Any], must_equal: np.ndarray) -> bool:
    """Return whether a value differs from the one before it although `must_equal` says that it must not."""
    if not must_equal.any():
        return False
    differs = np.fromiter(map(operators.ne, values, itertools.islice(values, 1, None)), bool, len(values) - 1)
    return bool((differs & must_equal).any())


def visit_keyed_rows(
    context: OperatorContext,
    visit: Callable[[Any, int], None],
    batch: Batch,
    keys: Sequence[Any],
    scope: Scope,
) -> None:
    """Call visit(row, time) for every row, with the scope set to its key."""
    row = key = _NOTHING
    try:
        for key, row, time in zip(keys, batch.rows(), batch.times(), strict=True):
            scope.key = key
            visit(row, time)
    except (Exception, SystemExit) as problem:
        raise failure(context.name, problem, key, row) from problem


def group_rows(keys: Sequence[Any], rows: Sequence[Any], groups: dict[Any, list[Any]]) -> None:
    """Add rows to lists by key."""
    for key, row in zip(keys, rows, strict=True):
        group = groups.get(key)
        if group is None:
            groups[key] = [row]
        else:
            group.append(row)


def append_groups(groups: dict[Any, list[Any]], later: Mapping[Any, list[Any]]) -> None:
    """Append the rows of later groups to earlier ones; no list is changed."""
    for key, rows in later.items():
        groups[key] = [*groups.get(key, ()), *rows]


def update_solution(
    context: OperatorContext, function: Any, workset: Mapping[Any, list[Any]], solution: StateTable
) -> None:
    """Call `update` of a delta iteration for every key of the workset, and emit what `expand` returns for elements that
    change."""
    collector = Collector(context)
    scope = context.scope

    def visit(key: Any, rows: list[Any]) -> None:
        scope.key = key
        before = solution.get(None, key)
        changed = function.update(key, None if before is ABSENT else before, rows)
        if changed is not None:
            solution.put(None, key, changed)
            collector.take(function.expand(key, changed), NO_TIMESTAMP)

    for key, rows in workset.items():
        call_user_code(context, visit, key, rows, key=key)
    collector.flush()


def call_user_code(context: OperatorContext, call: Callable[..., Any], *args: Any, key: Any = _NOTHING) -> Any:
    """Call user code that has no record, such as open, on_timer and close."""
    try:
        return call(*args)
    except (Exception, SystemExit) as problem:
        raise failure(context.name, problem, key) from problem


def check_integers(operator: str, function: str, values: list[Any]) -> list[int]:
    """Return the values if all are integers; otherwise raise a user error that names the first that is not."""
    for value in values:
        if not isinstance(value, int):
            raise UserFunctionFailed(operator, f"the {function} must return an int, not {shorten(value)}", "")
    return values
