"""A session: a table environment, its properties and its operations.

Promises: the statements of a session run one after another, in the order of their submission. Options of the gateway's
process cannot be changed by a client. Closing a session cancels its queries; jobs of INSERT continue.
Does not know: HTTP, other sessions."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from millstream import options, sql_options
from millstream.client.job_client import JobClient
from millstream.config.configuration import Configuration
from millstream.config.secrets import mask_secrets
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.gateway.errors import NoSuchOperation, OptionOfServer, TooManyOperations
from millstream.gateway.operation import Operation
from millstream.gateway.result_pages import ResultInfo, ResultPages
from millstream.option_keys import ignored_keys, unknown_keys
from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.errors import SqlError
from millstream.sql.syntax import parse_statement
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.table_environment import StreamTableEnvironment
from millstream.table.table_result import TableResult
from millstream.times import Clock
from millstream.types.row import Row

MAX_OPERATIONS = 1_000
_POLL_SECONDS = 0.1
_CHECK_SECONDS = 5.0
_OF_SERVER = ("rest.", "security.", "metrics.", "spark.", "sql-gateway.", "millstream.rest.", "high-availability.")
_DEFAULTS = {
    "execution.runtime-mode": "STREAMING",
    sql_options.RESULT_MODE.key: "TABLE",
    sql_options.MAX_TABLE_ROWS.key: "1000000",
    sql_options.VERBOSE.key: "false",
}
_JOB_ID = t.row_of(["job id"], [t.STRING], null=False)
_RESULT = t.row_of(["result"], [t.STRING], null=False)


class Session:
    """One session. The methods may be called from any thread."""

    def __init__(
        self,
        handle: str,
        name: str | None,
        defaults: Configuration,
        properties: Mapping[str, str],
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self.handle, self.name = handle, name
        self.last_access = clock.precise()
        self._clock, self._new_id = clock, new_id
        self._lock = threading.Lock()
        self._operations: dict[str, Operation] = {}
        self._properties = dict(properties)
        configuration = Configuration(defaults)
        for key, value in properties.items():
            if _is_option_of_job(key, value):
                configuration.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        settings = EnvironmentSettings.new_instance().with_configuration(configuration).build()
        self._env, self._tables = env, StreamTableEnvironment.create(env, settings)
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="gateway-session", daemon=True).start()

    def properties(self) -> dict[str, str]:
        """Return the properties that the client sent and the options of the session; secrets are masked."""
        return mask_secrets(_DEFAULTS | self._properties | self._env._configuration.to_dict())

    def catalogs(self) -> Catalogs:
        """Return the catalogs, for completion."""
        return self._tables._catalogs

    def submit(
        self, statement: str, timeout: float | None = None, settings: Mapping[str, str] | None = None
    ) -> Operation:
        """Submit a statement; `settings` are options of this statement only.

        Raises:
            TooManyOperations: Too many operations of the session are open.

        """
        deadline = None if timeout is None else self._clock.precise() + timeout
        with self._lock:
            if len(self._operations) >= MAX_OPERATIONS:
                raise TooManyOperations(MAX_OPERATIONS)
            operation = Operation(self._new_id(), deadline)
            self._operations[operation.handle] = operation
        self._tasks.put(lambda: operation.run(lambda: self._execute(statement, settings or {}, operation.is_running)))
        return operation

    def configure(self, statement: str) -> None:
        """Execute a statement that prepares the session, and wait for it.

        Raises:
            UserError: The statement is not valid, or starts a job.

        """
        outcome: Future[None] = Future()

        def configure() -> None:
            try:
                self._execute(statement, {}, lambda: True).close()
            except Exception as problem:
                outcome.set_exception(problem)
            else:
                outcome.set_result(None)

        self._tasks.put(configure)
        outcome.result()

    def check(self, statement: str) -> SqlError | None:
        """Return the problem of a statement without executing it; None if it has none, or cannot be checked in time."""
        outcome: Future[SqlError | None] = Future()
        self._tasks.put(lambda: outcome.set_result(self._find_problem(statement)))
        try:
            return outcome.result(_CHECK_SECONDS)
        except TimeoutError:  # another statement of the session is running
            return None

    def _find_problem(self, text: str) -> SqlError | None:
        try:
            node = parse_statement(text)
            if isinstance(node, s.SelectStatement | s.Insert | s.StatementSet):
                self._tables.explain_sql(text)
        except SqlError as problem:
            return problem
        except Exception as problem:  # an error of a connector or a catalog
            return SqlError(str(problem))
        return None

    def operation(self, handle: str) -> Operation:
        """Return an operation.

        Raises:
            NoSuchOperation: There is none.

        """
        with self._lock:
            try:
                return self._operations[handle]
            except KeyError:
                raise NoSuchOperation(handle) from None

    def close_operation(self, handle: str) -> None:
        """Close an operation and forget it."""
        self.operation(handle).close()
        with self._lock:
            self._operations.pop(handle, None)

    def close(self) -> None:
        """Close all operations."""
        with self._lock:
            operations, self._operations = list(self._operations.values()), {}
        for operation in operations:
            operation.close()
        self._tasks.put(None)

    def has_active_operation(self) -> bool:
        """Whether a statement of the session is running."""
        with self._lock:
            operations = list(self._operations.values())
        return any(operation.is_active(self._clock.precise()) for operation in operations)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def _execute(self, text: str, settings: Mapping[str, str], is_wanted: Callable[[], bool]) -> ResultPages:
        node = parse_statement(text)
        if isinstance(node, s.SetOption | s.ResetOption) and node.key is not None:
            check_option(node.key)
        configuration = self._env._configuration
        before = configuration.to_dict()
        try:
            for key, value in settings.items():
                check_option(key)
                configuration.set_string(key, value)
            return self._to_pages(self._tables.execute_sql(text), node, is_wanted)
        finally:
            for key in settings:
                _restore(configuration, key, before)

    def _to_pages(self, result: TableResult, node: s.Statement, is_wanted: Callable[[], bool]) -> ResultPages:
        client = result.get_job_client()
        job_id = None if client is None else str(client.get_job_id())
        zone = self._env._configuration.get(sql_options.LOCAL_TIME_ZONE)
        zone = "UTC" if zone == sql_options.LOCAL_TIME_ZONE.default else zone
        if isinstance(node, s.SelectStatement):
            assert result._schema is not None
            info = ResultInfo(result._schema, True, "SUCCESS_WITH_CONTENT", job_id, zone)
            rows = result._convert_to_exact_rows()
            return ResultPages.of_query(info, rows, rows.close)
        if client is not None:
            if self._env._configuration.get(sql_options.DML_SYNC):
                _wait_for_job(client, is_wanted)
            info = ResultInfo(_JOB_ID, False, "SUCCESS_WITH_CONTENT", job_id, zone)
            return ResultPages.of_rows(info, [Row(job_id)])
        if result._schema is None:
            return ResultPages.of_rows(ResultInfo(_RESULT, False, "SUCCESS", None, zone), [Row("OK")])
        info = ResultInfo(result._schema, False, "SUCCESS_WITH_CONTENT", None, zone)
        return ResultPages.of_rows(info, result.collect())


def _wait_for_job(client: JobClient, is_wanted: Callable[[], bool]) -> None:
    """Wait for the end of a job; it is cancelled if the operation was cancelled."""
    while not client.wait(_POLL_SECONDS):
        if not is_wanted():
            client.cancel().result()
            return
    client.get_job_execution_result().result()


def check_option(key: str) -> None:
    """Refuse an option of the gateway's process.

    Raises:
        OptionOfServer: It is one.

    """
    if _is_option_of_server(key):
        raise OptionOfServer(key)


def _is_option_of_server(key: str) -> bool:
    return key.startswith(_OF_SERVER) or key == options.SPARK_MASTER.key


def _is_option_of_job(key: str, value: Any) -> bool:
    """Whether a property that a client sends is an option here. Flink's clients send their whole configuration file."""
    configuration = Configuration().set_string(key, value)
    return not (_is_option_of_server(key) or unknown_keys(configuration) or ignored_keys(configuration))


def _restore(configuration: Configuration, key: str, before: Mapping[str, str]) -> None:
    if key in before:
        configuration.set_string(key, before[key])
    else:
        configuration.remove_config(key)
