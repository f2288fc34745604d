"""What a statement's result is.

Promises: PyFlink's names.
Does not know: results."""

from __future__ import annotations

from enum import Enum


class ResultKind(Enum):
    """Whether there are rows to read."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1
