"""Texts cut into statements, however they are broken.

Promises: every character of a text is in a piece, between two of them or behind the last; semicolons in strings, names,
comments and statement sets cut nothing. Any text can be cut.
Does not know: the grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SCAN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<hint>/\*\+)
  | (?P<comment>--[^\n]*|/\*.*?\*/)
  | (?P<closed>'(?:[^']|'')*'|`(?:[^`]|``)*`)
  | (?P<open>/\*.*|'.*|`.*)
  | (?P<word>[^\W\d]\w*)
  | (?P<end>;)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ALONE = ("QUIT", "EXIT", "HELP", "CLEAR")


@dataclass(frozen=True)
class Piece:
    """A statement without its semicolon, and where it begins in the text; `closed` when it has one."""

    text: str
    start: int
    closed: bool


def pieces(text: str) -> list[Piece]:
    """The statements of a text; what is only space and comments is none."""
    found: list[Piece] = []
    start: int | None = None
    last = 0
    words: list[str] = []
    in_set = fresh = False
    for match in _SCAN.finditer(text):
        kind = match.lastgroup
        if kind in ("space", "comment"):
            continue
        if kind == "end" and not in_set:
            if start is not None:
                found.append(Piece(text[start:last], start, True))
            start, words = None, []
            continue
        if start is None:
            start = match.start()
        last = match.end()
        if kind == "word":
            words.append(match.group().upper())
            if in_set and fresh and words[-1] == "END":
                in_set = False
            elif words == ["BEGIN", "STATEMENT", "SET"] or words[-3:] == ["STATEMENT", "SET", "BEGIN"]:
                in_set = True
        fresh = kind == "end" or (in_set and words[-1:] == ["BEGIN"] and kind == "word")
    if start is not None:
        found.append(Piece(text[start:last], start, False))
    return found


def is_complete(text: str) -> bool:
    """Whether a person who pressed Enter is done: the last statement has its semicolon, or needs none."""
    found = pieces(text)
    if not found or found[-1].closed:
        return True
    return len(found) == 1 and found[0].text.strip().upper() in _ALONE


def line_of(text: str, offset: int) -> int:
    """The line of an offset, from 1."""
    return text.count("\n", 0, offset) + 1
