"""PyFlink's `datastream.async_retry_predicates`: common conditions for a retry.

Promises: plain predicates, which a retry strategy takes directly or in a lambda.
Does not know: strategies."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """Return whether a call had no results.

    Args:
        result: The results; None after an error.

    """
    return not result


def has_exception_predicate(error: BaseException | None) -> bool:
    """Return whether a call failed.

    Args:
        error: The error; None after a success.

    """
    return error is not None


def exception_type_predicate(error: BaseException | None, expected_error_type: type[BaseException]) -> bool:
    """Return whether a call failed with an error of this type.

    Args:
        error: The error; None after a success.
        expected_error_type: The class of the errors that are repeated.

    """
    return isinstance(error, expected_error_type)
