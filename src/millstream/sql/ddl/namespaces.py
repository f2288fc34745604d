"""CREATE, ALTER, DROP and USE for catalogs and databases.

Promises: the current catalog and database are not dropped; a database with tables is dropped only with CASCADE.
Does not know: tables."""

from __future__ import annotations

from millstream.sql.catalog.catalog import Catalog, Catalogs, Database
from millstream.sql.ddl.results import OK, StatementResult
from millstream.sql.errors import CatalogError
from millstream.sql.syntax import tree as s


class NamespaceStatements:
    """Executes statements about catalogs and databases."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def create(self, node: s.CreateNamespace) -> StatementResult:
        """CREATE CATALOG and CREATE DATABASE."""
        options = dict(node.options)
        if node.object_type == "CATALOG":
            name = _catalog_name(node.name, node.at)
            if name in self._catalogs.all:
                if node.if_not_exists:
                    return OK
                message = f"catalog '{name}' already exists"
                raise CatalogError(message, at=node.at)
            catalog_type = options.get("type")
            if catalog_type is None:
                message = f"catalog '{name}' has no option 'type'"
                raise CatalogError(message, at=node.at, hint="write WITH ('type' = 'generic_in_memory')")
            if catalog_type != "generic_in_memory":
                message = f"catalogs of type '{catalog_type}' are not supported"
                raise CatalogError(message, at=node.at, hint="use 'type' = 'generic_in_memory'")
            new_catalog = Catalog(name, options.get("default-database", "default"), options)
            new_catalog.comment = node.comment
            self._catalogs.all[name] = new_catalog
            return OK
        catalog, name = self._database_path(node.name, node.at)
        databases = self._catalogs.catalog(catalog, node.at).databases
        if name in databases:
            if node.if_not_exists:
                return OK
            message = f"database '{name}' already exists in catalog '{catalog}'"
            raise CatalogError(message, at=node.at)
        databases[name] = Database(node.comment, options)
        return OK

    def drop_catalog(self, node: s.Drop) -> None:
        """DROP CATALOG."""
        name = _catalog_name(node.name, node.at)
        if name not in self._catalogs.all:
            if node.if_exists:
                return
            self._catalogs.catalog(name, node.at)
        if name == self._catalogs.current_catalog:
            message = f"catalog '{name}' is the current catalog and cannot be dropped"
            raise CatalogError(message, at=node.at, hint="switch to another catalog with USE CATALOG first")
        del self._catalogs.all[name]

    def drop_database(self, node: s.Drop) -> None:
        """DROP DATABASE."""
        catalog, name = self._database_path(node.name, node.at)
        databases = self._catalogs.catalog(catalog, node.at).databases
        if name not in databases:
            if node.if_exists:
                return
            self._catalogs.database(catalog, name, node.at)
        if (catalog, name) == (self._catalogs.current_catalog, self._catalogs.current_database):
            message = f"database '{name}' is the current database and cannot be dropped"
            raise CatalogError(message, at=node.at, hint="switch to another database with USE first")
        if databases[name].tables and not node.cascade:
            message = f"database '{name}' is not empty"
            raise CatalogError(message, at=node.at, hint="drop its tables first, or write CASCADE")
        del databases[name]

    def _database_path(self, path: tuple[str, ...], at: int | None) -> tuple[str, str]:
        if len(path) > 2:
            message = f"'{'.'.join(path)}' is not the name of a database, which has one or two parts"
            raise CatalogError(message, at=at, hint="write catalog.database")
        return (self._catalogs.current_catalog, path[0]) if len(path) == 1 else (path[0], path[1])

    def alter_database(self, node: s.Alter) -> StatementResult:
        """ALTER DATABASE."""
        database = self._catalogs.database(*self._database_path(node.name, node.at), node.at)
        if isinstance(node.action, s.SetOptions):
            database.options.update(dict(node.action.options))
        return OK

    def alter_catalog(self, node: s.Alter) -> StatementResult:
        """ALTER CATALOG."""
        catalog = self._catalogs.catalog(_catalog_name(node.name, node.at), node.at)
        match node.action:
            case s.SetOptions(options):
                catalog.options.update(dict(options))
            case s.ResetOptions(keys):
                if "type" in keys:
                    message = "the option 'type' of a catalog cannot be reset"
                    raise CatalogError(message, at=node.at)
                for key in keys:
                    catalog.options.pop(key, None)
            case s.SetComment(comment):
                catalog.comment = comment
        return OK

    def use(self, node: s.Use) -> StatementResult:
        """USE."""
        if node.object_type == "CATALOG":
            new = self._catalogs.catalog(node.name[0], node.at)
            self._catalogs.current_catalog, self._catalogs.current_database = new.name, new.default_database
        elif node.object_type == "DATABASE":
            catalog, name = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name[:2]
            self._catalogs.database(catalog, name, node.at)
            self._catalogs.current_catalog, self._catalogs.current_database = catalog, name
        else:
            self._catalogs.modules.use(node.name, node.at)
        return OK


def _catalog_name(path: tuple[str, ...], at: int | None) -> str:
    if len(path) > 1:
        message = f"the name of a catalog has one part, and '{'.'.join(path)}' has {len(path)}"
        raise CatalogError(message, at=at, hint="write a name with dots in backquotes")
    return path[0]
