"""Registry of scalar functions, each declared once.

A declaration has the name, the argument and result types, how the function is computed (an Arrow kernel, value by value
in Python, or both), how Spark SQL spells it, and the line of the reference page.

Promises: a call is checked against the declared signatures, and its arguments are cast to the types that the function
takes.
Does not know: how expressions are parsed or bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.sql.columns import arrow_type, to_internal_values
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.functions.dictionary_encoding import compute_on_distinct
from millstream.sql.functions.spark import SparkSpelling
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_common_type

#: (frame, arguments, types of the arguments, type of the result) to a column or a scalar. Arguments are Arrow arrays,
#: Arrow scalars, or plain strings for symbols such as a time unit.
Evaluate = Callable[[Any, list[Any], list[t.DataType], t.DataType], Any]
TypeRule = Callable[[list[t.DataType]], t.DataType]
Coercion = Callable[[list[t.DataType]], list[t.DataType] | None]

_FUNCTIONS: dict[str, Function] = {}


@dataclass(frozen=True)
class Function:
    """A scalar function. A signature is a tuple of argument families; the last can end in '...'."""

    name: str
    category: str
    signatures: tuple[tuple[str, ...], ...]
    result: TypeRule
    evaluate: Evaluate
    doc: str
    syntax: str = ""
    deterministic: bool = True
    null: str = "any"  # any: nullable if an argument is; never; always; rule: the type rule decides
    coerce: Coercion | None = None  # None for argument types that do not fit
    aliases: tuple[str, ...] = ()
    spark: SparkSpelling | None = None  # None: Spark does not compute it as Flink does


def define(
    name: str,
    category: str,
    signatures: str | Sequence[str],
    result: t.DataType | TypeRule,
    evaluate: Evaluate,
    doc: str,
    *,
    fallback: Evaluate | None = None,
    syntax: str = "",
    deterministic: bool = True,
    null: str = "any",
    coerce: Coercion | None = None,
    aliases: Sequence[str] = (),
    spark: SparkSpelling | None = None,
) -> None:
    """Declare a function.

    Args:
        name: The name, in upper case. Operators have their symbol as name, such as "+" or "IS NULL".
        category: The section of the reference page; "internal" for functions that cannot be called.
        signatures: Argument types, such as "string, int": one of `FAMILIES` for each argument.
        result: The type of the result, or a function of the argument types.
        evaluate: How it is computed: `vectorized(...)`, `by_row(...)`, or a function that decides by the arguments.
        doc: A sentence for the reference page.
        fallback: Computes the calls for which `evaluate` returns NotImplemented, as a rule `by_row(...)`.
        syntax: How it is written, if that is not name(arguments).
        deterministic: Whether equal arguments always have equal results.
        null: When the result can be NULL, see `Function.null`.
        coerce: Casts of the arguments beyond those of the signature.
        aliases: Other names of the function.
        spark: How Spark SQL spells a call; None if Spark computes something else.

    """
    texts = (signatures,) if isinstance(signatures, str) else tuple(signatures)
    parsed = tuple(tuple(part.strip() for part in text.split(",") if part.strip()) for text in texts)
    rule: TypeRule = result if callable(result) else lambda _arg_types: result
    function = Function(
        name,
        category,
        parsed,
        rule,
        evaluate if fallback is None else _with_fallback(evaluate, fallback),
        doc,
        syntax,
        deterministic,
        null,
        coerce,
        tuple(aliases),
        spark,
    )
    for function_name in (name, *aliases):
        if function_name in _FUNCTIONS:
            msg = f"function {function_name} is declared twice"
            raise ValueError(msg)
        _FUNCTIONS[function_name] = function


def _with_fallback(kernel: Evaluate, fallback: Evaluate) -> Evaluate:
    def evaluate(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
        result = kernel(frame, args, arg_types, result_type)
        return fallback(frame, args, arg_types, result_type) if result is NotImplemented else result

    return evaluate


def get_function(name: str) -> Function:
    """Return a function that is known to exist."""
    return _FUNCTIONS[name]


def find(name: str) -> Function | None:
    """Return the function with a name in any case; None if there is none."""
    return _FUNCTIONS.get(name.upper())


def list_functions() -> list[Function]:
    """Return every function once, by category and name."""
    return sorted(set(_FUNCTIONS.values()), key=lambda function: (function.category, function.name))


def list_names() -> Iterable[str]:
    """Return every name by which a function can be called, aliases too."""
    return _FUNCTIONS.keys()


def suggest_name(name: str, others: Iterable[str] = ()) -> str | None:
    """Return a hint for the name of a function that does not exist."""
    return nearest(name, [*(known_name for known_name in _FUNCTIONS if known_name.isidentifier()), *others])


FAMILIES: dict[str, Callable[[t.DataType], bool]] = {
    "any": lambda _data_type: True,
    "string": t.is_text,
    "boolean": lambda data_type: isinstance(data_type, t.BooleanType),
    "number": lambda data_type: isinstance(data_type, t.NumericType),
    "integer": lambda data_type: isinstance(data_type, t.IntegerType),
    "int": lambda data_type: isinstance(data_type, t.IntegerType),
    "bigint": lambda data_type: isinstance(data_type, t.IntegerType),
    "double": lambda data_type: isinstance(data_type, t.NumericType),
    "decimal": lambda data_type: isinstance(data_type, t.DecimalType),
    "bytes": t.is_bytes,
    "text or bytes": lambda data_type: t.is_text(data_type) or t.is_bytes(data_type),
    "date": lambda data_type: isinstance(data_type, t.DateType),
    "time": lambda data_type: isinstance(data_type, t.TimeType),
    "timestamp": t.is_timestamp,
    "instant": lambda data_type: isinstance(data_type, t.LocalZonedTimestampType),
    "temporal": lambda data_type: isinstance(data_type, t.DateType | t.TimeType) or t.is_timestamp(data_type),
    "interval": t.is_interval,
    "array": lambda data_type: isinstance(data_type, t.ArrayType),
    "map": lambda data_type: isinstance(data_type, t.MapType),
    "collection": lambda data_type: isinstance(data_type, t.ArrayType | t.MapType | t.MultisetType),
    "row": lambda data_type: isinstance(data_type, t.RowType),
    "variant": lambda data_type: isinstance(data_type, t.VariantType),
    "bitmap": lambda data_type: isinstance(data_type, t.BitmapType),
    "symbol": lambda data_type: isinstance(data_type, t.SymbolType),
}
#: Families whose arguments are cast to one type.
_CAST_TO: dict[str, t.DataType] = {"int": t.INT, "bigint": t.BIGINT, "double": t.DOUBLE, "string": t.STRING}
#: The types of NULL literals.
_NULL_TYPES: dict[str, t.DataType] = {
    "boolean": t.BOOLEAN,
    "number": t.INT,
    "integer": t.INT,
    "decimal": t.DecimalType(10, 0),
    "bytes": t.BYTES,
    "text or bytes": t.STRING,
    "date": t.DATE,
    "time": t.TIME,
    "timestamp": t.TimestampType(3),
    "instant": t.LocalZonedTimestampType(3),
    "temporal": t.TimestampType(3),
    "bitmap": t.BITMAP,
}


def resolve(function: Function, arg_types: list[t.DataType], at: int | None) -> tuple[list[t.DataType], t.DataType]:
    """Return the types to which the arguments of a call are cast, and the type of its result."""
    cast_types = _match_signature(function, arg_types)
    if cast_types is not None and function.coerce is not None:
        cast_types = function.coerce(cast_types)
    if cast_types is None:
        type_names = ", ".join(
            "a keyword" if isinstance(data_type, t.SymbolType) else data_type.text() for data_type in arg_types
        )
        message = f"{function.name} cannot be applied to ({type_names})"
        raise SqlValidationError(message, at=at, hint=f"it is used as {describe_usage(function)}")
    result = function.result(cast_types)
    match function.null:
        case "never":
            result = result.not_null()
        case "always":
            result = result.nullable()
        case "any":
            values = [data_type for data_type in cast_types if not isinstance(data_type, t.SymbolType)]
            result = result.with_null(any(data_type.null for data_type in values))
    return cast_types, result


def describe_usage(function: Function) -> str:
    """Return how a function is written in SQL."""
    if function.syntax:
        return function.syntax
    return " or ".join(f"{function.name}({', '.join(signature)})" for signature in function.signatures)


def _match_signature(function: Function, arg_types: list[t.DataType]) -> list[t.DataType] | None:
    expanded = [_expand(signature, len(arg_types)) for signature in function.signatures]
    candidates = [families for families in expanded if families is not None]
    for families in candidates:
        if all(_fits(family, data_type) for family, data_type in zip(families, arg_types, strict=True)):
            return [_find_cast_type(family, data_type) for family, data_type in zip(families, arg_types, strict=True)]
    for families in candidates:  # the only implicit cast of Flink: a date for a timestamp
        if all(_fits_as_timestamp(family, data_type) for family, data_type in zip(families, arg_types, strict=True)):
            return [
                _find_timestamp_type(family, data_type) for family, data_type in zip(families, arg_types, strict=True)
            ]
    return None


def _expand(signature: tuple[str, ...], count: int) -> list[str] | None:
    """Return the family of each of `count` arguments; None if the signature does not take so many."""
    required = [family for family in signature if not family.startswith("[")]
    families = [family.strip("[]") for family in signature]
    if families and families[-1].endswith("..."):
        head, repeated = families[:-1], families[-1].removesuffix("...").strip()
        minimum = len([family for family in required if not family.endswith("...")])
        return None if count < minimum else [*head, *[repeated] * (count - len(head))][:count]
    return families[:count] if len(required) <= count <= len(families) else None


def _fits(family: str, data_type: t.DataType) -> bool:
    return isinstance(data_type, t.NullType) or FAMILIES[family](data_type)


def _find_cast_type(family: str, data_type: t.DataType) -> t.DataType:
    is_null_literal = isinstance(data_type, t.NullType)
    if is_null_literal and family in _NULL_TYPES:
        return _NULL_TYPES[family]
    if family not in _CAST_TO or (family == "string" and not is_null_literal):
        return t.strip_time_attribute(data_type)
    return _CAST_TO[family].with_null(data_type.null)


def _fits_as_timestamp(family: str, data_type: t.DataType) -> bool:
    return _fits(family, data_type) or (family == "timestamp" and isinstance(data_type, t.DateType))


def _find_timestamp_type(family: str, data_type: t.DataType) -> t.DataType:
    return _find_cast_type(family, data_type) if _fits(family, data_type) else t.TimestampType(3, null=data_type.null)


def to_common_type(arg_types: list[t.DataType]) -> list[t.DataType] | None:
    """Return the common type once for each argument, with the argument's nullability; None if there is none."""
    common = find_common_type(arg_types)
    return None if common is None else [common.with_null(data_type.null) for data_type in arg_types]


