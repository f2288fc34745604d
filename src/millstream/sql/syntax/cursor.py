"""A cursor over tokens: what every part of the grammar is written with.

Promises: a complaint names what was found and what was expected, at the place where it was found.
Does not know: the grammar."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from millstream.sql.errors import SqlSyntaxError
from millstream.sql.syntax.lexer import Token, tokens

T = TypeVar("T")
MAX_DEPTH = 50  # each level takes a dozen Python frames, of about a thousand

# Words that cannot name a column or a table without backticks.
RESERVED = frozenset(
    (
        "ALL",
        "AND",
        "AS",
        "BETWEEN",
        "BY",
        "CASE",
        "CAST",
        "CROSS",
        "DESCRIPTOR",
        "DISTINCT",
        "ELSE",
        "END",
        "EXCEPT",
        "EXISTS",
        "FALSE",
        "FETCH",
        "FOR",
        "FROM",
        "FULL",
        "GROUP",
        "HAVING",
        "IN",
        "INNER",
        "INSERT",
        "INTERSECT",
        "INTERVAL",
        "INTO",
        "IS",
        "JOIN",
        "LATERAL",
        "LEFT",
        "LIKE",
        "LIMIT",
        "MATCH_RECOGNIZE",
        "MINUS",
        "NATURAL",
        "NOT",
        "NULL",
        "OFFSET",
        "ON",
        "OR",
        "ORDER",
        "OUTER",
        "OVER",
        "PARTITION",
        "QUALIFY",
        "RIGHT",
        "SELECT",
        "SET",
        "SIMILAR",
        "TABLE",
        "TABLESAMPLE",
        "THEN",
        "TO",
        "TRUE",
        "UNION",
        "UNNEST",
        "USING",
        "VALUES",
        "WHEN",
        "WHERE",
        "WINDOW",
        "WITH",
    )
)


class Cursor:
    """Where a parser is in its text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        """The token at hand."""
        return self._tokens[self._next]

    def ahead(self, count: int = 1) -> Token:
        """A token further on."""
        return self._tokens[min(self._next + count, len(self._tokens) - 1)]

    @property
    def at(self) -> int:
        """The offset of the token at hand."""
        return self.token.start

    def advance(self) -> Token:
        """Take the token at hand."""
        token = self.token
        if token.kind != "end":
            self._next += 1
        return token

    def mark(self) -> int:
        """A place to come back to."""
        return self._next

    def rewind(self, mark: int) -> None:
        """Come back to a place."""
        self._next = mark

    def between(self, first: int, last: int) -> list[Token]:
        """The tokens from one place to another."""
        return self._tokens[first:last]

    def is_word(self, *words: str) -> bool:
        """Whether the next tokens are these keywords."""
        return all(self.ahead(i).kind == "word" and self.ahead(i).key == word for i, word in enumerate(words))

    def is_any(self, *words: str) -> bool:
        """Whether the next token is one of these keywords."""
        return self.token.kind == "word" and self.token.key in words

    def take(self, *words: str) -> bool:
        """Take these keywords, if they are next."""
        if not self.is_word(*words):
            return False
        self._next += len(words)
        return True

    def take_any(self, *words: str) -> str | None:
        """Take one of these keywords, if it is next."""
        return self.advance().key if self.is_any(*words) else None

    def is_op(self, *ops: str) -> bool:
        """Whether the next token is one of these signs."""
        return self.token.kind == "op" and self.token.text in ops

    def take_op(self, *ops: str) -> str | None:
        """Take one of these signs, if it is next."""
        return self.advance().text if self.is_op(*ops) else None

    def expect(self, *words: str) -> None:
        """Take these keywords, which must be next."""
        for word in words:
            if not self.take(word):
                self.fail(word)

    def expect_op(self, op: str) -> None:
        """Take this sign, which must be next."""
        if self.take_op(op) is None:
            self.fail(f"'{op}'")

    def fail(self, expected: str | None = None, *, hint: str | None = None, at: int | None = None) -> NoReturn:
        """Complain about the token at hand."""
        token = self.token
        found = "the end of the statement" if token.kind == "end" else f"'{self.text[token.start : token.end]}'"
        wanted = "" if expected is None else f", expected {expected}"
        if hint is None and token.kind == "word" and token.key in RESERVED and expected in ("a name", "an expression"):
            hint = f"{token.key} is a reserved word: write `{token.text}` in backticks to use it as a name"
        message = f"unexpected {found}{wanted}"
        raise SqlSyntaxError(message, at=token.start if at is None else at, text=self.text, hint=hint)

    def deeper(self, parse: Callable[[], T]) -> T:
        """Parse something nested; too deep a nest is refused before Python's own limit."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            message = f"expressions and queries are nested more than {MAX_DEPTH} deep"
            raise SqlSyntaxError(message, at=self.at, text=self.text)
        try:
            return parse()
        finally:
            self._depth -= 1

    def many(self, parse: Callable[[], T]) -> tuple[T, ...]:
        """One or more, with commas between."""
        found = [parse()]
        while self.take_op(","):
            found.append(parse())
        return tuple(found)

    def wrapped(self, parse: Callable[[], T]) -> tuple[T, ...]:
        """One or more in parentheses."""
        self.expect_op("(")
        found = self.many(parse)
        self.expect_op(")")
        return found

    def name(self, *, any_word: bool = False) -> str:
        """An identifier."""
        token = self.token
        if token.kind == "quoted" or (token.kind == "word" and (any_word or token.key not in RESERVED)):
            self.advance()
            return token.text
        self.fail("a name")

    def path(self) -> tuple[str, ...]:
        """An identifier with dots."""
        parts = [self.name()]
        while self.is_op("."):
            self.advance()
            parts.append(self.name(any_word=True))
        return tuple(parts)

    def string(self) -> str:
        """A string literal."""
        if self.token.kind != "string":
            self.fail("a string in single quotes")
        return self.advance().text

    def integer(self) -> int:
        """A whole number."""
        token = self.token
        if token.kind != "number" or not token.text.isdigit():
            self.fail("a whole number")
        self.advance()
        return int(token.text)
