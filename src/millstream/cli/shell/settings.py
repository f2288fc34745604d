"""Checks of the options of the shell, which have Flink's names.

Promises: an invalid value is an error when it is set; an option of Flink's client that has no effect here is a warning.
Does not know: the options of jobs."""

from __future__ import annotations

from typing import Any

from millstream.config.option import Option
from millstream.errors import UserError
from millstream.sql.errors import nearest
from millstream.sql_options import (
    COLOR_SCHEMA,
    DML_SYNC,
    MAX_COLUMN_WIDTH,
    MAX_TABLE_ROWS,
    PRINT_TIME_COST,
    RESULT_MODE,
    SHOW_LINE_NUMBERS,
    VERBOSE,
)

SHELL_OPTIONS: tuple[Option[Any], ...] = (RESULT_MODE, MAX_TABLE_ROWS, VERBOSE, MAX_COLUMN_WIDTH, DML_SYNC)
WITHOUT_EFFECT = tuple(option.key for option in (COLOR_SCHEMA, PRINT_TIME_COST, SHOW_LINE_NUMBERS))


class UnknownShellOption(UserError):
    """A key begins with `sql-client.` and is not an option of the shell."""

    def __init__(self, key: str) -> None:
        known = [option.key for option in SHELL_OPTIONS] + list(WITHOUT_EFFECT)
        super().__init__(f"unknown option '{key}'", hint=nearest(key, known))


class OptionNotPositive(UserError):
    """The value of an option is 0 or negative."""

    def __init__(self, key: str, value: str) -> None:
        super().__init__(f"option '{key}' cannot be {value}", hint="set a value greater than 0")


def check(key: str, value: str) -> str | None:
    """Check a value if its key is an option of the shell; returns a warning if the option has no effect."""
    option = next((option for option in SHELL_OPTIONS if key in (option.key, *option.fallback_keys)), None)
    if option is not None:
        parsed = option.parse(value)
        if option.type is int and int(parsed) < 1:
            raise OptionNotPositive(option.key, value)
        return None
    if key in WITHOUT_EFFECT:
        return f"option '{key}' has no effect"
    if key.startswith("sql-client."):
        raise UnknownShellOption(key)
    return None
