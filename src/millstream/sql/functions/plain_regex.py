"""Regular expressions that mean the same to Java, to Python and to Arrow.

Promises: an expression is only called plain when every one of its signs is; when in doubt it is not.
Does not know: how it is searched for."""

from __future__ import annotations

import re
from functools import lru_cache

_SIGNS = r"A-Za-z0-9_&=/:;,@%!~ "
_TOKEN = re.compile(
    rf"""\[\^?[{_SIGNS}]+\]   # one of some signs, or none of them
    | [{_SIGNS}#"<>-]         # a sign that stands for itself
    | \\[./?&+*()]            # one that is made to
    | \((?!\?) | \) | \| | \^ # groups, choices, the beginning
    | [*+?](?![*+?])          # how often""",
    re.VERBOSE,
)


@lru_cache(maxsize=256)
def naming(regex: str, group: int = 0) -> str | None:
    """The expression with a name for one of its groups, which takes part in every match, and no other group.

    None if it is not plain."""
    tokens: list[str] = []
    at = 0
    while at < len(regex):
        found = _TOKEN.match(regex, at)
        if found is None:
            return None
        tokens.append(found.group())
        at = found.end()
    if not tokens:
        return None
    try:
        groups = re.compile(regex).groups
    except re.error:
        return None
    if group == 0:
        return f"(?P<found>{''.join(map(_unnamed, tokens))})"
    return _named(tokens, group) if 0 < group <= groups else None


def _named(tokens: list[str], group: int) -> str | None:
    depth = number = 0
    ours: int | None = None
    for place, token in enumerate(tokens):
        if token == "(":
            number += 1
            if number == group:
                if depth:
                    return None
                ours = place
            depth += 1
        elif token == ")":
            depth -= 1
            ended = ours is not None and depth == 0 and number >= group and _closes(tokens, ours, place)
            if ended and place + 1 < len(tokens) and tokens[place + 1] in ("*", "+", "?"):
                return None
        elif token == "|" and not depth:
            return None
    if ours is None:
        return None
    return "".join("(?P<found>" if place == ours else _unnamed(token) for place, token in enumerate(tokens))


def _unnamed(token: str) -> str:
    return "(?:" if token == "(" else token


def _closes(tokens: list[str], start: int, end: int) -> bool:
    """Whether the bracket at `end` is the one that closes the bracket at `start`."""
    depth = 0
    for place in range(start, end + 1):
        depth += (tokens[place] == "(") - (tokens[place] == ")")
        if depth == 0:
            return place == end
    return False
