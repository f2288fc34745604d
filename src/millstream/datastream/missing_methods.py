"""Errors for calls of methods that a stream does not have.

Promises: for a method of keyed streams the hint names `key_by`, for a misspelt one the most similar name.
Does not know: what methods do."""

from __future__ import annotations

import difflib

_WINDOWS = ("window", "count_window")


def explain_missing_method(name: str, stream_class: type, keyed_class: type) -> str:
    """Return the text of the AttributeError for a name that a stream does not have."""
    if name.startswith("_"):
        return name
    message = f"{stream_class.__name__} has no method '{name}'"
    if hasattr(keyed_class, name):
        instead = ", or window_all(...) for windows over the whole stream" if name in _WINDOWS else ""
        return f"{message}; call key_by(...) first{instead}"
    near = difflib.get_close_matches(name, [known for known in dir(stream_class) if not known.startswith("_")], 1)
    return f"{message}; did you mean '{near[0]}'?" if near else message
