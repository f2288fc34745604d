"""The options of the shell itself, under Flink's names.

Promises: a value that cannot be is refused when it is set, and an option that does nothing here is told once.
Does not know: the options of jobs."""

from __future__ import annotations

from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.errors import UserError
from millstream.sql.errors import nearest
from millstream.sql.tableau import MAX_WIDTH

RESULT_MODE = ConfigOption(
    "sql-client.execution.result-mode",
    "table",
    "How rows of a query are shown: a table that changes, the changes, or lines as they come.",
    choices=("table", "changelog", "tableau"),
)
MAX_ROWS = ConfigOption(
    "sql-client.execution.max-table-result.rows",
    1_000_000,
    "The most rows that the modes table and changelog keep; the oldest go first.",
    int,
)
VERBOSE = ConfigOption("sql-client.verbose", False, "Whether an error is shown with its traceback.", bool)
MAX_WIDTH_SHOWN = ConfigOption(
    "table.display.max-column-width",
    MAX_WIDTH,
    "The width at which a column of unknown width is cut.",
    int,
    ("sql-client.display.max-column-width",),
)
DML_SYNC = ConfigOption("table.dml-sync", False, "Whether INSERT waits for the end of its job.", bool)

OWN: tuple[ConfigOption[Any], ...] = (RESULT_MODE, MAX_ROWS, VERBOSE, MAX_WIDTH_SHOWN, DML_SYNC)
WITHOUT_EFFECT = (
    "sql-client.display.color-schema",
    "sql-client.display.print-time-cost",
    "sql-client.display.show-line-numbers",
)


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
