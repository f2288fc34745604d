"""Functions of the current time and the current watermark.

Promises: the current time is the processing time of the epoch, the same for all of its rows.
Does not know: how watermarks are generated."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql.columns import arrow_type
from millstream.sql.functions import text
from millstream.sql.functions.registry import define
from millstream.sql.types import data_types as t
from millstream.times import EPOCH

_TEMPORAL = "temporal"


def processing_time(frame: Any) -> datetime.datetime:
    """Return the processing time of the epoch in UTC."""
    return datetime.datetime.fromtimestamp(frame.now / 1000, text.UTC)


def _local_now(frame: Any) -> datetime.datetime:
    return processing_time(frame).astimezone(text.find_time_zone(frame.zone)).replace(tzinfo=None)


def _as_scalar(compute: Callable[[Any], Any]) -> Any:
    """Compute one value for all rows of the frame."""
    return lambda frame, _args, _arg_types, result_type: pa.scalar(compute(frame), arrow_type(result_type))


define(
    "CURRENT_DATE",
    _TEMPORAL,
    "",
    t.DATE,
    _as_scalar(lambda f: _local_now(f).date()),
    "Returns the current date in the session's time zone.",
    deterministic=False,
    null="never",
    syntax="CURRENT_DATE",
)
define(
    "CURRENT_TIME",
    _TEMPORAL,
    "",
    t.TIME,
    _as_scalar(lambda f: _local_now(f).time().replace(microsecond=0)),
    "Returns the current time in the session's time zone.",
    deterministic=False,
    null="never",
    syntax="CURRENT_TIME",
    aliases=("LOCALTIME",),
)
define(
    "LOCALTIMESTAMP",
    _TEMPORAL,
    "",
    t.TimestampType(3),
    _as_scalar(_local_now),
    "Returns the current timestamp in the session's time zone as TIMESTAMP(3).",
    deterministic=False,
    null="never",
    syntax="LOCALTIMESTAMP",
)
define(
    "CURRENT_TIMESTAMP",
    _TEMPORAL,
    "",
    t.LocalZonedTimestampType(3),
    _as_scalar(processing_time),
    "Returns the current timestamp as TIMESTAMP_LTZ: the processing time of the epoch.",
    deterministic=False,
    null="never",
    syntax="CURRENT_TIMESTAMP",
    aliases=("NOW", "CURRENT_ROW_TIMESTAMP"),
)
define(
    "PROCTIME",
    _TEMPORAL,
    "",
    t.LocalZonedTimestampType(3, t.PROCTIME),
    _as_scalar(processing_time),
    "Returns the processing time as a time attribute.",
    deterministic=False,
    null="never",
)


def _watermark(frame: Any, _args: list[Any], _arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    watermark = getattr(frame, "watermark", None)
    if watermark is None or watermark <= -(2**63) or watermark >= 2**63 - 1:
        return pa.scalar(None, arrow_type(result_type))
    timestamp = EPOCH + datetime.timedelta(milliseconds=watermark)
    if not isinstance(result_type, t.LocalZonedTimestampType):
        timestamp = timestamp.replace(tzinfo=None)
    return pa.scalar(timestamp, arrow_type(result_type))


define(
    "CURRENT_WATERMARK",
    _TEMPORAL,
    "timestamp",
    lambda arg_types: arg_types[0],
    _watermark,
    "Returns the current watermark of the rowtime attribute, or NULL if there is none yet.",
    null="always",
    deterministic=False,
)


def _relative_timestamp(frame: Any, args: list[Any], _arg_types: list[t.DataType], result_type: t.DataType) -> Any:
    millis = pc.add(args[0], frame.now)
    timestamps = pc.cast(millis, pa.timestamp("ms"))
    if isinstance(result_type, t.LocalZonedTimestampType):
        timestamps = pc.assume_timezone(timestamps, "UTC")
    return pc.cast(timestamps, arrow_type(result_type))


define(
    "$PAST",
    "internal",
    "bigint",
    t.TimestampType(3),
    _relative_timestamp,
    "Returns the timestamp that is a number of milliseconds after the processing time.",
)
