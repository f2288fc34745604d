"""Which kinds of change a stream of rows has.

Promises: PyFlink's names.
Does not know: streams."""

from __future__ import annotations

from millstream.sql.types.changelog_mode import ChangelogMode as _Mode


class ChangelogMode:
    """Inserts only, upserts by key, or all kinds."""

    def __init__(self, mode: _Mode = _Mode.RETRACT) -> None:
        self._mode = mode

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Rows are only added."""
        return ChangelogMode(_Mode.INSERT_ONLY)

    @staticmethod
    def upsert() -> ChangelogMode:
        """Rows are added, replaced and deleted by their key."""
        return ChangelogMode(_Mode.UPSERT)

    @staticmethod
    def all() -> ChangelogMode:
        """All kinds of change."""
        return ChangelogMode(_Mode.RETRACT)
