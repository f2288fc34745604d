"""Functions give the values and types that the real Flink gives."""

from typing import Any

import pytest
from sql_cases import GOLDEN, content

from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.errors import SqlError
from millstream.sql.evaluation.evaluate import EvaluationFailed, constant
from millstream.sql.functions.registry import all_functions
from millstream.sql.functions.text import to_text
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.syntax import parse_expression
from millstream.sql.types import data_types as t

CASES = [
    pytest.param(case, id=case["sql"])
    for path in sorted(GOLDEN.glob("functions_*.yaml"))
    for case in content(path.stem)["expressions"]
    if "value" in case or "refused" in case
]


def computed(sql: str) -> tuple[str, str]:
    bound = ExpressionBinder(Session(Catalogs()), Scope()).bind(parse_expression(sql))
    value = constant(bound, now=1_700_000_000_000)
    shown = f"x'{value.hex()}'" if isinstance(value, bytes) and t.is_bytes(bound.type) else None
    return str(bound.type), "<NULL>" if value is None else shown or to_text(value, bound.type)


@pytest.mark.parametrize("case", CASES)
def test_an_expression_has_flinks_value_and_type(case: dict[str, Any]) -> None:
    if "differs" in case:
        computed(case["sql"])
        return
    if "refused" in case:
        with pytest.raises((SqlError, EvaluationFailed)):
            computed(case["sql"])
        return
    kind, value = computed(case["sql"])
    assert value == case["value"]
    assert kind == case["type"]


def test_every_function_says_what_it_does() -> None:
    assert all(each.doc.endswith(".") for each in all_functions())
