"""Times in rows as milliseconds, and back.

Promises: TIMESTAMP counts as if it were UTC, as watermarks of it do; TIMESTAMP_LTZ is a moment.
Does not know: windows."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.functions import text
from millstream.sql.types import data_types as t

_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - times without a zone
_UTC_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MS = datetime.timedelta(milliseconds=1)


def millis_of(value: Any, _kind: t.DataType, _zone: str = "UTC") -> int:
    """A time of a row in milliseconds."""
    if value is None:
        return -(2**63)
    if value.tzinfo is not None:
        return int((value - _UTC_EPOCH) // _MS)
    return int((value - _EPOCH) // _MS)


def timestamp(millis: int) -> datetime.datetime:
    """Milliseconds as a TIMESTAMP."""
    return _EPOCH + millis * _MS


def moment(millis: int, kind: t.DataType) -> datetime.datetime:
    """Milliseconds as a TIMESTAMP or TIMESTAMP_LTZ."""
    made = timestamp(millis)
    return made.replace(tzinfo=datetime.UTC) if isinstance(kind, t.LocalZonedTimestampType) else made


def column_millis(array: pa.Array) -> np.ndarray:
    """A column of times in milliseconds; NULL is the least."""
    plain = pc.cast(pc.cast(array, pa.timestamp("ms", array.type.tz), safe=False), pa.int64())
    made: np.ndarray = pc.fill_null(plain, -(2**63)).to_numpy(zero_copy_only=False)
    return made


def local_millis(millis: np.ndarray, zone: str) -> np.ndarray:
    """Moments as times of day in a zone, both in milliseconds."""
    if zone == "UTC":
        return millis
    moments = pa.array(millis).cast(pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))
    local = pc.local_timestamp(pc.cast(moments, pa.timestamp("ms", zone)))
    made: np.ndarray = pc.cast(local, pa.int64()).to_numpy(zero_copy_only=False)
    return made


def utc_millis(local: int, zone: str) -> int:
    """A time of day in a zone as a moment, both in milliseconds."""
    if zone == "UTC":
        return local
    there = timestamp(local).replace(tzinfo=text.zone(zone))
    return int((there - _UTC_EPOCH) // _MS)
