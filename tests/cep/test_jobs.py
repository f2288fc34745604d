"""Patterns in whole jobs."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.cep import CEP, Pattern, SimpleCondition
from millstream.common import Types, WatermarkStrategy
from millstream.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from millstream.errors import UserError

CLICKS = [("ada", "view", 1), ("bob", "view", 2), ("ada", "buy", 3), ("bob", "leave", 4), ("ada", "view", 5)]


def _clicks(env: StreamExecutionEnvironment) -> DataStream:
    kind = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[2])
    return env.from_collection(CLICKS, kind).assign_timestamps_and_watermarks(strategy)


def _view_then_buy() -> Pattern:
    viewed = Pattern.begin("view").where(SimpleCondition.of(lambda click: click[1] == "view"))
    return viewed.next("buy").where(lambda click: click[1] == "buy").within(10)


def test_keyed_patterns_look_at_one_key(env: StreamExecutionEnvironment) -> None:
    keyed = _clicks(env).key_by(lambda click: click[0], Types.STRING())
    found = CEP.pattern(keyed, _view_then_buy()).select(lambda match: match["buy"][0][0], output_type=Types.STRING())
    assert list(found.execute_and_collect()) == ["ada"]


def test_patterns_without_keys_look_at_the_whole_stream(env: StreamExecutionEnvironment) -> None:
    found = CEP.pattern(_clicks(env), _view_then_buy()).flat_select(
        lambda match: [click[0] for clicks in match.values() for click in clicks]
    )
    assert list(found.execute_and_collect()) == ["bob", "ada"]


def test_timed_out_matches_go_to_their_side_output(env: StreamExecutionEnvironment) -> None:
    tag = OutputTag("over", Types.STRING())
    keyed = _clicks(env).key_by(lambda click: click[0], Types.STRING())

    def over(match: dict[str, list[Any]], timestamp: int) -> str:
        return f"{match['view'][0][0]} until {timestamp}"

    found = CEP.pattern(keyed, _view_then_buy().within(2)).select(tag, over, lambda match: match["buy"][0][0])
    assert sorted(found.get_side_output(tag).execute_and_collect()) == ["ada until 3", "ada until 7", "bob until 4"]


def test_a_pattern_that_makes_no_sense_fails_while_the_program_is_written(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(UserError, match="used twice"):
        CEP.pattern(_clicks(env), Pattern.begin("a").next("a"))
    with pytest.raises(UserError, match="is not a pattern"):
        CEP.pattern(_clicks(env), "a")  # type: ignore[arg-type]
