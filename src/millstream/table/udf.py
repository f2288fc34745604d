"""User-defined functions: udf, udtf, udaf, udtaf, and the classes that users extend.

Promises: PyFlink's decorators, classes and parameters. A type is a DataType or its SQL text.
Does not know: how functions are called."""

from __future__ import annotations

import abc
import functools
import inspect
from dataclasses import replace
from typing import Any

from millstream.errors import InvalidArgument, InvalidArgumentType, UserError
from millstream.sql.functions.function_context import FunctionContext
from millstream.sql.functions.process_functions import (
    PROCESS,
    ArgumentTrait,
    ListState,
    MapState,
    StateHint,
    read_signature,
)
from millstream.sql.functions.user_functions import AGGREGATE, SCALAR, TABLE, TABLE_AGGREGATE, UserFunction
from millstream.sql.operators.process_table import ProcessContext, TimeContext
from millstream.sql.syntax import parse_type
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression import Expression
from millstream.table.expression.terms import to_node

__all__ = [
    "AggregateFunction",
    "ArgumentTrait",
    "AsyncScalarFunction",
    "AsyncTableFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ListState",
    "MapState",
    "ProcessContext",
    "ProcessTableFunction",
    "ScalarFunction",
    "StateHint",
    "TableAggregateFunction",
    "TableFunction",
    "TimeContext",
    "ptf",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]


class UserDefinedFunction(abc.ABC):  # noqa: B024 - the abstract methods are in the subclasses
    """The base class of user-defined functions, with their lifecycle methods."""

    def open(self, function_context: FunctionContext) -> None:
        """Initialize the function; it is called once in each subtask before the first row.

        Args:
            function_context: Metrics and job parameters.

        """

    def close(self) -> None:
        """Release resources; it is called once in each subtask after the last row."""

    def is_deterministic(self) -> bool:
        """Return whether equal arguments always give equal results; override it if they do not."""
        return True


class ScalarFunction(UserDefinedFunction):
    """A function that maps the arguments of a row to one value.

    Example:
        >>> from millstream.table import DataTypes, ScalarFunction
        >>> from millstream.table.udf import udf
        >>> class Double(ScalarFunction):
        ...     def eval(self, value):
        ...         return 2 * value
        >>> double = udf(Double(), result_type=DataTypes.BIGINT())

    """

    @abc.abstractmethod
    def eval(self, *args: Any) -> Any:
        """Return the value for the arguments of one row.

        Args:
            *args: The arguments; an implementation declares its own parameters.

        """


class AsyncScalarFunction(UserDefinedFunction):
    """A scalar function with an asynchronous `eval`, which is called for many rows concurrently.

    Example:
        >>> from millstream.table import DataTypes
        >>> from millstream.table.udf import udf
        >>> class LookUp(AsyncScalarFunction):
        ...     async def eval(self, name):
        ...         return f"address of {name}"
        >>> look_up = udf(LookUp(), result_type=DataTypes.STRING())

    """

    @abc.abstractmethod
    async def eval(self, *args: Any) -> Any:
        """Return the value for the arguments of one row.

        Args:
            *args: The arguments; an implementation declares its own parameters.

        """


class TableFunction(UserDefinedFunction):
    """A function that maps the arguments of a row to any number of rows.

    Example:
        >>> from millstream.table import DataTypes
        >>> from millstream.table.udf import udtf
        >>> class Words(TableFunction):
        ...     def eval(self, text):
        ...         yield from text.split()
        >>> words = udtf(Words(), result_types=[DataTypes.STRING()])

    """

    @abc.abstractmethod
    def eval(self, *args: Any) -> Any:
        """Return or yield the rows: a `Row`, a tuple, or a value if there is one result column.

        Args:
            *args: The arguments; an implementation declares its own parameters.

        """


class AsyncTableFunction(UserDefinedFunction):
    """A table function with an asynchronous `eval`, which is called for many rows concurrently.

    PyFlink does not have this class; Flink has it in Java.

    Example:
        >>> from millstream.table import DataTypes
        >>> from millstream.table.udf import udtf
        >>> class Orders(AsyncTableFunction):
        ...     async def eval(self, customer):
        ...         return [f"order of {customer}"]
        >>> orders = udtf(Orders(), result_types=[DataTypes.STRING()])

    """

    @abc.abstractmethod
    async def eval(self, *args: Any) -> Any:
        """Return the rows in a list, or yield them from an asynchronous generator.

        Args:
            *args: The arguments; an implementation declares its own parameters.

        """


class MethodMissing(UserError, RuntimeError):
    """An aggregate function lacks a method that the query needs."""


