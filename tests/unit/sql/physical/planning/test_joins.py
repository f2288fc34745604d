"""Planning of joins: the type of join, its keys and its upsert keys."""

from __future__ import annotations

import datetime

import pytest
from planning_inputs import (
    PROCTIME,
    ROWTIME,
    FakePlanner,
    Table,
    both,
    is_equal,
    is_greater,
    table,
    window_table,
)

from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import Apply, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.operators.join.regular_join import JoinSpec
from millstream.sql.operators.join.time_joins import IntervalJoinSpec, TemporalJoinSpec
from millstream.sql.physical.nodes import SINGLE, Operation, distribute_by_hash
from millstream.sql.physical.planning.joins import plan_join, plan_temporal_join
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

LEFT = table(a=t.INT, b=t.INT, ts=ROWTIME)
RIGHT = table(c=t.INT, d=t.INT, us=ROWTIME)
A, B, TS = LEFT.refs()
C, D, US = (Ref(ref.type, ref.index + 3) for ref in RIGHT.refs())


def join(condition: Expression | None, join_type: str = "inner", left: Table = LEFT, right: Table = RIGHT) -> l.Join:
    return l.Join(l.join_schemas(left.schema, right.schema, join_type), left, right, join_type, condition)


def with_mode(source: Table, mode: ChangelogMode, *keys: tuple[int, ...]) -> Table:
    return Table(source.schema, mode, frozenset(keys))


def test_equalities_are_keys_and_other_conditions_are_evaluated() -> None:
    operation = plan_join(FakePlanner(), join(both(is_equal(A, D), is_greater(B, C))))
    assert operation.distributions == (distribute_by_hash((0,)), distribute_by_hash((1,)))
    assert operation.spec.keys == ((0,), (1,))
    assert operation.spec.condition == is_greater(B, C)
    assert operation.detail == "joinType=[InnerJoin], where=[a = d]"


def test_an_equality_may_name_the_right_side_first() -> None:
    assert plan_join(FakePlanner(), join(is_equal(C, B))).spec.keys == ((1,), (0,))


def test_an_equality_of_one_side_is_not_a_key() -> None:
    operation = plan_join(FakePlanner(), join(both(is_equal(A, C), is_equal(A, B))))
    assert (operation.spec.keys, operation.spec.condition) == (((0,), (0,)), is_equal(A, B))


def test_a_computed_key_is_a_column_only_within_the_join() -> None:
    computed = Apply(t.INT, "+", (A, B))
    operation = plan_join(FakePlanner(), join(both(is_equal(computed, C), is_greater(B, D))))
    assert isinstance(operation.spec, CalcSpec)
    assert operation.schema.names == ["a", "b", "ts", "c", "d", "us"]
    (inner,) = operation.inputs
    assert inner.spec.keys == ((3,), (0,))
    assert inner.spec.condition == is_greater(B, Ref(t.INT, 5)), "columns of the right side are one further"


def test_without_keys_all_rows_are_in_one_subtask() -> None:
    operation = plan_join(FakePlanner(), join(is_greater(A, C)))
    assert operation.distributions == (SINGLE, SINGLE)
    assert operation.detail.endswith("single=[true]")


@pytest.mark.parametrize(
    ("join_type", "mode"),
    [("inner", "I"), ("semi", "I"), ("left", "I,UB,UA,D"), ("full", "I,UB,UA,D"), ("anti", "I,UB,UA,D")],
)
def test_joins_that_may_retract_a_row(join_type: str, mode: str) -> None:
    assert plan_join(FakePlanner(), join(is_equal(A, C), join_type)).mode.value == mode


@pytest.mark.parametrize("join_type", ["semi", "anti"])
def test_a_semi_join_has_the_columns_of_the_left_side(join_type: str) -> None:
    assert plan_join(FakePlanner(), join(is_equal(A, C), join_type)).schema == LEFT.schema


def test_an_outer_join_makes_the_other_side_nullable() -> None:
    schema = plan_join(FakePlanner(), join(is_equal(A, C), "left", right=table(c=t.INT.not_null()))).schema
    assert [data_type.null for data_type in schema.types] == [True, True, True, True]


def test_a_join_has_the_upsert_keys_of_both_sides() -> None:
    left, right = with_mode(LEFT, ChangelogMode.RETRACT, (0,)), with_mode(RIGHT, ChangelogMode.RETRACT, (1,))
    assert plan_join(FakePlanner(), join(is_equal(B, C), "inner", left, right)).upsert_keys == {(0, 4)}


