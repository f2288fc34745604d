"""The changelog mode of a table: insert only, retract or upsert.

Promises: the value of a mode is the list of its row kinds, in Flink's abbreviations.
Does not know: operators, plans."""

from __future__ import annotations

from enum import Enum


class ChangelogMode(Enum):
    """Which row kinds a stream of rows contains."""

    INSERT_ONLY = "I"
    RETRACT = "I,UB,UA,D"
    UPSERT = "I,UA,D"

    @property
    def insert_only(self) -> bool:
        """Whether the stream contains only inserts."""
        return self is ChangelogMode.INSERT_ONLY