class ImperativeAggregateFunction(UserDefinedFunction):
    """The base class of functions that aggregate rows in an accumulator.

    Example:
        >>> class Total(AggregateFunction):
        ...     def create_accumulator(self):
        ...         return [0]
        ...     def accumulate(self, accumulator, value):
        ...         accumulator[0] += value
        ...     def retract(self, accumulator, value):
        ...         accumulator[0] -= value
        ...     def get_value(self, accumulator):
        ...         return accumulator[0]

    """

    @abc.abstractmethod
    def create_accumulator(self) -> Any:
        """Return the accumulator of a group without rows."""

    @abc.abstractmethod
    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """Add the arguments of a row to the accumulator, which is changed in place.

        Args:
            accumulator: The accumulator.
            *args: The arguments.

        """

    def retract(self, accumulator: Any, *args: Any) -> None:
        """Remove the arguments of a row that was accumulated before; needed if the input has updates.

        Args:
            accumulator: The accumulator, which is changed in place.
            *args: The arguments.

        Raises:
            UserError: Unless it is overridden.

        """
        msg = f"{type(self).__name__} has no retract method, but its input has updates or deletes"
        raise MethodMissing(msg, hint="implement retract, the inverse of accumulate")

    def merge(self, accumulator: Any, accumulators: Any) -> None:
        """Add other accumulators to an accumulator; needed for session windows and two-phase aggregation.

        Args:
            accumulator: The accumulator that is changed.
            accumulators: The other accumulators.

        Raises:
            UserError: Unless it is overridden.

        """
        msg = f"{type(self).__name__} has no merge method, but the query merges accumulators"
        raise MethodMissing(msg, hint="implement merge")

    def get_result_type(self) -> Any:
        """Return the data type of the result; needed if `result_type` is not given to `udaf` or `udtaf`.

        Raises:
            UserError: Unless it is overridden.

        """
        msg = f"{type(self).__name__} has no result type"
        raise MethodMissing(msg, hint="implement get_result_type, or give result_type")

    def get_accumulator_type(self) -> Any:
        """Return the data type of the accumulator; None if it is pickled."""
        return None


class AggregateFunction(ImperativeAggregateFunction):
    """A function that aggregates rows to one value.

    Example:
        >>> from millstream.table import AggregateFunction, DataTypes
        >>> from millstream.table.udf import udaf
        >>> class Total(AggregateFunction):
        ...     def create_accumulator(self):
        ...         return [0]
        ...     def accumulate(self, accumulator, value):
        ...         accumulator[0] += value
        ...     def get_value(self, accumulator):
        ...         return accumulator[0]
        >>> total = udaf(Total(), result_type=DataTypes.BIGINT())

    """

    @abc.abstractmethod
    def get_value(self, accumulator: Any) -> Any:
        """Return the result for an accumulator.

        Args:
            accumulator: The accumulator.

        """


class TableAggregateFunction(ImperativeAggregateFunction):
    """A function that aggregates rows to any number of rows.

    Example:
        >>> from millstream.table import DataTypes
        >>> from millstream.table.udf import udtaf
        >>> class TopTwo(TableAggregateFunction):
        ...     def create_accumulator(self):
        ...         return []
        ...     def accumulate(self, accumulator, amount):
        ...         accumulator[:] = sorted([*accumulator, amount], reverse=True)[:2]
        ...     def emit_value(self, accumulator):
        ...         yield from accumulator
        >>> top_two = udtaf(TopTwo(), result_type=DataTypes.ROW([DataTypes.FIELD("amount", DataTypes.BIGINT())]))

    """

    @abc.abstractmethod
    def emit_value(self, accumulator: Any) -> Any:
        """Yield the result rows for an accumulator.

        Args:
            accumulator: The accumulator.

        """


