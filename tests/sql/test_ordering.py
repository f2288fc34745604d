"""Which types have an order, in every clause that needs one. The results are those of Flink 2.3."""

from __future__ import annotations

import pytest

from millstream.sql.errors import SqlError
from millstream.table import TableEnvironment

SORTING = ("SELECT 1 FROM (SELECT {} AS x) ORDER BY x", "SELECT ROW_NUMBER() OVER (ORDER BY x) FROM (SELECT {} AS x)")
COMPARING = (
    "SELECT GREATEST({0}, {0})",
    "SELECT ARRAY_SORT(ARRAY[{}])",
    "SELECT ARRAY_MAX(ARRAY[{}])",
    "SELECT MAX(x) FROM (SELECT {} AS x)",
    "SELECT a < b FROM (SELECT {0} AS a, {0} AS b)",
)
UNORDERED = ("MAP['a', 1]", "BITMAP_BUILD(ARRAY[1])", "PARSE_JSON('1')")
OBJECT = "OBJECT_OF('a.B', 'x', 1)"


def is_accepted(env: TableEnvironment, query: str) -> bool:
    try:
        env.sql_query(query)
    except SqlError as problem:
        return "cannot be applied to" not in str(problem)
    return True


@pytest.mark.parametrize("value", [*UNORDERED, OBJECT, "1"])
def test_types_without_an_order_are_neither_sorted_nor_compared(t_env: TableEnvironment, value: str) -> None:
    sorted_by = {query: is_accepted(t_env, query.format(value)) for query in SORTING}
    compared = {query: is_accepted(t_env, query.format(value)) for query in COMPARING}
    assert set(sorted_by.values()) == {value not in UNORDERED}, sorted_by
    assert set(compared.values()) == {value == "1"}, compared
