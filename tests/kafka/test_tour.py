"""The SQL tour, statement by statement as it is written, against a real broker."""

from __future__ import annotations

import re
from collections import Counter
from io import StringIO
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from millstream.cli.shell.results import Columns
from millstream.cli.shell.screen import Screen
from millstream.cli.shell.shell import Shell
from millstream.cli.shell.statements import split_statements
from millstream.client.job_progress import Progress
from millstream.datastream import StreamExecutionEnvironment
from millstream.table import StreamTableEnvironment
from millstream.table.query_rows import QueryRows
from millstream.table.table_result import TableResult

PATIENCE = 120.0
TOUR = Path(__file__).parent.parent.parent / "docs" / "learn" / "sql-tour.md"


class Reader:
    """A user who watches a live result until every page has rows, then presses q."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def __call__(self, result: TableResult, columns: Columns, kept: QueryRows, progress: Progress) -> None:
        pages: Counter[str] = Counter()
        place = columns.names.index("page")
        late = Timer(PATIENCE, result.get_job_client().cancel)  # type: ignore[union-attr]
        late.start()
        try:
            with result.collect() as rows:
                for row in rows:
                    cells = list(columns.cells(row))
                    self.seen.append(cells)
                    pages[cells[place]] += 1
                    if len(pages) == 3:
                        return
        finally:
            late.cancel()


@pytest.mark.usefixtures("inline_engine")
def test_every_statement_of_the_tour_does_what_the_page_says(broker: Any) -> None:
    page = TOUR.read_text(encoding="utf-8")
    broker.create_topic("clicks")
    broker.create_topic("per-page")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)  # more subtasks than the topics have partitions, as on most machines
    told, look = StringIO(), Reader()
    screen = Screen(interactive=True, out=told, err=told)
    shell = Shell(env, StreamTableEnvironment.create(env), screen, look)
    job, seen = "", []
    try:
        for block in re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            for piece in split_statements(block.replace("localhost:9092", broker.bootstrap_servers)):
                look.seen = []
                shell.handle(f"{piece.text.replace('<job id>', job)};")
                said = told.getvalue()
                assert "[ERROR]" not in said, said
                job = (re.findall(r"job (\w{32}) was submitted", said) or [""])[-1]
                if piece.text.startswith("SELECT"):
                    seen.append((piece.text, look.seen))
    finally:
        shell.jobs.end()
    assert len(seen) == 4
    for statement, rows in seen:
        assert {cells[-2] for cells in rows} >= {"1", "2", "3"}, statement
        assert all(int(cells[-1]) > 0 for cells in rows), statement
    assert {(record.key(), record.value() is None) for record in broker.read("per-page")} == {
        (b'{"page":%d}' % number, False) for number in (1, 2, 3)
    }
