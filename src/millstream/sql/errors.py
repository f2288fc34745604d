"""What can be wrong with a statement, and where.

Promises: every complaint about SQL is a `SqlError`; one that has a place shows the line with a caret under it, and no
secrets that stand in it.
Does not know: who writes or runs statements."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from millstream.config.secrets import HIDDEN, hidden_in
from millstream.errors import UserError


class SqlError(UserError):
    """A statement that cannot be accepted. `at` is the offset in `text` of what it is about; `about` is a word of the
    text it is about, a keyword or the name of a table, where no place is known."""

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
        super().__init__(_located(message, text, at), hint=hint)

    def placed(self, text: str) -> SqlError:
        """The same error with the text it is about, unless it has one."""
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
        """The line of the place, from 1."""
        return None if self.at is None or self.text is None else self.text.count("\n", 0, self.at) + 1

    @property
    def column(self) -> int | None:
        """The column of the place, from 1."""
        return None if self.at is None or self.text is None else self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1


class SqlSyntaxError(SqlError):
    """The text does not follow the grammar."""


class SqlValidationError(SqlError):
    """The text follows the grammar and means nothing: unknown names, types that do not fit, forbidden combinations."""


class SqlNotSupported(SqlError):
    """The text means something that is not there yet, or cannot be on a stream."""


class CatalogError(SqlError):
    """An object of a catalog that is missing, or that is there already."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A hint that names what the writer may have meant."""
    choices = list(dict.fromkeys(known))
    folded = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.6)
    if found:
        return "did you mean " + " or ".join(f"'{folded[each]}'" for each in found) + "?"
    if 0 < len(choices) <= 12:
        return f"there are: {', '.join(sorted(choices))}"
    return None


def _located(message: str, text: str | None, at: int | None) -> str:
    if text is None or at is None:
        return message
    at = min(max(at, 0), len(text))
    number, first = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    text, at, secrets = hidden_in(text, at)
    for each in secrets:
        message = message.replace(f"'{each}'", f"'{HIDDEN}'")
    start = text.rfind("\n", 0, at) + 1
    stop = text.find("\n", at)
    line = text[start : len(text) if stop < 0 else stop]
    column = at - start
    if len(line) > 160:
        cut = max(0, column - 80)
        line, column = line[cut : cut + 160], column - cut
    padding = "".join("\t" if c == "\t" else " " for c in line[:column])
    return f"{message} (line {number}, column {first})\n  {line}\n  {padding}^"
