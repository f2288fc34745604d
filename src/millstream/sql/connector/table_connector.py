"""Tables of the world: which connector reads and writes them, and what its options mean.

Promises: an option that is missing, unknown or wrong is refused with the nearest name; a connector is found by
'connector' in WITH, here or through the entry points `millstream.table_connectors`.
Does not know: queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.config.configuration import MemorySize
from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

if TYPE_CHECKING:
    from millstream.sql.connector.lookup import TableLookup


@dataclass(frozen=True)
class TableContext:
    """A table as its connector sees it: name, definition, options with hints applied, and the session's zone.

    `overwrite`: what is written takes the place of what is there."""

    name: tuple[str, ...]
    definition: TableDefinition
    options: Mapping[str, str] = field(repr=False)
    zone: str = "UTC"
    batch: bool = False
    overwrite: bool = False

    @property
    def schema(self) -> t.RowType:
        """The columns a record itself holds."""
        return self.definition.physical

    @property
    def metadata(self) -> list[ColumnDefinition]:
        """The columns that are not in the record itself but beside it."""
        return [each for each in self.definition.columns if each.metadata_key is not None]

    @property
    def written(self) -> t.RowType:
        """The columns that a sink is given, in order: physical ones and metadata that is not VIRTUAL."""
        found = [each for each in self.definition.columns if each.is_persisted]
        return t.row_of([each.name for each in found], [each.type for each in found], null=False)

    def fail(self, message: str, hint: str | None = None) -> SqlValidationError:
        """A complaint about the table."""
        return SqlValidationError(f"table '{'.'.join(self.name)}': {message}", hint=hint, about=self.name[-1])

    def required(self, key: str) -> str:
        """An option that must be there."""
        if key not in self.options:
            message = f"option '{key}' is missing"
            raise self.fail(message)
        return self.options[key]

    def integer(self, key: str, default: int | None = None) -> int | None:
        """A whole number."""
        text = self.options.get(key)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            message = f"option '{key}' must be a whole number, not '{text}'"
            raise self.fail(message) from None

    def size(self, key: str, default: str) -> int:
        """A number of bytes, as in 128 MB."""
        text = self.options.get(key, default)
        try:
            return int(MemorySize.parse(text))
        except ValueError:
            message = f"option '{key}' must be a size such as 128 MB, not '{text}'"
            raise self.fail(message) from None

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        text = self.options.get(key, str(default)).lower()
        if text not in ("true", "false"):
            message = f"option '{key}' must be true or false, not '{text}'"
            raise self.fail(message)
        return text == "true"

    def word(self, key: str, words: Iterable[str], default: str) -> str:
        """One of some words, in any case; the default need not be among them."""
        text = self.options.get(key)
        if text is None:
            return default
        for each in words:
            if each.lower() == text.lower().replace("_", "-"):
                return each
        message = f"option '{key}' must be {', '.join(words)}, not '{text}'"
        raise self.fail(message, nearest(text, words))

    def check(self, known: Iterable[str], prefixes: Iterable[str] = ()) -> None:
        """Refuse options that nobody reads."""
        names = [*known, "connector"]
        for key in self.options:
            if key not in names and not any(key.startswith(prefix) for prefix in prefixes):
                message = f"unknown option '{key}'"
                raise self.fail(message, nearest(key, names))


@dataclass(frozen=True)
class TableSource:
    """Where rows come from: a source of the engine whose records have `schema`, and what changes they tell.

    Records of a `foreign` source are of a type of its own, and are converted."""

    source: Any
    schema: t.RowType
    mode: ChangelogMode = ChangelogMode.INSERT_ONLY
    foreign: bool = False
    parallelism: int | None = None


@dataclass(frozen=True)
class TableSink:
    """Where rows go, and what changes it takes: insert only, upserts by the primary key, or all."""

    sink: Any
    accepts: ChangelogMode = ChangelogMode.INSERT_ONLY
    parallelism: int | None = None


@dataclass(frozen=True)
class TableConnector:
    """How one kind of table is read, written, and looked up by columns; None where it cannot be.

    `metadata` are the keys that columns can be declared METADATA FROM; `overwrites`: `write` heeds `overwrite`."""

    name: str
    read: Callable[[TableContext], TableSource] | None = None
    write: Callable[[TableContext], TableSink] | None = None
    lookup: Callable[[TableContext, tuple[str, ...]], TableLookup | None] | None = None
    metadata: Mapping[str, t.DataType] = field(default_factory=dict)
    overwrites: bool = False
