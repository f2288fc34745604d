"""Bucket assigners: the directory below the base path to which a record is written.

Promises: a bucket depends on the record and the epoch's processing time alone; no bucket leads out of the base path.
Does not know: files."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from millstream.errors import InternalError, UserError

_ZONES = "/zoneinfo/"
_OFFSET = re.compile(r"(?:UTC|GMT|UT|Z)?(?:([+-])(\d{1,2})(?::?(\d{2}))?)?")
_PATTERN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_LETTERS = {
    "yyyy": "%Y",
    "uuuu": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "DDD": "%j",
    "a": "%p",
}


class BadBucket(UserError):
    """A bucket that is not a directory below the base path."""

    hint = "a bucket is a relative path without '.' or '..', and '' is the base path itself"

    def __init__(self, bucket: object) -> None:
        self.bucket = bucket
        super().__init__(f"{bucket!r} is not a bucket")


class BadTimePattern(UserError):
    """An invalid date pattern or time zone."""


@dataclass(frozen=True, slots=True)
class BucketContext:
    """What a bucket may depend on, besides the record: its timestamp, and the processing time of the epoch.

    Example:
        >>> context = BucketContext(timestamp=None, epoch_time=1_700_000_000_000)
        >>> BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd", "UTC").get_bucket_id("an order", context)
        '2023-11-14'

    """

    timestamp: int | None
    epoch_time: int | None

    @property
    def now(self) -> int:
        """The processing time of the epoch."""
        if self.epoch_time is None:
            message = "the sink has no processing time of its epoch"
            raise InternalError(message)
        return self.epoch_time


class BucketAssigner(ABC):
    """Returns the bucket of a record. Subclasses are picklable and depend on their arguments alone.

    Example:
        >>> class ByCountry(BucketAssigner):
        ...     def get_bucket_id(self, element, context):
        ...         return f"country={element['country']}"
        >>> ByCountry().get_bucket_id({"country": "de"}, BucketContext(timestamp=None, epoch_time=None))
        'country=de'

    """

    #: True if `buckets_of` can assign typed records in an Arrow array.
    columnar: bool = False

    @abstractmethod
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """Return the bucket of a record, as a path relative to the base path; empty for the base path itself.

        Args:
            element: The record.
            context: The timestamp of the record, and the processing time.

        """

    def bucket_of_all(self, context: BucketContext) -> str | None:
        """Return the bucket of all records of an epoch; None if it depends on the record.

        Args:
            context: The processing time.

        """
        return None

    def buckets_of(self, records: pa.Array, context: BucketContext) -> Sequence[tuple[str, pa.Array]]:
        """Return the records of each bucket, in their order; buckets are in the order of their first records.

        Args:
            records: The records.
            context: The processing time.

        """
        bucket = self.bucket_of_all(context)
        if bucket is None:
            message = f"{type(self).__name__} assigns buckets record by record"
            raise InternalError(message)
        return [(bucket, records)]

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Create an assigner without buckets: all files are in the base path."""
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """Create an assigner of buckets by processing time.

        Args:
            format_str: The pattern of bucket names, in Java's pattern letters.
            timezone_id: The time zone; by default that of the system.

        """
        return DateTimeBucketAssigner(format_str, timezone_id)


class BasePathBucketAssigner(BucketAssigner):
    """All files are in the base path."""

    columnar = True

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """Return the base path."""
        return ""

    def bucket_of_all(self, context: BucketContext) -> str:
        """Return the base path."""
        return ""


class DateTimeBucketAssigner(BucketAssigner):
    """Buckets by processing time: one for each hour, or for each value of the pattern."""

    columnar = True

    def __init__(self, format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> None:
        self._format = python_format(format_str)
        # The time zone of the program is used, not that of the worker.
        self._zone_id = timezone_id if timezone_id is not None else _system_zone()
        time_zone(self._zone_id)

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """Return the formatted processing time."""
        return self.bucket_of_all(context)

    def bucket_of_all(self, context: BucketContext) -> str:
        """Return the formatted processing time."""
        moment = datetime.fromtimestamp(context.now / 1000, tz=UTC)
        return moment.astimezone(time_zone(self._zone_id)).strftime(self._format)

    def time_of(self, bucket: str) -> int:
        """Return the start of the bucket, in milliseconds."""
        try:
            local = datetime.strptime(bucket, self._format)  # noqa: DTZ007  the zone follows
        except ValueError:
            raise BadBucket(bucket) from None
        return round(local.replace(tzinfo=time_zone(self._zone_id)).timestamp() * 1000)


def check_bucket(bucket: Any, reserved: str) -> str:
    """Return the bucket; raise BadBucket unless it is a directory below the base path other than the reserved one."""
    if bucket == "":
        return ""
    if not isinstance(bucket, str) or "\0" in bucket or bucket.startswith("/"):
        raise BadBucket(bucket)
    parts = PurePosixPath(bucket).parts
    if ".." in bucket.split("/") or not parts or parts[0] == reserved:
        raise BadBucket(bucket)
    return "/".join(parts)


def python_format(pattern: str) -> str:
    """Convert a date pattern in Java's letters to one for `strftime`."""
    parts, offset = [], 0
    while offset < len(pattern):
        match = _PATTERN.match(pattern, offset)
        if match is None:
            message = f"the pattern {pattern!r} has an unmatched quote"
            raise BadTimePattern(message)
        text, letter = match.group(), match.group(2)
        if letter is None:
            literal = text if match.group(1) is None else match.group(1).replace("''", "'") or "'"
            parts.append(literal.replace("%", "%%"))
        elif text in _LETTERS:
            parts.append(_LETTERS[text])
        else:
            message = f"the pattern {pattern!r} has {text!r}, which is not supported"
            raise BadTimePattern(message, hint=f"use {', '.join(_LETTERS)}; other letters must be in quotes")
        offset = match.end()
    return "".join(parts)


def time_zone(name: str) -> tzinfo:
    """Return a time zone by its name or offset."""
    offset = _OFFSET.fullmatch(name)
    if name and offset is not None:
        sign, hours, minutes = offset.groups()
        difference = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        if difference < timedelta(hours=19):
            return timezone(-difference if sign == "-" else difference)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"unknown time zone {name!r}"
        raise BadTimePattern(message, hint='use a name such as "Europe/Berlin", "UTC" or "GMT-08:00"') from None


def _system_zone() -> str:
    name = os.environ.get("TZ", "").lstrip(":")
    if not name:
        link = os.path.realpath("/etc/localtime")
        name = link.partition(_ZONES)[2]
    try:
        time_zone(name)
    except BadTimePattern:
        return "UTC"
    return name
