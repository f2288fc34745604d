"""Catalogs as programs see them.

Promises: PyFlink's names; a Catalog is a view on the session's own.
Does not know: statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.sql.catalog import catalog as c
from millstream.sql.errors import CatalogError, nearest
from millstream.table.catalog.objects import CatalogBaseTable, CatalogDatabase, CatalogFunction, Procedure
from millstream.table.catalog.paths import ObjectPath
from millstream.table.catalog.table_notes import CatalogTableNotes


@dataclass
class Catalog(CatalogTableNotes):
    """A catalog of the session."""

    _catalog: c.Catalog
    _session: Any = field(default=None, repr=False)

    def _database(self, name: str) -> c.Database:
        known = self._catalog.databases
        if name not in known:
            msg = f"there is no database '{name}' in catalog '{self._catalog.name}'"
            raise CatalogError(msg, hint=nearest(name, known))
        return known[name]

    def _told(self, table_path: ObjectPath) -> tuple[c.CatalogObject, c.TableNotes]:
        definition = self.get_table(table_path)._definition
        notes = self._database(table_path.get_database_name()).notes
        return definition, notes.setdefault(table_path.get_object_name(), c.TableNotes())

    def get_default_database(self) -> str:
        """The first database."""
        return self._catalog.default_database

    def list_databases(self) -> list[str]:
        """All databases."""
        return sorted(self._catalog.databases)

    def get_database(self, database_name: str) -> CatalogDatabase:
        """A database."""
        found = self._database(database_name)
        return CatalogDatabase(found.options, found.comment)

    def database_exists(self, database_name: str) -> bool:
        """Whether there is such a database."""
        return database_name in self._catalog.databases

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        """Make a database."""
        if name in self._catalog.databases:
            if ignore_if_exists:
                return
            msg = f"there is a database '{name}' already"
            raise CatalogError(msg)
        self._catalog.databases[name] = c.Database(database.get_comment(), database.get_properties())

    def drop_database(self, name: str, ignore_if_exists: bool) -> None:
        """Forget an empty database."""
        if name not in self._catalog.databases and ignore_if_exists:
            return
        if self._database(name).tables:
            msg = f"database '{name}' is not empty"
            raise CatalogError(msg)
        del self._catalog.databases[name]

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Change a database's properties."""
        if name not in self._catalog.databases and ignore_if_not_exists:
            return
        found = self._database(name)
        found.options, found.comment = new_database.get_properties(), new_database.get_comment()

    def list_tables(self, database_name: str) -> list[str]:
        """All tables and views."""
        return sorted(self._database(database_name).tables)

    def list_views(self, database_name: str) -> list[str]:
        """All views."""
        found = self._database(database_name).tables
        return sorted(name for name, each in found.items() if isinstance(each, c.ViewDefinition))

    def list_materialized_tables(self, database_name: str) -> list[str]:
        """None: there are no materialized tables."""
        self._database(database_name)
        return []

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """A table or view."""
        found = self._database(table_path.get_database_name()).tables
        if table_path.get_object_name() not in found:
            msg = f"there is no table '{table_path}'"
            raise CatalogError(msg, hint=nearest(table_path.get_object_name(), found))
        return CatalogBaseTable(found[table_path.get_object_name()])

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Whether there is such a table."""
        found = self._catalog.databases.get(table_path.get_database_name())
        return found is not None and table_path.get_object_name() in found.tables

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        """Make a table."""
        if self.table_exists(table_path):
            if ignore_if_exists:
                return
            msg = f"there is a table '{table_path}' already"
            raise CatalogError(msg)
        self._database(table_path.get_database_name()).tables[table_path.get_object_name()] = table._definition

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Forget a table or view."""
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.get_table(table_path)
        self._database(table_path.get_database_name()).forget(table_path.get_object_name())

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        """Give a table another name."""
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.create_table(ObjectPath(table_path.get_database_name(), new_table_name), self.get_table(table_path), False)
        database = self._database(table_path.get_database_name())
        database.notes[new_table_name] = database.forget(table_path.get_object_name())

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        """Put another definition under a name."""
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.get_table(table_path)
        self._database(table_path.get_database_name()).tables[table_path.get_object_name()] = new_table._definition

    def list_procedures(self, database_name: str) -> list[str]:
        """None: there are no procedures."""
        self._database(database_name)
        return []

    def get_procedure(self, procedure_path: ObjectPath) -> Procedure:
        """Refused: there are no procedures."""
        msg = f"there is no procedure '{procedure_path}'"
        raise CatalogError(msg, hint="procedures are not supported")

    def list_functions(self, database_name: str) -> list[str]:
        """All functions."""
        return sorted(self._database(database_name).functions)

    def function_exists(self, function_path: ObjectPath) -> bool:
        """Whether there is such a function."""
        found = self._catalog.databases.get(function_path.get_database_name())
        return found is not None and function_path.get_object_name().lower() in found.functions

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """A function."""
        if not self.function_exists(function_path):
            msg = f"there is no function '{function_path}'"
            raise CatalogError(msg)
        found = self._database(function_path.get_database_name()).functions[function_path.get_object_name().lower()]
        return CatalogFunction(getattr(found, "name", str(found)))

    def create_function(self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool) -> None:
        """Make a function of a Python name."""
        if self.function_exists(function_path):
            if ignore_if_exists:
                return
            msg = f"there is a function '{function_path}' already"
            raise CatalogError(msg)
        loaded = self._session.load_function(function.get_class_name(), function_path.get_object_name())
        self._database(function_path.get_database_name()).functions[function_path.get_object_name().lower()] = loaded

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        """Put another function under a name."""
        self.drop_function(function_path, ignore_if_not_exists)
        self.create_function(function_path, new_function, False)

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Forget a function."""
        if not self.function_exists(function_path):
            if ignore_if_not_exists:
                return
            self.get_function(function_path)
        del self._database(function_path.get_database_name()).functions[function_path.get_object_name().lower()]
