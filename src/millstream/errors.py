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
        if not self.hint:
            return self.message
        return f"{self.message}\nhint: {self.hint}" if "\n" in self.message else f"{self.message}; hint: {self.hint}"


class UserError(MillstreamError):
    """The program is wrong: a function raised an exception, or types or options are not valid."""


class InvalidArgument(UserError, ValueError):
    """An argument has a value that is not possible. Programs written for PyFlink can catch it as `ValueError`."""


class InvalidArgumentType(UserError, TypeError):
    """An argument has the wrong type. Programs written for PyFlink can catch it as `TypeError`."""


class ExternalError(MillstreamError):
    """Something outside of the program failed, such as a disk, a broker or an executor. A restart may help."""


class InternalError(MillstreamError):
    """A bug in millstream: an invariant does not hold. Please report it."""
