"""The library of built-in functions: importing this module declares all of them.

Promises: a lookup here finds every built-in function, whichever module declares it.
Does not know: user-defined functions."""

from __future__ import annotations

import re

from millstream.sql.functions import (
    arithmetic,
    bitmaps,
    collections,
    construction,
    current_time,
    encodings,
    hashes,
    json_reading,
    json_writing,
    logic,
    regexes,
    splitting,
    strings,
    temporal_arithmetic,
    temporal_parts,
    temporal_text,
    variants,
)
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.functions.registry import (
    describe_usage,
    find,
    get_function,
    list_functions,
    list_names,
    resolve,
    suggest_name,
)

__all__ = [
    "MODULES",
    "describe_usage",
    "find",
    "get_function",
    "list_built_in_names",
    "list_functions",
    "list_names",
    "resolve",
    "suggest_name",
]

#: The modules that declare scalar functions.
MODULES = (
    arithmetic, bitmaps, collections, construction, current_time, encodings, hashes, json_reading, json_writing, logic,
    regexes, splitting, strings, temporal_arithmetic, temporal_parts, temporal_text, variants,
)  # fmt: skip
_NAME = re.compile(r"[A-Z_][A-Z_0-9]*")
_NOT_CALLABLE = {"SINGLE_VALUE"}  # the binder uses it for scalar subqueries


def list_built_in_names() -> list[str]:
    """Return the names that SHOW FUNCTIONS lists, in lower case and sorted; operators are not listed."""
    names = {*list_names(), *AGGREGATES, *OVER_FUNCTIONS} - _NOT_CALLABLE
    return sorted(name.lower() for name in names if _NAME.fullmatch(name))