@pytest.mark.parametrize(
    ("join_type", "keys"), [("inner", {(0, 3), (0,)}), ("left", {(0, 3), (0,)}), ("full", {(0, 3)})]
)
def test_a_key_of_the_left_side_is_enough_if_the_join_is_by_a_key_of_the_right(
    join_type: str, keys: set[tuple[int, ...]]
) -> None:
    left, right = with_mode(LEFT, ChangelogMode.RETRACT, (0,)), with_mode(RIGHT, ChangelogMode.RETRACT, (0,))
    assert plan_join(FakePlanner(), join(is_equal(B, C), join_type, left, right)).upsert_keys == keys


def test_a_ttl_of_the_join_overrides_that_of_the_session() -> None:
    node = l.Join(join(None).schema, LEFT, RIGHT, "inner", is_equal(A, C), ttl=(5, None))
    assert plan_join(FakePlanner(ttl=9), node).spec.ttl == (5, 9)


def within_a_second() -> Expression:
    later = Apply(US.type, "TEMPORAL +", (US, Lit(t.DayTimeIntervalType(), datetime.timedelta(seconds=1))))
    return both(Apply(t.BOOLEAN, ">=", (TS, US)), Apply(t.BOOLEAN, "<=", (TS, later)))


def test_bounds_of_both_times_are_an_interval_join() -> None:
    operation = plan_join(FakePlanner(), join(both(is_equal(A, C), within_a_second(), is_greater(B, D)), "left"))
    assert isinstance(operation.spec, IntervalJoinSpec)
    assert (operation.spec.lower, operation.spec.upper) == (0, 1000)
    assert operation.spec.condition == is_greater(B, D)
    assert operation.mode is ChangelogMode.INSERT_ONLY


def test_updating_input_is_joined_by_a_regular_join() -> None:
    right = with_mode(RIGHT, ChangelogMode.RETRACT)
    operation = plan_join(FakePlanner(), join(both(is_equal(A, C), within_a_second()), right=right))
    assert isinstance(operation.spec, JoinSpec)
    assert operation.spec.insert_only is False


def test_equal_window_starts_and_ends_are_a_window_join() -> None:
    window = l.WindowSpec("TUMBLE", 2, 1000)
    left, right = window_table(LEFT, window), window_table(RIGHT, window)
    refs, others = left.refs(), [Ref(ref.type, ref.index + 6) for ref in right.refs()]
    schema = l.join_schemas(left.schema, right.schema, "inner")
    starts, ends = is_equal(refs[3], others[3]), is_equal(refs[4], others[4])
    operation = plan_join(FakePlanner(), l.Join(schema, left, right, "inner", both(starts, ends)))
    assert operation.name == "WindowJoin"
    assert plan_join(FakePlanner(), l.Join(schema, left, right, "inner", ends)).name == "Join"


def temporal_join(time: int, right: Table = RIGHT, left: Table = LEFT) -> l.TemporalJoin:
    schema = l.join_schemas(left.schema, right.schema, "inner")
    return l.TemporalJoin(schema, left, right, "inner", time, (0,), (0,), None)


def test_a_temporal_join_reads_all_versions_of_its_right_side() -> None:
    planner = FakePlanner()
    operation = plan_temporal_join(planner, temporal_join(2))
    assert isinstance(operation.spec, TemporalJoinSpec)
    assert (planner.versions_of[LEFT], planner.versions_of[RIGHT], planner.versions) == (False, True, False)
    assert operation.distributions == (distribute_by_hash((0,)), distribute_by_hash((0,)))


def test_an_event_time_temporal_join_needs_versions() -> None:
    with pytest.raises(SqlValidationError, match="needs a versioned table"):
        plan_temporal_join(FakePlanner(), temporal_join(2, table(c=t.INT, d=t.INT)))


def test_a_processing_time_join_is_a_lookup_if_the_table_can_be_looked_up() -> None:
    left = table(a=t.INT, p=PROCTIME)
    operation = Operation("LookupJoin", "", left.schema)
    assert plan_temporal_join(FakePlanner(lambda node, child: operation), temporal_join(1, left=left)) is operation
    assert plan_temporal_join(FakePlanner(), temporal_join(1, left=left)).name == "TemporalJoin"


def test_an_event_time_join_is_not_a_lookup() -> None:
    lookup = Operation("LookupJoin", "", LEFT.schema)
    assert plan_temporal_join(FakePlanner(lambda node, child: lookup), temporal_join(2)).name == "TemporalJoin"
