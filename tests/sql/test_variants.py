"""VARIANT: the methods of variants, and variants in tables, functions and Python programs."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import UserError
from millstream.sql.types.variants import VariantTypeError
from millstream.table import TableEnvironment, Variant
from millstream.table.udf import udf

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | DECIMALS
    | st.text(max_size=4)
)
PLAIN = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(PLAIN)
def test_parsing_the_text_of_a_variant_returns_an_equal_variant(value: Any) -> None:
    variant = Variant.of(value)
    assert Variant.parse_json(variant.text) == variant
    assert Variant.of(variant.value) == variant
    assert pickle.loads(pickle.dumps(variant)) == variant


@pytest.mark.parametrize(
    ("text", "type_name", "value"),
    [
        ("null", "NULL", None),
        ("true", "BOOLEAN", True),
        ("127", "TINYINT", 127),
        ("128", "SMALLINT", 128),
        ("-32769", "INT", -32769),
        ("2147483648", "BIGINT", 2147483648),
        ("9223372036854775808", "DECIMAL", Decimal(9223372036854775808)),
        ("1.50", "DECIMAL", Decimal("1.5")),
        ("1.0", "DECIMAL", Decimal(1)),
        ("1" + "0" * 38, "DOUBLE", 1e38),
        ("1e0", "DOUBLE", 1.0),
        ("1e999", "DOUBLE", math.inf),
        ('"x"', "STRING", "x"),
        ("[1]", "ARRAY", [1]),
        ('{"a": 1}', "OBJECT", {"a": 1}),
    ],
)
def test_a_variant_has_a_type(text: str, type_name: str, value: Any) -> None:
    variant = Variant.parse_json(text)
    assert (variant.get_type(), variant.value, type(variant.value)) == (type_name, value, type(value))


def test_a_variant_has_the_getters_of_java() -> None:
    variant = Variant.parse_json('{"b": [1, 300], "a": null, "d": 0.5, "s": "x"}')
    assert variant.is_object()
    assert not variant.is_primitive()
    assert variant.get_field_names() == ["a", "b", "d", "s"]
    assert variant.get_field("a").is_null()
    assert variant.get_field("c") is None
    numbers = variant.get_field("b")
    assert numbers.get_array_size() == 2
    assert (numbers.get_element(0).get_byte(), numbers.get_element(1).get_short()) == (1, 300)
    assert numbers.get_element(2) is None
    assert numbers.get_element(-1) is None
    assert variant.get_field("d").get_decimal() == Decimal("0.5")
    assert variant.get_field("s").get_string() == "x"
    with pytest.raises(VariantTypeError, match="TINYINT, not INT"):
        numbers.get_element(0).get_int()
    with pytest.raises(VariantTypeError, match="OBJECT, not ARRAY"):
        variant.get_element(0)
    with pytest.raises(VariantTypeError, match="a primitive"):
        variant.get()


@pytest.mark.parametrize("value", [b"x", {1: 2}, math.nan, Decimal(10) ** 40, object()])
def test_values_that_json_cannot_represent_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        Variant.of(value)


# --------------------------------------------------------------------------------------------------------------- tables


def only(env: TableEnvironment, sql: str) -> list[Any]:
    with env.execute_sql(sql).collect() as rows:
        return [tuple(row) for row in rows]


def test_python_programs_get_variants(t_env: TableEnvironment) -> None:
    ((variant, within, nothing),) = only(
        t_env, "SELECT PARSE_JSON('[1e3]'), ARRAY[PARSE_JSON('1')], TRY_PARSE_JSON('')"
    )
    assert (variant, within, nothing) == (Variant.of([1000.0]), [Variant.of(1)], None)


def test_a_data_frame_has_the_json_of_variants(t_env: TableEnvironment) -> None:
    frame = t_env.sql_query('SELECT PARSE_JSON(\'{"b": 1e3, "a": 2.50}\') AS v').to_pandas()
    assert frame["v"].tolist() == ['{"a":2.5,"b":1000.0}']


def test_variants_are_arguments_and_results_of_functions(t_env: TableEnvironment) -> None:
    @udf(result_type="VARIANT")
    def convert(variant: Variant) -> Variant:
        return Variant.of({"was": variant, "size": variant.get_array_size()})

    t_env.create_temporary_function("turned", convert)
    assert only(t_env, "SELECT turned(PARSE_JSON('[1, 2.50]'))['was'][2]") == [(Variant.of(Decimal("2.50")),)]


def test_a_result_that_is_not_a_variant_is_refused(t_env: TableEnvironment) -> None:
    t_env.create_temporary_function("turned", udf(lambda value: "{}", result_type="VARIANT"))
    with pytest.raises(UserError, match="VARIANT"):
        only(t_env, "SELECT turned(1)")


def test_a_table_can_have_a_column_of_variants(t_env: TableEnvironment) -> None:
    columns = "`v` VARIANT,\n  `w` VARIANT NOT NULL,\n  `a` ARRAY<VARIANT>"
    t_env.execute_sql(f"CREATE TABLE made ({columns}) WITH ('connector' = 'blackhole')")
    assert columns in only(t_env, "SHOW CREATE TABLE made")[0][0]
    assert [row[1:3] for row in only(t_env, "DESCRIBE made")] == [
        ("VARIANT", True),
        ("VARIANT", False),
        ("ARRAY<VARIANT>", True),
    ]


def test_invalid_json_is_an_error_with_its_text(t_env: TableEnvironment) -> None:
    with pytest.raises(UserError, match="failed to parse JSON 'oops'"):
        only(t_env, "SELECT PARSE_JSON('oops')")


def test_functions_are_listed(t_env: TableEnvironment) -> None:
    assert {"parse_json", "try_parse_json"} <= {name.lower() for name in t_env.list_functions()}


def test_a_compiled_plan_keeps_the_type(t_env: TableEnvironment) -> None:
    t_env.execute_sql("CREATE TABLE made (v VARIANT) WITH ('connector' = 'blackhole')")
    plan = t_env.compile_plan_sql("INSERT INTO made SELECT PARSE_JSON(x) FROM (VALUES ('1')) AS t (x)")
    assert "VARIANT" in plan.as_json_string()


def test_json_functions_read_paths_of_variants(t_env: TableEnvironment) -> None:
    sql = """SELECT JSON_VALUE(v, '$.a' RETURNING INT), JSON_QUERY(v, '$.b'), JSON_EXISTS(v, '$.c')
        FROM (VALUES PARSE_JSON('{"a": 1, "b": [2.50]}')) AS t (v)"""
    assert only(t_env, sql) == [(1, "[2.5]", False)]


@pytest.mark.parametrize("how", ["INSERT INTO made SELECT PARSE_JSON('1')", "SELECT * FROM made"])
def test_formats_refuse_variants(t_env: TableEnvironment, tmp_path: Path, how: str) -> None:
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    t_env.execute_sql(f"CREATE TABLE made (v VARIANT) WITH ({options})")
    with pytest.raises(UserError, match="cannot read or write VARIANT"):
        t_env.execute_sql(how)


def test_they_are_printed_as_json(t_env: TableEnvironment, capfd: pytest.CaptureFixture[str]) -> None:
    t_env.execute_sql("CREATE TABLE made (v VARIANT) WITH ('connector' = 'print')")
    t_env.execute_sql("INSERT INTO made SELECT PARSE_JSON('[1.50]')").wait()
    assert "+I[[1.5]]" in capfd.readouterr().out
