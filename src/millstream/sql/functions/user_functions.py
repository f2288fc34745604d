"""Functions that users write, as plans hold them.

Promises: general functions are called once a row, asynchronous ones for many rows at once, pandas ones once a batch
with Series, Arrow ones with arrays; what they return is checked against the declared type. A function is opened before
its first row and closed after its last, once in a subtask, however many expressions use it.
Does not know: how they are declared; the Table API does."""

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
    """A user's function returned what its declared type does not hold."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"function '{name}': {problem}", hint="declare the type it returns, or return that type")


class _Life:
    """Who uses a function in this subtask, and the calls it has under way."""

    def __init__(self) -> None:
        self.users = 0
        self.calls: ConcurrentCalls | None = None


@dataclass(frozen=True)
class UserFunction:
    """A function with its types. `input_types` are None where any arguments will do."""

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
    life: _Life = field(default_factory=_Life, compare=False, repr=False)

    @property
    def vectorized(self) -> bool:
        """Whether the function takes whole columns."""
        return self.pandas or self.arrow

    def open(self, context: OperatorContext, options: AsyncOptions) -> None:
        """One more operator will call the function; the first opens it."""
        self.life.users += 1
        if self.life.users > 1:
            return
        if self.asynchronous:
            self.life.calls = self._concurrent(options, context.metrics.count)
        opener = getattr(self.function, "open", None)
        if opener is not None:
            try:
                opener(FunctionContext.of(context))
            except (Exception, SystemExit) as problem:
                raise failure(self.name, problem) from problem

    def close(self) -> None:
        """One operator less calls the function; the last closes it."""
        if not self.life.users:
            return
        self.life.users -= 1
        if self.life.users:
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
        """Let go of what is no state."""
        if self.life.calls is not None:
            self.life.calls.close()
            self.life.calls = None

    @property
    def _evaluate(self) -> Callable[..., Any]:
        result: Callable[..., Any] = self.function.eval if hasattr(self.function, "eval") else self.function
        return result

    def call(self, columns: Sequence[list[Any]], count: int, data_type: t.DataType) -> pa.Array:
        """The results for whole columns of arguments, as values."""
        if self.asynchronous:
            return self.converted(self._awaited(columns, count), data_type)
        evaluate = self._evaluate
        result: list[Any] = []
        values: tuple[Any, ...] = ()
        try:
            for values in zip(*columns, strict=True) if columns else [()] * count:
                result.append(evaluate(*values))
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem, record=values) from problem
        return self.converted(result, data_type)

    def _awaited(self, columns: Sequence[list[Any]], count: int) -> list[Any]:
        return self.awaited(list(zip(*columns, strict=True)) if columns else [()] * count)

    def awaited(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        """What an asynchronous function returns for rows of arguments, several calls under way at once."""
        calls = self.life.calls
        if calls is None:  # a constant, computed before any job runs
            calls = self._concurrent(AsyncOptions(), lambda _name: None)
        try:
            _, results = calls.run(rows, None)
        finally:
            if calls is not self.life.calls:
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
        """The results for whole columns of arguments, as Series or Arrow arrays."""
        given = list(arrays) if self.arrow else [array.to_pandas() for array in arrays]
        try:
            result = self._evaluate(*given)
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem) from problem
        if not hasattr(result, "__len__"):
            raise WrongResult(self.name, f"it was given columns and returned {result!r}, which is none")
        if len(result) != count:
            raise WrongResult(self.name, f"it was given {count} rows and returned {len(result)}")
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        try:
            if isinstance(result, pa.Array):
                return result.cast(arrow_type(data_type))
            return pa.array(result, arrow_type(data_type), from_pandas=True)
        except pa.ArrowException as problem:
            raise WrongResult(self.name, f"its column does not fit {data_type}: {problem}") from None

    def converted(self, values: list[Any], data_type: t.DataType) -> pa.Array:
        """What the function returned, as a column of its type."""
        try:
            return SqlTypeInfo(data_type).to_arrow(values)
        except TypeMismatch as problem:
            raise WrongResult(self.name, str(problem)) from None


class _OneRow(AsyncFunction[Any, Any]):
    """An asynchronous function of several arguments as one of a row."""

    def __init__(self, evaluate: Callable[..., Any]) -> None:
        self._evaluate = evaluate

    async def async_invoke(self, value: Any) -> list[Any]:
        """The one result; of an asynchronous generator, all that it yields."""
        result = self._evaluate(*value)
        return [[each async for each in result]] if hasattr(result, "__aiter__") else [await result]


def functions_in(value: object) -> list[UserFunction]:
    """The users' functions that a description of an operator holds, each once."""
    result: dict[int, UserFunction] = {}
    for each in _functions(value):
        result.setdefault(id(each.life), each)
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
