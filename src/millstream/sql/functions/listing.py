"""The names of all built-in functions, as SHOW FUNCTIONS lists them.

Promises: every function that can be called by a name is there once, in lower case: scalar ones, aggregates, and those
that need OVER.
Does not know: users' functions; what has no name that can be written, such as operators."""

from __future__ import annotations

import re

from millstream.sql.functions import library
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.registry import known_names
from millstream.sql.functions.window_functions import WINDOW_FUNCTIONS

assert library  # loads every function
_NAME = re.compile(r"[A-Z_][A-Z_0-9]*")
_UNWRITTEN = {"SINGLE_VALUE"}  # stands for a subquery


def built_in_names() -> list[str]:
    """The names in lower case, in order."""
    names = {*known_names(), *AGGREGATES, *WINDOW_FUNCTIONS} - _UNWRITTEN
    return sorted(name.lower() for name in names if _NAME.fullmatch(name))
