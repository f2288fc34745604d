"""ChangelogMode: which row kinds a stream of rows contains.

Promises: PyFlink's names.
Does not know: streams."""

from __future__ import annotations

from millstream.sql.types.changelog_mode import ChangelogMode as _Mode


class ChangelogMode:
    """The row kinds that a changelog stream contains: inserts only, upserts by key, or all.

    Example:
        >>> from millstream.common import Row, RowKind, Types
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.table import StreamTableEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> changes = env.from_collection([Row.of_kind(RowKind.INSERT, "tea")], Types.ROW([Types.STRING()]))
        >>> t_env = StreamTableEnvironment.create(env)
        >>> table = t_env.from_changelog_stream(changes, changelog_mode=ChangelogMode.insert_only())

    """

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
