"""Checks of options when a session sets them.

Promises: a misspelt key and a value of a wrong type are refused at once, and not by every later statement.
Does not know: what the options do."""

from __future__ import annotations

import difflib

from millstream.config.configuration import Configuration, MalformedValue
from millstream.config.option import OPTIONS
from millstream.errors import UserError
from millstream.option_keys import option_of, unknown_keys
from millstream.sql.functions.text import find_time_zone
from millstream.sql_options import LOCAL_TIME_ZONE, PLAN_SECRETS_PREFIX, SQL_DIALECT, WITHOUT_EFFECT
from millstream.table.sql_dialect import SqlDialect

_TABLE = "table."


class UnknownOption(UserError):
    """A key is no option, and looks like one."""

    def __init__(self, key: str, nearest: str | None) -> None:
        self.key = key
        hint = f"did you mean '{nearest}'?" if nearest else "docs/reference/options.md lists all options"
        super().__init__(f"unknown option '{key}'", hint=hint)


def check_setting(key: str, value: str) -> None:
    """Check an option before it is set.

    Raises:
        UnknownOption: If the key is probably misspelt.
        MalformedValue: If the option cannot have the value.

    """
    option = option_of(key)
    if option is not None:
        option.parse(value)
    elif key.startswith(_TABLE):
        if key not in WITHOUT_EFFECT and not key.startswith(PLAN_SECRETS_PREFIX):
            known_options = [*WITHOUT_EFFECT, *(name for name in OPTIONS if name.startswith(_TABLE))]
            raise UnknownOption(key, next(iter(difflib.get_close_matches(key, known_options, n=1)), None))
    else:
        for unknown, nearest in unknown_keys(Configuration().set_string(key, value)):
            raise UnknownOption(unknown, nearest)
    if key == SQL_DIALECT.key and value.upper() not in SqlDialect.__members__:
        raise MalformedValue(key, value, "one of default, hive")
    if key == LOCAL_TIME_ZONE.key and value != LOCAL_TIME_ZONE.default:
        try:
            find_time_zone(value)
        except ValueError:
            raise MalformedValue(key, value, "a time zone such as Europe/Berlin or GMT+03:00") from None
