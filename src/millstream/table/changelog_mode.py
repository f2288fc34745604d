"""ChangelogMode: which row kinds a stream of rows contains.

Promises: PyFlink's names.
Does not know: streams."""

from __future__ import annotations

from millstream.sql.types.changelog_mode import ChangelogMode as _Mode


class ChangelogMode:
    """The row kinds that a changelog stream contains: inserts only, upserts by key, or all."""

    def __init__(self, mode: _Mode = _Mode.RETRACT) -> None:
        self._mode = mode

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Return the mode of a stream that contains inserts only."""
        return ChangelogMode(_Mode.INSERT_ONLY)

    @staticmethod
    def upsert() -> ChangelogMode:
        """Return the mode of a stream with inserts, updates and deletes by primary key, without update-before rows."""
        return ChangelogMode(_Mode.UPSERT)

    @staticmethod
    def all() -> ChangelogMode:
        """Return the mode of a stream that contains all row kinds."""
        return ChangelogMode(_Mode.RETRACT)
