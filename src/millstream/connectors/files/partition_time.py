"""The time of a partition, parsed from its name: `dt=2026-11-15/hour=10` is 10:00 of that day.

Promises: Flink's rules of `partition.time-extractor`: a pattern with $fields, a format in Java's letters, a time zone;
a name without a time is an error.
Does not know: files, watermarks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable
from urllib.parse import unquote

from millstream.connectors.files.buckets import python_format, time_zone
from millstream.errors import UserError

_FIELD = re.compile(r"\$(\w+)")


@runtime_checkable
class BucketTime(Protocol):
    """Returns the time of a bucket: a `PartitionTime`, or a bucket assigner by date and time."""

    def time_of(self, bucket: str) -> int:
        """Return the time in milliseconds since the epoch."""


class NoPartitionTime(UserError):
    """A partition whose name contains no time."""

    def __init__(self, bucket: str, reason: str) -> None:
        self.bucket = bucket
        super().__init__(
            f"the partition {bucket!r} has no time: {reason}",
            hint="use a pattern such as '$dt $hour:00:00', and a formatter such as 'yyyy-MM-dd HH:mm:ss'",
        )


@dataclass(frozen=True)
class PartitionTime:
    """Reads the time of a partition from its name.

    `pattern` combines the partition's fields into one text; without it the text is the first field, or the whole name
    if it has no `field=value`. `formatter` is the format of the text; without it, 2026-11-15 10:00:00 or a date. `zone`
    is the time zone."""

    pattern: str | None = None
    formatter: str | None = None
    zone: str = "UTC"

    def __post_init__(self) -> None:
        time_zone(self.zone)
        if self.formatter is not None:
            python_format(self.formatter)

    def time_of(self, bucket: str) -> int:
        """Return the time in milliseconds since the epoch."""
        text = self._text(bucket)
        try:
            if self.formatter is None:
                local = datetime.fromisoformat(text)
            else:
                local = datetime.strptime(text, python_format(self.formatter))  # noqa: DTZ007  the zone follows
        except ValueError:
            raise NoPartitionTime(bucket, f"{text!r} cannot be read") from None
        return round(local.replace(tzinfo=time_zone(self.zone)).timestamp() * 1000)

    def _text(self, bucket: str) -> str:
        pairs = [part.partition("=") for part in bucket.split("/")]
        fields = {name: unquote(value) for name, equals, value in pairs if equals}
        if self.pattern is None:
            return next(iter(fields.values()), bucket)

        def field(match: re.Match[str]) -> str:
            if match[1] not in fields:
                raise NoPartitionTime(bucket, f"it has no field {match[1]!r}")
            return fields[match[1]]

        return _FIELD.sub(field, self.pattern)
