"""A cursor over the tokens of one text: all parts of the grammar share it.

Promises: an error names the unexpected token and what was expected, and points at the token.
Does not know: the grammar."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from millstream.sql.errors import SqlSyntaxError
from millstream.sql.syntax.lexer import Token, tokenize

T = TypeVar("T")
MAX_DEPTH = 50  # one level takes up to 20 Python frames, and Python allows about 1,000

# Words that cannot name a column or a table without backticks.
RESERVED = frozenset(
    (
        *("ALL", "AND", "AS", "BETWEEN", "BY", "CASE", "CAST", "CROSS", "DESCRIPTOR", "DISTINCT", "ELSE", "END"),
        *("EXCEPT", "EXISTS", "FALSE", "FETCH", "FOR", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INSERT"),
        *("INTERSECT", "INTERVAL", "INTO", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "MATCH_RECOGNIZE"),
        *("MINUS", "NATURAL", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION"),
        *("QUALIFY", "RIGHT", "SELECT", "SET", "SIMILAR", "TABLE", "TABLESAMPLE", "THEN", "TO", "TRUE", "UNION"),
        *("UNNEST", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH"),
    )
)

QUERY_STARTS = frozenset(("SELECT", "WITH", "VALUES"))


class Cursor:
    """The current token of a text. `keys` in its methods are keywords in upper case, operators or punctuation."""

    __slots__ = ("_depth", "_index", "_tokens", "text", "token")

    def __init__(self, text: str) -> None:
        self.text = text
        self.token: Token
        self._tokens = tokenize(text)
        self._depth = 0
        self.rewind(0)

    # ------------------------------------------------------------------------------------------------------ position

    @property
    def at(self) -> int:
        """The offset of the current token."""
        return self.token.start

    @property
    def is_at_end(self) -> bool:
        """Whether a statement ends here: at a semicolon or at the end of the text."""
        return self.token.type == "end" or self.token.key == ";"

    def peek(self, count: int = 1) -> Token:
        """Return the token `count` after the current one, the end token at most."""
        return self._tokens[min(self._index + count, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Move to the next token and return the one before. The cursor stays at the end token."""
        token = self.token
        if token.type != "end":
            self._index += 1
            self.token = self._tokens[self._index]
        return token

    def mark(self) -> int:
        """Return the position, for `rewind` and `tokens_between`."""
        return self._index

    def rewind(self, mark: int) -> None:
        """Go back to a position that `mark` returned."""
        self._index = mark
        self.token = self._tokens[mark]

    def tokens_between(self, first: int, last: int) -> list[Token]:
        """Return the tokens from one position up to another, without the last."""
        return self._tokens[first:last]

    def skip_statement(self) -> str:
        """Move to the end of the statement and return the text that was skipped."""
        start = self.at
        while not self.is_at_end:
            self.advance()
        return self.text[start : self.at]

    # ---------------------------------------------------------------------------------------- keywords and operators

    def is_next(self, *keys: str) -> bool:
        """Whether the next tokens are these."""
        if self.token.key != keys[0]:
            return False
        return all(self.peek(i).key == keys[i] for i in range(1, len(keys)))

    def is_any(self, *keys: str) -> bool:
        """Whether the current token is one of these."""
        return self.token.key in keys

    def is_query_next(self) -> bool:
        """Whether a query begins here, after any number of opening parentheses."""
        count = 0
        while self.peek(count).key == "(":
            count += 1
        return self.peek(count).key in QUERY_STARTS

    def accept(self, *keys: str) -> bool:
        """Move past these tokens if they are next; return whether they were."""
        if self.token.key != keys[0] or not self.is_next(*keys):
            return False
        self.rewind(self._index + len(keys))
        return True

    def accept_any(self, *keys: str) -> str | None:
        """Move past the current token if it is one of these, and return its key; else return None."""
        return self.advance().key if self.token.key in keys else None

    def expect(self, *keys: str) -> None:
        """Move past these tokens; raise if they are not next."""
        for key in keys:
            if self.token.key != key:
                self.reject(key if key[0].isalpha() else f"'{key}'")
            self.advance()

    def expect_any(self, *keys: str) -> str:
        """Move past the current token and return its key; raise if it is not one of these."""
        key = self.accept_any(*keys)
        if key is None:
            self.reject(f"{', '.join(keys[:-1])} or {keys[-1]}")
        return key

    # -------------------------------------------------------------------------------------------- names and literals

    def parse_name(self, *, any_word: bool = False) -> str:
        """Parse an identifier. With `any_word` it may be a reserved word."""
        token = self.token
        if token.type == "quoted" or (token.type == "word" and (any_word or token.key not in RESERVED)):
            self.advance()
            return token.text
        self.reject("a name")

    def parse_path(self) -> tuple[str, ...]:
        """Parse an identifier with dots, such as catalog.database.table."""
        parts = [self.parse_name()]
        while self.accept("."):
            parts.append(self.parse_name(any_word=True))
        return tuple(parts)

    def parse_string(self, expected: str = "a string in single quotes") -> str:
        """Parse a string literal."""
        if self.token.type != "string":
            self.reject(expected)
        return self.advance().text

    def parse_integer(self) -> int:
        """Parse an integer without a sign."""
        token = self.token
        if token.type != "number" or not token.text.isdigit():
            self.reject("an integer")
        self.advance()
        return int(token.text)

    # --------------------------------------------------------------------------------------------- lists and nesting

    def parse_list(self, parse: Callable[[], T]) -> tuple[T, ...]:
        """Parse one or more items with commas between them."""
        items = [parse()]
        while self.accept(","):
            items.append(parse())
        return tuple(items)

    def parse_parenthesized(self, parse: Callable[[], T]) -> tuple[T, ...]:
        """Parse one or more items in parentheses."""
        self.expect("(")
        items = self.parse_list(parse)
        self.expect(")")
        return items

    def parse_nested(self, parse: Callable[[], T]) -> T:
        """Parse something that can contain itself; refuse a depth that would reach Python's recursion limit."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.fail(f"expressions and queries are nested more than {MAX_DEPTH} levels deep")
        try:
            return parse()
        finally:
            self._depth -= 1

    # -------------------------------------------------------------------------------------------------------- errors

    def reject(self, expected: str | None = None, *, hint: str | None = None, at: int | None = None) -> NoReturn:
        """Raise the error that the current token is not what the grammar allows here."""
        token = self.token
        unexpected = "end of statement" if token.type == "end" else f"'{self.text[token.start : token.end]}'"
        if hint is None and token.type == "word" and token.key in RESERVED and expected in ("a name", "an expression"):
            hint = f"{token.key} is a reserved word: write `{token.text}` in backticks to use it as a name"
        self.fail(f"unexpected {unexpected}" + (f": expected {expected}" if expected else ""), hint=hint, at=at)

    def fail(self, message: str, *, hint: str | None = None, at: int | None = None) -> NoReturn:
        """Raise an error at the current token, or at another offset."""
        raise SqlSyntaxError(message, at=self.at if at is None else at, text=self.text, hint=hint)
