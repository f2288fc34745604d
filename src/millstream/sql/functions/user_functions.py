"""User-defined functions in plans: how they are opened, called and closed.

Promises: general functions are called once per row, asynchronous functions for many rows concurrently, pandas functions
once per batch with Series and DataFrames, Arrow functions with arrays. Results are checked against the declared type. A
function is opened before its first row and closed after its last, once per subtask, however many expressions use it.
Does not know: how functions are declared; the Table API does that."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.functions.async_io import AsyncFunction
from millstream.runtime.concurrent_calls import ConcurrentCalls
from millstream.runtime.operator import OperatorContext
from millstream.runtime.rowwise import failure
from millstream.sql.arrow_exchange import export_column
from millstream.sql.columns import SqlTypeInfo
from millstream.sql.functions.function_context import AsyncOptions, FunctionContext
from millstream.sql.functions.process_functions import Signature
from millstream.sql.types import data_types as t
from millstream.types.arrow_types import TypeMismatch
from millstream.types.copies import copy_value

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


def describe_mismatch(user: UserFunction, count: int) -> str | None:
    """Return how many arguments the Python function takes, if it cannot be called with `count`; else None."""
    function, accumulators = user.function, 0
    if hasattr(function, "accumulate"):
        function, accumulators = function.accumulate, 1
    else:
        function = getattr(function, "eval", function)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature
        return None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][accumulators:]
    least = sum(parameter.default is parameter.empty for parameter in positional)
    if least <= count and (count <= len(positional) or any(p.kind is p.VAR_POSITIONAL for p in parameters)):
        return None
    number = str(least) if least == len(positional) else f"{least} to {len(positional)}"
    names = ", ".join(parameter.name for parameter in positional)
    return f"{number} argument{'' if number == '1' else 's'}" + (f" ({names})" if names else "")


@dataclass(frozen=True)
class UserFunction:
    """A user-defined function with its types; `kind` is Flink's function kind, `input_types` None for any arguments.

    Process table functions have a `signature`. It is read from the type hints once, on the driver: hints may refer to
    names of the function's module, which the tasks do not have."""

    name: str
    kind: str
    function: Any = field(compare=False)
    result_type: t.DataType | None = None
    input_types: tuple[t.DataType, ...] | None = None
    pandas: bool = False
    arrow: bool = False
    deterministic: bool = True
    accumulator_type: t.DataType | None = None
    asynchronous: bool = False
    signature: Signature | None = field(default=None, compare=False)
    usage: _Usage = field(default_factory=_Usage, compare=False, repr=False)

    @property
    def vectorized(self) -> bool:
        """Whether the function is called with columns."""
        return self.pandas or self.arrow

    def open(self, context: OperatorContext, options: AsyncOptions) -> None:
        """Count an operator that uses the function; the first one opens the function."""
        self.usage.users += 1
        if self.usage.users > 1:
            return
        if self.asynchronous:
            self.usage.calls = self._create_calls(options, context.metrics.count)
        open_function = getattr(self.function, "open", None)
        if open_function is not None:
            try:
                open_function(FunctionContext.of(context))
            except (Exception, SystemExit) as problem:
                raise failure(self.name, problem) from problem

    def close(self) -> None:
        """Discount an operator that used the function; the last one closes the function."""
        if not self.usage.users:
            return
        self.usage.users -= 1
        if self.usage.users:
            return
        close_function = getattr(self.function, "close", None)
        try:
            if close_function is not None:
                close_function()
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem) from problem
        finally:
            self.dispose()

    def dispose(self) -> None:
        """Release the calls in flight without calling `close` of the function."""
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
        nested = isinstance(data_type, t.ArrayType | t.MapType | t.MultisetType | t.RowType | t.RawType)
        result: list[Any] = []
        values: tuple[Any, ...] = ()
        try:
            for values in zip(*columns, strict=True) if columns else [()] * count:
                value = evaluate(*values)
                result.append(copy_value(value) if nested else value)  # the function may change it in the next call
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem, record=values) from problem
        return self.to_column(result, data_type)

    def _call_for_columns(self, columns: Sequence[list[Any]], count: int) -> list[Any]:
        return self.call_concurrently(list(zip(*columns, strict=True)) if columns else [()] * count)

    def call_concurrently(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        """Call an asynchronous function for rows of arguments, with several calls in flight; return the results."""
        calls = self.usage.calls
        if calls is None:  # a constant expression, which is evaluated before a job runs
            calls = self._create_calls(AsyncOptions(), lambda _name: None)
        try:
            _, results = calls.run(rows, None)
        finally:
            if calls is not self.usage.calls:
                calls.close()
        return [result for (result,) in results]

    def _create_calls(self, options: AsyncOptions, count: Callable[[str], None]) -> ConcurrentCalls:
        return ConcurrentCalls(
            self.name,
            _RowFunction(self._evaluate),
            capacity=options.capacity,
            timeout=options.timeout / 1000,
            retry=options.retry(),
            count=count,
        )

    def call_vectorized(
        self, arguments: Sequence[tuple[Any, t.DataType | None]], count: int, data_type: t.DataType, zone: str
    ) -> pa.Array:
        """Call the function with columns; return a column of results.

        Args:
            arguments: Columns with their types; a value with the type None is a constant, and is passed as it is.
            count: The number of rows.
            data_type: The type of the result.
            zone: The time zone of the session.

        """
        from millstream.sql.pandas_columns import from_result, to_argument  # pandas is loaded if it is needed

        convert = export_column if self.arrow else partial(to_argument, zone=zone)
        args = [value if arg_type is None else convert(value, arg_type) for value, arg_type in arguments]
        try:
            result = self._evaluate(*args)
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem) from problem
        if not hasattr(result, "__len__"):
            raise WrongResult(self.name, f"it got columns and returned {result!r}, which is not a column")
        if len(result) != count:
            raise WrongResult(self.name, f"it got {count} rows and returned {len(result)}")
        try:
            return from_result(result, data_type, zone)
        except (pa.ArrowException, TypeError, ValueError) as problem:
            raise WrongResult(self.name, f"its result does not fit {data_type}: {problem}") from None

    def to_column(self, values: list[Any], data_type: t.DataType) -> pa.Array:
        """Convert results to a column of the declared type."""
        try:
            return SqlTypeInfo(data_type).to_arrow(values)
        except TypeMismatch as problem:
            raise WrongResult(self.name, problem.message) from None


class _RowFunction(AsyncFunction[Any, Any]):
    """Adapts an asynchronous function of several arguments to a function of one row."""

    def __init__(self, evaluate: Callable[..., Any]) -> None:
        self._evaluate = evaluate

    async def async_invoke(self, value: Any) -> list[Any]:
        """Await the result; of an asynchronous generator, a list of all values."""
        result = self._evaluate(*value)
        return [[value async for value in result]] if hasattr(result, "__aiter__") else [await result]


def find_user_functions(value: object) -> list[UserFunction]:
    """Return the user-defined functions in the spec of an operator, each once."""
    functions: dict[int, UserFunction] = {}
    for function in _iterate_functions(value):
        functions.setdefault(id(function.usage), function)
    return list(functions.values())


def _iterate_functions(value: object) -> Iterator[UserFunction]:
    if isinstance(value, UserFunction):
        yield value
    elif isinstance(value, tuple | list):
        for element in value:
            yield from _iterate_functions(element)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type | t.DataType):
        for dataclass_field in dataclasses.fields(value):
            yield from _iterate_functions(getattr(value, dataclass_field.name))
