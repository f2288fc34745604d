"""Keys of options in a configuration: the option of a key, misspelt keys, and keys without an effect.

Promises: a misspelt key is found with the most similar key; a deprecated key is found as its option.
Does not know: who reads an option."""

from __future__ import annotations

import difflib
from typing import Any

from millstream.config.configuration import Configuration
from millstream.ignored_options import IGNORED_PREFIXES
from millstream.options import OPTIONS, SQL_PREFIXES, Option

# read by the parts they belong to
USED_PREFIXES = (
    "spark.",
    "metrics.",
    "traces.reporter",
    "events.reporter",
    *SQL_PREFIXES,
    "rest.",
    "security.",
    "millstream.rest.",
)

_ALIASES = {alias: option for option in OPTIONS.values() for alias in option.fallback_keys}
_NAMESPACES = tuple({f"{key.partition('.')[0]}." for key in OPTIONS})


def option_of(key: str) -> Option[Any] | None:
    """Return the option with this key or this deprecated key; None if there is none."""
    return OPTIONS.get(key) or _ALIASES.get(key)


def unknown_keys(configuration: Configuration) -> list[tuple[str, str | None]]:
    """Return the keys that are probably misspelt, each with the most similar key of an option.

    A key in a namespace without options belongs to the user, unless it is very similar to the key of an option."""
    unknown: list[tuple[str, str | None]] = []
    for key in sorted(configuration.key_set()):
        if option_of(key) or key.startswith((*USED_PREFIXES, *IGNORED_PREFIXES)):
            continue
        is_option_namespace = key.startswith(_NAMESPACES)
        nearest = difflib.get_close_matches(key, OPTIONS, n=1, cutoff=0.6 if is_option_namespace else 0.85)
        if is_option_namespace or nearest:
            unknown.append((key, nearest[0] if nearest else None))
    return unknown


def ignored_keys(configuration: Configuration) -> list[tuple[str, str]]:
    """Return the keys that are set and have no effect, each with the reason for the warning."""
    ignored = []
    for key in sorted(configuration.key_set()):
        option = option_of(key)
        if option is not None and option.kind == "ignored":
            ignored.append((key, option.description))
        elif option is None and key.startswith(IGNORED_PREFIXES) and not key.startswith(USED_PREFIXES):
            ignored.append((key, "Ignored: it is a matter of Spark, or has no counterpart."))
    return ignored
