"""Timestamps with nanoseconds: a `pandas.Timestamp`, which is a `datetime` with three more digits.

Promises: a timestamp without nanoseconds stays a plain `datetime`; equal timestamps are equal and have equal hashes.
Does not know: types and columns."""

from __future__ import annotations

import datetime


def add_nanosecond(timestamp: datetime.datetime, nanosecond: int) -> datetime.datetime:
    """Return a timestamp with the nanoseconds that exceed its microseconds.

    Raises:
        ValueError: If the year is not between 1678 and 2261, the years of timestamps with nanoseconds.

    """
    if not nanosecond:
        return timestamp
    import pandas as pd  # takes long, and few programs need it

    return pd.Timestamp(timestamp).as_unit("ns").replace(nanosecond=nanosecond)  # type: ignore[no-any-return]


def truncate_fraction(timestamp: datetime.datetime, precision: int) -> datetime.datetime:
    """Return a timestamp with at most so many digits of the second."""
    nanosecond = getattr(timestamp, "nanosecond", 0)
    if nanosecond:
        timestamp = timestamp.to_pydatetime(warn=False)  # type: ignore[attr-defined]
    if precision > 6:
        unit = 10 ** (9 - precision)
        return add_nanosecond(timestamp, nanosecond // unit * unit)
    unit = 10 ** (6 - precision)
    return timestamp.replace(microsecond=timestamp.microsecond // unit * unit)


def read_iso_timestamp(text: str) -> datetime.datetime:
    """Read what `isoformat` wrote; nine digits of the second are kept."""
    timestamp = datetime.datetime.fromisoformat(text)
    _, _, fraction = text.partition(".")
    digits = fraction[:9]
    return add_nanosecond(timestamp, int(digits[6:]) if len(digits) == 9 and digits.isdigit() else 0)
