"""Catalogs of tables, views, functions, models and procedures.

Promises: names are case-sensitive and resolved against the current catalog and database; temporary objects hide
permanent ones; a statement that fails changes nothing.
Does not know: connectors, plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.sql.catalog.catalog_store import FileCatalogStore
from millstream.sql.catalog.materialization import Materialization
from millstream.sql.catalog.models import ModelDefinition, Models
from millstream.sql.catalog.modules import Modules
from millstream.sql.catalog.procedures import ProcedureDefinition
from millstream.sql.errors import CatalogError, nearest
from millstream.sql.functions import library
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

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
        """Return whether the column is part of the record itself."""
        return self.expr is None and self.metadata_key is None

    @property
    def is_persisted(self) -> bool:
        """Return whether the column is written to a sink."""
        return self.expr is None and not (self.metadata_key is not None and self.virtual)


@dataclass(frozen=True)
class TableDistribution:
    """How the rows of a table are distributed to buckets: by HASH or RANGE of columns, or by the connector's choice."""

    kind: str | None
    columns: tuple[str, ...]
    buckets: int | None


@dataclass(frozen=True)
class TableDefinition:
    """A table as declared by CREATE TABLE."""

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
        """Return the row type of all columns; the column with the watermark is a rowtime attribute."""
        data_types = []
        for column in self.columns:
            data_type = column.type
            if self.watermark is not None and column.name == self.watermark[0]:
                data_type = replace(data_type, attribute=t.ROWTIME)  # type: ignore[call-arg]
            if column.name in self.primary_key:
                data_type = data_type.not_null()
            data_types.append(data_type)
        return t.row_of([column.name for column in self.columns], data_types, null=False)

    @property
    def physical(self) -> t.RowType:
        """Return the row type of the columns that are part of the record itself."""
        columns = [column for column in self.columns if column.is_physical]
        data_types = [column.type.not_null() if column.name in self.primary_key else column.type for column in columns]
        return t.row_of([column.name for column in columns], data_types, null=False)


@dataclass(frozen=True)
class ViewDefinition:
    """A named query.

    `plan` is set if it was not written as text. `home` are the catalog and the database that were
    current when it was created: its names are resolved against them."""

    text: str
    schema: t.RowType
    comment: str | None = None
    plan: Any = field(default=None, compare=False)
    expanded: str = ""
    home: tuple[str, str] | None = None


@dataclass(frozen=True)
class StreamTable:
    """A stream of the DataStream API, or elements of the program, as a table. `origin` creates the scan."""

    schema: t.RowType
    origin: Any = field(compare=False)
    primary_key: tuple[str, ...] = ()
    mode: ChangelogMode = ChangelogMode.INSERT_ONLY
    bounded: bool = True


CatalogObject = TableDefinition | ViewDefinition | StreamTable


PartitionSpec = frozenset[tuple[str, str]]  # partition columns and their values


@dataclass
class TableNotes:
    """The data of a catalog about a table, in addition to its definition.

    Partitions with their options and comment, and statistics of the table (under None) and of its partitions, and
    how a materialized table is filled."""

    partitions: dict[PartitionSpec, tuple[dict[str, str], str | None]] = field(default_factory=dict)
    statistics: dict[PartitionSpec | None, Any] = field(default_factory=dict)
    column_statistics: dict[PartitionSpec | None, Any] = field(default_factory=dict)
    materialization: Materialization | None = None


class Database:
    """Tables, functions, models and procedures by name. The mappings of catalogs that are not in memory read and write
    a storage."""

    def __init__(
        self,
        comment: str | None = None,
        options: Mapping[str, str] | None = None,
        tables: MutableMapping[str, CatalogObject] | None = None,
        functions: MutableMapping[str, Any] | None = None,
    ) -> None:
        self.tables: MutableMapping[str, CatalogObject] = {} if tables is None else tables
        self.notes: dict[str, TableNotes] = {}
        self.functions: MutableMapping[str, Any] = {} if functions is None else functions
        self.models: dict[str, ModelDefinition] = {}
        self.procedures: dict[str, ProcedureDefinition] = {}
        self.comment = comment
        self.options = dict(options or {})

    def forget(self, name: str) -> TableNotes:
        """Remove a table or view, and return its notes."""
        del self.tables[name]
        return self.notes.pop(name, TableNotes())


class Catalog:
    """Databases by name, in memory unless `databases` is a mapping that reads and writes a storage."""

    def __init__(
        self,
        name: str,
        default_database: str = "default",
        options: Mapping[str, str] | None = None,
        databases: MutableMapping[str, Database] | None = None,
    ) -> None:
        self.name = name
        self.default_database = default_database
        self.databases: MutableMapping[str, Database] = (
            {default_database: Database()} if databases is None else databases
        )
        self.options = dict(options or {})
        self.comment: str | None = None

    def alter_database(self, name: str, options: Mapping[str, str], comment: str | None) -> None:
        """Replace the options and the comment of an existing database."""
        database = self.databases[name]
        database.options, database.comment = dict(options), comment


