"""ResultKind: whether the result of a statement has rows.

Promises: PyFlink's names.
Does not know: results."""

from __future__ import annotations

from enum import Enum


class ResultKind(Enum):
    """Whether a statement succeeded without rows (`SUCCESS`) or with rows (`SUCCESS_WITH_CONTENT`)."""

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1
