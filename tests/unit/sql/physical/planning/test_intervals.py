"""Bounds of interval joins, read from conditions on two time attributes."""

from __future__ import annotations

import datetime

import pytest

from millstream.sql.expressions.nodes import Apply, Expression, Lit, Ref
from millstream.sql.physical.planning.intervals import compute_interval_bounds
from millstream.sql.types import data_types as t

ROWTIME = t.TimestampType(3, t.ROWTIME)
LEFT = t.row_of(["id", "ts"], [t.INT, ROWTIME], null=False)
RIGHT = t.row_of(["ts", "note"], [ROWTIME, t.STRING], null=False)
LEFT_TIME, RIGHT_TIME = Ref(ROWTIME, 1), Ref(ROWTIME, 2)


def compare(left: Expression, operator: str, right: Expression) -> Expression:
    return Apply(t.BOOLEAN, operator, (left, right))


def shift(time: Expression, operator: str, millis: int) -> Expression:
    interval = Lit(t.DayTimeIntervalType("SECOND"), datetime.timedelta(milliseconds=millis))
    return Apply(time.type, f"TEMPORAL {operator}", (time, interval))


def test_bounds_of_both_sides_are_an_interval() -> None:
    conditions = [
        compare(LEFT_TIME, ">=", shift(RIGHT_TIME, "-", 5)),
        compare(LEFT_TIME, "<=", shift(RIGHT_TIME, "+", 10)),
    ]
    assert compute_interval_bounds(conditions, LEFT, RIGHT) == ((1, 0), -5, 10, [])


def test_the_time_of_the_right_side_may_come_first() -> None:
    conditions = [
        compare(RIGHT_TIME, "<=", shift(LEFT_TIME, "+", 5)),
        compare(shift(RIGHT_TIME, "+", 10), ">=", LEFT_TIME),
    ]
    assert compute_interval_bounds(conditions, LEFT, RIGHT) == ((1, 0), -5, 10, [])


def test_a_strict_comparison_excludes_a_millisecond() -> None:
    conditions = [
        compare(LEFT_TIME, ">", shift(RIGHT_TIME, "-", 5)),
        compare(LEFT_TIME, "<", shift(RIGHT_TIME, "+", 10)),
    ]
    assert compute_interval_bounds(conditions, LEFT, RIGHT) == ((1, 0), -4, 9, [])


def test_an_equality_is_both_bounds() -> None:
    assert compute_interval_bounds([compare(LEFT_TIME, "=", RIGHT_TIME)], LEFT, RIGHT) == ((1, 0), 0, 0, [])


def test_the_closest_of_several_bounds_counts() -> None:
    conditions = [
        compare(LEFT_TIME, ">=", RIGHT_TIME),
        compare(LEFT_TIME, "<=", shift(RIGHT_TIME, "+", 10)),
        compare(LEFT_TIME, "<=", shift(RIGHT_TIME, "+", 3)),
    ]
    assert compute_interval_bounds(conditions, LEFT, RIGHT) == ((1, 0), 0, 3, [])


def test_other_conditions_are_returned() -> None:
    other = compare(Ref(t.INT, 0), "=", Lit(t.INT, 1))
    conditions = [other, compare(LEFT_TIME, "=", RIGHT_TIME)]
    assert compute_interval_bounds(conditions, LEFT, RIGHT) == ((1, 0), 0, 0, [other])


@pytest.mark.parametrize("operator", ["<=", ">=", "<>"])
def test_one_bound_is_not_an_interval(operator: str) -> None:
    assert compute_interval_bounds([compare(LEFT_TIME, operator, RIGHT_TIME)], LEFT, RIGHT) is None


def test_columns_that_are_not_time_attributes_have_no_bounds() -> None:
    plain = t.TimestampType(3)
    left = t.row_of(["id", "ts"], [t.INT, plain], null=False)
    assert compute_interval_bounds([compare(Ref(plain, 1), "=", RIGHT_TIME)], left, RIGHT) is None
