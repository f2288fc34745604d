"""Functions of regular expressions.

Promises: an invalid expression returns NULL; an expression is compiled once. Arrow evaluates an expression only if it
means the same to Java, Python and Arrow, which is decided token by token.
Does not know: LIKE and SIMILAR TO, which are in `logic`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import scalar_value
from millstream.sql.functions.dictionary_encoding import compute_on_distinct
from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t

_STRING = "string"


_LITERALS = r"A-Za-z0-9_&=/:;,@%!~ "
_TOKEN = re.compile(
    rf"""\[\^?[{_LITERALS}]+\]   # a character class
    | [{_LITERALS}#"<>-]         # a literal character
    | \\[./?&+*()]            # an escaped character
    | \((?!\?) | \) | \| | \^ # groups, alternatives, the start
    | [*+?](?![*+?])          # quantifiers""",
    re.VERBOSE,
)


@lru_cache(maxsize=256)
def name_group(regex: str, group: int = 0) -> str | None:
    """Return the expression with a name for one group and no other capturing groups, for Arrow's extract_regex.

    None if the expression may differ between Java, Python and Arrow, or if a match may not contain the group."""
    tokens: list[str] = []
    offset = 0
    while offset < len(regex):
        token = _TOKEN.match(regex, offset)
        if token is None:
            return None
        tokens.append(token.group())
        offset = token.end()
    if not tokens:
        return None
    try:
        groups = re.compile(regex).groups
    except re.error:
        return None
    if group == 0:
        return f"(?P<match>{''.join(map(_remove_capture, tokens))})"
    return _name_tokens(tokens, group) if 0 < group <= groups else None


def _name_tokens(tokens: list[str], group: int) -> str | None:
    """Name a group that is not nested, repeated or in an alternative; None for other groups."""
    depth = number = 0
    group_index: int | None = None
    for index, token in enumerate(tokens):
        if token == "(":
            number += 1
            if number == group:
                if depth:
                    return None
                group_index = index
            depth += 1
        elif token == ")":
            depth -= 1
            is_end_of_group = (
                group_index is not None and depth == 0 and number >= group and _closes(tokens, group_index, index)
            )
            if is_end_of_group and index + 1 < len(tokens) and tokens[index + 1] in ("*", "+", "?"):
                return None
        elif token == "|" and not depth:
            return None
    if group_index is None:
        return None
    return "".join(
        "(?P<match>" if index == group_index else _remove_capture(token) for index, token in enumerate(tokens)
    )


def _remove_capture(token: str) -> str:
    return "(?:" if token == "(" else token


def _closes(tokens: list[str], start: int, end: int) -> bool:
    """Whether the parenthesis at `end` closes the one at `start`."""
    depth = 0
    for index in range(start, end + 1):
        depth += (tokens[index] == "(") - (tokens[index] == ")")
        if depth == 0:
            return index == end
    return False


@lru_cache(maxsize=512)
def compile_pattern(text: str) -> re.Pattern[str] | None:
    """Compile a regular expression; None if it is invalid."""
    try:
        return re.compile(text)
    except re.error:
        return None


def _regexp_replace(value: str, regex: str, replacement: str) -> str | None:
    compiled = compile_pattern(regex)
    return None if compiled is None else compiled.sub(lambda _match: replacement, value)


define(
    "REGEXP_REPLACE",
    _STRING,
    "string, string, string",
    t.STRING,
    by_row(_regexp_replace),
    "Replaces all matches of the regular expression by the third argument.",
)


def _regexp_extract(value: str, regex: str, group: int = 0) -> str | None:
    compiled = compile_pattern(regex)
    if compiled is None or not 0 <= group <= compiled.groups:
        return None
    match = compiled.search(value)
    return None if match is None else match.group(group)


def _regexp_extract_kernel(frame: Any, args: list[Any], arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    has_constant_regex = not isinstance(args[0], pa.Scalar) and all(isinstance(arg, pa.Scalar) for arg in args[1:])
    constants = [scalar_value(arg) for arg in args[1:]] if has_constant_regex else []
    arrow_regex = None if not has_constant_regex or None in constants else name_group(*constants)
    if arrow_regex is None:
        return by_row(_regexp_extract)(frame, args, arg_types, result_type)
    return compute_on_distinct(args[0], lambda texts: pc.struct_field(pc.extract_regex(texts, arrow_regex), [0]))


define(
    "REGEXP_EXTRACT",
    _STRING,
    ("string, string", "string, string, int"),
    t.STRING,
    _regexp_extract_kernel,
    "Returns the first match of the regular expression, or of the group with the given index. Returns "
    "NULL if there is no match.",
    null="always",
)


def _regexp_extract_all(value: str, regex: str, group: int = 1) -> tuple[str | None, ...] | None:
    compiled = compile_pattern(regex)
    if compiled is None or not 0 <= group <= compiled.groups:
        return None
    return tuple(match.group(group) for match in compiled.finditer(value))


define(
    "REGEXP_EXTRACT_ALL",
    _STRING,
    ("string, string", "string, string, int"),
    t.ArrayType(t.STRING),
    by_row(_regexp_extract_all),
    "Returns all matches of a group of the regular expression (group 1 if not given) as an array.",
    null="always",
)
define(
    "REGEXP",
    _STRING,
    "string, string",
    t.BOOLEAN,
    by_row(lambda v, r: bool(r) and (p := compile_pattern(r)) is not None and p.search(v) is not None),
    "Returns TRUE if a part of the string matches the regular expression.",
)
define(
    "REGEXP_COUNT",
    _STRING,
    "string, string",
    t.INT,
    by_row(lambda v, r: None if (p := compile_pattern(r)) is None else sum(1 for _ in p.finditer(v))),
    "Returns the number of matches of the regular expression.",
    null="always",
)
define(
    "REGEXP_INSTR",
    _STRING,
    "string, string",
    t.INT,
    by_row(
        lambda v, r: None if (p := compile_pattern(r)) is None else 0 if (m := p.search(v)) is None else m.start() + 1
    ),
    "Returns the position of the first match of the regular expression, counted from 1, or 0 if there is none.",
    null="always",
)
define(
    "REGEXP_SUBSTR",
    _STRING,
    "string, string",
    t.STRING,
    by_row(lambda v, r: None if (p := compile_pattern(r)) is None or (m := p.search(v)) is None else m.group()),
    "Returns the first match of the regular expression, or NULL if there is none.",
    null="always",
)
