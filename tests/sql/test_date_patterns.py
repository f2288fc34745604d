"""Timestamps are formatted and parsed by patterns as Flink does it; the planner refuses wrong patterns."""

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
def recorded() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(GOLDEN.read_text())
    return content


def expected(answers: list[Any]) -> list[Any]:
    return [ERROR if isinstance(answer, dict) else answer for answer in answers]


def moment(text: str) -> datetime.datetime:
    """A timestamp with nanoseconds as a column has it; pandas does not have the first century."""
    return datetime.datetime.fromisoformat(text[:26]) if text < "1700" else pd.Timestamp(text)


def formatted(compiler: Any, pattern: str, values: list[Any]) -> list[str]:
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
    values = list(map(moment, TIMESTAMPS))
    found = {pattern: formatted(compile_formatter, pattern, values) for pattern in PATTERNS}
    assert found == {pattern: expected(answers) for pattern, answers in recorded()["format"].items()}


@pytest.mark.parametrize("zone", ZONES)
def test_seconds_are_formatted_as_by_flink(zone: str) -> None:
    values = [datetime.datetime.fromtimestamp(seconds, find_time_zone(zone)) for seconds in SECONDS]
    patterns = [pattern for pattern in SIMPLE_PATTERNS if "zzzz" not in pattern]  # long names are not known
    found = {pattern: formatted(compile_simple_formatter, pattern, values) for pattern in patterns}
    golden = recorded()["format_seconds"][zone]
    assert found == {pattern: expected(golden[pattern]) for pattern in patterns}


def parsed(text: str, pattern: str) -> str | None:
    try:
        answer = compile_parser(pattern)(text)
    except ValueError:
        return None
    nanos = f"{answer.timestamp.microsecond * 1000 + answer.nanosecond:09d}"
    seconds = answer.timestamp.strftime("T%H:%M:%S")
    return f"{answer.timestamp.date()}{seconds}.{nanos}"


def full(answer: Any) -> str | None:
    """Flink's timestamp with seconds and all digits; None where Flink fails or cannot parse."""
    if not isinstance(answer, str) or answer.startswith("+"):
        return None
    date, _, time = answer.partition("T")
    whole, _, fraction = time.partition(".")
    return f"{date}T{whole if len(whole) == 8 else f'{whole}:00'}.{fraction:0<9}"


def test_timestamps_are_parsed_as_by_flink() -> None:
    found = {(text, pattern): parsed(text, pattern) for text, pattern in PARSED}
    assert found == {(text, pattern): full(answer) for text, pattern, answer in recorded()["parse"]}


def seconds_of(text: str, pattern: str) -> int:
    try:
        return int(compile_simple_parser(pattern)(text, datetime.UTC).timestamp())
    except ValueError:
        return -(2**63)


def test_seconds_are_parsed_as_by_flink() -> None:
    found = {(text, pattern): seconds_of(text, pattern) for text, pattern in SIMPLE_PARSED}
    assert found == {(text, pattern): answer for text, pattern, answer in recorded()["parse_seconds"]}


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
