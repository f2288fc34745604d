"""Functions have the values and types of the real Flink."""

from typing import Any

import pytest
from sql_cases import GOLDEN, content

from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.errors import SqlError, SqlNotSupported
from millstream.sql.evaluation.evaluate import EvaluationFailed, evaluate_constant
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.functions.aggregates import AGGREGATES, create_aggregation
from millstream.sql.functions.library import list_functions
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.functions.special_forms import SPECIAL_FORMS
from millstream.sql.functions.text import to_text
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.syntax import parse_expression
from millstream.sql.types import data_types as t
from millstream.table import EnvironmentSettings, TableEnvironment

CASES = [
    pytest.param(case, id=case["sql"])
    for path in sorted(GOLDEN.glob("functions_*.yaml"))
    for case in content(path.stem)["expressions"]
    if "value" in case or "refused" in case
]


def compute(sql: str) -> tuple[str, str]:
    bound = ExpressionBinder(Session(Catalogs()), Scope()).bind(parse_expression(sql))
    value = evaluate_constant(bound, now=1_700_000_000_000)
    bytes_text = f"x'{value.hex()}'" if isinstance(value, bytes) and t.is_bytes(bound.type) else None
    return str(bound.type), "<NULL>" if value is None else bytes_text or to_text(value, bound.type)


@pytest.mark.parametrize("case", CASES)
def test_an_expression_has_flinks_value_and_type(case: dict[str, Any]) -> None:
    if "differs" in case:
        compute(case["sql"])
        return
    if "refused" in case:
        with pytest.raises((SqlError, EvaluationFailed)):
            compute(case["sql"])
        return
    data_type, value = compute(case["sql"])
    assert value == case["value"]
    assert data_type == case["type"]


@pytest.mark.parametrize(
    ("sql", "zone", "value"),
    [
        ("TO_TIMESTAMP_LTZ(1234567890, 0)", "UTC", "2009-02-13 23:31:30.000"),
        ("TO_TIMESTAMP_LTZ(1234567890123)", "UTC", "2009-02-13 23:31:30.123"),
        ("TO_TIMESTAMP_LTZ(12345678901234, 4)", "UTC", "2009-02-13 23:31:30.1234"),
        ("TO_TIMESTAMP_LTZ(1234567890123456789, 9)", "UTC", "2009-02-13 23:31:30.123456789"),
        ("TO_TIMESTAMP_LTZ(CAST(1234567890.9 AS DECIMAL(20, 1)), 0)", "UTC", "2009-02-13 23:31:30.000"),
        ("TO_TIMESTAMP_LTZ(1.5E0, 0)", "UTC", "1970-01-01 00:00:01.500"),
        ("TO_TIMESTAMP_LTZ('2023-01-01 00:00:00')", "Asia/Tokyo", "2023-01-01 00:00:00.000"),
        ("TO_TIMESTAMP_LTZ('2023-01-01 00:00', 'yyyy-MM-dd HH:mm', 'Asia/Shanghai')", "UTC", "2022-12-31 16:00:00.000"),
        (
            "TO_TIMESTAMP_LTZ('2023-01-01 12:30:00.123456789', 'yyyy-MM-dd HH:mm:ss.SSSSSSSSS')",
            "UTC",
            "2023-01-01 12:30:00.123456789",
        ),
        ("UNIX_TIMESTAMP('1970-01-01 08:00:01.001', 'yyyy-MM-dd HH:mm:ss.SSS')", "Europe/Berlin", "25201"),
        ("UNIX_TIMESTAMP('1970-01-01 08:00:01.001 +0800', 'yyyy-MM-dd HH:mm:ss.SSS X')", "Europe/Berlin", "1"),
        ("UNIX_TIMESTAMP('1970-01-01 08:00:01.001 +0800', 'yyyy-MM-dd HH:mm:ss.SSS')", "Europe/Berlin", "25201"),
        ("UNIX_TIMESTAMP('1970-01-01 08:00:01.001', 'yyyy-MM-dd HH:mm:ss.SSS X')", "UTC", "-9223372036854775808"),
    ],
)
def test_epochs_and_texts_become_the_timestamps_that_flink_documents(sql: str, zone: str, value: str) -> None:
    bound = ExpressionBinder(Session(Catalogs()), Scope()).bind(parse_expression(sql))
    assert to_text(evaluate_constant(bound, zone=zone), bound.type) == value


