"""The three error domains: whose fault it is decides whether a restart can help.

Promises: every error of millstream is a `MillstreamError` in exactly one domain, and its text says what
happened, with which values, and (after "hint:") what the reader can do.
Does not know: who raises what; each error class stands beside the code that raises it."""

from __future__ import annotations


class MillstreamError(Exception):
    """Base of all errors. Subclasses set `hint` as a class attribute or pass it."""

    hint: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        if hint is not None:
            self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}; hint: {self.hint}" if self.hint else self.message


class UserError(MillstreamError):
    """The program is wrong: its function raised, its types or options do not fit."""


class ExternalError(MillstreamError):
    """The world is wrong: a disk, a broker, an executor. A restart may help."""


class InternalError(MillstreamError):
    """millstream is wrong: an invariant of its own does not hold. Please report it."""
