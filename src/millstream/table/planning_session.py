"""The plans of a session: made for a query or an insert, explained, run.

Promises: what cannot be planned changes nothing and runs nothing; a run keeps what the stream environment had.
Does not know: statements that define or show things."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from millstream import options as runtime_options
from millstream.connectors.collect import CollectSink
from millstream.datastream.collecting import CloseableIterator as Results
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.graph.explain import flink_json
from millstream.graph.stream_graph import StreamGraph
from millstream.graph.transformations import Input
from millstream.runtime.operators.sink import SinkSpec
from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.columns import row_type_info
from millstream.sql.errors import CatalogError, SqlError, SqlValidationError
from millstream.sql.functions.function_context import async_options
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.hints import check_table_hints
from millstream.sql.logical.bind.inserts import append_partition_values, bind_insert
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.physical.explain import explained, warnings
from millstream.sql.physical.nodes import Operation, Origin
from millstream.sql.physical.planning.aggregate_phases import distinct_buckets, two_phase_wanted
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.query_planner import QueryPlanner
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.lexer import find_word
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import duration_millis
from millstream.sql_options import ASYNC_TABLE, MINI_BATCH_ENABLED, MINI_BATCH_SIZE, STATE_TTL
from millstream.table import bridging
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.explain_detail import ExplainDetail
from millstream.table.mini_batches import paced
from millstream.table.named_objects import NamedObjects
from millstream.table.table_result import TableResult
from millstream.types.row import Row

_log = logging.getLogger(__name__)
T = TypeVar("T")
fresh_numbers = itertools.count(1)


class PlanningSession(NamedObjects):
    """Plans over the names of a session, and the button that runs them."""

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        super().__init__(env, settings)
        self._prefix = f"table-{os.getpid()}-{next(fresh_numbers)}"
        self._collected = itertools.count(1)

    def _batch(self) -> bool:
        return str(self._env._configuration.get(runtime_options.RUNTIME_MODE)).upper() == "BATCH"

    def _planner(self) -> QueryPlanner:
        config = self._env._configuration
        ttl = duration_millis(config.get_string(STATE_TTL.key, "0 ms"))
        options = self._session().options
        size = config.get_integer(MINI_BATCH_SIZE.key, -1)
        settings = Settings(
            self._config.get_local_timezone(),
            config.get_boolean(MINI_BATCH_ENABLED.key, False),
            ttl or None,
            self._batch(),
            async_options(options, duration_millis),
            size if size > 0 else None,
            two_phase_wanted(options),
            distinct_buckets(options),
            catalyst=config.get(runtime_options.SQL_BATCH_ENGINE) == "catalyst",
            asynchronous_tables=async_options(options, duration_millis, ASYNC_TABLE),
        )
        return QueryPlanner(self._session(), settings, lambda: 0)

    @staticmethod
    def _placed(text: str, action: Callable[[], T]) -> T:
        try:
            return action()
        except SqlError as problem:
            if problem.at is None and problem.about is not None:
                problem.at = find_word(problem.about, text)
            raise problem.placed(text) from None
        except RecursionError:
            message = "the statement is nested too deep"
            raise SqlValidationError(message, at=0, text=text) from None

    # ---------------------------------------------------------------------------------------------------------- inserts

    def _insert_plan(self, node: s.Insert) -> l.Plan:
        full, table = self._catalogs.table(node.table, node.table_at)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.table)}' is not a table that can be written to"
            raise SqlValidationError(message, at=node.table_at)
        check_table_hints(node.hints)
        query = QueryBinder(self._session()).query(node.query)
        hints = tuple(pair for hint in node.hints if hint.name == "OPTIONS" for pair in hint.options)
        try:
            query, columns = append_partition_values(self._session(), table, query, node.columns, node.partition)
            return bind_insert(full, table, query, columns, hints, overwrite=node.overwrite, conflict=node.conflict)
        except SqlValidationError as problem:
            problem.at = node.table_at
            raise

    def _create_as_plan(self, node: s.CreateTable, text: str) -> tuple[TableDefinition, l.Plan]:
        assert node.query is not None
        if node.must_exist and self._catalogs.find(node.name, node.at) is None:
            message = f"there is no table '{'.'.join(node.name)}' to replace"
            raise CatalogError(message, at=node.at, hint="write CREATE OR REPLACE TABLE")
        query = QueryBinder(self._session()).query(node.query)
        query_columns = tuple(ColumnDefinition(f.name, t.plain(f.data_type)) for f in query.schema.fields)
        definition = self._ddl().build_table(node, text, query_columns)
        full = self._catalogs.full_name(node.name, node.at)
        return definition, bind_insert(full, definition, query, query.schema.names)

    def _create_as(self, node: s.CreateTable, text: str) -> TableResult:
        definition, plan = self._create_as_plan(node, text)
        self._planner().plan([plan])  # nothing is created unless it can run
        created = self._catalogs.add_table(
            node.name, definition, temporary=node.temporary, if_not_exists=node.if_not_exists,
            replace_existing=node.or_replace, at=node.at,
        )  # fmt: skip
        return self._insert([plan]) if created else TableResult(None)

    def _insert(self, plans: Sequence[l.Plan]) -> TableResult:
        return self._run(self._planner().plan(plans))

    def _run(self, operations: Sequence[Operation]) -> TableResult:
        """Run physical plans that end in sinks, as one job."""
        self._warn(operations)
        names = [".".join(each.origin.name) for each in operations if isinstance(each.origin, Origin)]
        program, kept = self._env._program, dict(self._env._program.transformations)
        program.clear()
        try:
            self._planner().add_all(operations, program)
            with paced(self._env._configuration):
                client = self._env.execute_async(f"insert-into_{','.join(names)}")
        finally:
            program.transformations.update(kept)
        columns = list(dict.fromkeys(names))
        schema = t.row_of(columns, [t.BIGINT for _ in columns], null=False)
        return TableResult(schema, [Row._from(list(columns), [-1] * len(columns))], client=client)

    def _warn(self, operations: Sequence[Operation]) -> None:
        for text in () if self._batch() else warnings(operations):
            _log.warning("%s", text)

    def _attach(self, plans: Sequence[l.Plan]) -> None:
        planner = self._planner()
        planner.add_all(planner.plan(plans), self._env._program)

    # ---------------------------------------------------------------------------------------------------------- queries

    def _collect(self, plan: l.Plan) -> TableResult:
        planner = self._planner()
        operation = planner.plan_collect(plan)
        self._warn([operation])
        program, kept = self._env._program, dict(self._env._program.transformations)
        name = f"{self._prefix}-{next(self._collected)}"
        program.clear()
        try:
            inputs = planner.add(operation, program)
            kind = row_type_info(operation.schema)
            sink = CollectSink(name)
            inputs = tuple(Input(i.upstream, 0, i.tag, i.partitioner) for i in inputs)
            program.add("Sink: Collect", SinkSpec(sink), kind, inputs, sink=sink, follows_input=True)
            with paced(self._env._configuration):
                client = self._env.execute_async("collect")
        finally:
            program.transformations.update(kept)
        results = Results(client, name)
        zone = self._config.get_local_timezone()
        return TableResult(plan.schema, client=client, results=results, zone=zone, streaming=not self._batch())

    def _to_pandas(self, plan: l.Plan) -> Any:
        with self._collect(plan).collect() as rows:
            return bridging.to_pandas(plan.schema, rows)

    # ------------------------------------------------------------------------------------------------------ plans shown

    def _explain(self, plans: Sequence[l.Plan], details: Iterable[ExplainDetail]) -> str:
        planner = self._planner()
        return explained(
            plans,
            [planner.optimize(each) for each in plans],
            planner.plan(plans),
            {each.name for each in details},
            planner.settings,
            lambda: flink_json(self._graph_of(plans)),
        )

    def _graph_of(self, plans: Sequence[l.Plan]) -> StreamGraph:
        """The program that plans become, with a sink for those that have none; it is not run."""
        return self._graph_of_operations(self._planner().plan(plans))

    def _graph_of_operations(self, operations: Sequence[Operation]) -> StreamGraph:
        planner = self._planner()
        program, kept = self._env._program, dict(self._env._program.transformations)
        program.clear()
        try:
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
