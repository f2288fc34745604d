"""Tables and results of statements as output of notebook cells.

Promises: showing a table runs nothing. Showing the result of a query reads its rows: a table of them is replaced while
the job runs, and Jupyter's stop button ends the job. At most 1,000 rows are kept, and 100 are shown.
Does not know: how statements are executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from millstream.client import html
from millstream.client.live_display import LiveDisplay, is_notebook
from millstream.graph.execution_plan import execution_plan
from millstream.graph.job_graph import job_graph
from millstream.graph.picture import svg
from millstream.sql.errors import SqlError
from millstream.table.query_rows import LiveTable
from millstream.table.result_kind import ResultKind
from millstream.types.row import Row

if TYPE_CHECKING:
    from millstream.table.table import Table
    from millstream.table.table_result import TableResult

_MAX_KEPT = 1000
_MAX_SHOWN = 100


def format_table_html(table: Table) -> str:
    """Return the columns of a table and the plan of its query as HTML."""
    schema = table._plan.schema
    columns = zip(schema.names, map(str, schema.types), strict=True)
    caption = "This table is not executed yet. execute(), to_pandas() or execute_insert() runs it."
    shown = html.table(["column", "type"], columns, caption)
    try:
        plan = execution_plan(job_graph(table._t_env._graph_of([table._plan]), "query"))
    except SqlError as problem:  # such a query cannot run by itself, but may be a part of one that can
        return shown + html.text(f"It cannot be executed: {problem}")
    return shown + html.details("plan", html.picture(svg(plan), "the plan of the query"))


def show_result(result: TableResult) -> None:
    """Show the result of a statement as output of the current cell; wait for the rows of a query."""
    if not is_notebook():
        print(repr(result))
        return
    if result._results is None:
        LiveDisplay(lambda: _format_statement_output(result)).show()
        return
    rows = _ShownRows(result)
    live = LiveDisplay(rows.render)
    live.show()
    try:
        with result._convert_to_exact_rows() as arriving:
            for row in arriving:
                rows.add(row)
                live.refresh()
        rows.state = ""
    except KeyboardInterrupt:
        rows.state = "; the job was cancelled"
    except Exception:
        rows.state = "; the job failed"
        raise
    finally:
        live.show()


def _format_statement_output(result: TableResult) -> tuple[str, str]:
    """Return the output of a statement that has no job, as HTML and as text."""
    if result.get_result_kind() is ResultKind.SUCCESS:
        return html.text("OK"), "OK"
    format_cells = result._create_cell_formatter()
    rows = [format_cells(row) for row in result._rows]
    return html.table(result._get_row_type().names, rows), "\n".join(result.lines())


class _ShownRows:
    """The rows of a query that have arrived so far."""

    def __init__(self, result: TableResult) -> None:
        row_type = result._get_row_type()
        self.state = "; the job is running"
        self._names: Sequence[str] = row_type.names
        self._format_cells: Callable[[Row], list[str]] = result._create_cell_formatter()
        self._rows = LiveTable(_MAX_KEPT)

    def add(self, row: Row) -> None:
        self._rows.add(row)

    def render(self) -> tuple[str, str]:
        count = len(self._rows)
        first = max(count - _MAX_SHOWN, 0)
        rows = [self._format_cells(row) for row in self._rows.page(first, _MAX_SHOWN)]
        shown = f"the last {_MAX_SHOWN} rows" if first else f"{count:,} rows" if count != 1 else "1 row"
        changes = f" after {self._rows.changes:,} changes" if self._rows.changes != count else ""
        caption = f"{shown}{changes}{self.state}"
        return html.table(self._names, rows, caption), caption
