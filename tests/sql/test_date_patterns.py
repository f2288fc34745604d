"""Timestamps are formatted and parsed by patterns as in Flink; the planner refuses wrong patterns."""

from __future__ import annotations

import datetime
import json
from functools import cache
from typing import Any

import pandas as pd
import pytest
from date_pattern_cases import GOLDEN, PARSED, PATTERNS, SECONDS, SIMPLE_PARSED, SIMPLE_PATTERNS, TIMESTAMPS, ZONES
from remaining_rows import rows

from millstream.sql.errors import SqlValidationError
from millstream.sql.functions.date_parsing import compile_parser
from millstream.sql.functions.date_patterns import compile_formatter
from millstream.sql.functions.simple_date_patterns import compile_simple_formatter, compile_simple_parser
from millstream.sql.functions.text import find_time_zone
from millstream.table import TableEnvironment

ERROR = "an error"


@cache
def read_recorded() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(GOLDEN.read_text())
    return content


def convert_recorded(results: list[Any]) -> list[Any]:
    return [ERROR if isinstance(result, dict) else result for result in results]


def parse_moment(text: str) -> datetime.datetime:
    """Return a timestamp with nanoseconds in the form of columns; pandas cannot represent the first century."""
    return datetime.datetime.fromisoformat(text[:26]) if text < "1700" else pd.Timestamp(text)


def format_all(compiler: Any, pattern: str, values: list[Any]) -> list[str]:
    try:
        format_value = compiler(pattern)
    except ValueError:
        return [ERROR] * len(values)
    texts = []
    for value in values:
        try:
            texts.append(format_value(value))
        except ValueError:
            texts.append(ERROR)
    return texts


def test_timestamps_are_formatted_as_by_flink() -> None:
    values = list(map(parse_moment, TIMESTAMPS))
    actual = {pattern: format_all(compile_formatter, pattern, values) for pattern in PATTERNS}
    assert actual == {pattern: convert_recorded(results) for pattern, results in read_recorded()["format"].items()}


@pytest.mark.parametrize("zone", ZONES)
def test_seconds_are_formatted_as_by_flink(zone: str) -> None:
    values = [datetime.datetime.fromtimestamp(seconds, find_time_zone(zone)) for seconds in SECONDS]
    patterns = [pattern for pattern in SIMPLE_PATTERNS if "zzzz" not in pattern]  # long names are not known
    actual = {pattern: format_all(compile_simple_formatter, pattern, values) for pattern in patterns}
    golden = read_recorded()["format_seconds"][zone]
    assert actual == {pattern: convert_recorded(golden[pattern]) for pattern in patterns}


def parse(text: str, pattern: str) -> str | None:
    try:
        result = compile_parser(pattern)(text)
    except ValueError:
        return None
    nanos = f"{result.timestamp.microsecond * 1000 + result.nanosecond:09d}"
    seconds = result.timestamp.strftime("T%H:%M:%S")
    return f"{result.timestamp.date()}{seconds}.{nanos}"


def complete(result: Any) -> str | None:
    """Return Flink's timestamp with seconds and all digits; None if Flink fails or cannot parse it."""
    if not isinstance(result, str) or result.startswith("+"):
        return None
    date, _, time = result.partition("T")
    seconds, _, fraction = time.partition(".")
    return f"{date}T{seconds if len(seconds) == 8 else f'{seconds}:00'}.{fraction:0<9}"


def test_timestamps_are_parsed_as_by_flink() -> None:
    actual = {(text, pattern): parse(text, pattern) for text, pattern in PARSED}
    assert actual == {(text, pattern): complete(result) for text, pattern, result in read_recorded()["parse"]}


def parse_seconds(text: str, pattern: str) -> int:
    try:
        return int(compile_simple_parser(pattern)(text, datetime.UTC).timestamp())
    except ValueError:
        return -(2**63)


def test_seconds_are_parsed_as_by_flink() -> None:
    actual = {(text, pattern): parse_seconds(text, pattern) for text, pattern in SIMPLE_PARSED}
    assert actual == {(text, pattern): result for text, pattern, result in read_recorded()["parse_seconds"]}


@pytest.mark.parametrize(
    "expression",
    ["DATE_FORMAT(t, 'yyyy-MM-ddTHH:mm')", "DATE_FORMAT(t, 'HH:mm z')", "FROM_UNIXTIME(1, 'yyyy-MM-ddTHH')"],
)
def test_a_wrong_pattern_is_refused_by_the_planner(t_env: TableEnvironment, expression: str) -> None:
    with pytest.raises(SqlValidationError, match="invalid date pattern"):
        t_env.sql_query(f"SELECT {expression} FROM (VALUES (TIMESTAMP '2024-01-02 03:04:05')) AS x(t)")


def test_texts_that_do_not_match_are_null(t_env: TableEnvironment) -> None:
    formatted_day = "DATE_FORMAT(TIMESTAMP '2020-12-30 01:02:03', 'YYYY-ww')"
    query = f"SELECT TO_TIMESTAMP('x', 'yyyy'), TO_TIMESTAMP('2024', 'yyyyT'), {formatted_day}"
    assert rows(t_env.sql_query(query)) == [(None, None, "2021-01")]
