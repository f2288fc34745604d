"""User-defined functions: udf, udtf, udaf, udtaf, and the classes they are written as.

Promises: PyFlink's decorators, classes and parameters; types may be DataTypes or their text.
Does not know: how functions are called."""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.errors import UserError
from millstream.sql.columns import scalar_value
from millstream.sql.functions.function_context import FunctionContext
from millstream.sql.functions.user_functions import AGGREGATE, SCALAR, TABLE, TABLE_AGGREGATE, UserFunction
from millstream.sql.syntax import parse_type
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression import Expression
from millstream.table.expression.terms import node
from millstream.types.row import Row

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "AsyncTableFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]


class UserDefinedFunction(abc.ABC):  # noqa: B024 - its kinds have the methods that matter
    """What all functions have in common."""

    def open(self, function_context: FunctionContext) -> None:
        """Called before the first row."""

    def close(self) -> None:
        """Called after the last row."""

    def is_deterministic(self) -> bool:
        """Whether equal arguments always give equal results."""
        return True


class ScalarFunction(UserDefinedFunction):
    """One value for one row."""

    @abc.abstractmethod
    def eval(self, *args: Any) -> Any:
        """The value."""


class AsyncScalarFunction(UserDefinedFunction):
    """One value for one row, awaited."""

    @abc.abstractmethod
    async def eval(self, *args: Any) -> Any:
        """The value."""


class TableFunction(UserDefinedFunction):
    """Any number of rows for one row."""

    @abc.abstractmethod
    def eval(self, *args: Any) -> Any:
        """The rows."""


class AsyncTableFunction(UserDefinedFunction):
    """Any number of rows for one row, awaited; Flink has it for Java only."""

    @abc.abstractmethod
    async def eval(self, *args: Any) -> Any:
        """The rows, returned together or yielded."""


class ImperativeAggregateFunction(UserDefinedFunction):
    """Many rows become one accumulator."""

    @abc.abstractmethod
    def create_accumulator(self) -> Any:
        """The accumulator of nothing."""

    @abc.abstractmethod
    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """Take a row in."""

    def retract(self, accumulator: Any, *args: Any) -> None:
        """Take a row back."""
        msg = f"{type(self).__name__} has no retract method, but rows are taken back here"
        raise UserError(msg, hint="write retract, the opposite of accumulate")

    def merge(self, accumulator: Any, accumulators: Any) -> None:
        """Take other accumulators in."""
        msg = f"{type(self).__name__} has no merge method, but accumulators are merged here"
        raise UserError(msg, hint="write merge")

    def get_result_type(self) -> Any:
        """The type of the result."""
        msg = f"{type(self).__name__} does not say what type its result has"
        raise UserError(msg, hint="write get_result_type, or give result_type")

    def get_accumulator_type(self) -> Any:
        """The type of the accumulator."""
        return None


class AggregateFunction(ImperativeAggregateFunction):
    """Many rows become one value."""

    @abc.abstractmethod
    def get_value(self, accumulator: Any) -> Any:
        """The value."""


class TableAggregateFunction(ImperativeAggregateFunction):
    """Many rows become several."""

    @abc.abstractmethod
    def emit_value(self, accumulator: Any) -> Any:
        """The rows."""


def as_type(given: Any) -> t.DataType:
    """A type, or the text of one."""
    if isinstance(given, t.DataType):
        return given
    if isinstance(given, str):
        return parse_type(given)
    msg = f"{given!r} is not a data type"
    raise UserError(msg, hint="use DataTypes.BIGINT() or 'BIGINT'")


def _as_types(given: Any) -> tuple[t.DataType, ...] | None:
    if given is None:
        return None
    if isinstance(given, str | t.DataType):
        given = [given]
    return tuple(as_type(each) for each in given)


class _Wrapper:
    """A function that can be called with expressions, or registered under a name."""

    def __init__(self, function: UserFunction) -> None:
        self._user = function
        self._aliases: tuple[str, ...] = ()
        functools.update_wrapper(self, function.function, updated=())

    def __call__(self, *args: Any) -> Expression:
        found = Expression(s.Call(0, self._user.name, tuple(map(node, args)), user=self._user))
        return found.alias(*self._aliases) if self._aliases else found

    def alias(self, *alias_names: str) -> _Wrapper:
        """The same with names for its results."""
        made = type(self)(self._user)
        made._aliases = alias_names
        return made


