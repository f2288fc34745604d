"""The named objects of a session: tables, views, functions, models, modules, catalogs.

Promises: a name is resolved in the current catalog and database unless it has these parts itself.
Does not know: how queries are planned or executed."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import InvalidArgumentType
from millstream.sql.catalog.catalog import Catalogs, ColumnDefinition, TableDefinition, ViewDefinition
from millstream.sql.catalog.registry import load_stored_catalogs
from millstream.sql.ddl import DdlExecutor
from millstream.sql.errors import SqlValidationError
from millstream.sql.functions.library import list_built_in_names
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table import bridging
from millstream.table.catalog import Catalog, CatalogDescriptor
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.module import Module, ModuleEntry
from millstream.table.named_models import NamedModels
from millstream.table.object_paths import parse_object_path
from millstream.table.table import Table
from millstream.table.table_config import TableConfig
from millstream.table.table_descriptor import TableDescriptor
from millstream.table.udf import to_user_function


class NamedObjects(NamedModels):
    """Manage the named objects of a session."""

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        self._env = env
        env._configuration.add_all(settings.get_configuration())
        self._config = TableConfig(env._configuration)
        self._catalogs = Catalogs(settings.get_built_in_catalog_name(), settings.get_built_in_database_name())
        load_stored_catalogs(self._catalogs, self._read_option_text)

    def _read_option_text(self, key: str) -> str | None:
        return self._env._configuration.get_string(key, "") or None

    def _session(self) -> Session:
        return Session(self._catalogs, self._config.get_local_timezone(), self._read_option_text)

    def _create_ddl_executor(self) -> DdlExecutor:
        return DdlExecutor(self._session(), to_user_function)

    def _create_definition(self, descriptor: TableDescriptor, inferred: t.RowType | None) -> TableDefinition:
        schema = descriptor.get_schema()
        if schema is None:
            if inferred is None:
                message = "the table descriptor has no schema"
                raise SqlValidationError(message)
            columns = tuple(ColumnDefinition(f.name, t.strip_time_attribute(f.data_type)) for f in inferred.fields)
            return TableDefinition(columns, descriptor.get_options(), partitions=tuple(descriptor.get_partition_keys()))
        return bridging.create_table_definition(
            self._session(),
            schema,
            descriptor.get_options(),
            tuple(descriptor.get_partition_keys()),
            descriptor.get_comment(),
        )

    # ------------------------------------------------------------------------------------------------- tables and views

    def create_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool = False) -> bool:
        """Register a table in a catalog.

        Args:
            path: A name, `database.name` or `catalog.database.name`.
            descriptor: The connector, schema and options of the table.
            ignoreIfExists: Whether a table of this name is left as it is.

        Returns:
            Whether the table was created.

        Raises:
            SqlError: If there is a table of this name and `ignoreIfExists` is False, or the descriptor has no schema.

        """
        return self._catalogs.add_table(
            parse_object_path(path),
            self._create_definition(descriptor, None),
            temporary=False,
            if_not_exists=ignoreIfExists,
        )

    def create_temporary_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool = False) -> None:
        """Register a table for the duration of this session; it hides a permanent table of the same name.

        Args:
            path: A name, `database.name` or `catalog.database.name`.
            descriptor: The connector, schema and options of the table.
            ignoreIfExists: Whether a temporary table of this name is left as it is.

        """
        self._catalogs.add_table(
            parse_object_path(path),
            self._create_definition(descriptor, None),
            temporary=True,
            if_not_exists=ignoreIfExists,
        )

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> bool:
        """Register a table as a view in a catalog.

        Args:
            view_path: A name, `database.name` or `catalog.database.name`.
            table: The query of the view.
            ignore_if_exists: Whether a table or view of this name is left as it is.

        Returns:
            Whether the view was created.

        """
        view = ViewDefinition("", table._plan.schema, plan=table._plan)
        return self._catalogs.add_table(
            parse_object_path(view_path), view, temporary=False, if_not_exists=ignore_if_exists
        )

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Register a table or a stream as a view for the duration of this session.

        Args:
            view_path: A name, `database.name` or `catalog.database.name`.
            table_or_data_stream: A table, or a stream if this is a `StreamTableEnvironment`.
            *fields_or_schema: For a stream: the names of the columns, or a `Schema`.

        Raises:
            UserError: If the value is neither a table nor a stream.

        """
        table = table_or_data_stream
        if isinstance(table, DataStream):
            table = self._from_stream(table, fields_or_schema)
        if not isinstance(table, Table):
            message = f"{table_or_data_stream!r} is neither a Table nor a DataStream"
            raise InvalidArgumentType(message)
        view = ViewDefinition("", table._plan.schema, plan=table._plan)
        self._catalogs.add_table(parse_object_path(view_path), view, temporary=True)

    def _from_stream(self, stream: DataStream, fields_or_schema: Sequence[Any]) -> Table:
        message = "a TableEnvironment cannot use DataStreams"
        raise InvalidArgumentType(message, hint="use StreamTableEnvironment")

    def _drop(self, path: str, *, view: bool, temporary: bool, if_exists: bool) -> bool:
        parts = parse_object_path(path)
        full_name = self._catalogs.full_name(parts)
        if not temporary:
            self._catalogs.check_not_materialized(full_name, "DROP")
        if temporary:
            definition = self._catalogs.temporary.get(full_name)
            exists = definition is not None and isinstance(definition, ViewDefinition) is view
        else:
            exists = self._catalogs.find(parts) is not None
        if not exists and if_exists:
            return False
        self._catalogs.drop_table(parts, view=view, temporary=temporary, if_exists=if_exists)
        return exists

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drop a table.

        Args:
            table_path: The path of the table.
            ignore_if_not_exists: Whether a missing table is not an error.

        Returns:
            Whether there was such a table.

        """
        return self._drop(table_path, view=False, temporary=False, if_exists=ignore_if_not_exists)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drop a view.

        Args:
            view_path: The path of the view.
            ignore_if_not_exists: Whether a missing view is not an error.

        Returns:
            Whether there was such a view.

        """
        return self._drop(view_path, view=True, temporary=False, if_exists=ignore_if_not_exists)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Drop a temporary table; return whether there was one of this path."""
        return self._drop(table_path, view=False, temporary=True, if_exists=True)

    def drop_temporary_view(self, view_path: str) -> bool:
        """Drop a temporary view; return whether there was one of this path."""
        return self._drop(view_path, view=True, temporary=True, if_exists=True)

    def list_tables(self) -> list[str]:
        """Return the names of all tables and views of the current database, temporary ones included."""
        return self._catalogs.table_names(self._catalogs.current_catalog, self._catalogs.current_database)

    def list_views(self) -> list[str]:
        """Return the names of all views of the current database, temporary ones included."""
        return [name for name in self.list_tables() if isinstance(self._catalogs.table((name,))[1], ViewDefinition)]

    def _temporary_names(self, definition_class: type | UnionType) -> list[str]:
        current = (self._catalogs.current_catalog, self._catalogs.current_database)
        return sorted(
            name
            for (catalog, database, name), definition in self._catalogs.temporary.items()
            if (catalog, database) == current and isinstance(definition, definition_class)
        )

    def list_temporary_tables(self) -> list[str]:
        """Return the names of the temporary tables and views of the current database."""
        return self._temporary_names(TableDefinition | ViewDefinition)

    def list_temporary_views(self) -> list[str]:
        """Return the names of the temporary views of the current database."""
        return self._temporary_names(ViewDefinition)

    def list_materialized_tables(self) -> list[str]:
        """Return the names of the materialized tables of the current database."""
        home = self._catalogs.home()
        return [name for name in self.list_tables() if self._catalogs.materialization((*home, name)) is not None]

    # -------------------------------------------------------------------------------------------- functions and modules

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Register a user-defined function for the duration of this session.

        Args:
            path: A name, `database.name` or `catalog.database.name`.
            function: The result of `udf`, `udtf`, `udaf` or `udtaf`, or an aggregate function object.

        """
        parts = parse_object_path(path)
        self._create_ddl_executor().register_function(parts, to_user_function(parts[-1], function), temporary=True)

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Register a user-defined function for this session; it hides all other functions of this name.

        Args:
            name: The name of the function.
            function: The result of `udf`, `udtf`, `udaf` or `udtaf`, or an aggregate function object.

        """
        self._create_ddl_executor().register_function(
            (name,), to_user_function(name, function), temporary=True, system=True
        )

    def drop_function(self, path: str) -> bool:
        """Drop a function of a catalog; return whether there was one of this path."""
        return self._create_ddl_executor().drop_function(
            parse_object_path(path), temporary=False, system=False, if_exists=True
        )

    def drop_temporary_function(self, path: str) -> bool:
        """Drop a temporary function; return whether there was one of this path."""
        return self._create_ddl_executor().drop_function(
            parse_object_path(path), temporary=True, system=False, if_exists=True
        )

    def drop_temporary_system_function(self, name: str) -> bool:
        """Drop a temporary system function; return whether there was one of this name."""
        return self._create_ddl_executor().drop_function((name,), temporary=True, system=True, if_exists=True)

    def list_user_defined_functions(self) -> list[str]:
        """Return the names of the user-defined functions."""
        return sorted(set(self._catalogs.function_names()))

    def list_functions(self) -> list[str]:
        """Return the names of all functions, built-in and user-defined."""
        return sorted({*list_built_in_names(), *self._catalogs.function_names()})

    def list_modules(self) -> list[str]:
        """Return the names of the modules in use, in the order in which functions are resolved."""
        return [name for name, used in self._catalogs.modules.list_modules() if used]

    def list_full_modules(self) -> list[ModuleEntry]:
        """Return all loaded modules: those in use in the order of resolution, then the others."""
        return [ModuleEntry(name, used) for name, used in self._catalogs.modules.list_modules()]

    def load_module(self, module_name: str, module: Module) -> None:
        """Load a module; its functions are resolved after those of the modules in use.

        Args:
            module_name: The name of the module in this session.
            module: The functions.

        """
        self._create_ddl_executor().load_module(module_name, module.functions())

    def unload_module(self, module_name: str) -> None:
        """Unload a module, so that its functions are not found any more."""
        self._catalogs.modules.unload(module_name)

    def use_modules(self, *module_names: str) -> None:
        """Set which loaded modules are in use, and in which order functions are resolved."""
        self._catalogs.modules.use(module_names)

    # ------------------------------------------------------------------------------------------- catalogs and databases

    def list_catalogs(self) -> list[str]:
        """Return the names of all catalogs."""
        return sorted(self._catalogs.all)

    def list_databases(self) -> list[str]:
        """Return the names of all databases of the current catalog."""
        return sorted(self._catalogs.catalog(self._catalogs.current_catalog).databases)

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """Return a catalog, or None if there is none of this name."""
        catalog = self._catalogs.all.get(catalog_name)
        return None if catalog is None else Catalog(catalog, self._create_ddl_executor())

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Register a catalog under a name."""
        self._catalogs.all[catalog_name] = catalog._catalog

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """Create a catalog from its options, like CREATE CATALOG.

        Args:
            catalog_name: The name of the catalog.
            catalog_descriptor: The type and options of the catalog.

        """
        options = tuple(catalog_descriptor.configuration.to_dict().items())
        node = s.CreateNamespace(0, "CATALOG", (catalog_name,), options, catalog_descriptor.comment)
        self._create_ddl_executor().execute(node, "")

    def use_catalog(self, catalog_name: str) -> None:
        """Set the current catalog; its default database becomes the current database."""
        self._create_ddl_executor().execute(s.Use(0, "CATALOG", (catalog_name,)), "")

    def use_database(self, database_name: str) -> None:
        """Set the current database."""
        self._create_ddl_executor().execute(s.Use(0, "DATABASE", (database_name,)), "")

    def get_current_catalog(self) -> str:
        """Return the name of the current catalog."""
        return self._catalogs.current_catalog

    def get_current_database(self) -> str:
        """Return the name of the current database."""
        return self._catalogs.current_database
