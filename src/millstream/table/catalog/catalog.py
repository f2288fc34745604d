"""Catalog: the programming interface of a catalog.

Promises: PyFlink's names. A Catalog is a view on a catalog of the session, so changes are visible to SQL.
Does not know: statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.sql.catalog import catalog as c
from millstream.sql.errors import CatalogError, nearest
from millstream.table.catalog.models import CatalogModels
from millstream.table.catalog.objects import CatalogBaseTable, CatalogDatabase, CatalogFunction
from millstream.table.catalog.paths import ObjectPath
from millstream.table.catalog.procedures import CatalogProcedures
from millstream.table.catalog.table_notes import CatalogTableNotes


@dataclass
class Catalog(CatalogTableNotes, CatalogModels, CatalogProcedures):
    """Read and change the databases, tables, functions, models and procedures of a catalog.

    A catalog is obtained with `TableEnvironment.get_catalog`.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> t_env.get_catalog("default_catalog").list_databases()
        ['default_database']

    """

    _catalog: c.Catalog
    _session: Any = field(default=None, repr=False)

    def _database(self, name: str) -> c.Database:
        databases = self._catalog.databases
        if name not in databases:
            msg = f"there is no database '{name}' in catalog '{self._catalog.name}'"
            raise CatalogError(msg, hint=nearest(name, databases))
        return databases[name]

    def _table_with_notes(self, table_path: ObjectPath) -> tuple[c.CatalogObject, c.TableNotes]:
        definition = self.get_table(table_path)._definition
        notes = self._database(table_path.get_database_name()).notes
        return definition, notes.setdefault(table_path.get_object_name(), c.TableNotes())

    def get_default_database(self) -> str:
        """Return the name of the default database."""
        return self._catalog.default_database

    def list_databases(self) -> list[str]:
        """Return the names of all databases."""
        return sorted(self._catalog.databases)

    def get_database(self, database_name: str) -> CatalogDatabase:
        """Return the properties and the comment of a database.

        Args:
            database_name: The name of the database.

        Raises:
            CatalogError: If there is no such database.

        """
        database = self._database(database_name)
        return CatalogDatabase(database.options, database.comment)

    def database_exists(self, database_name: str) -> bool:
        """Return whether the catalog has a database of this name.

        Args:
            database_name: The name of the database.

        """
        return database_name in self._catalog.databases

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        """Create a database.

        Args:
            name: The name.
            database: Its properties and comment.
            ignore_if_exists: Whether an existing database is left as it is.

        Raises:
            CatalogError: If the database exists and `ignore_if_exists` is False.

        """
        if name in self._catalog.databases:
            if ignore_if_exists:
                return
            msg = f"the database '{name}' already exists"
            raise CatalogError(msg)
        self._catalog.databases[name] = c.Database(database.get_comment(), database.get_properties())

    def drop_database(self, name: str, ignore_if_exists: bool) -> None:
        """Drop an empty database.

        Args:
            name: The name.
            ignore_if_exists: Whether a missing database is not an error. The parameter has the name that it has in
                PyFlink.

        Raises:
            CatalogError: If the database does not exist, or is not empty.

        """
        if name not in self._catalog.databases and ignore_if_exists:
            return
        if self._database(name).tables:
            msg = f"database '{name}' is not empty"
            raise CatalogError(msg)
        del self._catalog.databases[name]

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Replace the properties and the comment of a database.

        Args:
            name: The name.
            new_database: The new properties and comment.
            ignore_if_not_exists: Whether a missing database is not an error.

        Raises:
            CatalogError: If the database does not exist and `ignore_if_not_exists` is False.

        """
        if name not in self._catalog.databases and ignore_if_not_exists:
            return
        self._database(name)
        self._catalog.alter_database(name, new_database.get_properties(), new_database.get_comment())

    def list_tables(self, database_name: str) -> list[str]:
        """Return the names of all tables and views of a database.

        Args:
            database_name: The name of the database.

        """
        return sorted(self._database(database_name).tables)

    def list_views(self, database_name: str) -> list[str]:
        """Return the names of all views of a database.

        Args:
            database_name: The name of the database.

        """
        tables = self._database(database_name).tables
        return sorted(name for name, definition in tables.items() if isinstance(definition, c.ViewDefinition))

    def list_materialized_tables(self, database_name: str) -> list[str]:
        """Return an empty list; `TableEnvironment.list_materialized_tables` lists the materialized tables of a session.

        Args:
            database_name: The name of the database.

        """
        self._database(database_name)
        return []

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """Return a table or view.

        Args:
            table_path: The database and the name of the table.

        Raises:
            CatalogError: If there is no such table.

        """
        tables = self._database(table_path.get_database_name()).tables
        if table_path.get_object_name() not in tables:
            msg = f"there is no table '{table_path}'"
            raise CatalogError(msg, hint=nearest(table_path.get_object_name(), tables))
        return CatalogBaseTable(tables[table_path.get_object_name()])

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Return whether there is a table or view of this path."""
        database = self._catalog.databases.get(table_path.get_database_name())
        return database is not None and table_path.get_object_name() in database.tables

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        """Create a table or view.

        Args:
            table_path: The database and the name.
            table: The definition, as `CatalogBaseTable.create_table` returns it.
            ignore_if_exists: Whether an existing table is left as it is.

        Raises:
            CatalogError: If the table exists and `ignore_if_exists` is False.

        """
        if self.table_exists(table_path):
            if ignore_if_exists:
                return
            msg = f"the table '{table_path}' already exists"
            raise CatalogError(msg)
        self._database(table_path.get_database_name()).tables[table_path.get_object_name()] = table._definition

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Drop a table or view.

        Args:
            table_path: The database and the name.
            ignore_if_not_exists: Whether a missing table is not an error.

        Raises:
            CatalogError: If the table does not exist and `ignore_if_not_exists` is False.

        """
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.get_table(table_path)
        self._database(table_path.get_database_name()).forget(table_path.get_object_name())

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        """Rename a table or view.

        Args:
            table_path: The database and the name.
            new_table_name: The new name in the same database.
            ignore_if_not_exists: Whether a missing table is not an error.

        Raises:
            CatalogError: If the table does not exist and `ignore_if_not_exists` is False, or the new name is taken.

        """
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.create_table(ObjectPath(table_path.get_database_name(), new_table_name), self.get_table(table_path), False)
        database = self._database(table_path.get_database_name())
        database.notes[new_table_name] = database.forget(table_path.get_object_name())

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        """Replace the definition of a table or view.

        Args:
            table_path: The database and the name.
            new_table: The new definition.
            ignore_if_not_exists: Whether a missing table is not an error.

        Raises:
            CatalogError: If the table does not exist and `ignore_if_not_exists` is False.

        """
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.get_table(table_path)
        self._database(table_path.get_database_name()).tables[table_path.get_object_name()] = new_table._definition

    def list_functions(self, database_name: str) -> list[str]:
        """Return the names of all functions of a database.

        Args:
            database_name: The name of the database.

        """
        return sorted(self._database(database_name).functions)

    def function_exists(self, function_path: ObjectPath) -> bool:
        """Return whether there is a function of this path.

        Args:
            function_path: The database and the name of the function.

        """
        database = self._catalog.databases.get(function_path.get_database_name())
        return database is not None and function_path.get_object_name().lower() in database.functions

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """Return a function.

        Args:
            function_path: The database and the name of the function.

        Raises:
            CatalogError: If there is no such function.

        """
        if not self.function_exists(function_path):
            msg = f"there is no function '{function_path}'"
            raise CatalogError(msg)
        functions = self._database(function_path.get_database_name()).functions
        function = functions[function_path.get_object_name().lower()]
        return CatalogFunction(getattr(function, "name", str(function)))

    def create_function(self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool) -> None:
        """Create a function from the import path of a Python object.

        Args:
            function_path: The database and the name.
            function: The import path and language.
            ignore_if_exists: Whether an existing function is left as it is.

        Raises:
            CatalogError: If the function exists and `ignore_if_exists` is False.

        """
        if self.function_exists(function_path):
            if ignore_if_exists:
                return
            msg = f"the function '{function_path}' already exists"
            raise CatalogError(msg)
        user_function = self._session.load_function(function.get_class_name(), function_path.get_object_name())
        functions = self._database(function_path.get_database_name()).functions
        functions[function_path.get_object_name().lower()] = user_function

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        """Replace a function.

        Args:
            function_path: The database and the name.
            new_function: The import path and language.
            ignore_if_not_exists: Whether a missing function is created.

        Raises:
            CatalogError: If the function does not exist and `ignore_if_not_exists` is False.

        """
        self.drop_function(function_path, ignore_if_not_exists)
        self.create_function(function_path, new_function, False)

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Drop a function.

        Args:
            function_path: The database and the name.
            ignore_if_not_exists: Whether a missing function is not an error.

        Raises:
            CatalogError: If the function does not exist and `ignore_if_not_exists` is False.

        """
        if not self.function_exists(function_path):
            if ignore_if_not_exists:
                return
            self.get_function(function_path)
        del self._database(function_path.get_database_name()).functions[function_path.get_object_name().lower()]
