"""OVER in the order of a column that is no time: a later row corrects the results of earlier ones."""

from __future__ import annotations

from collections import Counter

import pytest

from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment

pytestmark = pytest.mark.usefixtures("inline_engine")

ROWS = "(VALUES ('a', 1), ('b', 3), ('a', 5), ('c', 3), ('b', 2), ('c', 9)) AS t(u, n)"
LARGEST = f"(SELECT u, MAX(n) AS n FROM {ROWS} GROUP BY u)"


def remaining_rows(query: str, *, batch: bool = False) -> Counter[tuple[object, ...]]:
    """The rows that remain after all changes."""
    settings = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    t_env = TableEnvironment.create(settings)
    t_env.get_config().set("parallelism.default", "1")
    rows: Counter[tuple[object, ...]] = Counter()
    with t_env.execute_sql(query).collect() as changes:
        for change in changes:
            rows[tuple(change)] += 1 if str(change.get_row_kind()) in ("+I", "+U") else -1
    assert all(count >= 0 for count in rows.values())
    return +rows


@pytest.mark.parametrize("source", [ROWS, LARGEST], ids=["insert-only", "updating"])
@pytest.mark.parametrize(
    "call",
    [
        "DENSE_RANK() OVER (ORDER BY n), ROW_NUMBER() OVER (PARTITION BY u ORDER BY n)",
        "SUM(n) OVER (w), RANK() OVER (w), COUNT(*) OVER (w)",
    ],
)
def test_the_rows_that_remain_are_those_of_a_batch_job(source: str, call: str) -> None:
    query = f"SELECT u, n, {call} FROM {source} WINDOW w AS (ORDER BY n)"
    assert remaining_rows(query) == remaining_rows(query, batch=True)


def test_ranks_have_gaps_and_dense_ranks_have_none() -> None:
    query = f"SELECT n, RANK() OVER (ORDER BY n), DENSE_RANK() OVER (ORDER BY n) FROM {ROWS}"
    expected = [(1, 1, 1), (2, 2, 2), (3, 3, 3), (3, 3, 3), (5, 5, 4), (9, 6, 5)]
    assert remaining_rows(query) == Counter(expected)


@pytest.mark.parametrize(
    "call",
    ["RANK() OVER (ORDER BY n DESC)", "LAG(n) OVER (ORDER BY n)", "SUM(n) OVER (ORDER BY n, u)"],
)
def test_what_cannot_be_computed_on_a_stream_is_refused(call: str) -> None:
    with pytest.raises(SqlError, match="one time attribute, ascending"):
        remaining_rows(f"SELECT u, {call} FROM {ROWS}")
