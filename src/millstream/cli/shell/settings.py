"""The options of the shell itself, under Flink's names.

Promises: a value that cannot be is refused when it is set, and an option that does nothing here is told once.
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

OWN: tuple[Option[Any], ...] = (RESULT_MODE, MAX_TABLE_ROWS, VERBOSE, MAX_COLUMN_WIDTH, DML_SYNC)
WITHOUT_EFFECT = tuple(option.key for option in (COLOR_SCHEMA, PRINT_TIME_COST, SHOW_LINE_NUMBERS))


class UnknownShellOption(UserError):
    """A key in the shell's own namespace that is none of its options."""

    def __init__(self, key: str) -> None:
        known = [option.key for option in OWN] + list(WITHOUT_EFFECT)
        super().__init__(f"unknown option '{key}'", hint=nearest(key, known))


class NotAbove0(UserError):
    """A number that must be above 0."""

    def __init__(self, key: str, value: str) -> None:
        super().__init__(f"option '{key}' cannot be {value}", hint="it must be above 0")


def check(key: str, value: str) -> str | None:
    """Refuse a value that an option of the shell cannot have; a warning when the option does nothing."""
    option = next((each for each in OWN if key in (each.key, *each.fallback_keys)), None)
    if option is not None:
        parsed = option.parse(value)
        if option.type is int and int(parsed) < 1:
            raise NotAbove0(option.key, value)
        return None
    if key in WITHOUT_EFFECT:
        return f"option '{key}' has no effect"
    if key.startswith("sql-client."):
        raise UnknownShellOption(key)
    return None
