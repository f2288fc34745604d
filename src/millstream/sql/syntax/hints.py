"""Grammar of hints: /*+ OPTIONS('a'='b'), BROADCAST(t) */.

Promises: names of hints are in upper case; their arguments are words, or keys with values.
Does not know: which hints exist."""

from __future__ import annotations

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import Cursor


def parse_hints(cursor: Cursor) -> tuple[s.Hint, ...]:
    """Parse the hints that begin here, if any do."""
    hints: list[s.Hint] = []
    if cursor.accept("/*+"):
        while not cursor.accept("*/"):
            hints.append(_parse_hint(cursor))
            cursor.accept(",")
    return tuple(hints)


def _parse_hint(cursor: Cursor) -> s.Hint:
    at, name = cursor.at, cursor.parse_name(any_word=True).upper()
    words: list[str] = []
    options: list[tuple[str, str]] = []
    if cursor.accept("("):
        while not cursor.is_next(")"):
            token = cursor.token
            if token.type not in ("string", "word", "quoted", "number"):
                cursor.reject("an option of the hint")
            cursor.advance()
            if cursor.accept("="):
                options.append((token.text, cursor.advance().text))
            else:
                words.append(token.text)
            if not cursor.accept(","):
                break
        cursor.expect(")")
    return s.Hint(at, name, tuple(words), tuple(options))
