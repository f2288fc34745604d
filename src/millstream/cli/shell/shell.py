"""A session of the SQL shell: runs statements one after another and shows their results.

Promises: a statement that fails is reported with its position in the text, and the statements after it in the same text
are not run; the session stays usable. Ctrl-C stops the current query and nothing else.
Does not know: how input is read, or how a live view is drawn."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from millstream import sql_options
from millstream.cli.shell import settings
from millstream.cli.shell.jobs import BackgroundJob, BackgroundJobs, observe_job, show_progress
from millstream.cli.shell.results import Columns
from millstream.cli.shell.screen import Screen, StatusLine, relocate
from millstream.cli.shell.statements import (
    HELP,
    Command,
    Statement,
    StatementFailed,
    StatementLocation,
    line_number,
    parse_command,
    split_statements,
)
from millstream.client.job_progress import Progress
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import ExternalError, UserError
from millstream.graph import explain
from millstream.graph.execution_plan import execution_plan
from millstream.graph.explain import printable
from millstream.graph.job_graph import job_graph
from millstream.graph.picture import svg
from millstream.sql import tableau
from millstream.sql.errors import SqlError
from millstream.sql.syntax import parse_statement
from millstream.sql.syntax import tree as s
from millstream.table.query_rows import Changelog, LiveTable, QueryRows
from millstream.table.table_environment import StreamTableEnvironment
from millstream.table.table_result import TableResult
from millstream.types.row import Row

View = Callable[[TableResult, Columns, QueryRows, Progress], None]
_MAX_SOURCE_DEPTH = 10
_INTERACTIVE_INPUT = "the input"
INTERRUPTED = 130


class CannotUseFile(ExternalError):
    """A file that a command names cannot be read or written."""

    def __init__(self, path: str, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error)
        super().__init__(f"cannot read or write the file '{path}': {reason.lower()}", hint="name another file")


class SourcedTooDeep(UserError):
    """SOURCE commands are nested too deep."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"SOURCE '{path}' is nested more than {_MAX_SOURCE_DEPTH} deep", hint="check whether a file sources itself"
        )


class Leave(Exception):
    """Raised by QUIT and EXIT."""


