"""PyFlink's `datastream.async_retry_predicates`: common conditions for a retry.

Promises: plain predicates, which a retry strategy takes directly or in a lambda.
Does not know: strategies."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """Return whether a call had no results."""
    return not result


def has_exception_predicate(error: BaseException | None) -> bool:
    """Return whether a call failed."""
    return error is not None


def exception_type_predicate(error: BaseException | None, expected_error_type: type[BaseException]) -> bool:
    """Return whether a call failed with an error of this type."""
    return isinstance(error, expected_error_type)
