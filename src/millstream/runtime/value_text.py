"""Values of a program as text, for readers of its state and records.

Promises: the text is short whatever the value is, and can be sent as JSON; a value whose class cannot show itself is
named by its class.
Does not know: what the values mean."""

from __future__ import annotations

import reprlib
from typing import Any

MAX_TEXT = 2_000
_CUT = "…"


class _BoundedRepr(reprlib.Repr):
    """The built-in representation, with few elements of large collections."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 8
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 100
        self.maxdict = 100
        self.maxstring = self.maxlong = self.maxother = MAX_TEXT
        self.fillvalue = _CUT

    def repr_bytes(self, value: bytes, level: int) -> str:
        return repr(value[:200]) + (f"{_CUT} ({len(value)} bytes)" if len(value) > 200 else "")


_representation = _BoundedRepr()


def to_text(value: Any) -> str:
    """Return a value as text: a string as it is, all others as Python writes them."""
    try:
        text = value[: MAX_TEXT + 1] if isinstance(value, str) else _representation.repr(value)
    except Exception:  # __repr__ of a class of the program
        text = f"<{type(value).__qualname__}>"
    text = text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate cannot be sent
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + _CUT
