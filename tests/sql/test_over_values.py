"""OVER in the order of a column that is not a time attribute: a later row corrects the results of earlier ones."""

from __future__ import annotations

from collections import Counter

import pytest

from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment

pytestmark = pytest.mark.usefixtures("inline_engine")

ROWS = "(VALUES ('a', 1), ('b', 3), ('a', 5), ('c', 3), ('b', 2), ('c', 9)) AS t(u, n)"
LARGEST = f"(SELECT u, MAX(n) AS n FROM {ROWS} GROUP BY u)"


def remaining_rows(query: str) -> Counter[tuple[object, ...]]:
    """Return the rows that remain after all changes."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("parallelism.default", "1")
    rows: Counter[tuple[object, ...]] = Counter()
    with t_env.execute_sql(query).collect() as changes:
        for change in changes:
            rows[tuple(change)] += 1 if str(change.get_row_kind()) in ("+I", "+U") else -1
    assert all(count >= 0 for count in rows.values())
    return +rows


@pytest.mark.parametrize(
    ("source", "calls", "expected"),
    [
        (
            ROWS,
            "DENSE_RANK() OVER (ORDER BY n), ROW_NUMBER() OVER (PARTITION BY u ORDER BY n)",
            [("a", 1, 1, 1), ("b", 2, 2, 1), ("b", 3, 3, 2), ("c", 3, 3, 1), ("a", 5, 4, 2), ("c", 9, 5, 2)],
        ),
        (
            ROWS,
            "SUM(n) OVER w, RANK() OVER w, COUNT(*) OVER w",
            [("a", 1, 1, 1, 1), ("b", 2, 3, 2, 2), ("b", 3, 9, 3, 4), ("c", 3, 9, 3, 4), ("a", 5, 14, 5, 5),
             ("c", 9, 23, 6, 6)],
        ),
        (LARGEST, "ROW_NUMBER() OVER w, RANK() OVER w", [("b", 3, 1, 1), ("a", 5, 2, 2), ("c", 9, 3, 3)]),
        (LARGEST, "SUM(n) OVER w, DENSE_RANK() OVER w", [("b", 3, 3, 1), ("a", 5, 8, 2), ("c", 9, 17, 3)]),
    ],
    ids=["numbers", "ranks and aggregates", "numbers of updates", "aggregates of updates"],
)  # fmt: skip
def test_the_rows_that_remain_are_right(source: str, calls: str, expected: list[tuple[object, ...]]) -> None:
    query = f"SELECT u, n, {calls} FROM {source} WINDOW w AS (ORDER BY n)"
    assert remaining_rows(query) == Counter(expected)


@pytest.mark.parametrize(
    "call",
    ["RANK() OVER (ORDER BY n DESC)", "LAG(n) OVER (ORDER BY n)", "SUM(n) OVER (ORDER BY n, u)"],
)
def test_what_cannot_be_computed_on_a_stream_is_refused(call: str) -> None:
    with pytest.raises(SqlError, match="one time attribute, ascending"):
        remaining_rows(f"SELECT u, {call} FROM {ROWS}")
