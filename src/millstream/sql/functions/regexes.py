"""Regular expressions.

Promises: what is no expression gives NULL; one is compiled once.
Does not know: LIKE and SIMILAR TO, which are `logic`'s."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import scalar_value
from millstream.sql.functions import plain_regex
from millstream.sql.functions.dictionary_encoding import compute_on_distinct
from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t

_S = "string"


@lru_cache(maxsize=512)
def pattern(text: str) -> re.Pattern[str] | None:
    """A regular expression; None for what is none."""
    try:
        return re.compile(text)
    except re.error:
        return None


def _regexp_replace(value: str, regex: str, new: str) -> str | None:
    found = pattern(regex)
    return None if found is None else found.sub(lambda _match: new, value)


define(
    "REGEXP_REPLACE",
    _S,
    "string, string, string",
    t.STRING,
    by_row(_regexp_replace),
    "Replaces all matches of the regular expression by the third argument.",
)


def _regexp_extract(value: str, regex: str, group: int = 0) -> str | None:
    found = pattern(regex)
    if found is None or not 0 <= group <= found.groups:
        return None
    match = found.search(value)
    return None if match is None else match.group(group)


def _extract_column(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    plain = not isinstance(args[0], pa.Scalar) and all(isinstance(arg, pa.Scalar) for arg in args[1:])
    constants = [scalar_value(arg) for arg in args[1:]] if plain else []
    named = None if not plain or None in constants else plain_regex.naming(*constants)
    if named is None:
        return by_row(_regexp_extract)(frame, args, kinds, kind)
    return compute_on_distinct(args[0], lambda texts: pc.struct_field(pc.extract_regex(texts, named), [0]))


define(
    "REGEXP_EXTRACT",
    _S,
    ("string, string", "string, string, int"),
    t.STRING,
    _extract_column,
    "Returns the first match of the regular expression, or of the group with the given index. Returns "
    "NULL if there is no match.",
    null="always",
)


def _regexp_extract_all(value: str, regex: str, group: int = 1) -> tuple[str | None, ...] | None:
    found = pattern(regex)
    if found is None or not 0 <= group <= found.groups:
        return None
    return tuple(match.group(group) for match in found.finditer(value))


define(
    "REGEXP_EXTRACT_ALL",
    _S,
    ("string, string", "string, string, int"),
    t.ArrayType(t.STRING),
    by_row(_regexp_extract_all),
    "Returns all matches of a group of the regular expression (group 1 if not given) as an array.",
    null="always",
)
define(
    "REGEXP",
    _S,
    "string, string",
    t.BOOLEAN,
    by_row(lambda v, r: bool(r) and (p := pattern(r)) is not None and p.search(v) is not None),
    "Returns TRUE if a part of the string matches the regular expression.",
)
define(
    "REGEXP_COUNT",
    _S,
    "string, string",
    t.INT,
    by_row(lambda v, r: None if (p := pattern(r)) is None else sum(1 for _ in p.finditer(v))),
    "Returns the number of matches of the regular expression.",
    null="always",
)
define(
    "REGEXP_INSTR",
    _S,
    "string, string",
    t.INT,
    by_row(lambda v, r: None if (p := pattern(r)) is None else 0 if (m := p.search(v)) is None else m.start() + 1),
    "Returns the position of the first match of the regular expression, counted from 1, or 0 if there is none.",
    null="always",
)
define(
    "REGEXP_SUBSTR",
    _S,
    "string, string",
    t.STRING,
    by_row(lambda v, r: None if (p := pattern(r)) is None or (m := p.search(v)) is None else m.group()),
    "Returns the first match of the regular expression, or NULL if there is none.",
    null="always",
)
