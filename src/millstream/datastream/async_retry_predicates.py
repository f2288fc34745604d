"""PyFlink's `datastream.async_retry_predicates`: common answers to "is this worth another try?".

Promises: plain predicates, to be passed to a retry strategy as they are or in a lambda.
Does not know: strategies."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """Whether a call brought back nothing."""
    return not result


def has_exception_predicate(error: BaseException | None) -> bool:
    """Whether a call failed."""
    return error is not None


def exception_type_predicate(error: BaseException | None, expected_error_type: type[BaseException]) -> bool:
    """Whether a call failed with that kind of error."""
    return isinstance(error, expected_error_type)
