"""Executor of DDL statements: CREATE, ALTER, DROP, SHOW, DESCRIBE, USE.

Promises: a statement that fails changes nothing; the results of SHOW and DESCRIBE have Flink's columns.
Does not know: jobs, and queries other than those of views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition, ViewDefinition
from millstream.sql.ddl.alter import AlterStatements
from millstream.sql.ddl.describe import DescribeStatements
from millstream.sql.ddl.functions import FunctionStatements
from millstream.sql.ddl.models import ModelStatements
from millstream.sql.ddl.namespaces import NamespaceStatements
from millstream.sql.ddl.procedures import call_procedure
from millstream.sql.ddl.results import OK, StatementResult
from millstream.sql.ddl.show import ShowStatements
from millstream.sql.ddl.tables import TableBuilder
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


class DdlExecutor:
    """Executes statements about catalogs in one session; `text` is the statement as written."""

    def __init__(self, session: Session, wrap: Callable[[str, Any], UserFunction]) -> None:
        self._session = session
        self._catalogs = session.catalogs
        self._namespaces = NamespaceStatements(session.catalogs)
        self._functions = FunctionStatements(session.catalogs, wrap)
        self._models = ModelStatements(session.catalogs)
        self._descriptions = DescribeStatements(session.catalogs)

    def execute(self, node: s.Statement, text: str) -> StatementResult | None:
        """Execute a statement; return None if it is not about catalogs."""
        match node:
            case s.CreateTable(query=None):
                return self.create_table(node, text)
            case s.CreateView():
                return self._create_view(node)
            case s.CreateNamespace():
                return self._namespaces.create(node)
            case s.CreateFunction():
                return self._functions.create(node)
            case s.CreateModel():
                return self._models.create(node)
            case s.Drop():
                return self._drop(node)
            case s.Alter(object_type="DATABASE"):
                return self._namespaces.alter_database(node)
            case s.Alter(object_type="CATALOG"):
                return self._namespaces.alter_catalog(node)
            case s.Alter(object_type="FUNCTION"):
                return self._functions.alter(node)
            case s.Alter(object_type="MODEL"):
                return self._models.alter(node)
            case s.Alter():
                return AlterStatements(self._session).alter(node, text)
            case s.Show(subject="CREATE MODEL"):
                return self._models.show_create(node)
            case s.Show():
                return ShowStatements(self._catalogs, self._descriptions).show(node)
            case s.Describe(object_type="MODEL"):
                return self._models.describe(node)
            case s.Describe():
                return self._descriptions.describe(node)
            case s.Use():
                return self._namespaces.use(node)
            case s.Unsupported():
                message = f"{node.what} is not supported: {node.reason}"
                raise SqlNotSupported(message, at=node.at)
            case s.Module():
                return self._functions.execute_module(node)
        return None

    def call(self, node: s.CallProcedure, context: Any) -> StatementResult:
        """CALL: execute a procedure, which gets `context` as its first argument."""
        return call_procedure(self._session, node, context)

    def create_table(self, node: s.CreateTable, text: str) -> StatementResult:
        """CREATE TABLE without a query."""
        if node.or_replace:
            self._catalogs.check_not_materialized(self._catalogs.full_name(node.name, node.at), "DROP", node.at)
        definition = self.build_table(node, text)
        self._catalogs.add_table(
            node.name,
            definition,
            temporary=node.temporary,
            if_not_exists=node.if_not_exists,
            replace_existing=node.or_replace,
            at=node.at,
        )
        return OK

    def build_table(
        self, node: s.CreateTable, text: str, query_columns: tuple[ColumnDefinition, ...] = ()
    ) -> TableDefinition:
        """Return the table that CREATE TABLE defines; `query_columns` are those of its query."""
        return TableBuilder(self._session).build(node, text, query_columns)

    def _create_view(self, node: s.CreateView) -> StatementResult:
        plan = QueryBinder(self._session).query(node.query)
        names = list(plan.schema.names)
        if node.columns:
            if len(node.columns) != len(names):
                message = f"the view has {len(node.columns)} column names, but its query has {len(names)} columns"
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

    def _drop(self, node: s.Drop) -> StatementResult:
        match node.object_type:
            case "TABLE" | "VIEW":
                self._catalogs.check_not_materialized(self._catalogs.full_name(node.name, node.at), "DROP", node.at)
                self._catalogs.drop_table(
                    node.name,
                    view=node.object_type == "VIEW",
                    temporary=node.temporary,
                    if_exists=node.if_exists,
                    at=node.at,
                )
            case "FUNCTION":
                self._functions.drop(
                    node.name, temporary=node.temporary, system=node.system, if_exists=node.if_exists, at=node.at
                )
            case "MODEL":
                self._models.drop(node)
            case "CATALOG":
                self._namespaces.drop_catalog(node)
            case "DATABASE":
                self._namespaces.drop_database(node)
        return OK

    def load_function(self, target: str, name: str) -> UserFunction:
        """Import the Python object `target` as a function."""
        return self._functions.load(target, name)

    def register_function(
        self, path: tuple[str, ...], function: UserFunction, *, temporary: bool, system: bool = False
    ) -> None:
        """Register a user-defined function."""
        self._functions.register(path, function, temporary=temporary, system=system)

    def drop_function(self, path: tuple[str, ...], *, temporary: bool, system: bool, if_exists: bool) -> bool:
        """Drop a user-defined function; return False if it does not exist and `if_exists` is set."""
        return self._functions.drop(path, temporary=temporary, system=system, if_exists=if_exists)

    def load_module(self, name: str, functions: Mapping[str, Any]) -> None:
        """Load a module with user-defined functions."""
        self._functions.load_module(name, functions)
