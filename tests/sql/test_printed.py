"""Printed tables look as Flink's, line by line."""

from typing import Any

import pytest
from sql_cases import content, environment

PRINTED = content("printed")["printed"]


@pytest.mark.parametrize("case", PRINTED, ids=[case["sql"][:40] for case in PRINTED])
def test_a_result_is_printed_as_flink_prints_it(case: dict[str, Any], inline_engine: None) -> None:
    if case["lines"][0].startswith("refused"):
        pytest.skip("Flink refuses it")
    env = environment({})
    index = PRINTED.index(case)
    for before in PRINTED[:index]:
        if before["sql"].startswith("CREATE"):
            env.execute_sql(before["sql"])
    lines = [line for text in env.execute_sql(case["sql"]).lines() for line in text.split("\n")]
    assert lines == case["lines"]
