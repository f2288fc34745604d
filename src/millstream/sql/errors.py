"""Errors of SQL statements, with their position in the text.

Promises: every error about SQL is a `SqlError`; an error with a position shows the line with a caret below it, without
secrets.
Does not know: who writes or runs statements."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from millstream.config.secrets import HIDDEN, mask_statement
from millstream.errors import UserError


class SqlError(UserError):
    """A statement that cannot be accepted.

    `at` is the offset in `text` that the error is about. If it is unknown, `about` is a word of the text: a keyword or
    the name of a table."""

    def __init__(
        self,
        message: str,
        *,
        at: int | None = None,
        text: str | None = None,
        hint: str | None = None,
        about: str | None = None,
    ) -> None:
        self.problem = message
        self.at = at
        self.text = text
        self.about = about
        super().__init__(_add_location(message, text, at), hint=hint)

    def with_text(self, text: str) -> SqlError:
        """Return the same error with the text of the statement, unless it has a text already."""
        if self.text is not None or self.at is None:
            return self
        return type(self)._rebuilt(self, text)

    @classmethod
    def _rebuilt(cls, error: SqlError, text: str) -> SqlError:
        new = cls.__new__(cls)
        SqlError.__init__(new, error.problem, at=error.at, text=text, hint=error.hint)
        return new

    @property
    def line(self) -> int | None:
        """Return the line of the position, from 1."""
        return None if self.at is None or self.text is None else self.text.count("\n", 0, self.at) + 1

    @property
    def column(self) -> int | None:
        """Return the column of the position, from 1."""
        return None if self.at is None or self.text is None else self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1


class SqlSyntaxError(SqlError):
    """The text does not follow the grammar."""


class SqlValidationError(SqlError):
    """The text follows the grammar, but is not valid: unknown names, wrong types, forbidden combinations."""


class SqlNotSupported(SqlError):
    """The statement is valid SQL that is not supported, or not possible on a stream."""


class CatalogError(SqlError):
    """An object of a catalog is missing, or exists already."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return a hint with the most similar known names."""
    choices = list(dict.fromkeys(known))
    folded = {choice.lower(): choice for choice in choices}
    matches = difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.6)
    if matches:
        return "did you mean " + " or ".join(f"'{folded[match]}'" for match in matches) + "?"
    if 0 < len(choices) <= 12:
        return f"there are: {', '.join(sorted(choices))}"
    return None


def _add_location(message: str, text: str | None, at: int | None) -> str:
    if text is None or at is None:
        return message
    at = min(max(at, 0), len(text))
    number, first = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    text, at, secrets = mask_statement(text, at)
    for secret in secrets:
        message = message.replace(f"'{secret}'", f"'{HIDDEN}'")
    start = text.rfind("\n", 0, at) + 1
    stop = text.find("\n", at)
    line = text[start : len(text) if stop < 0 else stop]
    column = at - start
    if len(line) > 160:
        cut = max(0, column - 80)
        line, column = line[cut : cut + 160], column - cut
    padding = "".join("\t" if c == "\t" else " " for c in line[:column])
    return f"{message} (line {number}, column {first})\n  {line}\n  {padding}^"