# ------------------------------------------------------------------------------------------ how functions are computed


def vectorized(kernel: Callable[..., Any]) -> Evaluate:
    """Compute whole columns with a function of Arrow arrays and scalars."""
    return lambda _frame, args, _arg_types, _result_type: kernel(*args)


def by_row(function: Callable[..., Any], *, strict: bool = True) -> Evaluate:
    """Compute value by value with a Python function; a `strict` function is not called if an argument is NULL."""

    def evaluate(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
        is_constant = all(isinstance(arg, pa.Scalar) for arg in args if not isinstance(arg, str))
        count = 1 if is_constant else frame.count
        if strict and count and not is_constant and _is_only_first_varying(args):
            constants = [
                arg if isinstance(arg, str) else _list_values(arg, data_type, 1)[0]
                for arg, data_type in zip(args[1:], arg_types[1:], strict=True)
            ]
            if None in constants:
                return pa.nulls(count, arrow_type(result_type))
            return compute_on_distinct(
                args[0], lambda column: _map_column(function, column, constants, arg_types[0], result_type)
            )
        columns = [
            [arg] * count if isinstance(arg, str) else _list_values(arg, data_type, count)
            for arg, data_type in zip(args, arg_types, strict=True)
        ]
        if strict:
            results = [None if None in values else function(*values) for values in _iterate_rows(columns, count)]
        else:
            results = [function(*values) for values in _iterate_rows(columns, count)]
        array = pa.array(results, arrow_type(result_type))
        return array[0] if is_constant else array

    return evaluate


def _map_column(
    function: Callable[..., Any],
    column: pa.Array,
    constants: list[Any],
    column_type: t.DataType,
    result_type: t.DataType,
) -> pa.Array:
    values = to_internal_values(column, column_type)
    return pa.array(
        [None if value is None else function(value, *constants) for value in values], arrow_type(result_type)
    )


def _is_only_first_varying(args: list[Any]) -> bool:
    """Whether all arguments but the first are constants."""
    return not isinstance(args[0], str | pa.Scalar) and all(isinstance(arg, str | pa.Scalar) for arg in args[1:])


def _iterate_rows(columns: list[list[Any]], count: int) -> Iterable[tuple[Any, ...]]:
    return zip(*columns, strict=True) if columns else [()] * count


def _list_values(arg: Any, data_type: t.DataType, count: int) -> list[Any]:
    if isinstance(arg, pa.Scalar):
        array = pa.nulls(1, arg.type) if not arg.is_valid else pa.repeat(arg, 1)
        return to_internal_values(array, data_type) * count
    return to_internal_values(arg, data_type)
