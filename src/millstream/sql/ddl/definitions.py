"""Statements about catalogs: CREATE, ALTER, DROP, SHOW, DESCRIBE, USE.

Promises: a statement that fails changes nothing; what SHOW and DESCRIBE answer has Flink's columns.
Does not know: queries beyond binding those of views, jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition, ViewDefinition
from millstream.sql.ddl.alterations import Alterations
from millstream.sql.ddl.answers import OK, Answer
from millstream.sql.ddl.descriptions import Descriptions
from millstream.sql.ddl.functions import NamedFunctions
from millstream.sql.ddl.namespaces import Namespaces
from millstream.sql.ddl.shows import Shows
from millstream.sql.ddl.tables import DescribedTables
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


class Definitions:
    """Executes statements about catalogs in one session; `text` is the statement as written."""

    def __init__(self, session: Session, wrap: Callable[[str, Any], UserFunction]) -> None:
        self._session = session
        self._catalogs = session.catalogs
        self._namespaces = Namespaces(session.catalogs)
        self._functions = NamedFunctions(session.catalogs, wrap)
        self._descriptions = Descriptions(session.catalogs)

    def execute(self, node: s.Statement, text: str) -> Answer | None:
        """The answer; None for a statement that is not about catalogs."""
        match node:
            case s.CreateTable(query=None):
                return self.create_table(node, text)
            case s.CreateView():
                return self._create_view(node)
            case s.CreateNamespace():
                return self._namespaces.create(node)
            case s.CreateFunction():
                return self._functions.create(node)
            case s.Drop():
                return self._drop(node)
            case s.Alter(kind="DATABASE"):
                return self._namespaces.alter_database(node)
            case s.Alter(kind="CATALOG"):
                return self._namespaces.alter_catalog(node)
            case s.Alter(kind="FUNCTION"):
                return self._functions.alter(node)
            case s.Alter():
                return Alterations(self._session).alter(node, text)
            case s.Show():
                return Shows(self._catalogs, self._descriptions).show(node)
            case s.Describe():
                return self._descriptions.describe(node)
            case s.Use():
                return self._namespaces.use(node)
            case s.Unsupported():
                message = f"{node.what} is not supported: {node.reason}"
                raise SqlNotSupported(message, at=node.at)
            case s.Module():
                return self._functions.module(node)
        return None

    def create_table(self, node: s.CreateTable, text: str) -> Answer:
        """CREATE TABLE."""
        definition = self.definition(node, text)
        self._catalogs.add_table(
            node.name,
            definition,
            temporary=node.temporary,
            if_not_exists=node.if_not_exists,
            replace_existing=node.or_replace,
            at=node.at,
        )
        return OK

    def definition(self, node: s.CreateTable, text: str, extra: tuple[ColumnDefinition, ...] = ()) -> TableDefinition:
        """The table that CREATE TABLE describes, `extra` columns first."""
        return DescribedTables(self._session).definition(node, text, extra)

    def _create_view(self, node: s.CreateView) -> Answer:
        plan = QueryBinder(self._session).query(node.query)
        names = list(plan.schema.names)
        if node.columns:
            if len(node.columns) != len(names):
                message = f"{len(node.columns)} names for {len(names)} columns"
                raise SqlValidationError(message, at=node.at)
            names = list(node.columns)
        schema = t.row_of(names, plan.schema.types, null=False)
        self._catalogs.add_table(
            node.name,
            ViewDefinition(node.text, schema, node.comment, home=self._catalogs.home()),
            temporary=node.temporary,
            if_not_exists=node.if_not_exists,
            replace_existing=node.or_replace,
            at=node.at,
        )
        return OK

    def _drop(self, node: s.Drop) -> Answer:
        match node.kind:
            case "TABLE" | "VIEW":
                self._catalogs.drop_table(
                    node.name, view=node.kind == "VIEW", temporary=node.temporary, if_exists=node.if_exists, at=node.at
                )
            case "FUNCTION":
                self._functions.drop(
                    node.name, temporary=node.temporary, system=node.system, if_exists=node.if_exists, at=node.at
                )
            case "CATALOG":
                self._namespaces.drop_catalog(node)
            case "DATABASE":
                self._namespaces.drop_database(node)
        return OK

    def loaded_function(self, target: str, name: str) -> UserFunction:
        """The function that a Python name stands for."""
        return self._functions.loaded(target, name)

    def register_function(
        self, path: tuple[str, ...], function: UserFunction, *, temporary: bool, system: bool = False
    ) -> None:
        """Give a user's function its name."""
        self._functions.register(path, function, temporary=temporary, system=system)

    def drop_function(self, path: tuple[str, ...], *, temporary: bool, system: bool, if_exists: bool) -> bool:
        """Forget a user's function; False when it was not there and need not be."""
        return self._functions.drop(path, temporary=temporary, system=system, if_exists=if_exists)

    def load_module(self, name: str, functions: Mapping[str, Any]) -> None:
        """Add a module of users' functions."""
        self._functions.load_module(name, functions)
