"""Functions, each declared once: name, argument and result types, how it is computed, and a sentence for people.

Promises: a call is checked against the declared families of types and gets its arguments in the types it wants; the
page of functions is made from the same declarations.
Does not know: how expressions are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.sql.columns import arrow_type, internal_values
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.functions.once_each import once_each
from millstream.sql.functions.spark import SparkSpelling
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import common_type

Evaluate = Callable[[Any, list[Any], list[t.DataType], t.DataType], Any]
TypeRule = Callable[[list[t.DataType]], t.DataType]

_FUNCTIONS: dict[str, Function] = {}


@dataclass(frozen=True)
class Function:
    """One scalar function. `shapes` are the lists of argument families it takes; the last may end in '...'."""

    name: str
    category: str
    shapes: tuple[tuple[str, ...], ...]
    result: TypeRule
    evaluate: Evaluate
    doc: str
    syntax: str = ""
    deterministic: bool = True
    null: str = "any"  # any: NULL when an argument can be; never; always
    coerce: Callable[[list[t.DataType]], list[t.DataType] | None] | None = None
    aliases: tuple[str, ...] = ()
    spark: SparkSpelling | None = None  # None: Spark does not compute it as Flink does


def define(
    name: str,
    category: str,
    shapes: str | Sequence[str],
    result: t.DataType | TypeRule,
    evaluate: Evaluate,
    doc: str,
    *,
    syntax: str = "",
    deterministic: bool = True,
    null: str = "any",
    coerce: Callable[[list[t.DataType]], list[t.DataType] | None] | None = None,
    aliases: Sequence[str] = (),
    spark: SparkSpelling | None = None,
) -> None:
    """Declare a function. Shapes are written as 'string, int' with one of `FAMILIES` for each argument."""
    listed = (shapes,) if isinstance(shapes, str) else tuple(shapes)
    parsed = tuple(tuple(part.strip() for part in shape.split(",") if part.strip()) for shape in listed)
    rule: TypeRule = result if callable(result) else lambda _kinds: result
    made = Function(
        name, category, parsed, rule, evaluate, doc, syntax, deterministic, null, coerce, tuple(aliases), spark
    )
    for each in (name, *aliases):
        if each in _FUNCTIONS:
            msg = f"function {each} is declared twice"
            raise ValueError(msg)
        _FUNCTIONS[each] = made


def function_named(name: str) -> Function:
    """A function that is known to exist."""
    return _FUNCTIONS[name]


def find(name: str) -> Function | None:
    """The function of that name, in any case."""
    return _FUNCTIONS.get(name.upper())


def all_functions() -> list[Function]:
    """Every function once, by category and name."""
    return sorted(set(_FUNCTIONS.values()), key=lambda each: (each.category, each.name))


def known_names() -> Iterable[str]:
    """Every name a function can be called by."""
    return _FUNCTIONS.keys()


def similar(name: str, others: Iterable[str] = ()) -> str | None:
    """A hint for a name that is no function."""
    return nearest(name, [*(each for each in _FUNCTIONS if each.isidentifier()), *others])


FAMILIES: dict[str, Callable[[t.DataType], bool]] = {
    "any": lambda _kind: True,
    "string": t.is_text,
    "boolean": lambda kind: isinstance(kind, t.BooleanType),
    "number": lambda kind: isinstance(kind, t.NumericType),
    "integer": lambda kind: isinstance(kind, t.IntegerType),
    "int": lambda kind: isinstance(kind, t.IntegerType),
    "bigint": lambda kind: isinstance(kind, t.IntegerType),
    "double": lambda kind: isinstance(kind, t.NumericType),
    "decimal": lambda kind: isinstance(kind, t.DecimalType),
    "bytes": t.is_bytes,
    "text or bytes": lambda kind: t.is_text(kind) or t.is_bytes(kind),
    "date": lambda kind: isinstance(kind, t.DateType),
    "time": lambda kind: isinstance(kind, t.TimeType),
    "timestamp": t.is_timestamp,
    "instant": lambda kind: isinstance(kind, t.LocalZonedTimestampType),
    "temporal": lambda kind: isinstance(kind, t.DateType | t.TimeType) or t.is_timestamp(kind),
    "interval": t.is_interval,
    "array": lambda kind: isinstance(kind, t.ArrayType),
    "map": lambda kind: isinstance(kind, t.MapType),
    "collection": lambda kind: isinstance(kind, t.ArrayType | t.MapType | t.MultisetType),
    "row": lambda kind: isinstance(kind, t.RowType),
    "variant": lambda kind: isinstance(kind, t.VariantType),
    "bitmap": lambda kind: isinstance(kind, t.BitmapType),
    "symbol": lambda kind: isinstance(kind, t.SymbolType),
}
_WANTED: dict[str, t.DataType] = {"int": t.INT, "bigint": t.BIGINT, "double": t.DOUBLE, "string": t.STRING}
_STRICT = ("string", "boolean", "number", "integer", "int", "bigint", "double", "bytes", "timestamp", "date", "time")


def resolve(function: Function, kinds: list[t.DataType], at: int | None) -> tuple[list[t.DataType], t.DataType]:
    """The types the arguments are brought to, and the type of the result."""
    wanted = _fitting(function, kinds)
    if wanted is None:
        raise SqlValidationError(_refusal(function, kinds), at=at, hint=f"it is used as {signature(function)}")
    if function.coerce is not None:
        coerced = function.coerce(wanted)
        if coerced is None:
            raise SqlValidationError(_refusal(function, kinds), at=at, hint=f"it is used as {signature(function)}")
        wanted = coerced
    result = function.result(wanted)
    match function.null:
        case "never":
            result = result.not_null()
        case "always":
            result = result.nullable()
        case "any":
            result = result.with_null(any(kind.null for kind in wanted if not isinstance(kind, t.SymbolType)))
    return wanted, result


def _refusal(function: Function, kinds: list[t.DataType]) -> str:
    given = ", ".join("a word" if isinstance(kind, t.SymbolType) else kind.text() for kind in kinds)
    return f"{function.name} cannot be applied to ({given})"


def signature(function: Function) -> str:
    """How a function is called, for people."""
    if function.syntax:
        return function.syntax
    return " or ".join(f"{function.name}({', '.join(shape)})" for shape in function.shapes)


def _fitting(function: Function, kinds: list[t.DataType]) -> list[t.DataType] | None:
    for shape in function.shapes:
        families = _expanded(shape, len(kinds))
        if families is None:
            continue
        if all(isinstance(k, t.NullType) or FAMILIES[f](k) for f, k in zip(families, kinds, strict=True)):
            return [_brought(f, k) for f, k in zip(families, kinds, strict=True)]
    for shape in function.shapes:  # a string literal may stand for a moment or a number, as in Flink's coercion
        families = _expanded(shape, len(kinds))
        if families is not None and all(_coercible(f, k) for f, k in zip(families, kinds, strict=True)):
            return [_forced(f, k) for f, k in zip(families, kinds, strict=True)]
    return None


def _expanded(shape: tuple[str, ...], count: int) -> list[str] | None:
    required = [part for part in shape if not part.startswith("[")]
    parts = [part.strip("[]") for part in shape]
    if parts and parts[-1].endswith("..."):
        head, rest = parts[:-1], parts[-1].removesuffix("...").strip()
        least = len([p for p in required if not p.endswith("...")])
        return None if count < least else [*head, *[rest] * (count - len(head))][:count]
    return parts[:count] if len(required) <= count <= len(parts) else None


_UNTYPED: dict[str, t.DataType] = {
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


def _brought(family: str, kind: t.DataType) -> t.DataType:
    if isinstance(kind, t.NullType) and family in _UNTYPED:
        return _UNTYPED[family]
    wanted = _WANTED.get(family)
    if wanted is None or (family == "string" and not isinstance(kind, t.NullType)):
        return t.plain(kind)
    if family in ("int", "bigint") and isinstance(kind, t.IntegerType) and kind.bits > wanted_bits(wanted):
        return wanted.with_null(kind.null)
    return wanted.with_null(kind.null)


def wanted_bits(kind: t.DataType) -> int:
    """The bits of an integer type."""
    return kind.bits if isinstance(kind, t.IntegerType) else 64


def _coercible(family: str, kind: t.DataType) -> bool:
    if isinstance(kind, t.NullType) or FAMILIES[family](kind):
        return True
    if t.is_text(kind):
        return family in ("double", "number", "timestamp", "date", "int", "bigint", "temporal")
    if family == "timestamp" and isinstance(kind, t.DateType):
        return True
    return family in ("int", "bigint") and isinstance(kind, t.NumericType)


def _forced(family: str, kind: t.DataType) -> t.DataType:
    if isinstance(kind, t.NullType) or FAMILIES[family](kind):
        return _brought(family, kind)
    wanted = {
        "timestamp": t.TimestampType(3),
        "temporal": t.TimestampType(3),
        "date": t.DATE,
        "number": t.DOUBLE,
        **_WANTED,
    }[family]
    return wanted.with_null(kind.null)


def to_common_type(kinds: list[t.DataType]) -> list[t.DataType] | None:
    """The arguments brought to their common type, each with its own nullability; None when there is none."""
    common = common_type(kinds)
    return None if common is None else [common.with_null(kind.null) for kind in kinds]


# --------------------------------------------------------------------------------------------- ways of computing


def by_row(function: Callable[..., Any], *, strict: bool = True) -> Evaluate:
    """Computed value by value in Python; a `strict` function is never shown a NULL."""

    def evaluate(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
        words = [arg if isinstance(arg, str) else None for arg in args]
        data = [arg for arg in args if not isinstance(arg, str)]
        constant = all(isinstance(arg, pa.Scalar) for arg in data)
        count = 1 if constant else frame.count
        if strict and count and not constant and _only_first(args):
            others = zip(args[1:], kinds[1:], strict=True)
            rest = [arg if isinstance(arg, str) else _values(arg, each, 1)[0] for arg, each in others]
            if None in rest:
                return pa.nulls(count, arrow_type(kind))
            return once_each(args[0], lambda values: _mapped(function, values, rest, kinds[0], kind))
        columns = [
            [word] * count if word is not None else _values(arg, each, count)
            for word, arg, each in zip(words, args, kinds, strict=True)
        ]
        if strict:
            made = [None if None in values else function(*values) for values in _rows(columns, count)]
        else:
            made = [function(*values) for values in _rows(columns, count)]
        array = pa.array(made, arrow_type(kind))
        return array[0] if constant else array

    return evaluate


def _mapped(
    function: Callable[..., Any], values: pa.Array, rest: list[Any], source: t.DataType, kind: t.DataType
) -> pa.Array:
    found = internal_values(values, source)
    return pa.array([None if value is None else function(value, *rest) for value in found], arrow_type(kind))


def _only_first(args: list[Any]) -> bool:
    """Whether only the first argument differs from row to row."""
    return not isinstance(args[0], str | pa.Scalar) and all(isinstance(arg, str | pa.Scalar) for arg in args[1:])


def _rows(columns: list[list[Any]], count: int) -> Iterable[tuple[Any, ...]]:
    return zip(*columns, strict=True) if columns else [()] * count


def _values(arg: Any, kind: t.DataType, count: int) -> list[Any]:
    if isinstance(arg, pa.Scalar):
        array = pa.nulls(1, arg.type) if not arg.is_valid else pa.repeat(arg, 1)
        return internal_values(array, kind) * count
    return internal_values(arg, kind)


def vectorized(function: Callable[..., Any]) -> Evaluate:
    """Computed on whole columns by a function of Arrow data."""
    return lambda _frame, args, _kinds, _kind: function(*args)
