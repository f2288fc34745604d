"""Printed tables equal those of Flink, line by line."""

from typing import Any

import pytest
from sql_cases import content, environment

PRINTED = content("printed")["printed"]
PRINTED_BY_FLINK = [case for case in PRINTED if not case["lines"][0].startswith("refused")]  # not refused by Flink


@pytest.mark.parametrize("case", PRINTED_BY_FLINK, ids=[case["sql"][:40] for case in PRINTED_BY_FLINK])
def test_a_result_is_printed_as_by_flink(case: dict[str, Any], inline_engine: None) -> None:
    env = environment({})
    index = PRINTED.index(case)
    for before in PRINTED[:index]:
        if before["sql"].startswith("CREATE"):
            env.execute_sql(before["sql"])
    lines = [line for text in env.execute_sql(case["sql"]).lines() for line in text.split("\n")]
    assert lines == case["lines"]
