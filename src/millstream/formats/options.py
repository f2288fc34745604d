"""Options of formats, under Flink's names.

Promises: an option is declared once, with its default and description. Its key can have the name of the format as a
prefix. An unknown key is refused with the nearest known one.
Does not know: what an option does."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.formats.contract import BadFormat, OnError

_log = logging.getLogger("millstream.formats")

ON_ERROR = ConfigOption(
    "on-error", None, "What happens to a record that cannot be decoded: fail, skip or dead-letter.", str
)
IGNORE_PARSE_ERRORS = ConfigOption(
    "ignore-parse-errors",
    False,
    "Whether fields that cannot be parsed are set to NULL and records that cannot be parsed are skipped.",
    bool,
)
TIMESTAMP_FORMAT = ConfigOption(
    "timestamp-format.standard",
    "SQL",
    "The format of timestamps: SQL (2020-12-30 12:13:14.123), ISO-8601 (2020-12-30T12:13:14.123) or RFC-3339 "
    "(2020-12-30T12:13:14.123Z).",
    str,
    choices=("SQL", "ISO-8601", "RFC-3339"),
)
MAP_NULL_KEY_MODE = ConfigOption(
    "map-null-key.mode",
    "FAIL",
    "What happens to a NULL key of a map: FAIL, DROP the entry, or replace the key by a LITERAL.",
    str,
    choices=("FAIL", "DROP", "LITERAL"),
)
MAP_NULL_KEY_LITERAL = ConfigOption(
    "map-null-key.literal", "null", "The text that replaces NULL keys of maps in the mode LITERAL.", str
)
DECIMAL_AS_PLAIN_NUMBER = ConfigOption(
    "encode.decimal-as-plain-number", False, "Whether decimals are written without an exponent.", bool
)
IGNORE_NULL_FIELDS = ConfigOption(
    "encode.ignore-null-fields", False, "Whether fields that are NULL are left out.", bool
)


class Settings:
    """The options of one format, read by their constants."""

    def __init__(self, format_name: str, options: Sequence[ConfigOption[Any]], values: Mapping[str, Any]) -> None:
        self._format = format_name
        self._values: dict[str, Any] = {}
        by_key = {key: option for option in (*options, ON_ERROR) for key in (option.key, *option.fallback_keys)}
        for name, value in values.items():
            key = name.removeprefix(f"{format_name}.")
            option = by_key.get(key) or by_key.get(key.replace("_", "-"))
            if option is None:
                message = f"the format {format_name} has no option {name!r}"
                near = difflib.get_close_matches(key, by_key, 1)
                hint = f"did you mean {format_name}.{near[0]}?" if near else f"it has {', '.join(sorted(by_key))}"
                raise BadFormat(message, hint=hint)
            self._values[option.key] = option.parse(value)

    def get(self, option: ConfigOption[Any]) -> Any:
        """Return the value of an option, or its default."""
        return self._values.get(option.key, option.default)

    def is_set(self, option: ConfigOption[Any]) -> bool:
        """Whether an option is set."""
        return option.key in self._values

    def require(self, option: ConfigOption[Any]) -> Any:
        """Return the value of an option; raises if it is not set."""
        if option.key not in self._values:
            message = f"the format {self._format} needs the option {self._format}.{option.key}"
            raise BadFormat(message, hint=option.description)
        return self._values[option.key]

    def without_effect(self, *options: ConfigOption[Any]) -> None:
        """Log a warning for each of these options that is set."""
        for option in options:
            if self.is_set(option):
                _log.warning("%s.%s has no effect: %s", self._format, option.key, option.description)

    def on_error(self) -> OnError:
        """Return the error policy: `on-error` if set, else skip if ignore-parse-errors is set, else fail."""
        if self.is_set(ON_ERROR):
            return OnError.of(self.get(ON_ERROR))
        return OnError.SKIP if self._values.get(IGNORE_PARSE_ERRORS.key) else OnError.FAIL
