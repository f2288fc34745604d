"""CREATE, ALTER, DROP and USE for catalogs and databases.

Promises: the current catalog and database are not dropped; a database with tables is dropped only with CASCADE.
CREATE CATALOG reads the catalog once, so that wrong options are refused by this statement.
Does not know: tables."""

from __future__ import annotations

from millstream.sql.catalog.catalog import Catalog, Catalogs, Database
from millstream.sql.catalog.registry import IN_MEMORY, open_catalog
from millstream.sql.ddl.results import OK, StatementResult
from millstream.sql.errors import CatalogError, nearest
from millstream.sql.syntax import tree as s


class NamespaceStatements:
    """Executes statements about catalogs and databases."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def create(self, node: s.CreateNamespace) -> StatementResult:
        """CREATE CATALOG and CREATE DATABASE."""
        options = dict(node.options)
        if node.object_type == "CATALOG":
            name = _check_catalog_name(node.name, node.at)
            if name in self._catalogs.all:
                if node.if_not_exists:
                    return OK
                message = f"catalog '{name}' already exists"
                raise CatalogError(message, at=node.at)
            new_catalog = open_catalog(name, options, node.at)
            self._check_default_database(new_catalog, node.at)
            new_catalog.comment = node.comment
            self._catalogs.store_options(name, options)
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
        name = _check_catalog_name(node.name, node.at)
        if name not in self._catalogs.all:
            if node.if_exists:
                return
            self._catalogs.catalog(name, node.at)
        if name == self._catalogs.current_catalog:
            message = f"catalog '{name}' is the current catalog and cannot be dropped"
            raise CatalogError(message, at=node.at, hint="switch to another catalog with USE CATALOG first")
        self._catalogs.store_options(name, None)
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
        catalog, name = self._database_path(node.name, node.at)
        database = self._catalogs.database(catalog, name, node.at)
        if isinstance(node.action, s.SetOptions):
            options = {**database.options, **dict(node.action.options)}
            self._catalogs.catalog(catalog).alter_database(name, options, database.comment)
        return OK

    def alter_catalog(self, node: s.Alter) -> StatementResult:
        """ALTER CATALOG."""
        catalog = self._catalogs.catalog(_check_catalog_name(node.name, node.at), node.at)
        match node.action:
            case s.SetOptions(changes):
                self._set_options(catalog, {**catalog.options, **dict(changes)}, node.at)
            case s.ResetOptions(keys):
                if "type" in keys:
                    message = "the option 'type' of a catalog cannot be reset"
                    raise CatalogError(message, at=node.at)
                kept = {key: value for key, value in catalog.options.items() if key not in keys}
                self._set_options(catalog, kept, node.at)
            case s.SetComment(comment):
                catalog.comment = comment
        return OK

    def _set_options(self, catalog: Catalog, options: dict[str, str], at: int | None) -> None:
        """Change the options of a catalog. A catalog with a storage is opened again; in memory, objects are kept."""
        if options.get("type", IN_MEMORY) != catalog.options.get("type", IN_MEMORY):
            message = f"the type of catalog '{catalog.name}' cannot be changed"
            raise CatalogError(message, at=at, hint="drop the catalog and create it again")
        changed = catalog
        if options.get("type", IN_MEMORY) != IN_MEMORY:
            changed = open_catalog(catalog.name, options, at)
            self._check_default_database(changed, at)
            changed.comment = catalog.comment
        self._catalogs.store_options(catalog.name, options)
        changed.options = options
        self._catalogs.all[catalog.name] = changed

    @staticmethod
    def _check_default_database(catalog: Catalog, at: int | None) -> None:
        if catalog.default_database not in catalog.databases:
            message = f"catalog '{catalog.name}' has no database '{catalog.default_database}'"
            hint = nearest(catalog.default_database, catalog.databases) or "set the option 'default-database'"
            raise CatalogError(message, at=at, hint=hint)

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


def _check_catalog_name(path: tuple[str, ...], at: int | None) -> str:
    if len(path) > 1:
        message = f"the name of a catalog has one part, and '{'.'.join(path)}' has {len(path)}"
        raise CatalogError(message, at=at, hint="write a name with dots in backquotes")
    return path[0]
