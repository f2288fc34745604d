"""Conversion between timestamps of rows and milliseconds since the epoch.

Promises: TIMESTAMP is converted as if it were UTC, as its watermarks are; TIMESTAMP_LTZ is a point in time.
Does not know: windows."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.functions import text
from millstream.sql.types import data_types as t
from millstream.times import EPOCH, LOCAL_EPOCH, MILLISECOND


def to_millis(value: Any, _data_type: t.DataType, _zone: str = "UTC") -> int:
    """Convert a timestamp of a row to milliseconds; NULL is the smallest number."""
    if value is None:
        return -(2**63)
    if value.tzinfo is not None:
        return int((value - EPOCH) // MILLISECOND)
    return int((value - LOCAL_EPOCH) // MILLISECOND)


def to_timestamp(millis: int) -> datetime.datetime:
    """Convert milliseconds to a TIMESTAMP."""
    return LOCAL_EPOCH + millis * MILLISECOND


def to_timestamp_type(millis: int, data_type: t.DataType) -> datetime.datetime:
    """Convert milliseconds to a TIMESTAMP or TIMESTAMP_LTZ, by data type."""
    local = to_timestamp(millis)
    return local.replace(tzinfo=datetime.UTC) if isinstance(data_type, t.LocalZonedTimestampType) else local


def read_column_millis(array: pa.Array) -> np.ndarray:
    """Convert a column of timestamps to milliseconds; NULL is the smallest number."""
    millis = pc.cast(pc.cast(array, pa.timestamp("ms", array.type.tz), safe=False), pa.int64())
    filled: np.ndarray = pc.fill_null(millis, -(2**63)).to_numpy(zero_copy_only=False)
    return filled


def to_local_millis(millis: np.ndarray, zone: str) -> np.ndarray:
    """Convert points in time to local times of a zone, both in milliseconds."""
    if zone == "UTC":
        return millis
    moments = pa.array(millis).cast(pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))
    local = pc.local_timestamp(pc.cast(moments, pa.timestamp("ms", zone)))
    converted: np.ndarray = pc.cast(local, pa.int64()).to_numpy(zero_copy_only=False)
    return converted


def to_utc_millis(local: int, zone: str) -> int:
    """Convert a local time of a zone to a point in time, both in milliseconds."""
    if zone == "UTC":
        return local
    zoned = to_timestamp(local).replace(tzinfo=text.find_time_zone(zone))
    return int((zoned - EPOCH) // MILLISECOND)
