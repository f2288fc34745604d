"""Catalogs: where tables, views and functions have their names.

Promises: names are case-sensitive and resolved against the current catalog and database; temporary objects hide
permanent ones; a statement that fails changes nothing.
Does not know: connectors, plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.sql.catalog.modules import Modules
from millstream.sql.errors import CatalogError, nearest
from millstream.sql.functions import library
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.types import data_types as t

DEFAULT_CATALOG, DEFAULT_DATABASE = "default_catalog", "default_database"


@dataclass(frozen=True)
class ColumnDefinition:
    """A column: physical, computed from others by `expr`, or metadata of the record."""

    name: str
    type: t.DataType
    expr: str | None = None
    metadata_key: str | None = None
    virtual: bool = False
    comment: str | None = None

    @property
    def is_physical(self) -> bool:
        """Whether the record itself holds it."""
        return self.expr is None and self.metadata_key is None

    @property
    def is_persisted(self) -> bool:
        """Whether it is written to a sink."""
        return self.expr is None and not (self.metadata_key is not None and self.virtual)


@dataclass(frozen=True)
class TableDistribution:
    """How the rows of a table are dealt out into buckets: by HASH or RANGE of columns, or as its connector likes."""

    kind: str | None
    columns: tuple[str, ...]
    buckets: int | None


@dataclass(frozen=True)
class TableDefinition:
    """A table as CREATE TABLE says it."""

    columns: tuple[ColumnDefinition, ...]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    watermark: tuple[str, str] | None = None
    primary_key: tuple[str, ...] = ()
    constraint: str | None = None
    partitions: tuple[str, ...] = ()
    comment: str | None = None
    distribution: TableDistribution | None = None

    @property
    def schema(self) -> t.RowType:
        """All columns; the watermarked one is a rowtime attribute."""
        kinds = []
        for each in self.columns:
            kind = each.type
            if self.watermark is not None and each.name == self.watermark[0]:
                kind = replace(kind, attribute=t.ROWTIME)  # type: ignore[call-arg]
            if each.name in self.primary_key:
                kind = kind.not_null()
            kinds.append(kind)
        return t.row_of([each.name for each in self.columns], kinds, null=False)

    @property
    def physical(self) -> t.RowType:
        """The columns that the record itself holds."""
        found = [each for each in self.columns if each.is_physical]
        kinds = [each.type.not_null() if each.name in self.primary_key else each.type for each in found]
        return t.row_of([each.name for each in found], kinds, null=False)


@dataclass(frozen=True)
class ViewDefinition:
    """A query under a name. `plan` holds it where it was not written as text; `home` are the catalog and the database
    that were current when it was written, in which its names are found."""

    text: str
    schema: t.RowType
    comment: str | None = None
    plan: Any = field(default=None, compare=False)
    expanded: str = ""
    home: tuple[str, str] | None = None


@dataclass(frozen=True)
class StreamTable:
    """A stream of the DataStream API, or elements of the program, as a table. `origin` makes the rows."""

    schema: t.RowType
    origin: Any = field(compare=False)
    primary_key: tuple[str, ...] = ()
    insert_only: bool = True
    bounded: bool = True


CatalogObject = TableDefinition | ViewDefinition | StreamTable


PartitionSpec = frozenset[tuple[str, str]]  # columns of a partition and their values


@dataclass
class TableNotes:
    """What is told about a table beside its definition: partitions with their options and comment, and statistics of
    the table (under None) and of its partitions."""

    partitions: dict[PartitionSpec, tuple[dict[str, str], str | None]] = field(default_factory=dict)
    statistics: dict[PartitionSpec | None, Any] = field(default_factory=dict)
    column_statistics: dict[PartitionSpec | None, Any] = field(default_factory=dict)


class Database:
    """Tables and functions under names."""

    def __init__(self, comment: str | None = None, options: Mapping[str, str] | None = None) -> None:
        self.tables: dict[str, CatalogObject] = {}
        self.notes: dict[str, TableNotes] = {}
        self.functions: dict[str, Any] = {}
        self.comment = comment
        self.options = dict(options or {})

    def forget(self, name: str) -> TableNotes:
        """Drop a table or view, with what is told about it."""
        del self.tables[name]
        return self.notes.pop(name, TableNotes())


class Catalog:
    """Databases under names, in memory."""

    def __init__(self, name: str, default_database: str = "default", options: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.default_database = default_database
        self.databases: dict[str, Database] = {default_database: Database()}
        self.options = dict(options or {})
        self.comment: str | None = None


class Catalogs:
    """All catalogs of a session, what is current, and what is temporary."""

    def __init__(self, catalog: str = DEFAULT_CATALOG, database: str = DEFAULT_DATABASE) -> None:
        self.all: dict[str, Catalog] = {catalog: Catalog(catalog, database)}
        self.current_catalog = catalog
        self.current_database = database
        self.temporary: dict[tuple[str, str, str], CatalogObject] = {}
        self.temporary_functions: dict[tuple[str, str, str], Any] = {}
        self.system_functions: dict[str, Any] = {}
        self.modules = Modules()

    # ------------------------------------------------------------------------------------------------------- names

    def full_name(self, path: tuple[str, ...], at: int | None = None) -> tuple[str, str, str]:
        """A name with its catalog and database."""
        match path:
            case (name,):
                return self.current_catalog, self.current_database, name
            case (database, name):
                return self.current_catalog, database, name
            case (catalog, database, name):
                return catalog, database, name
        message = f"'{'.'.join(path)}' has too many parts for the name of a table"
        raise CatalogError(message, at=at)

    def catalog(self, name: str, at: int | None = None) -> Catalog:
        """A catalog that must exist."""
        if name not in self.all:
            message = f"there is no catalog '{name}'"
            raise CatalogError(message, at=at, hint=nearest(name, self.all))
        return self.all[name]

    def database(self, catalog: str, name: str, at: int | None = None) -> Database:
        """A database that must exist."""
        found = self.catalog(catalog, at).databases
        if name not in found:
            message = f"there is no database '{name}' in catalog '{catalog}'"
            raise CatalogError(message, at=at, hint=nearest(name, found))
        return found[name]

    def find(self, path: tuple[str, ...], at: int | None = None) -> tuple[tuple[str, str, str], CatalogObject] | None:
        """The table or view of that name with its full name, if there is one."""
        full = self.full_name(path, at)
        if full in self.temporary:
            return full, self.temporary[full]
        catalog = self.all.get(full[0])
        database = None if catalog is None else catalog.databases.get(full[1])
        if database is None or full[2] not in database.tables:
            return None
        return full, database.tables[full[2]]

    def table(self, path: tuple[str, ...], at: int | None = None) -> tuple[tuple[str, str, str], CatalogObject]:
        """The table or view of that name, which must exist."""
        found = self.find(path, at)
        if found is None:
            full = self.full_name(path, at)
            self.database(full[0], full[1], at)
            known = self.table_names(full[0], full[1])
            message = f"there is no table '{'.'.join(path)}'"
            raise CatalogError(message, at=at, hint=nearest(path[-1], known) or "create it, or see SHOW TABLES")
        return found

    def table_names(self, catalog: str, database: str) -> list[str]:
        """Tables and views of a database, temporary ones too, in order."""
        found = {name for c, d, name in self.temporary if (c, d) == (catalog, database)}
        known = self.all.get(catalog)
        if known is not None and database in known.databases:
            found.update(known.databases[database].tables)
        return sorted(found)

    # ----------------------------------------------------------------------------------------------------- changes

    def add_table(
        self,
        path: tuple[str, ...],
        what: CatalogObject,
        *,
        temporary: bool,
        if_not_exists: bool = False,
        replace_existing: bool = False,
        at: int | None = None,
    ) -> bool:
        """Give a table its name; False when it was there and may be."""
        full = self.full_name(path, at)
        database = self.database(full[0], full[1], at)
        tables: dict[Any, CatalogObject] = self.temporary if temporary else database.tables
        key: Any = full if temporary else full[2]
        if key in tables and not replace_existing:
            if if_not_exists:
                return False
            message = f"there is a table '{'.'.join(full)}' already"
            raise CatalogError(message, at=at, hint="drop it first, or say IF NOT EXISTS")
        tables[key] = what
        if not temporary:
            database.notes.pop(full[2], None)
        return True

    def at(self, home: tuple[str, str] | None) -> Catalogs:
        """The same catalogs, with another catalog and database current."""
        if home is None or home == (self.current_catalog, self.current_database):
            return self
        other = copy(self)
        other.current_catalog, other.current_database = home
        return other

    def home(self) -> tuple[str, str]:
        """The current catalog and database."""
        return self.current_catalog, self.current_database

    def notes(self, full: tuple[str, str, str], at: int | None = None) -> TableNotes:
        """What is told about a table of a database."""
        if full in self.temporary:
            message = f"'{'.'.join(full)}' is temporary: nothing is kept about it beside its definition"
            raise CatalogError(message, at=at)
        return self.database(full[0], full[1], at).notes.setdefault(full[2], TableNotes())

    def drop_table(
        self, path: tuple[str, ...], *, view: bool, temporary: bool, if_exists: bool, at: int | None = None
    ) -> None:
        """Forget a table or view."""
        full = self.full_name(path, at)
        word = "view" if view else "table"
        if temporary or full in self.temporary:
            if not temporary:
                message = f"'{'.'.join(full)}' is a temporary {word}"
                raise CatalogError(message, at=at, hint=f"write DROP TEMPORARY {word.upper()}")
            if full in self.temporary:
                self._check_kind(self.temporary[full], view, path, at)
                del self.temporary[full]
                return
        catalog = self.all.get(full[0])
        database = None if catalog is None else catalog.databases.get(full[1])
        if temporary or database is None or full[2] not in database.tables:
            if if_exists:
                return
            message = f"there is no {'temporary ' if temporary else ''}{word} '{'.'.join(path)}'"
            known = self.table_names(full[0], full[1])
            if full[2] in known:
                raise CatalogError(message, at=at, hint=f"it is not temporary: write DROP {word.upper()}")
            raise CatalogError(message, at=at, hint=nearest(path[-1], known))
        self._check_kind(database.tables[full[2]], view, path, at)
        database.forget(full[2])

    @staticmethod
    def _check_kind(found: CatalogObject, view: bool, path: tuple[str, ...], at: int | None) -> None:
        if view and isinstance(found, TableDefinition):
            message = f"'{'.'.join(path)}' is a table"
            raise CatalogError(message, at=at, hint="write DROP TABLE")
        if not view and isinstance(found, ViewDefinition) and found.plan is None:
            message = f"'{'.'.join(path)}' is a view"
            raise CatalogError(message, at=at, hint="write DROP VIEW")

    def set_table(self, full: tuple[str, str, str], what: CatalogObject) -> None:
        """Put another definition under an existing name."""
        if full in self.temporary:
            self.temporary[full] = what
        else:
            self.database(full[0], full[1]).tables[full[2]] = what

    # --------------------------------------------------------------------------------------------------- functions

    def function(self, path: tuple[str, ...]) -> Any:
        """A user's function by name in any case, or None."""
        wanted = path[-1].lower()
        if len(path) == 1 and wanted in self.system_functions:
            return self.system_functions[wanted]
        if len(path) == 1 and (found := self.modules.find(wanted, _is_builtin)) is not None:
            return found
        full = self.full_name(path)
        key = (full[0], full[1], wanted)
        if key in self.temporary_functions:
            return self.temporary_functions[key]
        catalog = self.all.get(full[0])
        database = None if catalog is None else catalog.databases.get(full[1])
        return None if database is None else database.functions.get(wanted)

    def function_names(self) -> Iterable[str]:
        """The users' functions that can be called by one word."""
        here = (self.current_catalog, self.current_database)
        yield from self.system_functions
        yield from self.modules.function_names()
        yield from (name for c, d, name in self.temporary_functions if (c, d) == here)
        database = self.all[here[0]].databases.get(here[1])
        yield from () if database is None else database.functions


def _is_builtin(name: str) -> bool:
    return library.find(name) is not None or name.upper() in AGGREGATES
