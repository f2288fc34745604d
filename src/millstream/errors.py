"""The three domains of errors. The domain says whether a restart of the job can help.

Promises: every error of millstream is a `MillstreamError` in exactly one domain; its text says what happened, with
which values, and after "hint:" what the reader can do.
Does not know: the errors themselves; each error class is in the module that raises it."""

from __future__ import annotations


class MillstreamError(Exception):
    """The base class of all errors; `hint` says what the reader can do. It is a class attribute or an argument."""

    hint: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        if hint is not None:
            self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}; hint: {self.hint}" if self.hint else self.message


class UserError(MillstreamError):
    """The program is wrong: a function raised an exception, or types or options are not valid."""


class ExternalError(MillstreamError):
    """Something outside of the program failed, such as a disk, a broker or an executor. A restart may help."""


class InternalError(MillstreamError):
    """A bug in millstream: an invariant does not hold. Please report it."""
