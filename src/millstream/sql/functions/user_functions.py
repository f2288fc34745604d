"""User-defined functions, as plans contain them.

Promises: general functions are called once per row, asynchronous functions for many rows concurrently, pandas functions
once per batch with Series, Arrow functions with arrays. Results are checked against the declared type. A function is
opened before its first row and closed after its last, once per subtask, however many expressions use it.
Does not know: how functions are declared; the Table API does that."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.functions.async_io import AsyncFunction
from millstream.runtime.concurrent_calls import ConcurrentCalls
from millstream.runtime.operator import OperatorContext
from millstream.runtime.rowwise import failure
from millstream.sql.columns import SqlTypeInfo, arrow_type
from millstream.sql.functions.function_context import AsyncOptions, FunctionContext
from millstream.sql.types import data_types as t
from millstream.types.arrow_types import TypeMismatch

SCALAR, TABLE, AGGREGATE, TABLE_AGGREGATE = "scalar", "table", "aggregate", "table aggregate"


class WrongResult(UserError):
    """A user-defined function returned a value that does not fit its declared type."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"function '{name}': {problem}", hint="declare the type that it returns, or return the declared type"
        )


class _Usage:
    """How many operators of this subtask use a function, and its calls in flight."""

    def __init__(self) -> None:
        self.users = 0
        self.calls: ConcurrentCalls | None = None


@dataclass(frozen=True)
class UserFunction:
    """A function with its types. `input_types` is None if it takes any arguments."""

    name: str
    kind: str
    function: Any = field(compare=False)
    result_type: t.DataType | None = None
    input_types: tuple[t.DataType, ...] | None = None
    pandas: bool = False
    arrow: bool = False
    deterministic: bool = True
    accumulator_type: t.DataType | None = None
    takes_row: bool = False
    asynchronous: bool = False
    usage: _Usage = field(default_factory=_Usage, compare=False, repr=False)

    @property
    def vectorized(self) -> bool:
        """Whether the function is called with columns."""
        return self.pandas or self.arrow

    def open(self, context: OperatorContext, options: AsyncOptions) -> None:
        """Register an operator as a user of the function; the first one opens it."""
        self.usage.users += 1
        if self.usage.users > 1:
            return
        if self.asynchronous:
            self.usage.calls = self._concurrent(options, context.metrics.count)
        opener = getattr(self.function, "open", None)
        if opener is not None:
            try:
                opener(FunctionContext.of(context))
            except (Exception, SystemExit) as problem:
                raise failure(self.name, problem) from problem

    def close(self) -> None:
        """Unregister an operator; the last one closes the function."""
        if not self.usage.users:
            return
        self.usage.users -= 1
        if self.usage.users:
            return
        closer = getattr(self.function, "close", None)
        try:
            if closer is not None:
                closer()
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem) from problem
        finally:
            self.dispose()

    def dispose(self) -> None:
        """Release resources; state is not touched."""
        if self.usage.calls is not None:
            self.usage.calls.close()
            self.usage.calls = None

    @property
    def _evaluate(self) -> Callable[..., Any]:
        result: Callable[..., Any] = self.function.eval if hasattr(self.function, "eval") else self.function
        return result

    def call(self, columns: Sequence[list[Any]], count: int, data_type: t.DataType) -> pa.Array:
        """Call the function for columns of argument values; return a column of results."""
        if self.asynchronous:
            return self.to_column(self._call_for_columns(columns, count), data_type)
        evaluate = self._evaluate
        result: list[Any] = []
        values: tuple[Any, ...] = ()
        try:
            for values in zip(*columns, strict=True) if columns else [()] * count:
                result.append(evaluate(*values))
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem, record=values) from problem
        return self.to_column(result, data_type)

    def _call_for_columns(self, columns: Sequence[list[Any]], count: int) -> list[Any]:
        return self.call_concurrently(list(zip(*columns, strict=True)) if columns else [()] * count)

    def call_concurrently(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        """Call an asynchronous function for rows of arguments, with several calls in flight; return the results."""
        calls = self.usage.calls
        if calls is None:  # a constant expression, which is evaluated before a job runs
            calls = self._concurrent(AsyncOptions(), lambda _name: None)
        try:
            _, results = calls.run(rows, None)
        finally:
            if calls is not self.usage.calls:
                calls.close()
        return [result for (result,) in results]

    def _concurrent(self, options: AsyncOptions, count: Callable[[str], None]) -> ConcurrentCalls:
        return ConcurrentCalls(
            self.name,
            _OneRow(self._evaluate),
            capacity=options.capacity,
            timeout=options.timeout / 1000,
            retry=options.retry(),
            count=count,
        )

    def call_arrays(self, arrays: Sequence[pa.Array], count: int, data_type: t.DataType) -> pa.Array:
        """Call the function with columns, as Series or Arrow arrays; return a column of results."""
        args = list(arrays) if self.arrow else [array.to_pandas() for array in arrays]
        try:
            result = self._evaluate(*args)
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem) from problem
        if not hasattr(result, "__len__"):
            raise WrongResult(self.name, f"it got columns and returned {result!r}, which is not a column")
        if len(result) != count:
            raise WrongResult(self.name, f"it got {count} rows and returned {len(result)}")
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        try:
            if isinstance(result, pa.Array):
                return result.cast(arrow_type(data_type))
            return pa.array(result, arrow_type(data_type), from_pandas=True)
        except pa.ArrowException as problem:
            raise WrongResult(self.name, f"its result does not fit {data_type}: {problem}") from None

    def to_column(self, values: list[Any], data_type: t.DataType) -> pa.Array:
        """Convert results to a column of the declared type."""
        try:
            return SqlTypeInfo(data_type).to_arrow(values)
        except TypeMismatch as problem:
            raise WrongResult(self.name, str(problem)) from None


class _OneRow(AsyncFunction[Any, Any]):
    """Adapts an asynchronous function of several arguments to a function of one row."""

    def __init__(self, evaluate: Callable[..., Any]) -> None:
        self._evaluate = evaluate

    async def async_invoke(self, value: Any) -> list[Any]:
        """Await the result; of an asynchronous generator, a list of all values."""
        result = self._evaluate(*value)
        return [[value async for value in result]] if hasattr(result, "__aiter__") else [await result]


def functions_in(value: object) -> list[UserFunction]:
    """Return the user-defined functions in the spec of an operator, each once."""
    result: dict[int, UserFunction] = {}
    for each in _functions(value):
        result.setdefault(id(each.usage), each)
    return list(result.values())


def _functions(value: object) -> Iterator[UserFunction]:
    if isinstance(value, UserFunction):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _functions(each)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type | t.DataType):
        for each in dataclasses.fields(value):
            yield from _functions(getattr(value, each.name))
