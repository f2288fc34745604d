"""Late rows are dropped and counted where Flink drops them, and nowhere else.

Each row is a separate epoch, so that the watermark advances after every row, as in Flink."""

from __future__ import annotations

import ast
import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sql_cases import content, materialize
from test_restart import program

from millstream.job.job_status import JobStatus
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators.window.lateness import count_dropped_rows
from millstream.sql.operators.window.window_aggregate import assign_windows
from millstream_chaos.simulation import Life, Setup, World, run

TOPICS = ("late/rows", "late/joins")
QUERIES = [
    pytest.param(topic, query, id=f"{topic.rpartition('/')[2]}-{query['name']}")
    for topic in TOPICS
    for query in content(topic)["queries"]
    if "changelog" in query
]
WINDOWS = {  # seconds from the multiple of 5 s before a row to the end of a window of it
    "tumble": lambda at: [at // 10 * 10 + 10],
    "tumble_by_rows": lambda at: [at // 10 * 10 + 10],
    "hop": lambda at: [at // 5 * 5 + 5, at // 5 * 5 + 10],
    "cumulate": lambda at: [end for end in (at // 10 * 10 + 5, at // 10 * 10 + 10) if end > at],
}


def run_row_by_row(topic: str, query: dict[str, Any], parallelism: int) -> tuple[Life, list[list[str]]]:
    setup = Setup(
        program(content(topic), query["sql"], {}),
        parallelism=parallelism,
        epoch_records=1,
        checkpoint_every=None,
    )
    with World() as world:
        result = run(setup, world)
        assert result.status is JobStatus.FINISHED, result.failure
        return result, list(map(ast.literal_eval, world.visible()))


def count_dropped(result: Life) -> int:
    counted = [metrics.get("numLateRecordsDropped", 0) for each in result.epochs for metrics in each.metrics.values()]
    return sum(counted)


@pytest.mark.parametrize(("topic", "query"), QUERIES)
def test_late_rows_are_dropped_where_flink_drops_them(topic: str, query: dict[str, Any]) -> None:
    _, rows = run_row_by_row(topic, query, 2 if query["name"] != "sorted" else 1)
    assert materialize(rows) == materialize(query["changelog"])


@given(
    times=st.lists(st.integers(0, 60), min_size=1, max_size=12),
    passed=st.integers(0, 80),
    window=st.sampled_from(
        [
            WindowSpec("TUMBLE", 0, 10, 10),
            WindowSpec("HOP", 0, 10, 5),
            WindowSpec("HOP", 0, 12, 4, 1),
            WindowSpec("CUMULATE", 0, 12, 4, 2),
        ]
    ),
)
def test_rows_of_one_batch_count_once_each(times: list[int], passed: int, window: WindowSpec) -> None:
    rows, _, ends = assign_windows(np.array(times), window)
    late = ends - 1 <= passed
    dropped_rows = [row for row in range(len(times)) if late[rows == row].all()]
    assert count_dropped_rows(ends, late, window) == len(dropped_rows)


@pytest.mark.parametrize("name", WINDOWS)
def test_a_row_is_dropped_if_all_its_windows_have_fired(name: str) -> None:
    case = content("late/rows")
    query = next(each for each in case["queries"] if each["name"] == name)
    passed, expected = -(10.0**9), 0
    for text, *_ in case["tables"]["s"]["rows"]:
        moment = datetime.datetime.fromisoformat(text)
        at = moment.minute * 60 + moment.second + moment.microsecond / 1e6
        expected += all(end - 0.001 <= passed for end in WINDOWS[name](at))
        passed = max(passed, at - 2)
    assert expected > 0
    result, _ = run_row_by_row("late/rows", query, 2)
    assert count_dropped(result) == expected
