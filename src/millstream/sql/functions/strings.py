"""Functions of strings and byte strings.

Promises: positions count from 1; positions outside the string return an empty string, as in Flink.
Does not know: regular expressions, encodings, hashes."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import scalar_value
from millstream.sql.expressions.nodes import Lit
from millstream.sql.functions.registry import by_row, define, vectorized
from millstream.sql.functions.spark import NoSparkSpelling, SparkCall
from millstream.sql.types import data_types as t
from millstream.sql.types.common_types import find_common_type

_STRING = "string"


def _derive_concat_type(arg_types: list[t.DataType]) -> t.DataType:
    if all(isinstance(data_type, t.CharType) for data_type in arg_types):
        return t.CharType(sum(data_type.length for data_type in arg_types))  # type: ignore[attr-defined]
    if t.is_bytes(arg_types[0]):
        return t.BYTES
    total = sum(getattr(data_type, "length", t.MAX_LENGTH) for data_type in arg_types)
    return t.VarCharType(min(total, t.MAX_LENGTH))


def _concat(*args: Any) -> Any:
    return pc.binary_join_element_wise(*args, pa.scalar("" if pa.types.is_string(args[0].type) else b"", args[0].type))


def _get_length(data_type: t.DataType) -> int:
    return int(getattr(data_type, "length", t.MAX_LENGTH))


def _get_first_type(arg_types: list[t.DataType]) -> t.DataType:
    return arg_types[0]


def _derive_varchar_of_first(arg_types: list[t.DataType]) -> t.DataType:
    return t.VarCharType(_get_length(arg_types[0]))


def _derive_varchar_of_last(arg_types: list[t.DataType]) -> t.DataType:
    return t.VarCharType(_get_length(arg_types[-1]))


def _derive_overlay_type(arg_types: list[t.DataType]) -> t.DataType:
    return t.VarCharType(min(t.MAX_LENGTH, _get_length(arg_types[0]) + _get_length(arg_types[1])))


def _derive_substring_type(arg_types: list[t.DataType]) -> t.DataType:
    length = _get_length(arg_types[0])
    return t.VarBinaryType(length) if t.is_bytes(arg_types[0]) else t.VarCharType(length)


def _derive_elt_type(arg_types: list[t.DataType]) -> t.DataType:
    return find_common_type(arg_types[1:]) or t.STRING


def _spell_concat(call: SparkCall) -> str:
    if not call.args or not all(map(t.is_text, call.arg_types)):
        raise NoSparkSpelling(call)
    return f"CONCAT({', '.join(call.texts())})"


define(
    "||",
    _STRING,
    ("string, string", "bytes, bytes"),
    _derive_concat_type,
    vectorized(_concat),
    "Concatenates the strings or byte strings.",
    syntax="string1 || string2",
    spark=_spell_concat,
)
define(
    "CONCAT",
    _STRING,
    "string...",
    t.STRING,
    vectorized(_concat),
    "Concatenates the strings. Returns NULL if one of them is NULL.",
    spark=_spell_concat,
)
define(
    "CONCAT_WS",
    _STRING,
    "string, string...",
    t.STRING,
    by_row(lambda sep, *parts: None if sep is None else sep.join(p for p in parts if p is not None), strict=False),
    "Concatenates the strings with the first argument as the separator. NULL strings are left out.",
)
define(
    "CHAR_LENGTH",
    _STRING,
    "string",
    t.INT,
    vectorized(lambda v: pc.cast(pc.utf8_length(v), pa.int32())),
    "Returns the number of characters of the string.",
    aliases=("CHARACTER_LENGTH",),
    spark="CHAR_LENGTH({0})",
)
define(
    "OCTET_LENGTH",
    _STRING,
    "text or bytes",
    t.INT,
    vectorized(lambda v: pc.cast(pc.binary_length(v), pa.int32())),
    "Returns the number of bytes of the string, in UTF-8, or of the byte string.",
)
define(
    "UPPER",
    _STRING,
    "string",
    _get_first_type,
    vectorized(pc.utf8_upper),
    "Returns the string in upper case.",
    aliases=("UCASE",),
)
define(
    "LOWER",
    _STRING,
    "string",
    _get_first_type,
    vectorized(pc.utf8_lower),
    "Returns the string in lower case.",
    aliases=("LCASE",),
)
define(
    "POSITION",
    _STRING,
    "string, string",
    t.INT,
    by_row(lambda needle, hay: hay.find(needle) + 1),
    "Returns the position of string1 in string2, counted from 1, or 0 if it does not occur.",
    syntax="POSITION(string1 IN string2)",
)


def _trim(side: str, characters: str, value: str) -> str:
    if side == "BOTH":
        return value.strip(characters)
    return value.lstrip(characters) if side == "LEADING" else value.rstrip(characters)


define(
    "TRIM",
    _STRING,
    "symbol, string, string",
    _derive_varchar_of_last,
    by_row(_trim),
    "Removes characters (spaces if not given) from both ends, the beginning or the end of the string.",
    syntax="TRIM([BOTH | LEADING | TRAILING] [characters FROM] string)",
)
define(
    "LTRIM",
    _STRING,
    ("string", "string, string"),
    _derive_varchar_of_first,
    by_row(lambda v, c=" ": v.lstrip(c)),
    "Removes the characters of the second argument (spaces if not given) from the beginning of the string.",
)
define(
    "RTRIM",
    _STRING,
    ("string", "string, string"),
    _derive_varchar_of_first,
    by_row(lambda v, c=" ": v.rstrip(c)),
    "Removes the characters of the second argument (spaces if not given) from the end of the string.",
)
define(
    "BTRIM",
    _STRING,
    ("string", "string, string"),
    t.STRING,
    by_row(lambda v, c=" ": v.strip(c)),
    "Removes the characters of the second argument (spaces if not given) from both ends of the string.",
)
define(
    "REPEAT",
    _STRING,
    "string, int",
    t.STRING,
    by_row(lambda v, n: v * max(n, 0)),
    "Returns the string repeated n times.",
)


def _overlay(value: str, new: str, start: int, length: int | None = None) -> str:
    count = len(new) if length is None else length
    if start <= 0 or start > len(value):
        return value
    return value[: start - 1] + new + (value[start - 1 + count :] if count > 0 else "")


define(
    "OVERLAY",
    _STRING,
    ("string, string, int", "string, string, int, int"),
    _derive_overlay_type,
    by_row(_overlay),
    "Replaces the characters of string1 from the start position on by string2. The length is that of "
    "string2 if it is not given.",
    syntax="OVERLAY(string1 PLACING string2 FROM start [FOR length])",
)
define(
    "STARTSWITH",
    _STRING,
    ("string, string", "bytes, bytes"),
    t.BOOLEAN,
    by_row(lambda v, p: v.startswith(p)),
    "Returns TRUE if the first argument starts with the second.",
)
define(
    "ENDSWITH",
    _STRING,
    ("string, string", "bytes, bytes"),
    t.BOOLEAN,
    by_row(lambda v, p: v.endswith(p)),
    "Returns TRUE if the first argument ends with the second.",
)


def substring(value: Any, start: int, length: int | None = None) -> Any:
    """Return the substring from a position, counted from 1, or from the end if it is negative."""
    size = len(value)
    if length is not None and length < 0:
        return None
    begin = start - 1 if start > 0 else size + start if start < 0 else 0
    if begin >= size or begin < 0:
        return value[:0]
    return value[begin:] if length is None else value[begin : begin + length]


def _substring_kernel(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    is_constant = all(isinstance(arg, pa.Scalar) and arg.is_valid for arg in args[1:])
    if is_constant and t.is_text(arg_types[0]):
        numbers = [scalar_value(arg) for arg in args[1:]]
        if numbers[0] >= 1 and (len(numbers) == 1 or numbers[1] >= 0):
            stop = None if len(numbers) == 1 else numbers[0] - 1 + numbers[1]
            return pc.utf8_slice_codeunits(args[0], numbers[0] - 1, stop)
    return by_row(substring)(frame, args, arg_types, result_type)


def _spell_substring(call: SparkCall) -> str:
    """Spell calls with constant positions that count from the start; Spark and Flink differ for others."""
    numbers = [arg.value for arg in call.args[1:] if isinstance(arg, Lit) and arg.value is not None]
    if len(numbers) + 1 != len(call.args) or numbers[0] < 1 or numbers[-1] < 0:
        raise NoSparkSpelling(call)
    return f"SUBSTRING({', '.join([call.text(0), *map(str, numbers)])})"


define(
    "SUBSTRING",
    _STRING,
    ("string, int", "string, int, int", "bytes, int", "bytes, int, int"),
    _derive_substring_type,
    _substring_kernel,
    "Returns the substring from the start position, counted from 1, of the given length or up to the end.",
    syntax="SUBSTRING(string FROM start [FOR length])",
    aliases=("SUBSTR",),
    spark=_spell_substring,
    null="always",
)
define(
    "REPLACE",
    _STRING,
    "string, string, string",
    t.STRING,
    by_row(lambda v, old, new: v.replace(old, new)),
    "Replaces all occurrences of the second string in the first by the third.",
)
define(
    "TRANSLATE",
    _STRING,
    "string, string, string",
    t.STRING,
    by_row(
        lambda v, old, new: "".join(new[i] if 0 <= (i := old.find(c)) < len(new) else "" if i >= 0 else c for c in v)
    ),
    "Replaces each character of the second argument by the character at the same position of the third. "
    "Characters without a replacement are removed.",
)
define(
    "INITCAP",
    _STRING,
    "string",
    _get_first_type,
    by_row(lambda v: re.sub(r"[^\W_]+", lambda m: m.group()[0].upper() + m.group()[1:].lower(), v)),
    "Returns the string with the first letter of each word in upper case and the others in lower case.",
)


def _create_padding(left: bool) -> Any:
    def pad(value: str, length: int, filler: str) -> str | None:
        if length < 0 or not filler:
            return None
        if length <= len(value):
            return value[:length]
        padding = (filler * length)[: length - len(value)]
        return padding + value if left else value + padding

    return by_row(pad)


define(
    "LPAD",
    _STRING,
    "string, int, string",
    t.STRING,
    _create_padding(left=True),
    "Pads the string on the left with the third argument to a length, or truncates it to that length.",
)
define(
    "RPAD",
    _STRING,
    "string, int, string",
    t.STRING,
    _create_padding(left=False),
    "Pads the string on the right with the third argument to a length, or truncates it to that length.",
)
define(
    "INSTR",
    _STRING,
    "string, string",
    t.INT,
    by_row(lambda v, n: v.find(n) + 1),
    "Returns the position of the second string in the first, counted from 1, or 0 if it does not occur.",
)
define(
    "LEFT",
    _STRING,
    "string, int",
    _derive_substring_type,
    by_row(lambda v, n: v[: max(n, 0)]),
    "Returns the first n characters of the string.",
    null="always",
)
define(
    "RIGHT",
    _STRING,
    "string, int",
    _derive_substring_type,
    by_row(lambda v, n: v[-n:] if n > 0 else ""),
    "Returns the last n characters of the string.",
    null="always",
)
define(
    "LOCATE",
    _STRING,
    ("string, string", "string, string, int"),
    t.INT,
    by_row(lambda n, v, s=1: v.find(n, max(s - 1, 0)) + 1),
    "Returns the position of the first string in the second, counted from 1, or 0 if it does not occur. "
    "The third argument is the position where the search starts.",
)
define(
    "REVERSE",
    _STRING,
    "string",
    t.STRING,
    vectorized(pc.utf8_reverse),
    "Returns the string in reverse order.",
    null="always",
)
define(
    "ELT",
    _STRING,
    "int, string...",
    _derive_elt_type,
    by_row(lambda i, *parts: parts[i - 1] if i is not None and 1 <= i <= len(parts) else None, strict=False),
    "Returns the string at the index n, counted from 1, or NULL if there is none.",
    null="always",
)


def _printf(template: str | None, *values: Any) -> str | None:
    if template is None:
        return None
    try:
        return re.sub(r"%n", "\n", template) % tuple("null" if v is None else v for v in values)
    except (TypeError, ValueError):
        return None


define(
    "PRINTF",
    _STRING,
    ("string", "string, any..."),
    t.STRING,
    by_row(_printf, strict=False),
    "Formats the values by a format string as Java's printf does. Returns NULL if they do not fit the format.",
    null="always",
)
