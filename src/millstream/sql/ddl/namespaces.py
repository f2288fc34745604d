"""Catalogs and databases: CREATE, ALTER, DROP, USE.

Promises: what is current, or not empty, is not dropped.
Does not know: tables."""

from __future__ import annotations

from millstream.sql.catalog.catalog import Catalog, Catalogs, Database
from millstream.sql.ddl.answers import OK, Answer
from millstream.sql.errors import CatalogError
from millstream.sql.syntax import tree as s


class Namespaces:
    """Executes statements about catalogs and databases."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def create(self, node: s.CreateNamespace) -> Answer:
        """CREATE CATALOG and CREATE DATABASE."""
        options = dict(node.options)
        if node.kind == "CATALOG":
            (name,) = node.name
            if name in self._catalogs.all:
                if node.if_not_exists:
                    return OK
                message = f"there is a catalog '{name}' already"
                raise CatalogError(message, at=node.at)
            kind = options.get("type")
            if kind is None:
                message = f"catalog '{name}' has no option 'type'"
                raise CatalogError(message, at=node.at, hint="write WITH ('type' = 'generic_in_memory')")
            if kind != "generic_in_memory":
                message = f"there is no kind of catalog '{kind}'"
                raise CatalogError(message, at=node.at, hint="use 'type' = 'generic_in_memory'")
            made = Catalog(name, options.get("default-database", "default"), options)
            made.comment = node.comment
            self._catalogs.all[name] = made
            return OK
        catalog, name = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name
        known = self._catalogs.catalog(catalog, node.at).databases
        if name in known:
            if node.if_not_exists:
                return OK
            message = f"there is a database '{name}' in catalog '{catalog}' already"
            raise CatalogError(message, at=node.at)
        known[name] = Database(node.comment, options)
        return OK

    def drop_catalog(self, node: s.Drop) -> None:
        """DROP CATALOG."""
        (name,) = node.name
        if name not in self._catalogs.all:
            if node.if_exists:
                return
            self._catalogs.catalog(name, node.at)
        if name == self._catalogs.current_catalog:
            message = f"catalog '{name}' is the current one"
            raise CatalogError(message, at=node.at, hint="USE CATALOG another one first")
        del self._catalogs.all[name]

    def drop_database(self, node: s.Drop) -> None:
        """DROP DATABASE."""
        catalog, name = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name
        known = self._catalogs.catalog(catalog, node.at).databases
        if name not in known:
            if node.if_exists:
                return
            self._catalogs.database(catalog, name, node.at)
        if (catalog, name) == (self._catalogs.current_catalog, self._catalogs.current_database):
            message = f"database '{name}' is the current one"
            raise CatalogError(message, at=node.at, hint="USE another one first")
        if known[name].tables and not node.cascade:
            message = f"database '{name}' is not empty"
            raise CatalogError(message, at=node.at, hint="drop its tables first, or write CASCADE")
        del known[name]

    def alter_database(self, node: s.Alter) -> Answer:
        """ALTER DATABASE."""
        names = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name
        database = self._catalogs.database(names[0], names[1], node.at)
        if node.action == "SET":
            database.options.update(dict(node.arguments[0]))
        return OK

    def alter_catalog(self, node: s.Alter) -> Answer:
        """ALTER CATALOG."""
        catalog = self._catalogs.catalog(node.name[0], node.at)
        if node.action == "SET":
            catalog.options.update(dict(node.arguments[0]))
        elif node.action == "RESET":
            if "type" in node.arguments[0]:
                message = "the option 'type' of a catalog cannot be reset"
                raise CatalogError(message, at=node.at)
            for key in node.arguments[0]:
                catalog.options.pop(key, None)
        elif node.action == "COMMENT":
            catalog.comment = node.arguments[0]
        return OK

    def use(self, node: s.Use) -> Answer:
        """USE."""
        if node.kind == "CATALOG":
            found = self._catalogs.catalog(node.name[0], node.at)
            self._catalogs.current_catalog, self._catalogs.current_database = found.name, found.default_database
        elif node.kind == "DATABASE":
            catalog, name = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name[:2]
            self._catalogs.database(catalog, name, node.at)
            self._catalogs.current_catalog, self._catalogs.current_database = catalog, name
        else:
            self._catalogs.modules.use(node.name, node.at)
        return OK
