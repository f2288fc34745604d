"""Which parts of a text are what: for colours.

Promises: the parts of a line, put together, are the line; any text has parts.
Does not know: colours, terminals."""

from __future__ import annotations

import re

from millstream.cli.shell.words import COMMANDS, KEYWORDS, TYPES

_PART = re.compile(
    r"""
    (?P<comment>--[^\n]*|/\*(?!\+).*?(?:\*/|\Z))
  | (?P<string>'(?:[^']|'')*(?:'|\Z))
  | (?P<name>`(?:[^`]|``)*(?:`|\Z))
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d][\w$]*)
  | (?P<hint>/\*\+|\*/)
  | (?P<sign>[-+*/%<>=(),.;\[\]]+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def parts(text: str) -> list[tuple[str, str]]:
    """The text as (what, part): keyword, type, function, string, name, number, comment, hint or plain."""
    found: list[tuple[str, str]] = []
    for match in _PART.finditer(text):
        kind, part = match.lastgroup or "other", match.group()
        if kind == "word":
            found.append((_word(part, text[match.end() : match.end() + 1]), part))
        elif kind in ("sign", "other"):
            found.append(("plain", part))
        else:
            found.append((kind, part))
    return found


def lines(text: str) -> list[list[tuple[str, str]]]:
    """The parts of each line."""
    made: list[list[tuple[str, str]]] = [[]]
    for kind, part in parts(text):
        first, *more = part.split("\n")
        made[-1].append((kind, first))
        made.extend([(kind, each)] for each in more)
    return made


def _word(word: str, follows: str) -> str:
    upper = word.upper()
    if upper in KEYWORDS or upper in COMMANDS:
        return "keyword"
    if upper in TYPES and follows != "(":
        return "type"
    return "function" if follows == "(" else "plain"
