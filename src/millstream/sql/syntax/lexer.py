"""The lexer: splits a text into tokens by Flink's lexical rules.

Promises: every character of the text is part of a token, of white space or of a comment; any other text is a
SqlSyntaxError with its offset. Identifiers are written in backticks and strings in single quotes; a doubled quote is
one quote of the content.
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
  | (?P<unclosed>/\*)
  | (?P<bytes>[xX]'(?:[^']|'')*')
  | (?P<unicode>[uU]&'(?:[^']|'')*')
  | (?P<charset>(?:_[A-Za-z0-9-]+|[nN])'(?:[^']|'')*')
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
    """A part of the text with its offsets.

    `type` is word, quoted (an identifier in backticks), string, bytes, number, op, hint or end. `text` is the content
    without quotes. `key` is what the grammar compares: a word in upper case or an operator; it is empty for everything
    in quotes."""

    type: str
    text: str
    key: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text; the last one is of type `end`."""
    tokens: list[Token] = []
    offset = 0
    in_hint = False
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None or match.lastgroup == "unclosed":
            raise _make_error(text, offset)
        token_type, end = match.lastgroup, match.end()
        if token_type == "endhint" and not in_hint:  # "*/" outside of a hint: a product and a division
            token_type, end = "op", offset + 1
        if token_type == "hint" or token_type == "endhint":
            in_hint = token_type == "hint"
            tokens.append(Token("hint", match.group(), match.group(), offset, end))
        elif token_type != "space" and token_type != "comment":
            tokens.append(_make_token(str(token_type), text[offset:end], offset, end, text))
        offset = end
    tokens.append(Token("end", "", "", len(text), len(text)))
    return tokens


def find_word(word: str, text: str) -> int | None:
    """Return the offset at which a name or a keyword occurs first in a text."""
    words = (token for token in tokenize(text) if token.type in ("word", "quoted"))
    return next((token.start for token in words if word in (token.text, token.key)), None)


def _make_token(token_type: str, source: str, start: int, end: int, text: str) -> Token:
    match token_type:
        case "string":
            return Token("string", source[1:-1].replace("''", "'"), "", start, end)
        case "charset":
            return Token("string", source[source.index("'") + 1 : -1].replace("''", "'"), "", start, end)
        case "unicode":
            body = source[3:-1].replace("''", "'")
            return Token("string", _UNICODE_ESCAPE.sub(_replace_escape, body), "", start, end)
        case "bytes":
            digits = source[2:-1]
            if len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]*", digits):
                msg = "a binary literal needs an even number of hexadecimal digits"
                raise SqlSyntaxError(msg, at=start, text=text)
            return Token("bytes", digits, "", start, end)
        case "quoted":
            name = source[1:-1].replace("``", "`")
            if not name:
                msg = "an identifier must not be empty"
                raise SqlSyntaxError(msg, at=start, text=text)
            return Token("quoted", name, "", start, end)
        case "word":
            return Token("word", source, source.upper(), start, end)
    return Token(token_type, source, source, start, end)


def _replace_escape(match: re.Match[str]) -> str:
    code = match.group(1)
    if code == "\\":
        return "\\"
    number = int(code.lstrip("+"), 16)
    return chr(number) if number < 0x110000 else "\ufffd"


def _make_error(text: str, at: int) -> SqlSyntaxError:
    character = text[at]
    if character == '"':
        return SqlSyntaxError(
            "double quotes are not allowed",
            at=at,
            text=text,
            hint="write identifiers in `backticks` and strings in 'single quotes'",
        )
    if character in "'`":
        return SqlSyntaxError(f"the {character} is not closed", at=at, text=text)
    if text.startswith("/*", at):
        return SqlSyntaxError("the comment is not closed", at=at, text=text)
    return SqlSyntaxError(f"unexpected character {character!r}", at=at, text=text)