class UserDefinedScalarFunctionWrapper(_Wrapper):
    """What udf() makes."""


class UserDefinedAsyncScalarFunctionWrapper(_Wrapper):
    """What udf() makes of an async function."""


class UserDefinedTableFunctionWrapper(_Wrapper):
    """What udtf() makes."""


class UserDefinedAggregateFunctionWrapper(_Wrapper):
    """What udaf() and udtaf() make."""


def _instance(f: Any) -> Any:
    """A function class stands for an instance of it."""
    return f() if isinstance(f, type) and issubclass(f, UserDefinedFunction) else f


def _name(f: Any, name: str | None) -> str:
    return name or getattr(f, "__name__", None) or type(f).__name__


def _made(
    f: Any,
    kind: str,
    result: Any,
    inputs: Any,
    name: str | None,
    func_type: str,
    deterministic: bool | None,
    accumulator: Any = None,
) -> UserFunction:
    if not callable(f) and not isinstance(f, UserDefinedFunction):
        msg = f"{f!r} is not a function"
        raise UserError(msg, hint="give a function, or an instance of ScalarFunction or its kin")
    if func_type not in ("general", "pandas", "arrow"):
        msg = f"func_type must be general, pandas or arrow, not {func_type!r}"
        raise UserError(msg)
    return UserFunction(
        _name(f, name),
        kind,
        f,
        result,
        _as_types(inputs),
        pandas=func_type == "pandas",
        arrow=func_type == "arrow",
        deterministic=_deterministic(f, deterministic),
        accumulator_type=accumulator,
    )


def _deterministic(f: Any, said: bool | None) -> bool:
    known = f.is_deterministic() if isinstance(f, UserDefinedFunction) else None
    if said is not None and known is not None and said != known:
        msg = f"'{_name(f, None)}' says deterministic={known} itself, but deterministic={said} was given"
        raise UserError(msg, hint="say it in one place")
    return bool(said if said is not None else True if known is None else known)


def udf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """A scalar function; also a decorator."""
    if f is None:
        return functools.partial(
            udf,
            input_types=input_types,
            result_type=result_type,
            deterministic=deterministic,
            name=name,
            func_type=func_type,
        )
    if result_type is None:
        msg = f"udf '{_name(f, name)}' needs a result_type"
        raise UserError(msg, hint="as in @udf(result_type=DataTypes.BIGINT())")
    f = _instance(f)
    made = _made(f, SCALAR, as_type(result_type), input_types, name, func_type, deterministic)
    if not inspect.iscoroutinefunction(getattr(f, "eval", f)):
        return UserDefinedScalarFunctionWrapper(made)
    if func_type != "general":
        msg = f"'{made.name}' is asynchronous, so it takes single rows: func_type {func_type!r} is not possible"
        raise UserError(msg, hint="leave func_type out")
    return UserDefinedAsyncScalarFunctionWrapper(replace(made, asynchronous=True))


