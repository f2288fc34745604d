"""Planning, explaining and executing the queries and inserts of a session.

Promises: what cannot be planned changes nothing and runs nothing. Executing a query leaves the transformations that the
stream environment already has as they are.
Does not know: statements that define or show objects."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from millstream import options as runtime_options
from millstream.client.job_client import JobClient
from millstream.connectors.collect import MAX_UNREAD_BATCHES, CollectSink, get_results
from millstream.datastream.collecting import CloseableIterator as Results
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.graph.explain import flink_json
from millstream.graph.stream_graph import StreamGraph
from millstream.graph.transformations import Input
from millstream.runtime.operators.sink import SinkSpec
from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.columns import create_row_type_info
from millstream.sql.errors import CatalogError, SqlError, SqlValidationError
from millstream.sql.functions.function_context import read_async_options
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.hints import check_table_hints
from millstream.sql.logical.bind.inserts import append_partition_values, bind_insert
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.logical.bind.row_level import bind_delete, bind_truncate, bind_update
from millstream.sql.physical.explain import explain_plans, find_warnings
from millstream.sql.physical.nodes import Operation, Origin
from millstream.sql.physical.planning.aggregate_phases import choose_distinct_buckets, wants_two_phases
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.query_planner import QueryPlanner
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.lexer import find_word
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis
from millstream.sql_options import ASYNC_TABLE, MINI_BATCH_ENABLED, MINI_BATCH_SIZE, STATE_TTL
from millstream.table import arrow_data
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.explain_detail import ExplainDetail
from millstream.table.mini_batches import limit_epochs_to_mini_batch
from millstream.table.named_objects import NamedObjects
from millstream.table.table_result import TableResult
from millstream.types.row import Row

_log = logging.getLogger(__name__)
T = TypeVar("T")
unique_numbers = itertools.count(1)


class PlanningSession(NamedObjects):
    """Plan and execute queries and inserts over the objects of a session."""

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        super().__init__(env, settings)
        self._prefix = f"table-{os.getpid()}-{next(unique_numbers)}"
        self._collect_numbers = itertools.count(1)

    def _is_batch(self) -> bool:
        return str(self._env._configuration.get(runtime_options.RUNTIME_MODE)).upper() == "BATCH"

    def _planner(self) -> QueryPlanner:
        config = self._env._configuration
        ttl = parse_duration_millis(config.get_string(STATE_TTL.key, "0 ms"))
        options = self._session().options
        mini_batch_size = config.get_integer(MINI_BATCH_SIZE.key, -1)
        settings = Settings(
            self._config.get_local_timezone(),
            config.get_boolean(MINI_BATCH_ENABLED.key, False),
            ttl or None,
            self._is_batch(),
            read_async_options(options, parse_duration_millis),
            mini_batch_size if mini_batch_size > 0 else None,
            wants_two_phases(options),
            choose_distinct_buckets(options),
            catalyst=config.get(runtime_options.SQL_BATCH_ENGINE) == "catalyst",
            asynchronous_tables=read_async_options(options, parse_duration_millis, ASYNC_TABLE),
        )
        return QueryPlanner(self._session(), settings, lambda: 0)

    @staticmethod
    def _locate_errors(text: str, action: Callable[[], T]) -> T:
        """Run `action`; an SQL error that it raises gets the statement and the position in it."""
        try:
            return action()
        except SqlError as problem:
            if problem.at is None and problem.about is not None:
                problem.at = find_word(problem.about, text)
            raise problem.with_text(text) from None
        except RecursionError:
            message = "the statement is nested too deeply"
            raise SqlValidationError(message, at=0, text=text) from None

    # ---------------------------------------------------------------------------------------------------------- inserts

    def _bind_insert(self, node: s.Insert) -> l.Plan:
        full_name, table = self._find_modified_table(node.table, node.table_at)
        check_table_hints(node.hints)
        query = QueryBinder(self._session()).query(node.query)
        hints = tuple(pair for hint in node.hints if hint.name == "OPTIONS" for pair in hint.options)
        try:
            query, columns = append_partition_values(self._session(), table, query, node.columns, node.partition)
            return bind_insert(
                full_name, table, query, columns, hints, overwrite=node.overwrite, conflict=node.conflict
            )
        except SqlValidationError as problem:
            problem.at = node.table_at
            raise

    def _bind_row_level(self, node: s.Delete | s.Update) -> l.Plan:
        """Return the plan of UPDATE or DELETE."""
        full_name, table = self._find_modified_table(node.table, node.table_at)
        is_delete = isinstance(node, s.Delete)
        try:
            method = self._planner().tables.row_level_method(full_name, table, "DELETE" if is_delete else "UPDATE")
        except SqlValidationError as problem:
            problem.at = node.table_at
            raise
        if isinstance(node, s.Delete):
            return bind_delete(self._session(), full_name, table, node, method)
        return bind_update(self._session(), full_name, table, node, method)

    def _truncate(self, node: s.Truncate) -> TableResult:
        full_name, table = self._find_modified_table(node.table, node.table_at)
        try:
            is_done = self._planner().tables.truncate(full_name, table)
        except SqlValidationError as problem:
            problem.at = node.table_at
            raise
        if not is_done:
            self._execute_inserts([bind_truncate(full_name, table)]).wait()
        return TableResult(None)

    def _find_modified_table(self, path: tuple[str, ...], at: int) -> tuple[tuple[str, str, str], TableDefinition]:
        full_name, table = self._catalogs.table(path, at)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(path)}' is not a table that can be written to"
            raise SqlValidationError(message, at=at)
        return full_name, table

    def _bind_create_table_as(self, node: s.CreateTable, text: str) -> tuple[TableDefinition, l.Plan]:
        assert node.query is not None
        if node.must_exist and self._catalogs.find(node.name, node.at) is None:
            message = f"there is no table '{'.'.join(node.name)}' to replace"
            raise CatalogError(message, at=node.at, hint="write CREATE OR REPLACE TABLE")
        query = QueryBinder(self._session()).query(node.query)
        query_columns = tuple(
            ColumnDefinition(f.name, t.strip_time_attribute(f.data_type)) for f in query.schema.fields
        )
        definition = self._create_ddl_executor().build_table(node, text, query_columns)
        full_name = self._catalogs.full_name(node.name, node.at)
        return definition, bind_insert(full_name, definition, query, query.schema.names)

    def _create_table_as(self, node: s.CreateTable, text: str) -> TableResult:
        if node.or_replace:
            self._catalogs.check_not_materialized(self._catalogs.full_name(node.name, node.at), "DROP", node.at)
        definition, plan = self._bind_create_table_as(node, text)
        self._planner().plan([plan])  # raises if the insert cannot run, before the table is created
        created = self._catalogs.add_table(
            node.name, definition, temporary=node.temporary, if_not_exists=node.if_not_exists,
            replace_existing=node.or_replace, at=node.at,
        )  # fmt: skip
        return self._execute_inserts([plan]) if created else TableResult(None)

    def _execute_inserts(self, plans: Sequence[l.Plan]) -> TableResult:
        return self._execute_operations(self._planner().plan(plans))

    def _execute_operations(self, operations: Sequence[Operation]) -> TableResult:
        """Submit physical plans that end in sinks, as one job."""
        self._log_warnings(operations)
        names = [".".join(sink.origin.name) for sink in operations if isinstance(sink.origin, Origin)]
        program, own_transformations = self._env._program, dict(self._env._program.transformations)
        program.clear()
        try:
            self._planner().add_all(operations, program)
            with limit_epochs_to_mini_batch(self._env._configuration):
                client = self._env.execute_async(f"insert-into_{','.join(names)}")
        finally:
            program.transformations.update(own_transformations)
        columns = list(dict.fromkeys(names))
        schema = t.row_of(columns, [t.BIGINT for _ in columns], null=False)
        return TableResult(schema, [Row(*[-1] * len(columns))], client=client)

    def _log_warnings(self, operations: Sequence[Operation]) -> None:
        for warning in () if self._is_batch() else find_warnings(operations):
            _log.warning("%s", warning)

    def _attach_inserts(self, plans: Sequence[l.Plan]) -> None:
        planner = self._planner()
        planner.add_all(planner.plan(plans), self._env._program)

    # ---------------------------------------------------------------------------------------------------------- queries

    def _collect(self, plan: l.Plan) -> TableResult:
        _, client, results = self._submit_collect(plan, as_batches=False)
        zone = self._config.get_local_timezone()
        return TableResult(plan.schema, client=client, results=results, zone=zone, streaming=not self._is_batch())

    def _submit_collect(self, plan: l.Plan, *, as_batches: bool) -> tuple[Operation, JobClient, Results]:
        """Submit a query as a job; its results are rows, or Arrow arrays of rows."""
        planner = self._planner()
        operation = planner.plan_collect(plan)
        self._log_warnings([operation])
        program, own_transformations = self._env._program, dict(self._env._program.transformations)
        name = f"{self._prefix}-{next(self._collect_numbers)}"
        program.clear()
        try:
            inputs = planner.add(operation, program)
            type_info = create_row_type_info(operation.schema)
            if as_batches:
                get_results(name, MAX_UNREAD_BATCHES)
            sink = CollectSink(name, type_info if as_batches else None)
            inputs = tuple(Input(i.upstream, 0, i.tag, i.partitioner) for i in inputs)
            program.add("Sink: Collect", SinkSpec(sink), type_info, inputs, sink=sink, follows_input=True)
            with limit_epochs_to_mini_batch(self._env._configuration):
                client = self._env.execute_async("collect")
        finally:
            program.transformations.update(own_transformations)
        return operation, client, Results(client, name)

    def _collect_rows(self, plan: l.Plan) -> list[pa.Array]:
        """Run a query to its end and return the rows that remain, as Arrow arrays."""
        _, _, results = self._submit_collect(plan, as_batches=True)
        with results:
            changes = [array for array in results if len(array)]
        return arrow_data.apply_changelog(changes, plan.schema)

    def _to_pandas(self, plan: l.Plan) -> Any:
        zone = self._config.get_local_timezone()
        return arrow_data.to_pandas_frame(self._collect_rows(plan), plan.schema, zone)

    def _to_arrow(self, plan: l.Plan) -> pa.Table:
        return arrow_data.to_arrow_table(self._collect_rows(plan), plan.schema)

    def _to_arrow_batches(self, plan: l.Plan, row_kind_column: str | None) -> arrow_data.ArrowBatches:
        if row_kind_column is None and not self._planner().plan_collect(plan).mode.insert_only:
            message = "the table emits updates, which batches without row kinds cannot contain"
            raise SqlValidationError(message, hint="give row_kind_column='op', or use to_arrow for the final rows")
        _, _, results = self._submit_collect(plan, as_batches=True)
        batches = (arrow_data.leave_batch(array, plan.schema, row_kind_column) for array in results if len(array))
        return arrow_data.ArrowBatches(
            arrow_data.create_result_schema(plan.schema, row_kind_column), batches, results.close
        )

    # ---------------------------------------------------------------------------------------------------------- explain

    def _explain(self, plans: Sequence[l.Plan], details: Iterable[ExplainDetail]) -> str:
        planner = self._planner()
        return explain_plans(
            plans,
            [planner.optimize(plan) for plan in plans],
            planner.plan(plans),
            {detail.name for detail in details},
            planner.settings,
            lambda: flink_json(self._graph_of(plans)),
        )

    def _graph_of(self, plans: Sequence[l.Plan]) -> StreamGraph:
        """Return the stream graph of plans; a plan without a sink gets a collect sink. Nothing is executed."""
        return self._graph_of_operations(self._planner().plan(plans))

    def _graph_of_operations(self, operations: Sequence[Operation]) -> StreamGraph:
        planner = self._planner()
        program, own_transformations = self._env._program, dict(self._env._program.transformations)
        program.clear()
        try:
            if all(operation.sink is not None for operation in operations):
                planner.add_all(operations, program)
            else:
                (operation,) = operations
                sink, type_info = CollectSink("explained"), create_row_type_info(operation.schema)
                inputs = planner.add(operation, program)
                inputs = tuple(Input(i.upstream, 0, i.tag, i.partitioner) for i in inputs)
                program.add("Sink: Collect", SinkSpec(sink), type_info, inputs, sink=sink, follows_input=True)
            return self._env._graph()
        finally:
            program.clear()
            program.transformations.update(own_transformations)