class Catalogs:
    """The catalogs of a session, the current catalog and database, and temporary objects."""

    def __init__(self, catalog: str = DEFAULT_CATALOG, database: str = DEFAULT_DATABASE) -> None:
        self.all: dict[str, Catalog] = {catalog: Catalog(catalog, database)}
        self.current_catalog = catalog
        self.current_database = database
        self.temporary: dict[tuple[str, str, str], CatalogObject] = {}
        self.temporary_functions: dict[tuple[str, str, str], Any] = {}
        self.system_functions: dict[str, Any] = {}
        self.temporary_models: dict[tuple[str, str, str], ModelDefinition] = {}
        self.modules = Modules()
        self.store: FileCatalogStore | None = None

    @property
    def models(self) -> Models:
        """The models of the session."""
        return Models(self)

    # ------------------------------------------------------------------------------------------------------- names

    def full_name(self, path: tuple[str, ...], at: int | None = None) -> tuple[str, str, str]:
        """Return a name with its catalog and database."""
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
        """Return a catalog; an unknown one is an error."""
        if name not in self.all:
            message = f"there is no catalog '{name}'"
            raise CatalogError(message, at=at, hint=nearest(name, self.all))
        return self.all[name]

    def database(self, catalog: str, name: str, at: int | None = None) -> Database:
        """Return a database; an unknown one is an error."""
        databases = self.catalog(catalog, at).databases
        if name not in databases:
            message = f"there is no database '{name}' in catalog '{catalog}'"
            raise CatalogError(message, at=at, hint=nearest(name, databases))
        return databases[name]

    def find(self, path: tuple[str, ...], at: int | None = None) -> tuple[tuple[str, str, str], CatalogObject] | None:
        """Return the table or view of that name with its full name; None if there is none."""
        full = self.full_name(path, at)
        if full in self.temporary:
            return full, self.temporary[full]
        catalog = self.all.get(full[0])
        database = None if catalog is None else catalog.databases.get(full[1])
        if database is None or full[2] not in database.tables:
            return None
        return full, database.tables[full[2]]

    def table(self, path: tuple[str, ...], at: int | None = None) -> tuple[tuple[str, str, str], CatalogObject]:
        """Return the table or view of that name; an unknown one is an error."""
        entry = self.find(path, at)
        if entry is None:
            full = self.full_name(path, at)
            self.database(full[0], full[1], at)
            names = self.table_names(full[0], full[1])
            message = f"there is no table '{'.'.join(path)}'"
            raise CatalogError(message, at=at, hint=nearest(path[-1], names) or "create it, or see SHOW TABLES")
        return entry

    def table_names(self, catalog: str, database: str) -> list[str]:
        """Return the names of tables and views of a database, with temporary ones, sorted."""
        names = {name for c, d, name in self.temporary if (c, d) == (catalog, database)}
        stored = self.all.get(catalog)
        if stored is not None and database in stored.databases:
            names.update(stored.databases[database].tables)
        return sorted(names)

    # ----------------------------------------------------------------------------------------------------- changes

    def store_options(self, name: str, options: Mapping[str, str] | None) -> None:
        """Store the options of a catalog in the catalog store, if there is one; None removes the catalog from it."""
        if self.store is not None and options is None:
            self.store.remove(name)
        elif self.store is not None and options is not None:
            self.store.save(name, options)

    def add_table(
        self,
        path: tuple[str, ...],
        definition: CatalogObject,
        *,
        temporary: bool,
        if_not_exists: bool = False,
        replace_existing: bool = False,
        at: int | None = None,
    ) -> bool:
        """Add a table; return False if it exists and `if_not_exists` is set."""
        full = self.full_name(path, at)
        database = self.database(full[0], full[1], at)
        tables: MutableMapping[Any, CatalogObject] = self.temporary if temporary else database.tables
        key: Any = full if temporary else full[2]
        if replace_existing:
            tables[key] = definition
        elif (existing := tables.setdefault(key, definition)) is not definition:
            if if_not_exists:
                return False
            word = "view" if isinstance(existing, ViewDefinition) else "table"
            message = f"there is a {word} '{'.'.join(full)}' already"
            raise CatalogError(message, at=at, hint="drop it first, or write IF NOT EXISTS")
        if not temporary:
            database.notes.pop(full[2], None)
        return True

    def at(self, home: tuple[str, str] | None) -> Catalogs:
        """Return the same catalogs with another current catalog and database."""
        if home is None or home == (self.current_catalog, self.current_database):
            return self
        other = copy(self)
        other.current_catalog, other.current_database = home
        return other

    def home(self) -> tuple[str, str]:
        """Return the current catalog and database."""
        return self.current_catalog, self.current_database

    def notes(self, full: tuple[str, str, str], at: int | None = None) -> TableNotes:
        """Return the partitions, the statistics and the materialization of a table."""
        if full in self.temporary:
            message = f"'{'.'.join(full)}' is temporary: the catalog keeps no partitions and statistics of it"
            raise CatalogError(message, at=at)
        return self.database(full[0], full[1], at).notes.setdefault(full[2], TableNotes())

    def materialization(self, full: tuple[str, str, str]) -> Materialization | None:
        """Return how a materialized table is filled; None for another table."""
        catalog = self.all.get(full[0])
        database = None if catalog is None or full in self.temporary else catalog.databases.get(full[1])
        notes = None if database is None else database.notes.get(full[2])
        return None if notes is None else notes.materialization

    def check_not_materialized(self, full: tuple[str, str, str], statement: str, at: int | None = None) -> None:
        """Raise if a table is a materialized table, which `statement` does not apply to."""
        if self.materialization(full) is not None:
            message = f"'{'.'.join(full)}' is a materialized table"
            raise CatalogError(message, at=at, hint=f"write {statement} MATERIALIZED TABLE")

    def drop_table(
        self, path: tuple[str, ...], *, view: bool, temporary: bool, if_exists: bool, at: int | None = None
    ) -> None:
        """Remove a table or view."""
        full = self.full_name(path, at)
        word = "view" if view else "table"
        if temporary or full in self.temporary:
            if not temporary:
                message = f"'{'.'.join(full)}' is a temporary {word}"
                raise CatalogError(message, at=at, hint=f"write DROP TEMPORARY {word.upper()}")
            if full in self.temporary:
                self._check_is_view(self.temporary[full], view, path, at)
                del self.temporary[full]
                return
        catalog = self.all.get(full[0])
        database = None if catalog is None else catalog.databases.get(full[1])
        if temporary or database is None or full[2] not in database.tables:
            if if_exists:
                return
            message = f"there is no {'temporary ' if temporary else ''}{word} '{'.'.join(path)}'"
            names = self.table_names(full[0], full[1])
            if full[2] in names:
                raise CatalogError(message, at=at, hint=f"it is not temporary: write DROP {word.upper()}")
            droppable = [name for name in names if self._is_view((*full[:2], name)) is view]
            raise CatalogError(message, at=at, hint=nearest(path[-1], droppable))
        self._check_is_view(database.tables[full[2]], view, path, at)
        database.forget(full[2])

    def _is_view(self, full: tuple[str, str, str]) -> bool:
        return isinstance(self.table(full)[1], ViewDefinition)

    @staticmethod
    def _check_is_view(entry: CatalogObject, view: bool, path: tuple[str, ...], at: int | None) -> None:
        if view and isinstance(entry, TableDefinition):
            message = f"'{'.'.join(path)}' is a table"
            raise CatalogError(message, at=at, hint="write DROP TABLE")
        if not view and isinstance(entry, ViewDefinition) and entry.plan is None:
            message = f"'{'.'.join(path)}' is a view"
            raise CatalogError(message, at=at, hint="write DROP VIEW")

    def set_table(self, full: tuple[str, str, str], definition: CatalogObject) -> None:
        """Replace the definition of an existing table."""
        if full in self.temporary:
            self.temporary[full] = definition
        else:
            self.database(full[0], full[1]).tables[full[2]] = definition

    # --------------------------------------------------------------------------------------------------- functions

    def function(self, path: tuple[str, ...]) -> Any:
        """Return a user-defined function by its name, ignoring case; None if there is none."""
        name = path[-1].lower()
        if len(path) == 1 and name in self.system_functions:
            return self.system_functions[name]
        if len(path) == 1 and (function := self.modules.find(name, _is_builtin)) is not None:
            return function
        if len(path) == 1 and self.modules.uses_core and _is_builtin(name):
            return None  # as in Flink, a built-in function comes before the functions of catalogs
        full = self.full_name(path)
        key = (full[0], full[1], name)
        if key in self.temporary_functions:
            return self.temporary_functions[key]
        catalog = self.all.get(full[0])
        database = None if catalog is None else catalog.databases.get(full[1])
        return None if database is None else database.functions.get(name)

    def function_names(self) -> Iterable[str]:
        """Yield the names of user-defined functions that can be called without catalog and database."""
        here = (self.current_catalog, self.current_database)
        yield from self.system_functions
        yield from self.modules.function_names()
        yield from (name for c, d, name in self.temporary_functions if (c, d) == here)
        database = self.all[here[0]].databases.get(here[1])
        yield from () if database is None else database.functions


def _is_builtin(name: str) -> bool:
    return library.find(name) is not None or name.upper() in AGGREGATES