class ProcessTableFunction(UserDefinedFunction):
    """A function that turns tables into a table, row by row, with state and timers; Flink's process table function.

    `eval` is called for each row. The type hints of its parameters declare what they are, in this order: a context
    named `ctx`; state entries, which are dataclasses, `ListState` or `MapState`; tables, as
    `Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE]`; constants. If there are several tables, the argument of the
    table of the row is set, the others are None. `on_timer` takes the context and the state entries; it is
    called when the watermark reaches a timer. Both return or yield rows.

    PyFlink does not have this class; Flink has it in Java.

    Example:
        >>> from dataclasses import dataclass
        >>> from typing import Annotated
        >>> from millstream.common import Row
        >>> from millstream.table import DataTypes
        >>> from millstream.table.udf import ArgumentTrait, ProcessTableFunction, ptf
        >>> @dataclass
        ... class Visits:
        ...     count: int = 0
        >>> class Greeting(ProcessTableFunction):
        ...     def eval(self, memory: Visits, input: Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE]):
        ...         memory.count += 1
        ...         yield f"hello {input.name}, visit {memory.count}"
        >>> greeting = ptf(Greeting(), result_type=DataTypes.STRING())

    """

    @abc.abstractmethod
    def eval(self, *args: Any) -> Any:
        """Return or yield the rows for one row of a table: a `Row`, a tuple, or a value if there is one column.

        Args:
            *args: The context, if the function declares it, then state, tables and scalars; an implementation declares
                its own parameters.

        """

    def emits_updates(self) -> bool:
        """Return whether results are changes: `Row.of_kind` with all four row kinds. By default, all are inserts."""
        return False


def to_data_type(data_type: Any) -> t.DataType:
    """Return a data type that is given as such or as SQL text."""
    if isinstance(data_type, t.DataType):
        return data_type
    if isinstance(data_type, str):
        return parse_type(data_type)
    msg = f"{data_type!r} is not a data type"
    raise InvalidArgumentType(msg, hint="use DataTypes.BIGINT() or 'BIGINT'")


def _to_data_types(data_types: Any) -> tuple[t.DataType, ...] | None:
    if data_types is None:
        return None
    if isinstance(data_types, str | t.DataType):
        data_types = [data_types]
    return tuple(to_data_type(data_type) for data_type in data_types)


class _Wrapper:
    """A user-defined function that is called with expressions or registered under a name."""

    def __init__(self, function: UserFunction) -> None:
        self._user = function
        self._aliases: tuple[str, ...] = ()
        functools.update_wrapper(self, function.function, updated=())

    def __call__(self, *args: Any) -> Expression:
        call = Expression(s.Call(0, self._user.name, tuple(map(to_node, args)), user=self._user))
        return call.alias(*self._aliases) if self._aliases else call

    def alias(self, *alias_names: str) -> _Wrapper:
        """Return the function with names for its result columns."""
        renamed = type(self)(self._user)
        renamed._aliases = alias_names
        return renamed


class UserDefinedScalarFunctionWrapper(_Wrapper):
    """The result of `udf` for a function."""


class UserDefinedAsyncScalarFunctionWrapper(_Wrapper):
    """The result of `udf` for an asynchronous function."""


class UserDefinedTableFunctionWrapper(_Wrapper):
    """The result of `udtf`."""


class UserDefinedAggregateFunctionWrapper(_Wrapper):
    """The result of `udaf` and `udtaf`."""


class ProcessTableFunctionWrapper(_Wrapper):
    """The result of `ptf`."""


def _instantiate(f: Any) -> Any:
    """Return an instance if `f` is a function class, else `f`."""
    return f() if isinstance(f, type) and issubclass(f, UserDefinedFunction) else f


def _choose_name(f: Any, name: str | None) -> str:
    return name or getattr(f, "__name__", None) or type(f).__name__


def _create_function(
    f: Any,
    function_kind: str,
    result: Any,
    inputs: Any,
    name: str | None,
    func_type: str,
    deterministic: bool | None,
    accumulator: Any = None,
) -> UserFunction:
    if not callable(f) and not isinstance(f, UserDefinedFunction):
        msg = f"{f!r} is not a function"
        raise InvalidArgumentType(msg, hint="give a Python function, or an instance of a class such as ScalarFunction")
    if func_type not in ("general", "pandas", "arrow"):
        msg = f"The func_type must be one of 'general, pandas' or 'arrow', not {func_type!r}"
        raise InvalidArgument(msg)
    return UserFunction(
        _choose_name(f, name),
        function_kind,
        f,
        result,
        _to_data_types(inputs),
        pandas=func_type == "pandas",
        arrow=func_type == "arrow",
        deterministic=_is_deterministic(f, deterministic),
        accumulator_type=accumulator,
    )


def _is_deterministic(f: Any, argument: bool | None) -> bool:
    declared = f.is_deterministic() if isinstance(f, UserDefinedFunction) else None
    if argument is not None and declared is not None and argument != declared:
        name = _choose_name(f, None)
        msg = f"is_deterministic() of '{name}' returns {declared}, but the argument is deterministic={argument}"
        raise InvalidArgument(msg, hint="remove one of the two declarations")
    return bool(argument if argument is not None else True if declared is None else declared)


