"""Text as tokens, by Flink's lexical rules.

Promises: every character of the text is in a token, white space or a comment; anything else is a SqlSyntaxError with
its place. Identifiers go in backticks, strings in single quotes; both double the mark to hold it.
Does not know: the grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.sql.errors import SqlSyntaxError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<hint>/\*\+)
  | (?P<comment>--[^\n]*|/\*.*?\*/)
  | (?P<endhint>\*/)
  | (?P<bytes>[xX]'(?:[^']|'')*')
  | (?P<unicode>[uU]&'(?:[^']|'')*')
  | (?P<charset>_[A-Za-z0-9-]+'(?:[^']|'')*')
  | (?P<string>'(?:[^']|'')*')
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d][\w$]*)
  | (?P<op><>|!=|<=|>=|\|\||=>|->|:=|[-+*/%<>=(),.;\[\]{}?:|^&])
    """,
    re.VERBOSE | re.DOTALL,
)
_UNICODE_ESCAPE = re.compile(r"\\(\\|[0-9a-fA-F]{4}|\+[0-9a-fA-F]{6})")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: `kind` is word, quoted, string, bytes, number, op, hint or end; `key` is in upper case."""

    kind: str
    text: str
    key: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The tokens of a text, closed by one of kind `end`."""
    found: list[Token] = []
    at = 0
    in_hint = False
    while at < len(text):
        match = _TOKEN.match(text, at)
        kind = None if match is None else match.lastgroup
        if match is None or (kind == "endhint" and not in_hint):
            if kind == "endhint":  # a product and a division: nothing closes here
                found.append(Token("op", "*", "*", at, at + 1))
                at += 1
                continue
            raise _refused(text, at)
        piece = match.group()
        if kind in ("space", "comment"):
            pass
        elif kind in ("hint", "endhint"):
            in_hint = kind == "hint"
            found.append(Token("hint", piece, piece, at, match.end()))
        else:
            found.append(_token(str(kind), piece, at, match.end(), text))
        at = match.end()
    found.append(Token("end", "", "", len(text), len(text)))
    return found


def place_of(word: str, text: str) -> int | None:
    """Where a name, or a keyword, stands in a text first."""
    words = (each for each in tokens(text) if each.kind in ("word", "quoted"))
    return next((each.start for each in words if word in (each.text, each.key)), None)


def _token(kind: str, piece: str, start: int, end: int, text: str) -> Token:
    match kind:
        case "string":
            return Token("string", piece[1:-1].replace("''", "'"), "", start, end)
        case "charset":
            return Token("string", piece[piece.index("'") + 1 : -1].replace("''", "'"), "", start, end)
        case "unicode":
            body = piece[3:-1].replace("''", "'")
            return Token("string", _UNICODE_ESCAPE.sub(_unescaped, body), "", start, end)
        case "bytes":
            digits = piece[2:-1]
            if len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]*", digits):
                msg = "a binary literal needs pairs of hexadecimal digits"
                raise SqlSyntaxError(msg, at=start, text=text)
            return Token("bytes", digits, "", start, end)
        case "quoted":
            name = piece[1:-1].replace("``", "`")
            if not name:
                msg = "an identifier cannot be empty"
                raise SqlSyntaxError(msg, at=start, text=text)
            return Token("quoted", name, "", start, end)
        case "word":
            return Token("word", piece, piece.upper(), start, end)
    return Token(kind, piece, piece, start, end)


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if code == "\\":
        return "\\"
    number = int(code.lstrip("+"), 16)
    return chr(number) if number < 0x110000 else "\ufffd"


def _refused(text: str, at: int) -> SqlSyntaxError:
    character = text[at]
    if character == '"':
        return SqlSyntaxError(
            "double quotes mark nothing", at=at, text=text, hint="identifiers go in `backticks`, strings in 'quotes'"
        )
    if character in "'`":
        return SqlSyntaxError(f"this {character} is never closed", at=at, text=text)
    if text.startswith("/*", at):
        return SqlSyntaxError("this comment is never closed", at=at, text=text)
    return SqlSyntaxError(f"unexpected character {character!r}", at=at, text=text)
