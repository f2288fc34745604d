"""TableEnvironment: the session that holds tables, executes SQL and converts between tables and streams.

Promises: PyFlink's methods. A statement that cannot be planned changes nothing and runs nothing.
Does not know: how queries are planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millstream import options as runtime_options
from millstream.client.clock import system_clock
from millstream.config.secrets import mask_secrets
from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.ddl import StatementResult
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.inserts import bind_insert
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.logical.bind.tables import plan_table
from millstream.sql.physical.changelog import convert_to_upserts
from millstream.sql.syntax import parse_statement
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.table import bridging
from millstream.table.analyzing import analyze_table
from millstream.table.catalog.procedures import ProcedureContext
from millstream.table.changelog_mode import ChangelogMode as PublicChangelogMode
from millstream.table.compiled_plan import CompiledPlan, insert_texts
from millstream.table.declared_schema import resolve_schema
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.explain_detail import ExplainDetail
from millstream.table.materialized_tables import MaterializedTables
from millstream.table.object_paths import parse_object_path
from millstream.table.option_checks import check_setting
from millstream.table.plan_reference import PlanReference, local_path
from millstream.table.planning_session import unique_numbers
from millstream.table.process_tables import create_call
from millstream.table.refresh_schedule import RefreshSchedule
from millstream.table.schema import Schema
from millstream.table.session_jobs import SessionJobs
from millstream.table.statement_set import StatementSet
from millstream.table.stream_targets import create_column_remover, project_to_schema, project_to_type
from millstream.table.table import Table
from millstream.table.table_config import TableConfig
from millstream.table.table_descriptor import TableDescriptor
from millstream.table.table_pipeline import TablePipeline
from millstream.table.table_result import TableResult
from millstream.table.tables_of_data import TablesOfData
from millstream.types.factory import TypeInformation
from millstream.types.row import Row


class TableEnvironment(TablesOfData):
    """Create tables, execute SQL statements, and manage catalogs, functions and options.

    A table environment is a session: temporary tables, temporary functions, the current catalog and options belong to
    it.

    Example:
        >>> from millstream.table import EnvironmentSettings
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> with t_env.execute_sql("SELECT word FROM (VALUES ('hello')) AS t(word)").collect() as rows:
        ...     print([row[0] for row in rows])
        ['hello']

    """

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        super().__init__(env, settings)
        self._jobs = SessionJobs()
        env.register_job_listener(self._jobs)
        self._values_before_set: dict[str, str | None] = {}
        self._materialized_tables = MaterializedTables(
            self, self._open_refresh_session, lambda: RefreshSchedule(system_clock())
        )

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Any) -> TableEnvironment:
        """Create a table environment with a stream environment of its own.

        Args:
            environment_settings: The settings, or a `Configuration`.

        Returns:
            A table environment. Use `StreamTableEnvironment.create` to combine it with the DataStream API.

        """
        if not isinstance(environment_settings, EnvironmentSettings):
            builder = EnvironmentSettings.new_instance().with_configuration(environment_settings)
            environment_settings = builder.build()
        env = StreamExecutionEnvironment.get_execution_environment(environment_settings.get_configuration())
        return TableEnvironment(env, environment_settings)

    # ------------------------------------------------------------------------------------------------------- statements

    def execute_sql(self, stmt: str) -> TableResult:
        """Execute one SQL statement.

        A query or an INSERT is submitted as a job, and the method returns without waiting for its end.

        Args:
            stmt: A statement: SELECT, INSERT, UPDATE, DELETE, EXECUTE STATEMENT SET, CREATE, DROP, ALTER, SHOW,
                DESCRIBE, EXPLAIN, SET, USE and others.

        Returns:
            The rows of a query, the job of an insert, or the answer to another statement.

        Raises:
            SqlError: If the statement cannot be parsed, is not valid, or is not supported.

        """
        node = parse_statement(stmt)
        return self._locate_errors(stmt, lambda: self._execute(node, stmt))

    def _execute(self, node: s.Statement, text: str) -> TableResult:
        match node:
            case s.SelectStatement():
                return self._collect(QueryBinder(self._session()).query(node.query))
            case s.Insert():
                return self._execute_inserts([self._bind_insert(node)])
            case s.StatementSet():
                inserts = [self._bind_insert(insert) for insert in node.inserts]
                return self._execute_inserts(inserts) if inserts else TableResult(None)
            case s.Delete() | s.Update():
                return self._execute_inserts([self._bind_row_level(node)])
            case s.Truncate():
                return self._truncate(node)
            case s.Analyze():
                analyze_table(self, node)
                return TableResult(None)
            case s.CreateTable() if node.query is not None:
                return self._create_table_as(node, text)
            case s.CreateMaterializedTable():
                return self._materialized_tables.create(node, text)
            case s.Alter(object_type="MATERIALIZED TABLE"):
                return self._materialized_tables.alter(node, text)
            case s.Drop(object_type="MATERIALIZED TABLE"):
                return self._materialized_tables.drop(node)
            case s.Explain():
                names = {"ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE"}
                details = [ExplainDetail[name] for name in node.details if name in names]
                explanation = self._explain(self._bind_statement(node.statement, text), details)
                schema = t.row_of(["result"], [t.STRING], null=False)
                return TableResult(schema, [Row(explanation)], raw=True)
            case s.SetOption():
                return self._set_option(node)
            case s.ResetOption():
                for key in list(self._values_before_set) if node.key is None else [node.key]:
                    self._reset_option(key)
                return TableResult(None)
            case s.CallProcedure():
                return self._to_table_result(self._create_ddl_executor().call(node, ProcedureContext(self._env, self)))
            case s.Show(subject="JOBS"):
                return self._to_table_result(self._jobs.show())
            case s.Describe(object_type="JOB"):
                return self._to_table_result(self._jobs.describe(node.name[0], node.at))
            case s.StopJob():
                savepoints = self._env._configuration.get(runtime_options.SAVEPOINT_DIR)
                return self._to_table_result(self._jobs.stop(node, savepoints))
            case s.PlanFile():
                return self._execute_plan_file(node, text)
        result = self._create_ddl_executor().execute(node, text)
        if result is None:
            message = f"{type(node).__name__} is not supported"
            raise SqlNotSupported(message, at=node.at)
        return self._to_table_result(result)

    def _open_refresh_session(self, home: tuple[str, str], options: Mapping[str, str]) -> TableEnvironment:
        """Return an environment with the catalogs and options of this one, for the jobs of a materialized table."""
        session = TableEnvironment(StreamExecutionEnvironment(self._env._configuration), EnvironmentSettings())
        for key, value in options.items():
            session._env._configuration.set_string(key, value)
        session._catalogs = self._catalogs.at(home)
        session._env.register_job_listener(self._jobs)
        return session

    def _to_table_result(self, result: StatementResult) -> TableResult:
        if result.schema is None:
            return TableResult(None)
        return TableResult(result.schema, [Row(*row) for row in result.rows])

    def _bind_statement(self, node: s.Statement, text: str = "") -> list[l.Plan]:
        """Return the logical plans of a query or of inserts."""
        match node:
            case s.SelectStatement():
                return [QueryBinder(self._session()).query(node.query)]
            case s.Insert():
                return [self._bind_insert(node)]
            case s.StatementSet():
                return [self._bind_insert(insert) for insert in node.inserts]
            case s.Delete() | s.Update():
                return [self._bind_row_level(node)]
            case s.CreateTable() if node.query is not None:
                return [self._bind_create_table_as(node, text)[1]]
        message = "only queries, inserts, updates and deletes can be explained"
        raise SqlNotSupported(message, at=node.at)

    def _set_option(self, node: s.SetOption) -> TableResult:
        if node.key is None:
            rows = sorted(mask_secrets(self._env._configuration.to_dict()).items())
            schema = t.row_of(["key", "value"], [t.STRING, t.STRING], null=False)
            return TableResult(schema, [Row(*row) for row in rows])
        check_setting(node.key, node.value or "")
        config = self._env._configuration
        self._values_before_set.setdefault(node.key, config.to_dict().get(node.key))
        config.set_string(node.key, node.value or "")
        return TableResult(None)

    def _reset_option(self, key: str) -> None:
        """Restore the value that an option had before it was SET."""
        before = self._values_before_set.pop(key, None)
        if before is None:
            self._env._configuration.remove_config(key)
        else:
            self._env._configuration.set_string(key, before)

    def _execute_plan_file(self, node: s.PlanFile, text: str) -> TableResult:
        if node.action == "EXECUTE":
            return self.execute_plan(PlanReference.from_file(node.path))
        assert node.statement is not None
        use_existing = node.if_not_exists or node.action == "COMPILE AND EXECUTE"
        if use_existing and local_path(node.path).exists():
            plan = self.load_plan(PlanReference.from_file(node.path))
        else:
            plan = self._compile_statement(node.statement, text)
            plan.write_to_file(node.path)
        return plan.execute() if node.action == "COMPILE AND EXECUTE" else TableResult(None)

    # ---------------------------------------------------------------------------------------------------------- queries

    def sql_query(self, query: str) -> Table:
        """Return the result of a SQL query as a table; nothing is executed.

        Args:
            query: A SELECT statement, or another query such as VALUES or UNION.

        Returns:
            The table, which can be transformed with the Table API.

        Raises:
            SqlError: If the statement is not a query, cannot be parsed, or is not valid.

        """
        node = parse_statement(query)
        if not isinstance(node, s.SelectStatement):
            message = "sql_query needs a query"
            raise SqlValidationError(message, at=node.at, text=query, hint="use execute_sql for other statements")
        return Table(self._locate_errors(query, lambda: QueryBinder(self._session()).query(node.query)), self)

    def from_path(self, path: str) -> Table:
        """Return a registered table or view.

        Args:
            path: A name, `database.name` or `catalog.database.name`; special names are quoted with backticks, as in
                SQL.

        Returns:
            A table that reads it.

        Raises:
            SqlError: If there is no such table.

        """
        parts = parse_object_path(path)
        table = Table(plan_table(QueryBinder(self._session()), parts, (), None), self)
        _, definition = self._catalogs.table(parts)
        if isinstance(definition, TableDefinition):
            table._declared_schema = resolve_schema(definition)
        return table

    def from_call(self, function: Any, *arguments: Any) -> Table:
        """Call a process table function.

        Args:
            function: The result of `ptf`, or the name of a registered function.
            *arguments: Its arguments by position or by name, such as `t.partition_by(col("k")).as_argument("input")`.
                None leaves an argument out.

        Returns:
            The rows that the function emits.

        """
        return Table(QueryBinder(self._session()).query(create_call(function, arguments)), self)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """Return a table that reads a source, without registering it.

        Args:
            descriptor: The connector, schema and options of the source.

        Returns:
            A table that reads it.

        Raises:
            SqlValidationError: If the descriptor has no schema.

        """
        definition = self._create_definition(descriptor, None)
        name = f"*anonymous_{next(unique_numbers)}*"
        full_name = self._catalogs.full_name((name,))
        self._catalogs.temporary[full_name] = definition
        try:
            return Table(plan_table(QueryBinder(self._session()), full_name, (), None), self)
        finally:
            del self._catalogs.temporary[full_name]

    def _create_pipeline(self, plan: l.Plan, target: str | TableDescriptor, overwrite: bool) -> TablePipeline:
        if isinstance(target, TableDescriptor):
            full_name: tuple[str, ...] = ("*anonymous*",)
            definition = self._create_definition(target, plan.schema)
        else:
            full_name, catalog_object = self._catalogs.table(parse_object_path(target))
            if not isinstance(catalog_object, TableDefinition):
                message = f"'{target}' is not a table that can be written to"
                raise SqlValidationError(message)
            definition = catalog_object
        insert = bind_insert(full_name, definition, plan, (), overwrite=overwrite)  # type: ignore[arg-type]
        return TablePipeline(insert, full_name, self)

    # -------------------------------------------------------------------------------------------------- plans, settings

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """Return the logical, optimized and physical plan of a statement as text.

        Args:
            stmt: A query, an INSERT or a statement set.
            *extra_details: Further details to include, such as the changelog mode of each operator.

        """
        node = parse_statement(stmt)
        return self._locate_errors(stmt, lambda: self._explain(self._bind_statement(node, stmt), extra_details))

    def create_statement_set(self) -> StatementSet:
        """Create a statement set: several inserts that run as one job."""
        return StatementSet(self)

    def compile_plan_sql(self, stmt: str) -> CompiledPlan:
        """Compile an INSERT statement or a statement set to a plan that can be stored and executed later.

        Args:
            stmt: INSERT or EXECUTE STATEMENT SET.

        Returns:
            The compiled plan. It keeps operator uids, so that a later release restores the state of the job.

        Raises:
            SqlError: If the statement is not valid, or cannot be compiled, as in batch mode.

        """
        node = parse_statement(stmt)
        return self._locate_errors(stmt, lambda: self._compile_statement(node, stmt))

    def _compile_statement(self, node: s.Statement, text: str) -> CompiledPlan:
        texts = insert_texts(node, text)
        return self._compile(self._bind_statement(node), texts)

    def _compile(self, plans: Sequence[l.Plan], texts: Sequence[str]) -> CompiledPlan:
        if any(isinstance(plan, l.Sink) and plan.overwrite for plan in plans):
            message = "INSERT OVERWRITE cannot be compiled: what it overwrites is determined when it runs"
            raise SqlNotSupported(message, at=0)
        return CompiledPlan.compile(self, plans, texts)

    def load_plan(self, plan_reference: PlanReference) -> CompiledPlan:
        """Load a compiled plan.

        Args:
            plan_reference: A file, or the plan as JSON.

        Returns:
            The plan, which can be executed or explained.

        Raises:
            SqlValidationError: If the content is not a plan of millstream.

        """
        return CompiledPlan.load(self, plan_reference)

    def execute_plan(self, plan_reference: PlanReference) -> TableResult:
        """Load a compiled plan and execute it.

        Args:
            plan_reference: A file, or the plan as JSON.

        Returns:
            The result of the job.

        """
        return self.load_plan(plan_reference).execute()

    def get_config(self) -> TableConfig:
        """Return the options of this session; changes apply to statements that are executed afterwards."""
        return self._config

    def add_python_file(self, file_path: str) -> None:
        """Make a Python file, package or archive importable in every task.

        Args:
            file_path: A path on this machine.

        """
        self._env.add_python_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install packages for every task.

        Args:
            requirements_file_path: A requirements file of pip.
            requirements_cache_dir: A directory with the packages, for machines without access to an index.

        """
        self._env.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack an archive in the working directory of every task.

        Args:
            archive_path: A path on this machine.
            target_dir: The name of the directory; by default that of the archive.

        """
        self._env.add_python_archive(archive_path, target_dir)


class StreamTableEnvironment(TableEnvironment):
    """A table environment that shares a stream environment, to combine tables with the DataStream API.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> t_env = StreamTableEnvironment.create(env)
        >>> stream = env.from_collection([("ann", 3)], type_info=Types.TUPLE([Types.STRING(), Types.INT()]))
        >>> table = t_env.from_data_stream(stream, "name", "amount")
        >>> table.get_schema().get_field_names()
        ['name', 'amount']

    """

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """Create a table environment on a stream environment.

        Args:
            stream_execution_environment: The stream environment; by default a new one.
            environment_settings: The settings; by default streaming mode.

        Returns:
            A table environment whose tables and streams can be parts of one job.

        """
        env = stream_execution_environment or StreamExecutionEnvironment.get_execution_environment()
        return StreamTableEnvironment(env, environment_settings or EnvironmentSettings())

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """Convert a stream to an append-only table: each record is an inserted row.

        Args:
            data_stream: The stream. The fields of its type are the columns; a type without fields is the column `f0`.
            *fields_or_schema: New names of the columns, or a `Schema`, which can add computed columns, a rowtime column
                and a watermark.

        Returns:
            The table.

        """
        return self._from_stream(data_stream, fields_or_schema)

    def _from_stream(self, stream: DataStream, fields_or_schema: Sequence[Any]) -> Table:
        return self._table_of_stream(stream, fields_or_schema, ChangelogMode.INSERT_ONLY)

    def from_changelog_stream(
        self, data_stream: DataStream, schema: Schema | None = None, changelog_mode: PublicChangelogMode | None = None
    ) -> Table:
        """Convert a stream of rows with row kinds to a table.

        Args:
            data_stream: A stream of `Row`; `Row.get_row_kind` is the change that a row makes.
            schema: The columns, and the primary key if the stream is an upsert stream.
            changelog_mode: Which row kinds the stream contains; by default all of them.

        Returns:
            The table to which the changes are applied.

        """
        mode = ChangelogMode.RETRACT if changelog_mode is None else changelog_mode._mode
        return self._table_of_stream(data_stream, () if schema is None else (schema,), mode)

    def _table_of_stream(self, stream: DataStream, fields_or_schema: Sequence[Any], mode: ChangelogMode) -> Table:
        plan = bridging.create_stream_plan(
            self._session(), stream, fields_or_schema, mode, f"Unregistered_DataStream_{next(unique_numbers)}"
        )
        return Table(plan, self)

    def to_data_stream(self, table: Table, target_data_type: Any = None) -> DataStream:
        """Convert an append-only table to a stream of rows.

        The rowtime column of the table, if there is one, becomes the timestamp of the records.

        Args:
            table: A table that emits no updates.
            target_data_type: Accepted for PyFlink programs; the records are rows with the columns of the table.

        Returns:
            A stream of `Row`.

        Raises:
            SqlValidationError: If the table emits updates; use `to_changelog_stream`.

        """
        return self._to_stream(table, table._plan, insert_only=True)

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: PublicChangelogMode | None = None
    ) -> DataStream:
        """Convert a table to a stream of rows with row kinds.

        Args:
            table: The table.
            target_schema: The names and types of the columns of the stream, by position; types are converted as by
                INSERT. A metadata column `rowtime` sets the timestamps of the records. Upserts need a primary key.
            changelog_mode: `ChangelogMode.insert_only()` requires a table without updates. With
                `ChangelogMode.upsert()`, an update is one row, without the row before it.

        Returns:
            A stream of `Row`; `Row.get_row_kind` is the change.

        Raises:
            SqlValidationError: If the table emits updates and the mode is insert-only, or its columns do not fit the
                schema.

        """
        mode = ChangelogMode.RETRACT if changelog_mode is None else changelog_mode._mode
        if target_schema is None:
            return self._to_stream(table, table._plan, insert_only=mode.insert_only)
        plan, rowtime = project_to_schema(table._plan, target_schema)
        is_upsert = mode is ChangelogMode.UPSERT
        upsert_key = tuple(plan.schema.names.index(name) for name in target_schema._key) if is_upsert else ()
        stream = self._to_stream(
            table, plan, insert_only=mode.insert_only, upsert_key=upsert_key, rowtime_column=rowtime
        )
        return stream if rowtime is None else stream.map(*create_column_remover(plan.schema, rowtime))

    def _to_stream(
        self,
        table: Table,
        plan: l.Plan,
        *,
        insert_only: bool,
        upsert_key: tuple[int, ...] = (),
        rowtime_column: int | None = None,
    ) -> DataStream:
        """Convert a plan to a stream; it has the columns of the table, in their order.

        The timestamps of the records are those of `rowtime_column`, or of the only rowtime attribute of the table."""
        planner = self._planner()
        operation = planner.plan_collect(plan)
        if insert_only and not operation.mode.insert_only:
            message = f"the table emits updates ({operation.mode.value}), an insert-only stream cannot contain them"
            raise SqlValidationError(message, hint="use to_changelog_stream")
        if upsert_key and operation.mode is ChangelogMode.RETRACT:
            operation = convert_to_upserts(operation, upsert_key)
        if rowtime_column is None:
            rowtime_column = bridging.find_rowtime_column(table._plan.schema)
        with_timestamps = bridging.set_record_timestamps(operation, rowtime_column)
        return DataStream(self._env, planner.add(with_timestamps, self._env._program))

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Convert an append-only table to a stream of values of a type; deprecated in Flink.

        Args:
            table: A table that emits no updates.
            type_info: The type of the records: rows, tuples, or the value of the only column. Columns become fields by
                position.

        Returns:
            The stream.

        Raises:
            SqlValidationError: If the table emits updates, or its columns do not fit the type.

        """
        stream = self._to_stream(table, project_to_type(table._plan, type_info), insert_only=True)
        convert = bridging.create_row_converter(type_info)
        return stream.map(convert, type_info)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Convert a table to a retract stream; deprecated in Flink.

        Args:
            table: The table.
            type_info: The type of the values: rows, tuples, or the value of the only column. Columns become fields by
                position.

        Returns:
            A stream of pairs: True and a value that is added, or False and a value that is retracted.

        Raises:
            SqlValidationError: If the columns do not fit the type.

        """
        stream = self._to_stream(table, project_to_type(table._plan, type_info), insert_only=False)
        return stream.map(*bridging.create_retract_converter(type_info))
