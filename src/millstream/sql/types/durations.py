"""Durations in SQL options and hints.

Promises: a malformed duration raises an error of the statement, with its offset.
Does not know: which options are durations."""

from __future__ import annotations

from millstream.sql.errors import SqlValidationError
from millstream.times import Duration, MalformedDuration


def parse_duration_millis(text: str, at: int | None = None) -> int:
    """Parse a duration such as `1d`, `10 min` or `500 ms`.

    Returns:
        The duration in milliseconds.

    """
    try:
        return Duration.parse(text).to_milliseconds()
    except MalformedDuration as problem:
        raise SqlValidationError(problem.message, at=at, hint=problem.hint) from None
