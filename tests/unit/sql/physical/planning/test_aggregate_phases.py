"""Options of aggregates: one or two phases, and buckets of distinct aggregates."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from millstream.sql.errors import SqlValidationError
from millstream.sql.physical.planning.aggregate_phases import choose_distinct_buckets, wants_two_phases

STRATEGY = "table.optimizer.agg-phase-strategy"
SPLIT = "table.optimizer.distinct-agg.split.enabled"
BUCKETS = "table.optimizer.distinct-agg.split.bucket-num"


def options(**values: str) -> Callable[[str], str | None]:
    keys = {"strategy": STRATEGY, "split": SPLIT, "buckets": BUCKETS}
    return {keys[name]: value for name, value in values.items()}.get


@pytest.mark.parametrize(
    ("strategy", "expected"), [("AUTO", True), ("TWO_PHASE", True), ("one_phase", False), ("ONE_PHASE", False)]
)
def test_the_strategy_decides_on_two_phases(strategy: str, expected: bool) -> None:
    assert wants_two_phases(options(strategy=strategy)) is expected


def test_two_phases_are_the_default() -> None:
    assert wants_two_phases(options())


def test_an_unknown_strategy_is_refused_with_the_choices() -> None:
    with pytest.raises(SqlValidationError, match=r"agg-phase-strategy' must be one of .*, not 'THREE_PHASE'"):
        wants_two_phases(options(strategy="three_phase"))


def test_distinct_aggregates_are_split_only_if_enabled() -> None:
    assert choose_distinct_buckets(options()) is None
    assert choose_distinct_buckets(options(buckets="7")) is None
    assert choose_distinct_buckets(options(split="true", buckets="7")) == 7


def test_there_are_as_many_buckets_as_in_flink_by_default() -> None:
    assert choose_distinct_buckets(options(split="TRUE")) == 1024


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"split": "yes"}, "must be true or false, not 'yes'"),
        ({"buckets": "0"}, "must be an integer of at least 1, not '0'"),
        ({"buckets": "many"}, "must be an integer of at least 1, not 'many'"),
    ],
)
def test_invalid_values_are_refused(values: dict[str, str], reason: str) -> None:
    with pytest.raises(SqlValidationError, match=reason):
        choose_distinct_buckets(options(**values))