def udtf(
    f: Any = None,
    input_types: Any = None,
    result_types: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """A table function; also a decorator. An asynchronous one is called for many rows at once."""
    if f is None:
        return functools.partial(
            udtf, input_types=input_types, result_types=result_types, deterministic=deterministic, name=name
        )
    f = _instance(f)
    if result_types is None:
        msg = f"udtf '{_name(f, name)}' needs result_types"
        raise UserError(msg, hint="as in @udtf(result_types=[DataTypes.STRING()])")
    kinds = _as_types(result_types) or ()
    if len(kinds) == 1 and isinstance(kinds[0], t.RowType):
        row = kinds[0]
    else:
        row = t.row_of([f"f{i}" for i in range(len(kinds))], kinds)
    made = _made(f, TABLE, row, input_types, name, "general", deterministic)
    evaluate = getattr(f, "eval", f)
    waits = inspect.iscoroutinefunction(evaluate) or inspect.isasyncgenfunction(evaluate)
    return UserDefinedTableFunctionWrapper(replace(made, asynchronous=True) if waits else made)


class _Folded(AggregateFunction):
    """An aggregate of all values at once: a function of Series, or of Arrow arrays."""

    def __init__(self, function: Any, func_type: str) -> None:
        self._function, self._func_type = function, func_type
        self.__name__ = _name(function, None)

    def open(self, function_context: FunctionContext) -> None:
        """As the function opens."""
        if hasattr(self._function, "open"):
            self._function.open(function_context)

    def close(self) -> None:
        """As the function closes."""
        if hasattr(self._function, "close"):
            self._function.close()

    def create_accumulator(self) -> Any:
        """No rows."""
        return []

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """One more row."""
        accumulator.append(args)

    def retract(self, accumulator: Any, *args: Any) -> None:
        """One row less."""
        accumulator.remove(args)

    def merge(self, accumulator: Any, accumulators: Any) -> None:
        """The rows of all."""
        for each in accumulators:
            accumulator.extend(each)

    def get_value(self, accumulator: Any) -> Any:
        """What the function says of all rows."""
        call = self._function.eval if hasattr(self._function, "eval") else self._function
        columns = [list(column) for column in zip(*accumulator, strict=True)]
        if self._func_type == "arrow":
            result = call(*map(pa.array, columns))
            return scalar_value(result) if isinstance(result, pa.Scalar) else result
        result = call(*(_series(column) for column in columns))
        return result.item() if isinstance(result, np.generic) else result


def _series(values: list[Any]) -> Any:
    """A column as a pandas Series, numbers with missing ones among them as floats."""
    import pandas as pd

    return pd.Series(values) if any(isinstance(v, Row | dict) for v in values) else pa.array(values).to_pandas()


def udaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """An aggregate function; also a decorator."""
    if f is None:
        return functools.partial(
            udaf, input_types=input_types, result_type=result_type, accumulator_type=accumulator_type,
            deterministic=deterministic, name=name, func_type=func_type,
        )  # fmt: skip
    f = _instance(f)
    result = f.get_result_type() if result_type is None and isinstance(f, AggregateFunction) else result_type
    if result is None:
        msg = f"udaf '{_name(f, name)}' needs a result_type"
        raise UserError(msg)
    function = f if isinstance(f, AggregateFunction) else _Folded(f, func_type)
    kind = f.get_accumulator_type() if accumulator_type is None and function is f else accumulator_type
    held = None if kind is None else as_type(kind)
    made = _made(function, AGGREGATE, as_type(result), input_types, _name(f, name), "general", deterministic, held)
    return UserDefinedAggregateFunctionWrapper(made)


def udtaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """A table aggregate function; also a decorator."""
    if f is None:
        return functools.partial(
            udtaf, input_types=input_types, result_type=result_type, accumulator_type=accumulator_type,
            deterministic=deterministic, name=name, func_type=func_type,
        )  # fmt: skip
    f = _instance(f)
    if not isinstance(f, TableAggregateFunction):
        msg = f"udtaf takes a TableAggregateFunction, not {f!r}"
        raise UserError(msg, hint="write a class with create_accumulator, accumulate and emit_value")
    if func_type != "general":
        msg = f"a table aggregate function takes single rows, func_type {func_type!r} is not possible"
        raise UserError(msg, hint="leave func_type out")
    result = as_type(f.get_result_type() if result_type is None else result_type)
    row = result if isinstance(result, t.RowType) else t.row_of(["f0"], [result])
    kind = f.get_accumulator_type() if accumulator_type is None else accumulator_type
    held = None if kind is None else as_type(kind)
    made = _made(f, TABLE_AGGREGATE, row, input_types, name, func_type, deterministic, held)
    return UserDefinedAggregateFunctionWrapper(made)


def user_function(name: str, given: Any) -> UserFunction:
    """A function to be registered: what udf() and its kin made, or an instance of their classes."""
    if isinstance(given, _Wrapper):
        return given._user
    if isinstance(given, UserFunction):
        return given
    given = _instance(given)
    if isinstance(given, AggregateFunction | TableAggregateFunction):
        maker = udaf if isinstance(given, AggregateFunction) else udtaf
        found: UserFunction = maker(given, name=name)._user
        return found
    msg = f"'{name}' is not a function that can be registered: {given!r}"
    raise UserError(msg, hint="wrap it with udf(), udtf() or udaf(), which say its types")


Types = Sequence[t.DataType]
