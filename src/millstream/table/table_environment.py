"""TableEnvironment: where tables have names and queries are run.

Promises: PyFlink's methods; a statement that cannot be planned changes nothing and runs nothing.
Does not know: how plans are made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from millstream import options as runtime_options
from millstream.config.secrets import shown_all
from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.sql.catalog.catalog import StreamTable, TableDefinition
from millstream.sql.columns import row_type_info
from millstream.sql.ddl import StatementResult
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.inserts import bind_insert
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.logical.bind.tables import table_plan
from millstream.sql.physical.nodes import Operation
from millstream.sql.syntax import parse_statement
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.table import bridging
from millstream.table.changelog_mode import ChangelogMode as UserMode
from millstream.table.compiled_plan import CompiledPlan, insert_texts
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.explain_detail import ExplainDetail
from millstream.table.named_objects import object_path
from millstream.table.plan_reference import PlanReference, local_path
from millstream.table.planning_session import PlanningSession, fresh_numbers
from millstream.table.schema import Schema
from millstream.table.session_jobs import SessionJobs
from millstream.table.statement_set import StatementSet
from millstream.table.table import Table
from millstream.table.table_config import TableConfig
from millstream.table.table_descriptor import TableDescriptor
from millstream.table.table_pipeline import TablePipeline
from millstream.table.table_result import TableResult
from millstream.types.factory import TypeInformation
from millstream.types.row import Row


class TableEnvironment(PlanningSession):
    """Names, options, and the button that runs queries."""

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        super().__init__(env, settings)
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

    # ------------------------------------------------------------------------------------------------------- statements

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
        answer = self._ddl().execute(node, text)
        if answer is None:
            message = f"{type(node).__name__} is not supported"
            raise SqlNotSupported(message, at=node.at)
        return self._answered(answer)

    def _answered(self, answer: StatementResult) -> TableResult:
        if answer.schema is None:
            return TableResult(None)
        names = answer.schema.names
        return TableResult(answer.schema, [Row._from(list(names), list(row)) for row in answer.rows])

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
            rows = sorted(shown_all(self._env._configuration.to_dict()).items())
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
        kept = node.if_not_exists or node.action == "COMPILE AND EXECUTE"
        if kept and local_path(node.path).exists():
            plan = self.load_plan(PlanReference.from_file(node.path))
        else:
            plan = self._compiled_inserts(node.statement, text)
            plan.write_to_file(node.path)
        return plan.execute() if node.action == "COMPILE AND EXECUTE" else TableResult(None)

    # ---------------------------------------------------------------------------------------------------------- queries

    def sql_query(self, query: str) -> Table:
        """A query as a table."""
        node = parse_statement(query)
        if not isinstance(node, s.SelectStatement):
            message = "sql_query takes a query"
            raise SqlValidationError(message, at=node.at, text=query, hint="use execute_sql for other statements")
        return Table(self._placed(query, lambda: QueryBinder(self._session()).query(node.query)), self)

    def from_path(self, path: str) -> Table:
        """A table or view by its name."""
        return Table(table_plan(QueryBinder(self._session()), object_path(path), (), None), self)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """A table as a description says it."""
        definition = self._definition_of(descriptor, None)
        name = f"*anonymous_{next(fresh_numbers)}*"
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
        return Table(l.Scan(row, table, (f"Unregistered_{next(fresh_numbers)}",)), self)

    def _pipeline(self, plan: l.Plan, target: str | TableDescriptor, overwrite: bool) -> TablePipeline:
        if isinstance(target, TableDescriptor):
            full: tuple[str, ...] = ("*anonymous*",)
            table = self._definition_of(target, plan.schema)
        else:
            full, found = self._catalogs.table(object_path(target))
            if not isinstance(found, TableDefinition):
                message = f"'{target}' is not a table that can be written to"
                raise SqlValidationError(message)
            table = found
        made = bind_insert(full, table, plan, (), overwrite=overwrite)  # type: ignore[arg-type]
        return TablePipeline(made, full, self)

    # -------------------------------------------------------------------------------------------------- plans, settings

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

    def _compiled_inserts(self, node: s.Statement, text: str) -> CompiledPlan:
        texts = insert_texts(node, text)
        return self._compiled(self._plans_of(node), texts)

    def _compiled(self, plans: Sequence[l.Plan], texts: Sequence[str]) -> CompiledPlan:
        if any(isinstance(plan, l.Sink) and plan.overwrite for plan in plans):
            message = "INSERT OVERWRITE cannot be compiled: what it replaces is found when it runs"
            raise SqlNotSupported(message, at=0)
        return CompiledPlan.compiled(self, plans, texts)

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
        plan = bridging.stream_plan(
            self._session(), stream, given, mode, f"Unregistered_DataStream_{next(fresh_numbers)}"
        )
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
        operation = planner.plan_collect(table._plan)
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
