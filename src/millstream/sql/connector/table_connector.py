"""The interface of table connectors: a table with its options in, a source, a sink or a lookup out.

Promises: a missing, unknown or wrong option raises an error that names the table and the nearest option.
Does not know: queries; which connectors exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from millstream.config.memory_size import MemorySize
from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

if TYPE_CHECKING:
    from millstream.sql.connector.lookup import TableLookup


@dataclass(frozen=True)
class TableContext:
    """A table and its options, from which a connector creates sources and sinks.

    Attributes:
        name: The path of the table: catalog, database and name.
        definition: The definition of the table in the catalog.
        options: The options of WITH, overridden by hints.
        zone: The time zone of the session.
        batch: Whether the job runs in batch mode.
        overwrite: Whether a sink replaces the existing rows (INSERT OVERWRITE).
        row_level: Whether the rows of a sink come from UPDATE or DELETE: the new content of the table if the
            sink also overwrites, else changes by primary key. The sink applies them once, or not at all.

    """

    name: tuple[str, ...]
    definition: TableDefinition
    options: Mapping[str, str] = field(repr=False)
    zone: str = "UTC"
    batch: bool = False
    overwrite: bool = False
    row_level: bool = False

    @property
    def schema(self) -> t.RowType:
        """The physical columns: those that are part of the records."""
        return self.definition.physical

    @property
    def metadata(self) -> list[ColumnDefinition]:
        """The metadata columns."""
        return [column for column in self.definition.columns if column.metadata_key is not None]

    @property
    def sink_schema(self) -> t.RowType:
        """The columns of the rows that a sink gets, in order: physical columns, and metadata that is not VIRTUAL."""
        columns = [column for column in self.definition.columns if column.is_persisted]
        return t.row_of([column.name for column in columns], [column.type for column in columns], null=False)

    def fail(self, message: str, hint: str | None = None) -> SqlValidationError:
        """Create an error that names the table; the caller raises it."""
        return SqlValidationError(f"table '{'.'.join(self.name)}': {message}", hint=hint, about=self.name[-1])

    def required(self, key: str, hint: str | None = None) -> str:
        """Return the value of an option; raise if it is missing."""
        if key not in self.options:
            message = f"option '{key}' is missing"
            raise self.fail(message, hint)
        return self.options[key]

    def integer(self, key: str, default: int | None = None) -> int | None:
        """Return the value of an integer option."""
        text = self.options.get(key)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            message = f"option '{key}' must be an integer, not '{text}'"
            raise self.fail(message) from None

    def size(self, key: str, default: str) -> int:
        """Return the number of bytes of a size option such as 128 MB."""
        text = self.options.get(key, default)
        try:
            return int(MemorySize.parse(text))
        except ValueError:
            message = f"option '{key}' must be a size such as 128 MB, not '{text}'"
            raise self.fail(message) from None

    def flag(self, key: str, default: bool = False) -> bool:
        """Return the value of a boolean option."""
        text = self.options.get(key, str(default)).lower()
        if text not in ("true", "false"):
            message = f"option '{key}' must be true or false, not '{text}'"
            raise self.fail(message)
        return text == "true"

    def word(self, key: str, words: Iterable[str], default: str) -> str:
        """Return the value of an option that is one of `words`, in any case; the default need not be one of them."""
        text = self.options.get(key)
        if text is None:
            return default
        for word in words:
            if word.lower() == text.lower().replace("_", "-"):
                return word
        message = f"option '{key}' must be {', '.join(words)}, not '{text}'"
        raise self.fail(message, nearest(text, words))

    def check(self, known: Iterable[str], prefixes: Iterable[str] = ()) -> None:
        """Raise if an option is neither in `known` nor starts with one of `prefixes`."""
        names = [*known, "connector"]
        for key in self.options:
            if key not in names and not any(key.startswith(prefix) for prefix in prefixes):
                message = f"unknown option '{key}'"
                raise self.fail(message, nearest(key, names))


@dataclass(frozen=True)
class TableSource:
    """A scan source.

    Attributes:
        source: The source; its records have the columns of `schema`.
        schema: The columns of the records: physical columns, then metadata columns.
        mode: The changelog mode of the records.
        needs_conversion: Whether the records have a type of the connector and must be converted to internal rows.
        parallelism: The parallelism of the source; None for that of the job.

    """

    source: Any
    schema: t.RowType
    mode: ChangelogMode = ChangelogMode.INSERT_ONLY
    needs_conversion: bool = False
    parallelism: int | None = None


@dataclass(frozen=True)
class TableSink:
    """A sink, and the changelog mode that it accepts: insert only, upserts by the primary key, or all changes."""

    sink: Any
    accepts: ChangelogMode = ChangelogMode.INSERT_ONLY
    parallelism: int | None = None


@dataclass(frozen=True)
class TableConnector:
    """A connector of tables.

    Attributes:
        name: The value of the option 'connector'.
        read: Creates the scan source of a table; None if tables cannot be scanned.
        write: Creates the sink of a table; None if tables cannot be written.
        lookup: Creates the lookup source of a table by key columns; None if tables cannot be looked up.
        metadata: The metadata keys, for columns that are declared METADATA FROM, with their types.
        overwrites: Whether sinks support INSERT OVERWRITE.
        row_level: How sinks support UPDATE and DELETE: by a rewrite of the table, or by changes of rows that are found
            by primary key; None if they do not.
        truncate: Removes all rows of a table; None if TRUNCATE TABLE is a rewrite, or not supported.

    """

    name: str
    read: Callable[[TableContext], TableSource] | None = None
    write: Callable[[TableContext], TableSink] | None = None
    lookup: Callable[[TableContext, tuple[str, ...]], TableLookup | None] | None = None
    metadata: Mapping[str, t.DataType] = field(default_factory=dict)
    overwrites: bool = False
    row_level: Literal["rewrite", "changes"] | None = None
    truncate: Callable[[TableContext], None] | None = None
