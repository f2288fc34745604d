"""Aggregation by slices has the same windows as the assignment of each row to its windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sql_cases import changelog, content, environment, materialize

from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators.window.slices import (
    can_slice,
    compute_last_ends,
    compute_slice_ends,
    compute_start,
    compute_window_ends,
)
from millstream.sql.operators.window.window_aggregate import assign_windows

MOMENTS = st.lists(st.integers(-200, 200), min_size=1)
WINDOWS = st.builds(
    lambda function, slide, times, offset: WindowSpec(function, 0, slide * times, slide, offset),
    st.sampled_from(("TUMBLE", "HOP", "CUMULATE")),
    st.integers(1, 12),
    st.integers(1, 5),
    st.integers(-5, 5),
)
QUERIES = [
    pytest.param(query, id=query["name"])
    for query in content("windows")["queries"]
    if "changelog" in query and "GROUP BY" in query["sql"].upper()
]


@given(MOMENTS, WINDOWS)
def test_the_windows_of_slices_are_those_of_their_rows(moments: list[int], window: WindowSpec) -> None:
    times = np.array(moments, dtype=np.int64)
    rows, starts, ends = assign_windows(times, window)
    actual = set()
    slices = compute_slice_ends(times, window)
    for row, slice_end in enumerate(slices):
        row_ends = compute_window_ends(np.array([slice_end]), window)
        actual |= {(row, compute_start(int(end), window), int(end)) for end in row_ends}
        assert compute_last_ends(np.array([slice_end]), window)[0] == row_ends[-1]
        # A window consists of the slices from its start to its end.
        for end in compute_window_ends(np.unique(slices), window).tolist():
            assert (compute_start(end, window) < slice_end <= end) == (end in row_ends)
    assert can_slice(window)
    assert actual == set(zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True))


@pytest.mark.parametrize("query", QUERIES)
def test_one_phase_has_the_same_windows(query: dict[str, Any], inline_engine: None) -> None:
    options = {"table.optimizer.agg-phase-strategy": "ONE_PHASE", "parallelism.default": "2"}
    _, _, rows = changelog(environment(content("windows"), options), query["sql"])
    assert materialize(rows) == materialize(query["changelog"])


def test_columns_and_conditions_are_computed_before_windows(inline_engine: None) -> None:
    rows = [[k, i, f"2024-01-01 00:00:{i:02d}"] for i in range(30) for k in ("a", "b")]
    columns = {"k": "STRING", "v": "INT", "ts": "TIMESTAMP(3)"}
    env = environment({"tables": {"t": {"columns": columns, "rows": rows, "watermark": {"ts": "ts"}}}})
    sql = """SELECT k || '!', window_end, SUM(v * 2) FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND,
        INTERVAL '10' SECOND) WHERE MOD(v, 2) = 0 GROUP BY k || '!', window_start, window_end"""
    assert "WindowTableFunction" not in env.explain_sql(sql)  # rows are not assigned to windows
    _, _, actual = changelog(env, sql)
    totals = {end: sum(2 * v for v in range(0, 30, 2) if end - 10 <= v < end) for end in range(5, 40, 5)}
    expected = {
        ("+I", f"{k}!", f"2024-01-01 00:00:{end:02d}.000", str(total))
        for k in ("a", "b")
        for end, total in totals.items()
    }
    assert set(map(tuple, actual)) == expected
