"""TableEnvironment: where tables have names and queries are run.

Promises: PyFlink's methods; a statement that cannot be planned changes nothing and runs nothing.
Does not know: how plans are made."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from millstream import options as runtime_options
from millstream.connectors.collect import CollectSink
from millstream.datastream.collecting import CloseableIterator as Results
from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.graph.explain import flink_json
from millstream.graph.stream_graph import StreamGraph
from millstream.graph.transformations import Input
from millstream.model.row import Row
from millstream.model.types import TypeInformation
from millstream.runtime.operators.sink import SinkSpec
from millstream.sql import logical as l
from millstream.sql import syntax as s
from millstream.sql import types as t
from millstream.sql.bind.expressions import Session
from millstream.sql.bind.queries import QueryBinder
from millstream.sql.bind.tables import duration_millis, table_plan
from millstream.sql.catalog import Catalogs, ColumnDefinition, StreamTable, TableDefinition, ViewDefinition
from millstream.sql.columns import row_type_info
from millstream.sql.ddl import Answer, Definitions
from millstream.sql.errors import SqlError, SqlNotSupported, SqlValidationError
from millstream.sql.explain import explained
from millstream.sql.function_context import async_options
from millstream.sql.functions.registry import known_names
from millstream.sql.parser import parse_expression, parse_statement
from millstream.sql.phases import distinct_buckets, two_phase_wanted
from millstream.sql.physical import ChangelogMode, Operation
from millstream.sql.physical_planner import Settings
from millstream.sql.planner import Planner
from millstream.table import bridging
from millstream.table.catalog import Catalog, CatalogDescriptor
from millstream.table.changelog_mode import ChangelogMode as UserMode
from millstream.table.compiled_plan import CompiledPlan, insert_texts
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.explain_detail import ExplainDetail
from millstream.table.module import Module, ModuleEntry
from millstream.table.plan_reference import PlanReference
from millstream.table.schema import Schema
from millstream.table.session_jobs import SessionJobs
from millstream.table.statement_set import StatementSet
from millstream.table.table import Table
from millstream.table.table_config import MINI_BATCH, MINI_BATCH_SIZE, STATE_TTL, TableConfig
from millstream.table.table_descriptor import TableDescriptor
from millstream.table.table_pipeline import TablePipeline
from millstream.table.table_result import TableResult
from millstream.table.udf import user_function

T = TypeVar("T")
_numbers = itertools.count(1)


def _path(text: str) -> tuple[str, ...]:
    node = parse_expression(text)
    if not isinstance(node, s.Name):
        message = f"'{text}' is not the name of a table"
        raise SqlValidationError(message)
    return node.parts


class TableEnvironment:
    """Names, options, and the button that runs queries."""

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        self._env = env
        env._configuration.add_all(settings.get_configuration())
        self._config = TableConfig(env._configuration)
        self._catalogs = Catalogs(settings.get_built_in_catalog_name(), settings.get_built_in_database_name())
        self._settings_object = settings
        self._prefix = f"table-{os.getpid()}-{next(_numbers)}"
        self._collected = itertools.count(1)
        self._jobs = SessionJobs()
        env.register_job_listener(self._jobs)
        self._before_set: dict[str, str | None] = {}

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Any) -> TableEnvironment:
        """An environment of its own."""
        if not isinstance(environment_settings, EnvironmentSettings):
            builder = EnvironmentSettings.new_instance().with_configuration(environment_settings)
            environment_settings = builder.build()
        env = StreamExecutionEnvironment.get_execution_environment(environment_settings.get_configuration())
        return TableEnvironment(env, environment_settings)

    # -------------------------------------------------------------------------------------------------- what is inside

    def _session(self) -> Session:
        config = self._env._configuration
        return Session(
            self._catalogs, self._config.get_local_timezone(), lambda key: config.get_string(key, "") or None
        )

    def _batch(self) -> bool:
        return str(self._env._configuration.get(runtime_options.RUNTIME_MODE)).upper() == "BATCH"

    def _planner(self) -> Planner:
        config = self._env._configuration
        ttl = duration_millis(config.get_string(STATE_TTL, "0 ms"))
        options = self._session().options
        size = config.get_integer(MINI_BATCH_SIZE, -1)
        settings = Settings(
            self._config.get_local_timezone(),
            config.get_boolean(MINI_BATCH, False),
            ttl or None,
            self._batch(),
            async_options(options, duration_millis),
            size if size > 0 else None,
            two_phase_wanted(options),
            distinct_buckets(options),
            catalyst=config.get(runtime_options.SQL_BATCH_ENGINE) == "catalyst",
        )
        return Planner(self._session(), settings, lambda: 0)

    def _definitions(self) -> Definitions:
        return Definitions(self._session(), user_function)

    @staticmethod
    def _placed(text: str, action: Callable[[], T]) -> T:
        try:
            return action()
        except SqlError as problem:
            raise problem.placed(text) from None
        except RecursionError:
            message = "the statement is nested too deep"
            raise SqlValidationError(message, at=0, text=text) from None

    def _answered(self, answer: Answer) -> TableResult:
        if answer.schema is None:
            return TableResult(None)
        names = answer.schema.names
        return TableResult(answer.schema, [Row._from(list(names), list(row)) for row in answer.rows])

    # ------------------------------------------------------------------------------------------------------ statements

    def execute_sql(self, stmt: str) -> TableResult:
        """Run one statement."""
        node = parse_statement(stmt)
        return self._placed(stmt, lambda: self._execute(node, stmt))

    def _execute(self, node: s.Statement, text: str) -> TableResult:
        match node:
            case s.SelectStatement():
                return self._collect(QueryBinder(self._session()).query(node.query))
            case s.Insert():
                return self._insert([self._insert_plan(node)])
            case s.StatementSet():
                return self._insert([self._insert_plan(each) for each in node.inserts])
            case s.CreateTable() if node.query is not None:
                return self._create_as(node, text)
            case s.Explain():
                names = {"ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE"}
                details = [ExplainDetail[each] for each in node.details if each in names]
                shown = self._explain(self._plans_of(node.statement, text), details)
                schema = t.row_of(["result"], [t.STRING], null=False)
                return TableResult(schema, [Row._from(["result"], [shown])], raw=True)
            case s.SetOption():
                return self._set(node)
            case s.ResetOption():
                for key in list(self._before_set) if node.key is None else [node.key]:
                    self._reset(key)
                return TableResult(None)
            case s.Show(kind="JOBS"):
                return self._answered(self._jobs.shown())
            case s.Describe(kind="JOB"):
                return self._answered(self._jobs.described(node.name[0], node.at))
            case s.StopJob():
                savepoints = self._env._configuration.get(runtime_options.SAVEPOINT_DIR)
                return self._answered(self._jobs.stop(node, savepoints))
            case s.PlanFile():
                return self._plan_file(node, text)
        answer = self._definitions().execute(node, text)
        if answer is None:
            message = f"{type(node).__name__} is not supported"
            raise SqlNotSupported(message, at=node.at)
        return self._answered(answer)

    def _plans_of(self, node: s.Statement, text: str = "") -> list[l.Plan]:
        match node:
            case s.SelectStatement():
                return [QueryBinder(self._session()).query(node.query)]
            case s.Insert():
                return [self._insert_plan(node)]
            case s.StatementSet():
                return [self._insert_plan(each) for each in node.inserts]
            case s.CreateTable() if node.query is not None:
                return [self._create_as_plan(node, text)[1]]
        message = "only queries and inserts can be explained"
        raise SqlNotSupported(message, at=node.at)

    def _set(self, node: s.SetOption) -> TableResult:
        if node.key is None:
            rows = sorted(self._env._configuration.to_dict().items())
            schema = t.row_of(["key", "value"], [t.STRING, t.STRING], null=False)
            return TableResult(schema, [Row._from(["key", "value"], list(row)) for row in rows])
        config = self._env._configuration
        self._before_set.setdefault(node.key, config.to_dict().get(node.key))
        config.set_string(node.key, node.value or "")
        return TableResult(None)

    def _reset(self, key: str) -> None:
        """Give an option the value it had before it was SET."""
        before = self._before_set.pop(key, None)
        if before is None:
            self._env._configuration.remove_config(key)
        else:
            self._env._configuration.set_string(key, before)

    def _plan_file(self, node: s.PlanFile, text: str) -> TableResult:
        if node.action == "EXECUTE":
            return self.execute_plan(PlanReference.from_file(node.path))
        assert node.statement is not None
        if node.if_not_exists and os.path.exists(node.path):
            plan = self.load_plan(PlanReference.from_file(node.path))
        else:
            plan = self._compiled_inserts(node.statement, text)
            plan.write_to_file(node.path)
        return plan.execute() if node.action == "COMPILE AND EXECUTE" else TableResult(None)

    def _create_as_plan(self, node: s.CreateTable, text: str) -> tuple[TableDefinition, l.Plan]:
        assert node.query is not None
        query = QueryBinder(self._session()).query(node.query)
        extra = tuple(ColumnDefinition(f.name, t.plain(f.data_type)) for f in query.schema.fields)
        definitions = self._definitions()
        definition = definitions.definition(node, text, extra)
        full = self._catalogs.full_name(node.name, node.at)
        return definition, self._planner().sink_plan(full, definition, query, query.schema.names)

    def _create_as(self, node: s.CreateTable, text: str) -> TableResult:
        definition, plan = self._create_as_plan(node, text)
        self._planner().physical([plan])  # nothing is created unless it can run
        created = self._catalogs.add_table(
            node.name, definition, temporary=node.temporary, if_not_exists=node.if_not_exists,
            replace_existing=node.or_replace, at=node.at,
        )  # fmt: skip
        return self._insert([plan]) if created else TableResult(None)

    def _insert_plan(self, node: s.Insert) -> l.Plan:
        full, table = self._catalogs.table(node.table, node.at)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.table)}' is not a table that can be written to"
            raise SqlValidationError(message, at=node.at)
        query = QueryBinder(self._session()).query(node.query)
        hints = tuple(pair for hint in node.hints if hint.name == "OPTIONS" for pair in hint.options)
        try:
            planner = self._planner()
            query, columns = planner.with_partition(table, query, node.columns, node.partition)
            return planner.sink_plan(
                full, table, query, columns, hints, overwrite=node.overwrite, conflict=node.conflict
            )
        except SqlValidationError as problem:
            problem.at = node.at
            raise

    def _insert(self, plans: Sequence[l.Plan]) -> TableResult:
        planner = self._planner()
        operations = planner.physical(plans)
        program, kept = self._env._program, dict(self._env._program.transformations)
        program.clear()
        try:
            planner.add_all(operations, program)
            names = [".".join(plan.name) for plan in plans if isinstance(plan, l.Sink)]
            client = self._env.execute_async(f"insert-into_{','.join(names)}")
        finally:
            program.transformations.update(kept)
        columns = list(dict.fromkeys(names))
        schema = t.row_of(columns, [t.BIGINT for _ in columns], null=False)
        return TableResult(schema, [Row._from(list(columns), [-1] * len(columns))], client=client)

    def _attach(self, plans: Sequence[l.Plan]) -> None:
        planner = self._planner()
        planner.add_all(planner.physical(plans), self._env._program)

    def _collect(self, plan: l.Plan) -> TableResult:
        planner = self._planner()
        operation = planner.collected(plan)
        program, kept = self._env._program, dict(self._env._program.transformations)
        name = f"{self._prefix}-{next(self._collected)}"
        program.clear()
        try:
            inputs = planner.add(operation, program)
            kind = row_type_info(operation.schema)
            sink = CollectSink(name)
            inputs = tuple(Input(i.upstream, 0, i.tag, i.partitioner) for i in inputs)
            program.add("Sink: Collect", SinkSpec(sink), kind, inputs, sink=sink, follows_input=True)
            client = self._env.execute_async("collect")
        finally:
            program.transformations.update(kept)
        results = Results(client, name)
        zone = self._config.get_local_timezone()
        return TableResult(plan.schema, client=client, results=results, zone=zone, streaming=not self._batch())

    def _explain(self, plans: Sequence[l.Plan], details: Iterable[ExplainDetail]) -> str:
        planner = self._planner()
        return explained(
            plans,
            [planner.optimized(each) for each in plans],
            planner.physical(plans),
            {each.name for each in details},
            planner.settings,
            lambda: flink_json(self._graph_of(plans)),
        )

    def _graph_of(self, plans: Sequence[l.Plan]) -> StreamGraph:
        """The program that plans become, with a sink for those that have none; it is not run."""
        planner = self._planner()
        program, kept = self._env._program, dict(self._env._program.transformations)
        program.clear()
        try:
            operations = planner.physical(plans)
            if all(operation.sink is not None for operation in operations):
                planner.add_all(operations, program)
            else:
                (operation,) = operations
                sink, kind = CollectSink("explained"), row_type_info(operation.schema)
                inputs = planner.add(operation, program)
                inputs = tuple(Input(i.upstream, 0, i.tag, i.partitioner) for i in inputs)
                program.add("Sink: Collect", SinkSpec(sink), kind, inputs, sink=sink, follows_input=True)
            return self._env._graph()
        finally:
            program.clear()
            program.transformations.update(kept)

    def _compiled_inserts(self, node: s.Statement, text: str) -> CompiledPlan:
        texts = insert_texts(node, text)
        return self._compiled(self._plans_of(node), texts)

    def _compiled(self, plans: Sequence[l.Plan], texts: Sequence[str]) -> CompiledPlan:
        self._planner().physical(plans)
        return CompiledPlan(self, texts)

    def _pipeline(self, plan: l.Plan, target: str | TableDescriptor, overwrite: bool) -> TablePipeline:
        if isinstance(target, TableDescriptor):
            full: tuple[str, ...] = ("*anonymous*",)
            table = self._definition_of(target, plan.schema)
        else:
            full, found = self._catalogs.table(_path(target))
            if not isinstance(found, TableDefinition):
                message = f"'{target}' is not a table that can be written to"
                raise SqlValidationError(message)
            table = found
        made = self._planner().sink_plan(full, table, plan, (), overwrite=overwrite)  # type: ignore[arg-type]
        return TablePipeline(made, full, self)

    def _to_pandas(self, plan: l.Plan) -> Any:
        with self._collect(plan).collect() as rows:
            return bridging.to_pandas(plan.schema, rows)

    # --------------------------------------------------------------------------------------------------------- queries

    def sql_query(self, query: str) -> Table:
        """A query as a table."""
        node = parse_statement(query)
        if not isinstance(node, s.SelectStatement):
            message = "sql_query takes a query"
            raise SqlValidationError(message, at=node.at, text=query, hint="use execute_sql for other statements")
        return Table(self._placed(query, lambda: QueryBinder(self._session()).query(node.query)), self)

    def from_path(self, path: str) -> Table:
        """A table or view by its name."""
        return Table(table_plan(QueryBinder(self._session()), _path(path), (), None), self)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """A table as a description says it."""
        definition = self._definition_of(descriptor, None)
        name = f"*anonymous_{next(_numbers)}*"
        full = self._catalogs.full_name((name,))
        self._catalogs.temporary[full] = definition
        try:
            return Table(table_plan(QueryBinder(self._session()), full, (), None), self)
        finally:
            del self._catalogs.temporary[full]

    def from_elements(self, elements: Iterable[Any], schema: Any = None, verify_schema: bool = True) -> Table:
        """A table of values."""
        rows = list(elements)
        return self._rows_table(bridging.row_type(rows, schema), rows)

    def from_pandas(self, pdf: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """A table of a pandas DataFrame."""
        row, rows = bridging.from_pandas(pdf, schema)
        return self._rows_table(row, rows)

    def _rows_table(self, row: t.RowType, rows: list[Any]) -> Table:
        kind = row_type_info(row)
        source = bridging.rows_source(kind, rows)

        def origin(shown: str, schema: t.RowType, mode: ChangelogMode, keys: Any) -> Operation:
            return Operation("TableSourceScan", shown, schema, source=source, mode=mode, upsert_keys=keys)

        table = StreamTable(row, origin)
        return Table(l.Scan(row, table, (f"Unregistered_{next(_numbers)}",)), self)

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

    # ----------------------------------------------------------------------------------------------------------- names

    def create_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool = False) -> bool:
        """Give a table a name; False when it was there and may be."""
        return self._catalogs.add_table(
            _path(path), self._definition_of(descriptor, None), temporary=False, if_not_exists=ignoreIfExists
        )

    def create_temporary_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool = False) -> None:
        """Give a table a name in this session."""
        self._catalogs.add_table(
            _path(path), self._definition_of(descriptor, None), temporary=True, if_not_exists=ignoreIfExists
        )

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> bool:
        """Give a query a name; False when it was there and may be."""
        view = ViewDefinition("", table._plan.schema, plan=table._plan)
        return self._catalogs.add_table(_path(view_path), view, temporary=False, if_not_exists=ignore_if_exists)

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Give a query or a stream a name in this session."""
        table = table_or_data_stream
        if isinstance(table, DataStream):
            table = self._from_stream(table, fields_or_schema)
        if not isinstance(table, Table):
            message = f"{table_or_data_stream!r} is neither a Table nor a DataStream"
            raise UserError(message)
        view = ViewDefinition("", table._plan.schema, plan=table._plan)
        self._catalogs.add_table(_path(view_path), view, temporary=True)

    def _from_stream(self, stream: DataStream, fields_or_schema: Sequence[Any]) -> Table:
        message = "this environment has no streams"
        raise UserError(message, hint="use StreamTableEnvironment")

    def _dropped(self, path: str, *, view: bool, temporary: bool, quiet: bool) -> bool:
        parts = _path(path)
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

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Give a function a name in this session."""
        parts = _path(path)
        self._definitions().register_function(parts, user_function(parts[-1], function), temporary=True)

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Give a function a name that hides all others."""
        self._definitions().register_function((name,), user_function(name, function), temporary=True, system=True)

    def drop_function(self, path: str) -> bool:
        """Forget a function."""
        return self._definitions().drop_function(_path(path), temporary=False, system=False, if_exists=True)

    def drop_temporary_function(self, path: str) -> bool:
        """Forget a temporary function."""
        return self._definitions().drop_function(_path(path), temporary=True, system=False, if_exists=True)

    def drop_temporary_system_function(self, name: str) -> bool:
        """Forget a temporary system function."""
        return self._definitions().drop_function((name,), temporary=True, system=True, if_exists=True)

    # ------------------------------------------------------------------------------------------------------------ lists

    def list_catalogs(self) -> list[str]:
        """The catalogs."""
        return sorted(self._catalogs.all)

    def list_databases(self) -> list[str]:
        """The databases of the current catalog."""
        return sorted(self._catalogs.catalog(self._catalogs.current_catalog).databases)

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

    def list_user_defined_functions(self) -> list[str]:
        """The users' functions."""
        return sorted(set(self._catalogs.function_names()))

    def list_functions(self) -> list[str]:
        """All functions."""
        return sorted(
            {*(name.lower() for name in known_names() if name.isidentifier()), *self._catalogs.function_names()}
        )

    def list_modules(self) -> list[str]:
        """The modules in use, in order."""
        return [name for name, used in self._catalogs.modules.listed() if used]

    def list_full_modules(self) -> list[ModuleEntry]:
        """All modules, those in use first and in order."""
        return [ModuleEntry(name, used) for name, used in self._catalogs.modules.listed()]

    def load_module(self, module_name: str, module: Module) -> None:
        """Have the functions of a module found, behind those of the modules in use."""
        self._definitions().load_module(module_name, module.functions())

    def unload_module(self, module_name: str) -> None:
        """Forget a module."""
        self._catalogs.modules.unload(module_name)

    def use_modules(self, *module_names: str) -> None:
        """Use these modules in this order, and no others."""
        self._catalogs.modules.use(module_names)

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """A catalog, None where there is none."""
        found = self._catalogs.all.get(catalog_name)
        return None if found is None else Catalog(found, self._definitions())

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Make a catalog known."""
        self._catalogs.all[catalog_name] = catalog._catalog

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """Make a catalog."""
        options = tuple(catalog_descriptor.configuration.to_dict().items())
        node = s.CreateNamespace(0, "CATALOG", (catalog_name,), options, catalog_descriptor.comment)
        self._definitions().execute(node, "")

    def use_catalog(self, catalog_name: str) -> None:
        """Make a catalog the current one."""
        self._definitions().execute(s.Use(0, "CATALOG", (catalog_name,)), "")

    def use_database(self, database_name: str) -> None:
        """Make a database the current one."""
        self._definitions().execute(s.Use(0, "DATABASE", (database_name,)), "")

    def get_current_catalog(self) -> str:
        """The current catalog."""
        return self._catalogs.current_catalog

    def get_current_database(self) -> str:
        """The current database."""
        return self._catalogs.current_database

    # ------------------------------------------------------------------------------------------------- plans, settings

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """The plan of a statement as text."""
        node = parse_statement(stmt)
        return self._placed(stmt, lambda: self._explain(self._plans_of(node, stmt), extra_details))

    def create_statement_set(self) -> StatementSet:
        """Inserts that run together."""
        return StatementSet(self)

    def compile_plan_sql(self, stmt: str) -> CompiledPlan:
        """The plan of an insert in a form that outlives this program."""
        node = parse_statement(stmt)
        return self._placed(stmt, lambda: self._compiled_inserts(node, stmt))

    def load_plan(self, plan_reference: PlanReference) -> CompiledPlan:
        """A plan that was compiled before."""
        return CompiledPlan.loaded(self, plan_reference)

    def execute_plan(self, plan_reference: PlanReference) -> TableResult:
        """Run a plan that was compiled before."""
        return self.load_plan(plan_reference).execute()

    def get_config(self) -> TableConfig:
        """The options."""
        return self._config

    def add_python_file(self, file_path: str) -> None:
        """Have a module importable in every task."""
        self._env.add_python_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Have packages installed for every task."""
        self._env.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Have an archive unpacked where tasks run."""
        self._env.add_python_archive(archive_path, target_dir)


class StreamTableEnvironment(TableEnvironment):
    """A table environment beside a stream environment."""

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """An environment beside `stream_execution_environment`, or beside a new one."""
        env = stream_execution_environment or StreamExecutionEnvironment.get_execution_environment()
        return StreamTableEnvironment(env, environment_settings or EnvironmentSettings())

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """A table of the records of a stream."""
        return self._from_stream(data_stream, fields_or_schema)

    def _from_stream(self, stream: DataStream, fields_or_schema: Sequence[Any]) -> Table:
        return self._streamed(stream, fields_or_schema, ChangelogMode.INSERT_ONLY)

    def from_changelog_stream(
        self, data_stream: DataStream, schema: Schema | None = None, changelog_mode: UserMode | None = None
    ) -> Table:
        """A table of the changes that the rows of a stream tell."""
        mode = ChangelogMode.RETRACT if changelog_mode is None else changelog_mode._mode
        return self._streamed(data_stream, () if schema is None else (schema,), mode)

    def _streamed(self, stream: DataStream, given: Sequence[Any], mode: ChangelogMode) -> Table:
        plan = bridging.stream_plan(self._session(), stream, given, mode, f"Unregistered_DataStream_{next(_numbers)}")
        return Table(plan, self)

    def to_data_stream(self, table: Table, target_data_type: Any = None) -> DataStream:
        """The rows of a table that only appends, as a stream."""
        return self._stream(table, insert_only=True)

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: UserMode | None = None
    ) -> DataStream:
        """The changes of a table as a stream of rows with kinds."""
        return self._stream(table, insert_only=changelog_mode is not None and changelog_mode._mode.insert_only)

    def _stream(self, table: Table, *, insert_only: bool) -> DataStream:
        planner = self._planner()
        operation = planner.collected(table._plan)
        if insert_only and not operation.mode.insert_only:
            message = f"the table corrects rows it has told ({operation.mode.value}), a stream of inserts cannot"
            raise SqlValidationError(message, hint="use to_changelog_stream")
        timed = bridging.timed(operation, table._plan.schema)
        return DataStream(self._env, planner.add(timed, self._env._program))

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """The rows of a table that only appends, as values of a type."""
        stream = self._stream(table, insert_only=True)
        convert = bridging.row_converter(type_info)
        return stream.map(convert, type_info)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """The changes of a table as pairs: whether a row is added, and the row."""
        stream = self._stream(table, insert_only=False)
        return stream.map(*bridging.retract_converter(type_info))
