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

from millstream.connectors.files.buckets import python_format, zone_named
from millstream.errors import UserError

_FIELD = re.compile(r"\$(\w+)")


@runtime_checkable
class BucketTime(Protocol):
    """Returns the time of a bucket: a `PartitionTime`, or a bucket assigner by date and time."""

    def time_of(self, bucket: str) -> int:
        """Milliseconds since the epoch."""


class NoPartitionTime(UserError):
    """A partition whose name contains no time."""

    def __init__(self, bucket: str, why: str) -> None:
        self.bucket = bucket
        super().__init__(
            f"the partition {bucket!r} has no time: {why}",
            hint="give a pattern such as '$dt $hour:00:00', and a formatter such as 'yyyy-MM-dd HH:mm:ss'",
        )


@dataclass(frozen=True)
class PartitionTime:
    """Reads the time of a partition from its name.

    `pattern` makes one text of the partition's fields; without it the text is the first field's, or the whole name if
    there are no `field=value`s in it. `formatter` says how the text is written; without it, as 2026-11-15 10:00:00 or
    as a date. `zone` is where clocks show that time."""

    pattern: str | None = None
    formatter: str | None = None
    zone: str = "UTC"

    def __post_init__(self) -> None:
        zone_named(self.zone)
        if self.formatter is not None:
            python_format(self.formatter)

    def time_of(self, bucket: str) -> int:
        """Milliseconds since the epoch."""
        text = self._text(bucket)
        try:
            if self.formatter is None:
                local = datetime.fromisoformat(text)
            else:
                local = datetime.strptime(text, python_format(self.formatter))  # noqa: DTZ007  the zone follows
        except ValueError:
            raise NoPartitionTime(bucket, f"{text!r} cannot be read") from None
        return round(local.replace(tzinfo=zone_named(self.zone)).timestamp() * 1000)

    def _text(self, bucket: str) -> str:
        pairs = [part.partition("=") for part in bucket.split("/")]
        fields = {name: unquote(value) for name, equals, value in pairs if equals}
        if self.pattern is None:
            return next(iter(fields.values()), bucket)

        def field(found: re.Match[str]) -> str:
            if found[1] not in fields:
                raise NoPartitionTime(bucket, f"it has no field {found[1]!r}")
            return fields[found[1]]

        return _FIELD.sub(field, self.pattern)
