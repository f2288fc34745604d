"""The materialized tables of a session: CREATE, ALTER and DROP MATERIALIZED TABLE.

Promises: a statement that fails changes nothing. A continuous table is filled by a streaming job of the session, a full
one by batch jobs at the times of a schedule. Refreshes run in an environment of their own, so they do not interfere
with statements of the session.
Does not know: how queries are planned; the session does that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from millstream import options as runtime_options
from millstream.client.job_client import JobClient
from millstream.config.option import Option
from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.catalog.materialization import CONTINUOUS, FULL, Freshness, Materialization, choose_mode
from millstream.sql.ddl.alter import AlterStatements
from millstream.sql.errors import CatalogError, SqlNotSupported, SqlValidationError
from millstream.sql.functions.date_patterns import compile_formatter
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.syntax import parse_query
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis
from millstream.sql_options import (
    MATERIALIZED_CONTINUOUS_FRESHNESS,
    MATERIALIZED_FULL_FRESHNESS,
    MATERIALIZED_THRESHOLD,
)
from millstream.table.refresh_schedule import RefreshSchedule
from millstream.table.table_result import TableResult
from millstream.times import Duration

_PATTERN_PREFIX, _PATTERN_SUFFIX = "partition.fields.", ".date-formatter"
FullName = tuple[str, str, str]
OptionPairs = tuple[tuple[str, str], ...]


class MaterializedTables:
    """Create, alter and drop the materialized tables of a session.

    Args:
        session: The table environment.
        open_session: Opens an environment with the same catalogs, for a home and options.
        create_schedule: Creates the schedule of full refreshes when the first one is added.

    """

    def __init__(
        self,
        session: Any,
        open_session: Callable[[tuple[str, str], Mapping[str, str]], Any],
        create_schedule: Callable[[], RefreshSchedule],
    ) -> None:
        self._session, self._open_session = session, open_session
        self._create_schedule = create_schedule
        self._schedule: RefreshSchedule | None = None
        self._jobs: dict[FullName, JobClient] = {}

    # --------------------------------------------------------------------------------------------------------- create

    def create(self, node: s.CreateMaterializedTable, text: str) -> TableResult:
        """CREATE [OR ALTER] MATERIALIZED TABLE."""
        catalogs = self._session._catalogs
        if node.table.temporary:
            message = "a materialized table cannot be temporary"
            raise SqlNotSupported(message, at=node.at)
        full_name = catalogs.full_name(node.table.name, node.at)
        if catalogs.find(full_name, node.at) is not None:
            if not node.or_alter:
                message = f"there is a table '{'.'.join(full_name)}' already"
                raise CatalogError(message, at=node.at, hint="drop it first, or write CREATE OR ALTER")
            self.find(node.table.name, node.at)
            assert node.table.query is not None
            return self._change_query(full_name, s.SetViewQuery(node.table.query, node.text), node.at)
        patterns, options = _split_patterns(node.table, node.at)
        definition, _ = self._session._bind_create_table_as(replace(node.table, options=options), text)
        freshness, mode = self._choose_mode(node)
        materialization = Materialization(node.text, catalogs.home(), freshness, mode, patterns)
        self._register(full_name, definition, materialization, node.at)
        try:
            self._start(full_name, materialization)
        except BaseException:
            catalogs.drop_table(full_name, view=False, temporary=False, if_exists=True)
            raise
        return TableResult(None)

    def _choose_mode(self, node: s.CreateMaterializedTable) -> tuple[Freshness, str]:
        freshness = None if node.freshness is None else Freshness.read(node.freshness)
        defaults = {
            CONTINUOUS: self._read_duration(MATERIALIZED_CONTINUOUS_FRESHNESS),
            FULL: self._read_duration(MATERIALIZED_FULL_FRESHNESS),
        }
        threshold = self._read_duration(MATERIALIZED_THRESHOLD)
        freshness, mode = choose_mode(freshness, node.refresh_mode, threshold, defaults)
        if mode == FULL:
            freshness.check_schedule(node.at if node.freshness is None else node.freshness.at)
        return freshness, mode

    def _read_duration(self, option: Option[Duration]) -> Duration:
        text = self._session._read_option_text(option.key)
        return option.default if text is None else Duration.of_millis(parse_duration_millis(text))

    def _register(
        self, full_name: FullName, definition: TableDefinition, materialization: Materialization, at: int | None
    ) -> None:
        catalogs = self._session._catalogs
        catalogs.add_table(full_name, definition, temporary=False, at=at)
        catalogs.notes(full_name).materialization = materialization

    # ---------------------------------------------------------------------------------------------------------- alter

    def alter(self, node: s.Alter, text: str) -> TableResult:
        """ALTER MATERIALIZED TABLE."""
        full_name, materialization = self.find(node.name, node.at)
        match node.action:
            case s.Suspend():
                self._suspend(full_name, materialization, node.at)
            case s.Resume(options):
                self._resume(full_name, materialization, options, node.at)
            case s.Refresh(partition):
                return self._refresh(full_name, materialization, partition, node.at)
            case s.SetViewQuery() as action:
                return self._change_query(full_name, action, node.at)
            case s.Rename(target):
                self._rename(full_name, materialization, target, node.at)
            case _:
                self._change_definition(node, text, full_name, materialization)
        return TableResult(None)

    def _suspend(self, full_name: FullName, materialization: Materialization, at: int | None) -> None:
        if materialization.is_suspended:
            message = f"materialized table '{'.'.join(full_name)}' is already suspended"
            raise SqlValidationError(message, at=at)
        savepoint = None
        job = self._jobs.get(full_name)
        if materialization.mode == CONTINUOUS and job is not None and not job._handle.status().is_terminal_state():
            directory = self._session._env._configuration.get(runtime_options.SAVEPOINT_DIR)
            if directory is None:
                message = f"the job of '{'.'.join(full_name)}' is stopped with a savepoint, which needs a directory"
                hint = f"SET '{runtime_options.SAVEPOINT_DIR.key}' = '...'"
                raise SqlValidationError(message, at=at, hint=hint)
            savepoint = job.stop_with_savepoint(False, directory).result()
        self._stop(full_name)
        self._update(full_name, replace(materialization, is_suspended=True, savepoint=savepoint))

    def _resume(
        self, full_name: FullName, materialization: Materialization, options: OptionPairs, at: int | None
    ) -> None:
        if not materialization.is_suspended:
            message = f"materialized table '{'.'.join(full_name)}' is not suspended"
            raise SqlValidationError(message, at=at)
        self._start(full_name, materialization, options)
        self._update(full_name, replace(materialization, is_suspended=False, savepoint=None))

    def _refresh(
        self,
        full_name: FullName,
        materialization: Materialization,
        partition: tuple[tuple[str, s.Expr | None], ...],
        at: int | None = None,
    ) -> TableResult:
        """REFRESH: overwrite the table, or one partition of it, by a batch job."""
        query = parse_query(materialization.query)
        _, definition = self._session._catalogs.table(full_name)
        condition: s.Expr | None = None
        for name, value in partition:
            if name not in definition.partitions or value is None:
                message = f"PARTITION needs values of partition columns, and '{name}' has none or is not one"
                raise SqlValidationError(message, at=at, hint=f"partitioned by: {', '.join(definition.partitions)}")
            is_equal = s.Call(0, "=", (s.Name(0, (name,)), value))
            condition = is_equal if condition is None else s.Call(0, "AND", (condition, is_equal))
        if condition is not None:
            source = s.DerivedTable(0, query, "refreshed")
            query = s.Query(0, s.Select(0, ((s.Star(0), None),), source, condition))
        session = self._open_session(materialization.home, {runtime_options.RUNTIME_MODE.key: "BATCH"})
        result: TableResult = session._execute_inserts([_bind_insert(session, full_name, query, overwrite=True)])
        return result

    def _change_query(self, full_name: FullName, action: s.SetViewQuery, at: int | None) -> TableResult:
        """AS query: columns can be added at the end; a continuous job starts again from the beginning."""
        _, materialization = self.find(full_name, at)
        catalogs = self._session._catalogs
        _, definition = catalogs.table(full_name, at)
        schema = QueryBinder(self._session._session()).query(action.query).schema
        changed = _evolve(definition, schema, at)
        new = replace(materialization, query=action.text, home=catalogs.home(), savepoint=None)
        self._restart(full_name, definition, changed, materialization, new)
        return TableResult(None)

    def _change_definition(
        self, node: s.Alter, text: str, full_name: FullName, materialization: Materialization
    ) -> None:
        """SET, RESET, ADD, MODIFY and DROP: columns that the query fills stay as they are."""
        _, definition = self._session._catalogs.table(full_name)
        changed = AlterStatements(self._session._session()).change(node, definition, text)
        stored, still_stored = ([c for c in table.columns if c.is_persisted] for table in (definition, changed))
        if [(c.name, c.type.nullable()) for c in stored] != [(c.name, c.type.nullable()) for c in still_stored]:
            message = "the columns that the query of a materialized table fills cannot be changed"
            raise SqlValidationError(message, at=node.at, hint="change the query: ALTER MATERIALIZED TABLE ... AS")
        self._restart(full_name, definition, changed, materialization, replace(materialization, savepoint=None))

    def _rename(
        self, full_name: FullName, materialization: Materialization, target: tuple[str, ...], at: int | None
    ) -> None:
        """RENAME TO: a streaming job continues to run, and a schedule continues under the new name."""
        catalogs = self._session._catalogs
        new_name = (*full_name[:2], target[-1])
        if len(target) > 1 and catalogs.full_name(target, at) != new_name:
            message = f"materialized table '{'.'.join(full_name)}' cannot be moved to another database"
            raise CatalogError(message, at=at)
        self._register(new_name, catalogs.table(full_name, at)[1], materialization, at)
        catalogs.drop_table(full_name, view=False, temporary=False, if_exists=False, at=at)
        if full_name in self._jobs:
            self._jobs[new_name] = self._jobs.pop(full_name)
        elif not materialization.is_suspended:
            self._stop(full_name)
            self._start(new_name, materialization)

    def _restart(
        self,
        full_name: FullName,
        old: TableDefinition,
        definition: TableDefinition,
        before: Materialization,
        after: Materialization,
    ) -> None:
        """Change a table; its continuous job starts again without state. If it cannot, the old definition stays."""
        catalogs = self._session._catalogs
        catalogs.set_table(full_name, definition)
        self._update(full_name, after)
        if after.is_suspended:
            return
        try:
            self._check(full_name, after)
        except BaseException:
            catalogs.set_table(full_name, old)
            self._update(full_name, before)
            raise
        self._stop(full_name)
        self._start(full_name, after)

    def drop(self, node: s.Drop) -> TableResult:
        """DROP MATERIALIZED TABLE: its job or schedule ends first."""
        if node.if_exists and self._session._catalogs.find(node.name, node.at) is None:
            return TableResult(None)
        full_name, _ = self.find(node.name, node.at)
        self._stop(full_name)
        self._session._catalogs.drop_table(full_name, view=False, temporary=False, if_exists=False, at=node.at)
        return TableResult(None)

    # ------------------------------------------------------------------------------------------------------- pipelines

    def find(self, path: tuple[str, ...], at: int | None = None) -> tuple[FullName, Materialization]:
        """Return a materialized table; another table is an error."""
        full_name, _ = self._session._catalogs.table(path, at)
        materialization = self._session._catalogs.materialization(full_name)
        if materialization is None:
            message = f"'{'.'.join(path)}' is not a materialized table"
            raise CatalogError(message, at=at, hint="see SHOW MATERIALIZED TABLES")
        return full_name, materialization

    def _check(self, full_name: FullName, materialization: Materialization) -> None:
        """Raise if the query of a table cannot be planned."""
        is_full = materialization.mode == FULL
        mode = "BATCH" if is_full else "STREAMING"
        session = self._open_session(materialization.home, {runtime_options.RUNTIME_MODE.key: mode})
        query = parse_query(materialization.query)
        session._planner().plan([_bind_insert(session, full_name, query, overwrite=is_full)])

    def _start(self, full_name: FullName, materialization: Materialization, options: OptionPairs = ()) -> None:
        """Start the streaming job, or schedule the refreshes."""
        self._check(full_name, materialization)
        if materialization.mode == FULL:
            if self._schedule is None:
                self._schedule = self._create_schedule()
            zone = self._session.get_config().get_local_timezone()
            self._schedule.add(
                full_name, materialization.freshness, zone, lambda time: self._refresh_at(full_name, time, zone)
            )
            return
        settings = {
            runtime_options.RUNTIME_MODE.key: "STREAMING",
            runtime_options.CHECKPOINT_INTERVAL.key: f"{materialization.freshness.millis} ms",
        }
        if materialization.savepoint is not None:
            settings[runtime_options.RECOVERY_PATH.key] = materialization.savepoint
        session = self._open_session(materialization.home, settings)
        hints = (s.Hint(0, "OPTIONS", (), options),) if options else ()
        plan = _bind_insert(session, full_name, parse_query(materialization.query), hints=hints)
        client = session._execute_inserts([plan]).get_job_client()
        assert client is not None
        self._jobs[full_name] = client

    def _refresh_at(self, full_name: FullName, time: int, zone: str) -> None:
        """Refresh a table, or its partition of a scheduled time, and wait for the end."""
        if self._session._catalogs.find(full_name) is None:  # its database or catalog was dropped
            self._stop(full_name)
            return
        _, materialization = self.find(full_name)
        local = datetime.fromtimestamp(time / 1000, UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        partition = tuple(
            (column, s.Literal(0, compile_formatter(pattern)(local)))
            for column, pattern in materialization.date_patterns.items()
        )
        self._refresh(full_name, materialization, partition).wait()

    def _stop(self, full_name: FullName) -> None:
        """End the job or the schedule of a table."""
        if self._schedule is not None:
            self._schedule.remove(full_name)
        job = self._jobs.pop(full_name, None)
        if job is not None and not job._handle.status().is_terminal_state():
            job.cancel().result()

    def _update(self, full_name: FullName, materialization: Materialization) -> None:
        self._session._catalogs.notes(full_name).materialization = materialization


def _bind_insert(
    session: Any, full_name: FullName, query: s.Query, *, overwrite: bool = False, hints: tuple[s.Hint, ...] = ()
) -> Any:
    """Return the plan that writes a query to a table; columns are matched by name."""
    columns = tuple(QueryBinder(session._session()).query(query).schema.names)
    return session._bind_insert(s.Insert(0, full_name, query, columns, overwrite=overwrite, hints=hints))


def _split_patterns(node: s.CreateTable, at: int | None) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """Separate the patterns of time partitions from the options of the connector."""
    patterns: dict[str, str] = {}
    for key, pattern in node.options:
        if not (key.startswith(_PATTERN_PREFIX) and key.endswith(_PATTERN_SUFFIX)):
            continue
        column = key.removeprefix(_PATTERN_PREFIX).removesuffix(_PATTERN_SUFFIX)
        if column not in node.partitions:
            message = f"option '{key}' names '{column}', which is not a partition column"
            raise SqlValidationError(message, at=at)
        try:
            compile_formatter(pattern)
        except ValueError as problem:
            message = f"option '{key}': {problem}"
            raise SqlValidationError(message, at=at) from None
        patterns[column] = pattern
    names = {f"{_PATTERN_PREFIX}{column}{_PATTERN_SUFFIX}" for column in patterns}
    return patterns, tuple(pair for pair in node.options if pair[0] not in names)


def _evolve(definition: TableDefinition, schema: t.RowType, at: int | None) -> TableDefinition:
    """Return the table with the columns of a new query: those that it has, then new columns, which can be NULL."""
    stored = [column for column in definition.columns if column.is_persisted]
    new = [ColumnDefinition(field.name, t.strip_time_attribute(field.data_type)) for field in schema.fields]
    for column, queried in zip(stored, new, strict=False):
        if column.name != queried.name or not column.type.nullable().same(queried.type.nullable()):
            message = (
                f"column '{column.name}' of type {column.type} is '{queried.name}' of type {queried.type} in the query"
            )
            raise SqlValidationError(message, at=at, hint="a new query can add columns at the end only")
    if len(new) < len(stored):
        message = f"the query has no column '{stored[len(new)].name}'"
        raise SqlValidationError(message, at=at, hint="a new query can add columns at the end only")
    added = tuple(replace(column, type=column.type.nullable()) for column in new[len(stored) :])
    return replace(definition, columns=(*definition.columns, *added))