def udf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Create a scalar function; also a decorator.

    Args:
        f: A Python function, an asynchronous function, or an instance of `ScalarFunction` or `AsyncScalarFunction`.
        input_types: The types of the arguments, if they are to be checked and converted.
        result_type: The type of the result; required.
        deterministic: Whether equal arguments always give equal results; the default is True.
        name: The name of the function in plans; by default the name of `f`.
        func_type: `general` calls the function for each row. `pandas` calls it for each batch, with a Series for each
            argument, a DataFrame for an argument of type ROW, and the value of a literal. `arrow` calls it with an
            Arrow array for each argument.

    Returns:
        A function that is called with expressions or registered under a name.

    Raises:
        UserError: If `result_type` is missing, or an asynchronous function has another `func_type` than `general`.

    Example:
        >>> from millstream.table import DataTypes
        >>> from millstream.table.expressions import col
        >>> @udf(result_type=DataTypes.BIGINT())
        ... def double(value):
        ...     return 2 * value
        >>> double(col("amount"))
        double(amount)

    """
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
        msg = f"udf '{_choose_name(f, name)}' needs a result_type"
        raise InvalidArgumentType(msg, hint="as in @udf(result_type=DataTypes.BIGINT())")
    f = _instantiate(f)
    function = _create_function(f, SCALAR, to_data_type(result_type), input_types, name, func_type, deterministic)
    if not inspect.iscoroutinefunction(getattr(f, "eval", f)):
        return UserDefinedScalarFunctionWrapper(function)
    if func_type != "general":
        msg = (
            f"Async scalar functions do not support {func_type} func_type: '{function.name}' is called with single rows"
        )
        raise InvalidArgument(msg, hint="remove func_type")
    return UserDefinedAsyncScalarFunctionWrapper(replace(function, asynchronous=True))


def udtf(
    f: Any = None,
    input_types: Any = None,
    result_types: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """Create a table function; also a decorator.

    Args:
        f: A Python function, an asynchronous function or generator, or an instance of `TableFunction` or
            `AsyncTableFunction`.
        input_types: The types of the arguments, if they are to be checked and converted.
        result_types: The types of the result columns, or one row type; required.
        deterministic: Whether equal arguments always give equal results; the default is True.
        name: The name of the function in plans; by default the name of `f`.

    Returns:
        A function for `Table.join_lateral` and `Table.flat_map`, which can also be registered under a name.

    Raises:
        UserError: If `result_types` is missing.

    """
    if f is None:
        return functools.partial(
            udtf, input_types=input_types, result_types=result_types, deterministic=deterministic, name=name
        )
    f = _instantiate(f)
    if result_types is None:
        msg = f"udtf '{_choose_name(f, name)}' needs result_types"
        raise InvalidArgumentType(msg, hint="as in @udtf(result_types=[DataTypes.STRING()])")
    column_types = _to_data_types(result_types) or ()
    if len(column_types) == 1 and isinstance(column_types[0], t.RowType):
        row = column_types[0]
    else:
        row = t.row_of([f"f{i}" for i in range(len(column_types))], column_types)
    function = _create_function(f, TABLE, row, input_types, name, "general", deterministic)
    evaluate = getattr(f, "eval", f)
    is_asynchronous = inspect.iscoroutinefunction(evaluate) or inspect.isasyncgenfunction(evaluate)
    return UserDefinedTableFunctionWrapper(replace(function, asynchronous=True) if is_asynchronous else function)


def udaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Create an aggregate function; also a decorator.

    Args:
        f: An instance of `AggregateFunction`, or with `func_type` `pandas` or `arrow` a function of whole columns. With
            these types, `accumulate` of an `AggregateFunction` is called once for each result, with whole columns.
        input_types: The types of the arguments, if they are to be checked and converted.
        result_type: The type of the result; by default that of `get_result_type`.
        accumulator_type: The type of the accumulator; by default that of `get_accumulator_type`.
        deterministic: Whether equal arguments always give equal results; the default is True.
        name: The name of the function in plans; by default the name of `f`.
        func_type: `general`; `pandas` for arguments that are Series, and DataFrames for rows; `arrow` for Arrow arrays.

    Returns:
        A function that is called with expressions or registered under a name.

    Raises:
        UserError: If the result type is unknown, or a plain function has the `func_type` `general`.

    """
    if f is None:
        return functools.partial(
            udaf, input_types=input_types, result_type=result_type, accumulator_type=accumulator_type,
            deterministic=deterministic, name=name, func_type=func_type,
        )  # fmt: skip
    f = _instantiate(f)
    result = f.get_result_type() if result_type is None and isinstance(f, AggregateFunction) else result_type
    if result is None:
        msg = f"udaf '{_choose_name(f, name)}' needs a result_type"
        raise InvalidArgumentType(msg, hint="as in @udaf(result_type=DataTypes.BIGINT(), func_type='pandas')")
    if func_type == "general" and not isinstance(f, AggregateFunction):
        msg = f"udaf '{_choose_name(f, name)}' needs an AggregateFunction, not a function of single rows"
        raise InvalidArgumentType(msg, hint="write a class with accumulate and get_value, or set func_type")
    is_general = func_type == "general" and accumulator_type is None
    declared = f.get_accumulator_type() if is_general else accumulator_type
    accumulator = None if declared is None else to_data_type(declared)
    function = _create_function(
        f, AGGREGATE, to_data_type(result), input_types, name, func_type, deterministic, accumulator
    )
    return UserDefinedAggregateFunctionWrapper(function)


def udtaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Create a table aggregate function; also a decorator.

    Args:
        f: An instance of `TableAggregateFunction`.
        input_types: The types of the arguments, if they are to be checked and converted.
        result_type: The row type of the results; by default that of `get_result_type`.
        accumulator_type: The type of the accumulator; by default that of `get_accumulator_type`.
        deterministic: Whether equal arguments always give equal results; the default is True.
        name: The name of the function in plans; by default the name of `f`.
        func_type: Only `general` is possible.

    Returns:
        A function for `flat_aggregate`, which can also be registered under a name.

    Raises:
        UserError: If `f` is not a `TableAggregateFunction`, or its result type is unknown.

    """
    if f is None:
        return functools.partial(
            udtaf, input_types=input_types, result_type=result_type, accumulator_type=accumulator_type,
            deterministic=deterministic, name=name, func_type=func_type,
        )  # fmt: skip
    f = _instantiate(f)
    if not isinstance(f, TableAggregateFunction):
        msg = f"udtaf needs a TableAggregateFunction, not {f!r}"
        raise InvalidArgumentType(msg, hint="write a class with create_accumulator, accumulate and emit_value")
    if func_type != "general":
        msg = f"a table aggregate function is called with single rows, so func_type cannot be {func_type!r}"
        raise InvalidArgument(msg, hint="remove func_type")
    result = to_data_type(f.get_result_type() if result_type is None else result_type)
    row = result if isinstance(result, t.RowType) else t.row_of(["f0"], [result])
    declared = f.get_accumulator_type() if accumulator_type is None else accumulator_type
    accumulator = None if declared is None else to_data_type(declared)
    user_function = _create_function(f, TABLE_AGGREGATE, row, input_types, name, func_type, deterministic, accumulator)
    return UserDefinedAggregateFunctionWrapper(user_function)


def ptf(f: Any = None, result_type: Any = None, name: str | None = None) -> Any:
    """Declare a process table function, to be called in SQL, or with `Table.process`.

    It can be used as a decorator of a class.

    Args:
        f: A `ProcessTableFunction`.
        result_type: The data type of the results: a ROW for several columns.
        name: The name of the function; by default, that of its class.

    Returns:
        The function, to be registered or passed to `Table.process`.

    Raises:
        InvalidArgument: If the type hints of `eval` do not declare what its parameters are.

    """
    if f is None:
        return functools.partial(ptf, result_type=result_type, name=name)
    f = _instantiate(f)
    if not isinstance(f, ProcessTableFunction) or result_type is None:
        msg = f"{f!r} is not a ProcessTableFunction" if result_type is not None else f"{f!r} has no result_type"
        raise InvalidArgumentType(msg, hint="ptf(MyFunction(), result_type=DataTypes.STRING())")
    result = to_data_type(result_type)
    row = result if isinstance(result, t.RowType) else t.row_of(["EXPR$0"], [result])
    user_function = _create_function(f, PROCESS, row, None, name, "general", None)
    return ProcessTableFunctionWrapper(replace(user_function, signature=read_signature(f)))


def to_user_function(name: str, function: Any) -> UserFunction:
    """Return the function to register for a result of udf() and the like, or for an aggregate function object."""
    if isinstance(function, _Wrapper):
        return function._user
    if isinstance(function, UserFunction):
        return function
    function = _instantiate(function)
    if isinstance(function, AggregateFunction | TableAggregateFunction):
        wrap = udaf if isinstance(function, AggregateFunction) else udtaf
        user_function: UserFunction = wrap(function, name=name)._user
        return user_function
    msg = f"'{name}' is not a function that can be registered: {function!r}"
    raise InvalidArgumentType(msg, hint="wrap it with udf(), udtf(), udaf(), udtaf() or ptf(), which declare its types")