class Shell:
    """One session: an environment, a screen, and the jobs that it started."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        tables: StreamTableEnvironment,
        screen: Screen,
        view: View | None = None,
    ) -> None:
        self._env, self._tables, self._screen, self._view = env, tables, screen, view
        self.jobs = BackgroundJobs(env, screen)
        self._depth = 0

    # ------------------------------------------------------------------------------------------------ whole texts

    def handle(self, text: str) -> None:
        """Run interactive input and report errors; raises `Leave`."""
        try:
            self.run(text, _INTERACTIVE_INPUT)
        except StatementFailed as failed:
            self._report_error(failed.error, failed.prefix if failed.location.origin != _INTERACTIVE_INPUT else "")
        except KeyboardInterrupt:
            self._screen.message("stopped")

    def run_script(self, text: str, origin: str, *, wait: bool = True) -> int:
        """Run a script up to the first statement that fails, with `wait` to the end of its jobs.

        Returns the exit code."""
        try:
            with suppress(Leave):
                self.run(text, origin)
            if wait:
                with interruptible():
                    self.jobs.wait()
        except StatementFailed as failed:
            self._report_error(failed.error, failed.prefix)
            self.jobs.end()
            return 1
        except KeyboardInterrupt:
            self._screen.message("stopped")
            self.jobs.end()
            return INTERRUPTED
        except BrokenPipeError:
            self.jobs.end()
            raise
        return 0

    def run(self, text: str, origin: str) -> None:
        """Run the statements of a text; the first that fails raises `StatementFailed`."""
        for number, statement in enumerate(split_statements(text), 1):
            location = StatementLocation(number, line_number(text, statement.start), origin)
            try:
                self._execute(statement, location)
            except SqlError as problem:
                relocated = relocate(problem, statement.text, statement.start, text)
                raise StatementFailed(relocated, location) from problem
            except (Leave, StatementFailed, BrokenPipeError):
                raise
            except Exception as problem:
                raise StatementFailed(problem, location) from problem

    def report_ended_jobs(self) -> None:
        """Report jobs that have ended since the last call."""
        self.jobs.report_ended(self._report_error)

    def _report_error(self, error: Exception, prefix: str) -> None:
        self._screen.error(error, verbose=self._env._configuration.get(sql_options.VERBOSE), prefix=prefix)

    # -------------------------------------------------------------------------------------------- single statements

    def _execute(self, statement: Statement, location: StatementLocation) -> None:
        command = parse_command(statement.text)
        if command is not None:
            self._run_command(command, statement.text)
            return
        node = parse_statement(statement.text)
        if isinstance(node, s.SetOption) and node.key is not None:
            warning = settings.check(node.key, node.value or "")
            if warning is not None:
                self._screen.message(warning, "WARNING")
        with interruptible(), observe_job(self._env, "query") as progress:
            result = self._tables.execute_sql(statement.text)
            client = result.get_job_client()
            if isinstance(node, s.SelectStatement):
                with result.collect():  # if Ctrl-C is pressed at any time from here on, the query is cancelled
                    self._show_query(result, progress)
            elif client is not None:
                sync = self._env._configuration.get(sql_options.DML_SYNC)
                self.jobs.add(BackgroundJob(client, progress, location), wait=sync)
            elif result._schema is None:
                self._screen.message("statement executed")
            else:
                for text in result.lines():
                    self._screen.line(text)

    def _run_command(self, command: Command, text: str) -> None:
        match command.word:
            case "QUIT" | "EXIT":
                raise Leave
            case "CLEAR":
                self._screen.clear()
            case "HELP":
                self._screen.line(HELP)
            case "SOURCE":
                self._source(command.file)
            case "DRAW":
                try:
                    self._draw(command)
                except SqlError as problem:
                    raise relocate(problem, command.statement, command.statement_offset, text) from None

    def _source(self, path: str) -> None:
        if self._depth >= _MAX_SOURCE_DEPTH:
            raise SourcedTooDeep(path)
        self._depth += 1
        try:
            self.run(read_script(path), path)
        finally:
            self._depth -= 1

    def _draw(self, command: Command) -> None:
        node = parse_statement(command.statement)
        plans = self._tables._locate_errors(
            command.statement, lambda: self._tables._bind_statement(node, command.statement)
        )
        plan = execution_plan(job_graph(self._tables._graph_of(plans), "plan"))
        diagram = explain.mermaid(plan) if command.file.endswith((".mmd", ".md")) else svg(plan)
        try:
            Path(command.file).write_text(diagram, encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise CannotUseFile(command.file, problem) from None
        self._screen.message(f"wrote {command.file}")

    # ------------------------------------------------------------------------------------------------------ queries

    def _show_query(self, result: TableResult, progress: Progress) -> None:
        config = self._env._configuration
        mode = config.get(sql_options.RESULT_MODE) if self._has_result_mode() else "tableau"
        max_rows = config.get(sql_options.MAX_TABLE_ROWS)
        columns = self._columns(result, show_row_kinds=mode == "changelog")
        if mode != "tableau" and self._view is not None:
            rows = Changelog(max_rows) if mode == "changelog" else LiveTable(max_rows)
            self._view(result, columns, rows, progress)
            return
        with StatusLine(self._screen.out, self._screen.err) as status:
            show_progress(progress, status.show)
            if mode == "table" or not result._streaming:
                table = LiveTable(max_rows)
                self._collect(result, table)
                cells = [columns.cells(row) for row in table.page(0, max_rows)]
                for line in tableau.format_table(columns.names, cells, columns.max_width):
                    status.write(line)
            else:
                self._stream(result, columns, status)

    def _has_result_mode(self) -> bool:
        return self._view is not None or self._env._configuration.contains(sql_options.RESULT_MODE)

    def _columns(self, result: TableResult, *, show_row_kinds: bool) -> Columns:
        schema, cells = result._get_row_type(), result._create_cell_formatter()

        def printable_cells(row: Row) -> list[str]:
            return [printable(cell) for cell in cells(row)]

        max_width = self._env._configuration.get(sql_options.MAX_COLUMN_WIDTH)
        return Columns(schema.names, schema.types, printable_cells, max_width, show_row_kinds)

    @staticmethod
    def _collect(result: TableResult, table: QueryRows) -> None:
        with result.collect() as rows:
            for row in rows:
                table.add(row)

    def _stream(self, result: TableResult, columns: Columns, status: StatusLine) -> None:
        count = 0

        def count_rows(rows: Iterator[Row]) -> Iterator[tuple[int, Sequence[str]]]:
            nonlocal count
            for row in rows:
                count += 1
                yield row.get_row_kind().value, columns.cells(row)

        try:
            with result.collect() as rows:
                for line in tableau.format_stream(columns.names, columns.types, count_rows(rows), columns.max_width):
                    status.write(line)
        except KeyboardInterrupt:
            if not self._screen.interactive:
                raise
            if count:
                widths = tableau.compute_stream_widths(columns.names, columns.types, columns.max_width)
                status.write(tableau.format_border([2, *widths]))
            status.write(f"Query terminated, received a total of {count} {'row' if count == 1 else 'rows'}")


def read_script(path: str) -> str:
    """Read the text of a script."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        raise CannotUseFile(path, problem) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt inside of the context; libraries may have replaced the signal handler."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Any = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
