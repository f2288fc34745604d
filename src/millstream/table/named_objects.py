"""The names of a session: tables, views, functions, modules, catalogs.

Promises: a name is looked up in the current catalog and database unless it says where.
Does not know: how queries are planned or run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.sql.catalog.catalog import Catalogs, ColumnDefinition, TableDefinition, ViewDefinition
from millstream.sql.ddl import DdlExecutor
from millstream.sql.errors import SqlValidationError
from millstream.sql.functions.library import built_in_names
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.syntax import parse_expression
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table import bridging
from millstream.table.catalog import Catalog, CatalogDescriptor
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.module import Module, ModuleEntry
from millstream.table.table import Table
from millstream.table.table_config import TableConfig
from millstream.table.table_descriptor import TableDescriptor
from millstream.table.udf import user_function


def object_path(text: str) -> tuple[str, ...]:
    """The parts of a name as it is written in SQL."""
    node = parse_expression(text)
    if not isinstance(node, s.Name):
        message = f"'{text}' is not the name of a table"
        raise SqlValidationError(message)
    return node.parts


class NamedObjects:
    """What has a name in a session, and the options by which names are found."""

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        self._env = env
        env._configuration.add_all(settings.get_configuration())
        self._config = TableConfig(env._configuration)
        self._catalogs = Catalogs(settings.get_built_in_catalog_name(), settings.get_built_in_database_name())

    def _session(self) -> Session:
        config = self._env._configuration
        return Session(
            self._catalogs, self._config.get_local_timezone(), lambda key: config.get_string(key, "") or None
        )

    def _ddl(self) -> DdlExecutor:
        return DdlExecutor(self._session(), user_function)

    def _definition_of(self, descriptor: TableDescriptor, inferred: t.RowType | None) -> TableDefinition:
        schema = descriptor.get_schema()
        if schema is None:
            if inferred is None:
                message = "the table descriptor has no schema"
                raise SqlValidationError(message)
            columns = tuple(ColumnDefinition(f.name, t.plain(f.data_type)) for f in inferred.fields)
            return TableDefinition(columns, descriptor.get_options(), partitions=tuple(descriptor.get_partition_keys()))
        return bridging.definition(
            self._session(),
            schema,
            descriptor.get_options(),
            tuple(descriptor.get_partition_keys()),
            descriptor.get_comment(),
        )

    # ------------------------------------------------------------------------------------------------- tables and views

    def create_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool = False) -> bool:
        """Give a table a name; False when it was there and may be."""
        return self._catalogs.add_table(
            object_path(path), self._definition_of(descriptor, None), temporary=False, if_not_exists=ignoreIfExists
        )

    def create_temporary_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool = False) -> None:
        """Give a table a name in this session."""
        self._catalogs.add_table(
            object_path(path), self._definition_of(descriptor, None), temporary=True, if_not_exists=ignoreIfExists
        )

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> bool:
        """Give a query a name; False when it was there and may be."""
        view = ViewDefinition("", table._plan.schema, plan=table._plan)
        return self._catalogs.add_table(object_path(view_path), view, temporary=False, if_not_exists=ignore_if_exists)

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Give a query or a stream a name in this session."""
        table = table_or_data_stream
        if isinstance(table, DataStream):
            table = self._from_stream(table, fields_or_schema)
        if not isinstance(table, Table):
            message = f"{table_or_data_stream!r} is neither a Table nor a DataStream"
            raise UserError(message)
        view = ViewDefinition("", table._plan.schema, plan=table._plan)
        self._catalogs.add_table(object_path(view_path), view, temporary=True)

    def _from_stream(self, stream: DataStream, fields_or_schema: Sequence[Any]) -> Table:
        message = "this environment has no streams"
        raise UserError(message, hint="use StreamTableEnvironment")

    def _dropped(self, path: str, *, view: bool, temporary: bool, quiet: bool) -> bool:
        parts = object_path(path)
        full = self._catalogs.full_name(parts)
        there = full in self._catalogs.temporary if temporary else self._catalogs.find(parts) is not None
        if not there and quiet:
            return False
        self._catalogs.drop_table(parts, view=view, temporary=temporary, if_exists=quiet)
        return there

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Forget a table."""
        return self._dropped(table_path, view=False, temporary=False, quiet=ignore_if_not_exists)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Forget a view."""
        return self._dropped(view_path, view=True, temporary=False, quiet=ignore_if_not_exists)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Forget a temporary table."""
        return self._dropped(table_path, view=False, temporary=True, quiet=True)

    def drop_temporary_view(self, view_path: str) -> bool:
        """Forget a temporary view."""
        return self._dropped(view_path, view=True, temporary=True, quiet=True)

    def list_tables(self) -> list[str]:
        """Tables and views of the current database."""
        return self._catalogs.table_names(self._catalogs.current_catalog, self._catalogs.current_database)

    def list_views(self) -> list[str]:
        """Views of the current database."""
        return [name for name in self.list_tables() if isinstance(self._catalogs.table((name,))[1], ViewDefinition)]

    def _temporary(self, kind: type) -> list[str]:
        here = (self._catalogs.current_catalog, self._catalogs.current_database)
        found = self._catalogs.temporary.items()
        return sorted(name for (c, d, name), each in found if (c, d) == here and isinstance(each, kind))

    def list_temporary_tables(self) -> list[str]:
        """Temporary tables of the current database."""
        return self._temporary(TableDefinition)

    def list_temporary_views(self) -> list[str]:
        """Temporary views of the current database."""
        return self._temporary(ViewDefinition)

    def list_materialized_tables(self) -> list[str]:
        """None: there are no materialized tables."""
        return []

    # -------------------------------------------------------------------------------------------- functions and modules

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Give a function a name in this session."""
        parts = object_path(path)
        self._ddl().register_function(parts, user_function(parts[-1], function), temporary=True)

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Give a function a name that hides all others."""
        self._ddl().register_function((name,), user_function(name, function), temporary=True, system=True)

    def drop_function(self, path: str) -> bool:
        """Forget a function."""
        return self._ddl().drop_function(object_path(path), temporary=False, system=False, if_exists=True)

    def drop_temporary_function(self, path: str) -> bool:
        """Forget a temporary function."""
        return self._ddl().drop_function(object_path(path), temporary=True, system=False, if_exists=True)

    def drop_temporary_system_function(self, name: str) -> bool:
        """Forget a temporary system function."""
        return self._ddl().drop_function((name,), temporary=True, system=True, if_exists=True)

    def list_user_defined_functions(self) -> list[str]:
        """The users' functions."""
        return sorted(set(self._catalogs.function_names()))

    def list_functions(self) -> list[str]:
        """All functions."""
        return sorted({*built_in_names(), *self._catalogs.function_names()})

    def list_modules(self) -> list[str]:
        """The modules in use, in order."""
        return [name for name, used in self._catalogs.modules.listed() if used]

    def list_full_modules(self) -> list[ModuleEntry]:
        """All modules, those in use first and in order."""
        return [ModuleEntry(name, used) for name, used in self._catalogs.modules.listed()]

    def load_module(self, module_name: str, module: Module) -> None:
        """Have the functions of a module found, behind those of the modules in use."""
        self._ddl().load_module(module_name, module.functions())

    def unload_module(self, module_name: str) -> None:
        """Forget a module."""
        self._catalogs.modules.unload(module_name)

    def use_modules(self, *module_names: str) -> None:
        """Use these modules in this order, and no others."""
        self._catalogs.modules.use(module_names)

    # ------------------------------------------------------------------------------------------- catalogs and databases

    def list_catalogs(self) -> list[str]:
        """The catalogs."""
        return sorted(self._catalogs.all)

    def list_databases(self) -> list[str]:
        """The databases of the current catalog."""
        return sorted(self._catalogs.catalog(self._catalogs.current_catalog).databases)

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """A catalog, None where there is none."""
        found = self._catalogs.all.get(catalog_name)
        return None if found is None else Catalog(found, self._ddl())

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Make a catalog known."""
        self._catalogs.all[catalog_name] = catalog._catalog

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """Make a catalog."""
        options = tuple(catalog_descriptor.configuration.to_dict().items())
        node = s.CreateNamespace(0, "CATALOG", (catalog_name,), options, catalog_descriptor.comment)
        self._ddl().execute(node, "")

    def use_catalog(self, catalog_name: str) -> None:
        """Make a catalog the current one."""
        self._ddl().execute(s.Use(0, "CATALOG", (catalog_name,)), "")

    def use_database(self, database_name: str) -> None:
        """Make a database the current one."""
        self._ddl().execute(s.Use(0, "DATABASE", (database_name,)), "")

    def get_current_catalog(self) -> str:
        """The current catalog."""
        return self._catalogs.current_catalog

    def get_current_database(self) -> str:
        """The current database."""
        return self._catalogs.current_database
