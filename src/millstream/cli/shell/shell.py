"""Statements run one after another, and their results shown.

Promises: a statement that fails says where in the text it stands, stops what follows it in the same text, and leaves
the shell as it was; Ctrl-C stops the query at hand and nothing else.
Does not know: how lines are read, or how a live view is drawn."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from millstream import sql_options
from millstream.cli.shell import settings
from millstream.cli.shell.commands import HELP, Command, command
from millstream.cli.shell.failures import Failed, Place
from millstream.cli.shell.jobs import BackgroundJob, BackgroundJobs, shown_on, watched
from millstream.cli.shell.pages import Columns
from millstream.cli.shell.results import Changes, Kept, LiveTable
from millstream.cli.shell.screen import Screen, relocated
from millstream.cli.shell.script import Piece, line_of, pieces
from millstream.cli.shell.status import StatusLine
from millstream.client.progress import Progress
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
from millstream.table.table_environment import StreamTableEnvironment
from millstream.table.table_result import TableResult
from millstream.types.row import Row

View = Callable[[TableResult, Columns, Kept, Progress], None]
_NESTED = 10
_TYPED = "the input"
INTERRUPTED = 130


class CannotUseFile(ExternalError):
    """A file that a command names cannot be read or written."""

    def __init__(self, path: str, error: Exception) -> None:
        said = getattr(error, "strerror", None) or str(error)
        super().__init__(f"cannot use the file '{path}': {said.lower()}", hint="name another file")


class SourcedTooDeep(UserError):
    """Files that source one another."""

    def __init__(self, path: str) -> None:
        super().__init__(f"SOURCE '{path}' is nested more than {_NESTED} deep", hint="a file sources itself?")


class Leave(Exception):
    """The user wants to leave the shell."""


class Shell:
    """One session: an environment, a screen, and the jobs it has started."""

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
        """Run what a person typed; whatever is wrong with it is told. Raises Leave."""
        try:
            self.run(text, _TYPED)
        except Failed as failed:
            self._problem(failed.error, failed.where if failed.place.origin != _TYPED else "")
        except KeyboardInterrupt:
            self._screen.tell("stopped")

    def script(self, text: str, origin: str, *, wait: bool = True) -> int:
        """Run a script, with `wait` to the end of its jobs; its exit code. The first statement that fails ends it."""
        try:
            with suppress(Leave):
                self.run(text, origin)
            if wait:
                with interruptible():
                    self.jobs.wait()
        except Failed as failed:
            self._problem(failed.error, failed.where)
            self.jobs.end()
            return 1
        except KeyboardInterrupt:
            self._screen.tell("stopped")
            self.jobs.end()
            return INTERRUPTED
        except BrokenPipeError:
            self.jobs.end()
            raise
        return 0

    def run(self, text: str, origin: str) -> None:
        """Run the statements of a text up to the first that fails."""
        for number, piece in enumerate(pieces(text), 1):
            place = Place(number, line_of(text, piece.start), origin)
            try:
                self._execute(piece, place)
            except SqlError as problem:
                raise Failed(relocated(problem, piece.text, piece.start, text), place) from problem
            except (Leave, Failed, BrokenPipeError):
                raise
            except Exception as problem:
                raise Failed(problem, place) from problem

    def tell_ended(self) -> None:
        """Tell of jobs that have ended since this was last asked for."""
        self.jobs.tell_ended(self._problem)

    def _problem(self, error: Exception, about: str) -> None:
        self._screen.problem(error, verbose=self._env._configuration.get(sql_options.VERBOSE), about=about)

    # -------------------------------------------------------------------------------------------- single statements

    def _execute(self, piece: Piece, place: Place) -> None:
        found = command(piece.text)
        if found is not None:
            self._command(found, piece.text)
            return
        node = parse_statement(piece.text)
        if isinstance(node, s.SetOption) and node.key is not None:
            warning = settings.check(node.key, node.value or "")
            if warning is not None:
                self._screen.tell(warning, "WARNING")
        with interruptible(), watched(self._env, "query") as progress:
            result = self._tables.execute_sql(piece.text)
            client = result.get_job_client()
            if isinstance(node, s.SelectStatement):
                with result.collect():  # a query ends with its statement, wherever Ctrl-C finds it
                    self._query(result, progress)
            elif client is not None:
                sync = self._env._configuration.get(sql_options.DML_SYNC)
                self.jobs.add(BackgroundJob(client, progress, place), wait=sync)
            elif result._schema is None:
                self._screen.tell("done")
            else:
                for text in result.lines():
                    self._screen.line(text)

    def _command(self, found: Command, text: str) -> None:
        match found.word:
            case "QUIT" | "EXIT":
                raise Leave
            case "CLEAR":
                self._screen.clear()
            case "HELP":
                self._screen.line(HELP)
            case "SOURCE":
                self._source(found.file)
            case "DRAW":
                try:
                    self._draw(found)
                except SqlError as problem:
                    raise relocated(problem, found.statement, found.statement_at, text) from None

    def _source(self, path: str) -> None:
        if self._depth >= _NESTED:
            raise SourcedTooDeep(path)
        self._depth += 1
        try:
            self.run(read(path), path)
        finally:
            self._depth -= 1

    def _draw(self, found: Command) -> None:
        node = parse_statement(found.statement)
        plans = self._tables._placed(found.statement, lambda: self._tables._plans_of(node, found.statement))
        plan = execution_plan(job_graph(self._tables._graph_of(plans), "plan"))
        drawn = explain.mermaid(plan) if found.file.endswith((".mmd", ".md")) else svg(plan)
        try:
            Path(found.file).write_text(drawn, encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise CannotUseFile(found.file, problem) from None
        self._screen.tell(f"wrote {found.file}")

    # ------------------------------------------------------------------------------------------------------ queries

    def _query(self, result: TableResult, progress: Progress) -> None:
        config = self._env._configuration
        mode = config.get(sql_options.RESULT_MODE) if self._mode_is_chosen() else "tableau"
        most = config.get(sql_options.MAX_TABLE_ROWS)
        columns = self._columns(result, ops=mode == "changelog")
        if mode != "tableau" and self._view is not None:
            self._view(result, columns, Changes(most) if mode == "changelog" else LiveTable(most), progress)
            return
        with StatusLine(self._screen.out, self._screen.err) as status:
            shown_on(progress, status.show)
            if mode == "table" or not result._streaming:
                kept = LiveTable(most)
                self._gather(result, kept)
                for line in tableau.bounded(
                    columns.names, [columns.cells(r) for r in kept.page(0, most)], columns.most
                ):
                    status.write(line)
            else:
                self._stream(result, columns, status)

    def _mode_is_chosen(self) -> bool:
        return self._view is not None or self._env._configuration.contains(sql_options.RESULT_MODE)

    def _columns(self, result: TableResult, *, ops: bool) -> Columns:
        schema, cells = result._row_type(), result._cells()

        def safe(row: Row) -> list[str]:
            return [printable(cell) for cell in cells(row)]

        return Columns(
            schema.names, schema.types, safe, self._env._configuration.get(sql_options.MAX_COLUMN_WIDTH), ops
        )

    @staticmethod
    def _gather(result: TableResult, kept: Kept) -> None:
        with result.collect() as rows:
            for row in rows:
                kept.add(row)

    def _stream(self, result: TableResult, columns: Columns, status: StatusLine) -> None:
        count = 0

        def counted(rows: Iterator[Row]) -> Iterator[tuple[int, Sequence[str]]]:
            nonlocal count
            for row in rows:
                count += 1
                yield row.get_row_kind().value, columns.cells(row)

        try:
            with result.collect() as rows:
                for line in tableau.streamed(columns.names, columns.kinds, counted(rows), columns.most):
                    status.write(line)
        except KeyboardInterrupt:
            if not self._screen.interactive:
                raise
            if count:
                status.write(tableau.border([2, *tableau.stream_widths(columns.names, columns.kinds, columns.most)]))
            status.write(f"Query terminated, received a total of {count} {'row' if count == 1 else 'rows'}")


def read(path: str) -> str:
    """The text of a script."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        raise CannotUseFile(path, problem) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt here, whatever libraries have made of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Any = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