def test_the_precision_of_an_epoch_is_checked_when_the_query_is_planned() -> None:
    with pytest.raises(SqlError, match="must be 0 to 9, not 10"):
        compute("TO_TIMESTAMP_LTZ(1, 10)")


@pytest.mark.parametrize(
    ("sql", "zone", "value"),
    [
        ("LOCALTIMESTAMP", "UTC", "2023-11-14 22:13:20.000"),
        ("LOCALTIMESTAMP", "Asia/Tokyo", "2023-11-15 07:13:20.000"),
        ("LOCALTIME", "Asia/Tokyo", "07:13:20"),
        ("CURRENT_ROW_TIMESTAMP()", "UTC", "2023-11-14 22:13:20.000"),
        ("DAYOFYEAR(DATE '2023-12-31')", "UTC", "365"),
        ("DAYOFYEAR(TIMESTAMP '2024-12-31 23:59:59')", "UTC", "366"),
        ("DAYOFYEAR(CURRENT_TIMESTAMP)", "Asia/Tokyo", "319"),
    ],
)
def test_the_current_time_is_that_of_the_epoch_in_the_session_zone(sql: str, zone: str, value: str) -> None:
    bound = ExpressionBinder(Session(Catalogs()), Scope()).bind(parse_expression(sql))
    assert to_text(evaluate_constant(bound, now=1_700_000_000_000, zone=zone), bound.type) == value


@pytest.mark.parametrize(("numbers", "variance"), [([1.0, 2.0, 4.0], 7 / 3), ([5.0, None, 5.0], 0.0), ([3.0], None)])
def test_variance_is_that_of_a_sample_after_retractions_and_merges(
    numbers: list[float | None], variance: float | None
) -> None:
    call = AggregateCall("VARIANCE", (0,), t.DOUBLE, (t.DOUBLE,))
    function = create_aggregation(call, retracts=True)
    accumulator, other = function.create(), function.create()
    for number in [*numbers, 1000.0]:
        function.add(accumulator, (number,))
    function.retract(accumulator, (1000.0,))
    assert function.value(accumulator) == (None if variance is None else pytest.approx(variance, abs=1e-9))
    function.merge(other, accumulator)
    assert function.value(other) == function.value(accumulator)


@pytest.mark.parametrize("call", ["CUME_DIST()", "PERCENT_RANK()", "NTILE(2)", "LEAD(v)"])
def test_functions_that_need_later_rows_are_refused_on_streams(call: str) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.execute_sql("CREATE TABLE t (v INT, p AS PROCTIME()) WITH ('connector' = 'datagen')")
    with pytest.raises(SqlNotSupported, match="needs rows after the current one"):
        env.explain_sql(f"SELECT {call} OVER (ORDER BY p) FROM t")


@pytest.mark.parametrize("call", ["NTILE()", "NTILE(0)", "NTILE(v)"])
def test_ntile_needs_a_number_of_buckets(call: str) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.execute_sql("CREATE TABLE t (v INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')")
    with pytest.raises(SqlError, match="number of buckets"):
        env.explain_sql(f"SELECT {call} OVER (ORDER BY v) FROM t")


def test_every_function_has_a_sentence_for_the_reference_page() -> None:
    docs = [function.doc for function in (*list_functions(), *SPECIAL_FORMS.values(), *OVER_FUNCTIONS.values())]
    docs += [function.doc for function in AGGREGATES.values()]
    assert [doc for doc in docs if not doc.endswith(".")] == []


@pytest.mark.parametrize(
    "expression",
    [
        "'5' + 5",
        "5 * '5'",
        "'5' / '2'",
        "-'5'",
        "MOD('5', 2)",
        "ABS('5')",
        "SQRT('5')",
        "POWER('5', 2)",
        "ROUND(1.5, '1')",
        "ROUND(1.5, 1.0)",
        "SUBSTRING('abc', '1')",
        "LPAD('a', '3', 'x')",
        "REPEAT('a', 2.0)",
        "FROM_UNIXTIME('5')",
        "'2024-01-01 00:00:00' + INTERVAL '1' DAY",
        "EXTRACT(YEAR FROM '2024-01-01')",
        "FLOOR('2024-01-01' TO DAY)",
        "TIMESTAMPADD(DAY, 1, '2024-01-01')",
    ],
)
def test_arguments_are_not_cast_implicitly(expression: str) -> None:
    """Flink 2.3 refuses each of these."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    with pytest.raises(SqlError, match="cannot be applied to"):
        env.sql_query(f"SELECT {expression}")
