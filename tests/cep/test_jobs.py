"""Patterns in jobs."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.cep import CEP, Pattern, SimpleCondition
from millstream.common import Types, WatermarkStrategy
from millstream.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from millstream.errors import UserError

CLICKS = [("ada", "view", 1), ("bob", "view", 2), ("ada", "buy", 3), ("bob", "leave", 4), ("ada", "view", 5)]


def _create_clicks(env: StreamExecutionEnvironment) -> DataStream:
    click_type = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[2])
    return env.from_collection(CLICKS, click_type).assign_timestamps_and_watermarks(strategy)


def _create_pattern() -> Pattern:
    first_step = Pattern.begin("view").where(SimpleCondition.of(lambda click: click[1] == "view"))
    return first_step.next("buy").where(lambda click: click[1] == "buy").within(10)


def test_a_keyed_stream_is_matched_key_by_key(env: StreamExecutionEnvironment) -> None:
    keyed = _create_clicks(env).key_by(lambda click: click[0], Types.STRING())
    results = CEP.pattern(keyed, _create_pattern()).select(lambda match: match["buy"][0][0], output_type=Types.STRING())
    assert list(results.execute_and_collect()) == ["ada"]


def test_a_stream_without_keys_is_matched_as_a_whole(env: StreamExecutionEnvironment) -> None:
    results = CEP.pattern(_create_clicks(env), _create_pattern()).flat_select(
        lambda match: [click[0] for clicks in match.values() for click in clicks]
    )
    assert list(results.execute_and_collect()) == ["bob", "ada"]


def test_timed_out_matches_are_emitted_to_the_side_output(env: StreamExecutionEnvironment) -> None:
    tag = OutputTag("over", Types.STRING())
    keyed = _create_clicks(env).key_by(lambda click: click[0], Types.STRING())

    def format_timeout(match: dict[str, list[Any]], timestamp: int) -> str:
        return f"{match['view'][0][0]} until {timestamp}"

    results = CEP.pattern(keyed, _create_pattern().within(2)).select(
        tag, format_timeout, lambda match: match["buy"][0][0]
    )
    assert sorted(results.get_side_output(tag).execute_and_collect()) == ["ada until 3", "ada until 7", "bob until 4"]


def test_an_invalid_pattern_is_refused_before_the_job_runs(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(UserError, match="used twice"):
        CEP.pattern(_create_clicks(env), Pattern.begin("a").next("a"))
    with pytest.raises(UserError, match="is not a pattern"):
        CEP.pattern(_create_clicks(env), "a")  # type: ignore[arg-type]
