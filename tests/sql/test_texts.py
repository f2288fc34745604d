"""Every text form of a value is Flink's: CAST to STRING, tableaus, the print connector, DataStream.print; so are
the objects that collect() returns."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from value_texts import EXPRESSIONS, GOLDEN, NUMBER_COLUMNS, NUMBER_EXPRESSIONS, NUMBERS, streams

from millstream.common import Row, Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.table import EnvironmentSettings, TableEnvironment

#: The planner of Flink computes these with other types than its runtime; a column gives what millstream gives.
FOLDED = ("CAST('-0.0' AS FLOAT)", "CAST('-0.0' AS DOUBLE)")


@cache
def read_recorded() -> dict[str, list[Any]]:
    content: dict[str, list[Any]] = yaml.safe_load(GOLDEN.read_text())
    return content


def cases_of_expressions() -> list[Any]:
    return [case for case in read_recorded()["expressions"] if "refused" not in case and case["sql"] not in FOLDED]


@pytest.fixture
def env(inline_engine: None) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("table.local-time-zone", "UTC")
    return env


def select(cases: list[Any]) -> str:
    columns = [f"{case['sql']} AS c{i}" for i, case in enumerate(cases)]
    return f"SELECT {', '.join(columns)}"


def read_cells(env: TableEnvironment, sql: str) -> tuple[list[str], list[list[str]]]:
    """The types of a query, and the texts of its rows as in a tableau."""
    result = env.execute_sql(sql)
    types = [str(data_type) for data_type in result._get_row_type().types]
    format_cells = result._create_cell_formatter()
    with result._convert_to_exact_rows() as rows:
        return types, [format_cells(row) for row in rows]


def is_interval(case: Any) -> bool:
    return "INTERVAL" in case["type"]


def test_everything_is_recorded() -> None:
    assert [case["sql"] for case in read_recorded()["expressions"]] == EXPRESSIONS
    assert [case["sql"] for case in read_recorded()["numbers"]] == NUMBER_EXPRESSIONS


def test_values_are_cast_to_text_as_by_flink(env: TableEnvironment) -> None:
    cases = cases_of_expressions()
    types, (texts,) = read_cells(env, select(cases))
    actual = {case["sql"]: (data_type, text) for case, data_type, text in zip(cases, types, texts, strict=True)}
    # the schema of a result has the precision of the interval literal
    expected = {
        case["sql"]: (actual[case["sql"]][0] if is_interval(case) else case["type"], case["cast"]) for case in cases
    }
    assert actual == expected


def test_values_are_collected_as_by_pyflink(env: TableEnvironment) -> None:
    # PyFlink cuts timestamps to milliseconds, and fails for some types
    cases = [
        case
        for case in cases_of_expressions()
        if case["collected"] is not None
        and "datetime.datetime(" not in case["collected"]
        and case["cast"] != "0.0000000001"
    ]
    with env.execute_sql(select(cases)).collect() as rows:
        (row,) = list(rows)
    actual = {case["sql"]: repr(value) for case, value in zip(cases, row, strict=True)}
    assert actual == {case["sql"]: case["collected"] for case in cases}


def test_numbers_of_columns_are_computed_as_by_flink(env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text("".join(f"{line}\n" for line in NUMBERS))
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/numbers.csv', 'format' = 'csv'"
    env.execute_sql(f"CREATE TABLE numbers ({NUMBER_COLUMNS}) WITH ({options})")
    cases = read_recorded()["numbers"]
    types, rows = read_cells(env, f"{select(cases)} FROM numbers")
    columns = list(zip(*rows, strict=True))
    actual = {
        case["sql"]: (data_type, normalize(data_type, column))
        for case, data_type, column in zip(cases, types, columns, strict=True)
    }
    assert actual == {case["sql"]: (case["type"], normalize(case["type"], case["cast"])) for case in cases}


def normalize(data_type: str, texts: Any) -> list[str]:
    """Texts of numbers without the digits in which versions of Java differ."""
    if data_type.startswith(("FLOAT", "DOUBLE")):
        number = np.float32 if data_type.startswith("FLOAT") else np.float64
        return [str(number(text.replace("Infinity", "inf"))) for text in texts]
    return list(texts)


def test_values_are_printed_as_by_flink(env: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    cases = cases_of_expressions()
    columns = [f"c{i} {case['type'].removesuffix(' NOT NULL')}" for i, case in enumerate(cases)]
    env.execute_sql(f"CREATE TABLE printed ({', '.join(columns)}) WITH ('connector' = 'print')")
    env.execute_sql(f"INSERT INTO printed {select(cases)}").wait()
    line = capsys.readouterr().out.removeprefix("+I[")
    for case in cases:
        text = case["printed"].removeprefix("+I[").removesuffix("]")
        assert (case["sql"], line[: len(text)]) == (case["sql"], text)
        line = line[len(text) :].removeprefix(", ")
    assert line == "]\n"


def test_typed_records_are_printed_as_by_pyflink(inline_engine: None, capsys: pytest.CaptureFixture[str]) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    cases = streams(Types, Row)
    for i, (_, type_info, value) in enumerate(cases):
        env.from_collection([0]).map(lambda _, value=value: value, type_info).print(str(i))
    env.execute()
    lines = dict(line.split("> ", 1) for line in capsys.readouterr().out.splitlines())
    actual = [lines.get(str(i)) for i in range(len(cases))]
    assert actual == [case["printed"] for case in read_recorded()["streams"]]
