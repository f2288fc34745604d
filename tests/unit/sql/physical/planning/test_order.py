"""Planning of set operations, Top-N, deduplication and sorting."""

from __future__ import annotations

import pytest
from planning_inputs import PROCTIME, ROWTIME, FakePlanner, Table, table, window_table

from millstream.sql.errors import SqlNotSupported
from millstream.sql.logical import nodes as l
from millstream.sql.operators.rank.top_n import DeduplicateSpec, LocalRankSpec, RankSpec
from millstream.sql.physical.nodes import SINGLE, distribute_by_hash
from millstream.sql.physical.planning.order import plan_rank, plan_set_operation, plan_sort
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

INSERTS = table(a=t.INT, b=t.INT, ts=ROWTIME)
UPDATES = table(ChangelogMode.RETRACT, (0,), a=t.INT, b=t.INT, ts=ROWTIME)
BY_B, BY_TIME, BY_LATEST = ((1, True, True),), ((2, True, True),), ((2, False, True),)


def rank(source: l.Plan, order: tuple[tuple[int, bool, bool], ...], last: int, *, with_rank: bool = False) -> l.Rank:
    names, types = [*source.schema.names, "rank"], [*source.schema.types, t.BIGINT]
    schema = t.row_of(names, types, null=False) if with_rank else source.schema
    return l.Rank(schema, source, "ROW_NUMBER", (0,), order, 1, last, with_rank)


def test_a_union_updates_if_one_of_its_inputs_does() -> None:
    union = l.SetOperation(INSERTS.schema, "UNION", True, (INSERTS, INSERTS))
    assert plan_set_operation(FakePlanner(), union).mode is ChangelogMode.INSERT_ONLY
    union = l.SetOperation(INSERTS.schema, "UNION", True, (INSERTS, UPDATES))
    assert plan_set_operation(FakePlanner(), union).mode is ChangelogMode.RETRACT


def test_an_intersection_partitions_both_inputs_by_all_columns() -> None:
    node = l.SetOperation(INSERTS.schema, "INTERSECT", True, (INSERTS, INSERTS))
    operation = plan_set_operation(FakePlanner(ttl=7), node)
    assert operation.distributions == (distribute_by_hash((0, 1, 2)),) * 2
    assert (operation.detail, operation.spec.ttl) == ("INTERSECT ALL", 7)


def test_the_first_row_by_time_is_a_deduplication_without_updates() -> None:
    operation = plan_rank(FakePlanner(), rank(INSERTS, BY_TIME, 1), True)
    assert (operation.name, operation.mode) == ("Deduplicate", ChangelogMode.INSERT_ONLY)
    assert operation.detail == "keep=[FirstRow], key=[a], order=[ROWTIME]"
    assert operation.upsert_keys == {(0,)}


def test_the_last_row_by_time_is_a_deduplication_with_updates() -> None:
    operation = plan_rank(FakePlanner(), rank(INSERTS, BY_LATEST, 1), True)
    assert isinstance(operation.spec, DeduplicateSpec)
    assert (operation.spec.last, operation.mode) == (True, ChangelogMode.RETRACT)


@pytest.mark.parametrize(
    ("source", "order", "last"), [(INSERTS, BY_B, 1), (INSERTS, BY_TIME, 2), (UPDATES, BY_TIME, 1)]
)
def test_other_ranks_are_not_a_deduplication(
    source: Table, order: tuple[tuple[int, bool, bool], ...], last: int
) -> None:
    operation = plan_rank(FakePlanner(), rank(source, order, last), True)
    assert isinstance(operation.spec, RankSpec)
    assert operation.spec.retracts is not source.mode.insert_only
    assert operation.distributions == (distribute_by_hash((0,)),)


def test_the_rank_number_is_part_of_the_upsert_key() -> None:
    assert plan_rank(FakePlanner(), rank(UPDATES, BY_B, 3, with_rank=True), True).upsert_keys == {(0, 3)}
    assert plan_rank(FakePlanner(), rank(UPDATES, BY_B, 3), True).upsert_keys == {(0,)}
    assert plan_rank(FakePlanner(), rank(INSERTS, BY_B, 3), True).upsert_keys == frozenset()


def test_a_rank_without_an_upper_bound_has_none_in_its_operator() -> None:
    assert plan_rank(FakePlanner(), rank(INSERTS, BY_B, 2**62), True).spec.last is None


def test_mini_batches_rank_before_the_exchange() -> None:
    operation = plan_rank(FakePlanner(mini_batch=True), rank(INSERTS, BY_B, 3), True)
    (local,) = operation.inputs
    assert (local.name, type(local.spec)) == ("LocalRank", LocalRankSpec)
    assert plan_rank(FakePlanner(mini_batch=True, two_phase=False), rank(INSERTS, BY_B, 3), True).inputs[0].spec is None
    assert plan_rank(FakePlanner(), rank(INSERTS, BY_B, 3), True).inputs[0].spec is None


def test_a_consumer_of_all_versions_gets_every_change() -> None:
    planner = FakePlanner(mini_batch=True)
    planner.versions = True
    assert plan_rank(planner, rank(INSERTS, BY_B, 3), True).spec.mini_batch is False


def test_a_rank_by_window_emits_at_the_end_of_the_window() -> None:
    windows = window_table(INSERTS, l.WindowSpec("TUMBLE", 2, 1000))
    node = l.Rank(windows.schema, windows, "ROW_NUMBER", (3, 4), BY_B, 1, 3, False)
    operation = plan_rank(FakePlanner(), node, True)
    assert (operation.name, operation.mode) == ("WindowRank", ChangelogMode.INSERT_ONLY)
    without_start = l.Rank(windows.schema, windows, "ROW_NUMBER", (4,), BY_B, 1, 3, False)
    assert plan_rank(FakePlanner(), without_start, True).name == "Rank"


def sort(source: l.Plan, order: tuple[tuple[int, bool, bool], ...], limit: int | None = None) -> l.Sort:
    return l.Sort(source.schema, source, order, limit)


def test_a_stream_is_sorted_by_time_in_one_subtask() -> None:
    operation = plan_sort(FakePlanner(), sort(INSERTS, BY_TIME), True)
    assert (operation.name, operation.distributions, operation.parallelism) == ("TemporalSort", (SINGLE,), 1)


@pytest.mark.parametrize(("source", "order"), [(INSERTS, BY_B), (INSERTS, BY_LATEST), (UPDATES, BY_TIME)])
def test_a_stream_is_not_sorted_by_anything_else(source: Table, order: tuple[tuple[int, bool, bool], ...]) -> None:
    with pytest.raises(SqlNotSupported, match="only by a time attribute, ascending"):
        plan_sort(FakePlanner(), sort(source, order), True)


def test_a_batch_is_sorted_by_any_column() -> None:
    assert plan_sort(FakePlanner(batch=True), sort(INSERTS, BY_B), True).name == "Sort"


def test_a_limit_is_a_top_n() -> None:
    operation = plan_sort(FakePlanner(), sort(UPDATES, BY_B, 5), True)
    assert (operation.name, operation.mode, operation.spec.last) == ("SortLimit", ChangelogMode.RETRACT, 5)
    assert operation.upsert_keys == {(0,)}
    assert plan_sort(FakePlanner(), sort(UPDATES, BY_B, 1), True).upsert_keys == {()}


def test_a_limit_without_order_has_no_updates() -> None:
    operation = plan_sort(FakePlanner(), sort(INSERTS, (), 5), True)
    assert (operation.name, operation.mode) == ("Limit", ChangelogMode.INSERT_ONLY)
    assert plan_sort(FakePlanner(), sort(UPDATES, (), 5), True).mode is ChangelogMode.RETRACT


def test_processing_time_is_an_order_too() -> None:
    source = table(a=t.INT, p=PROCTIME)
    assert plan_sort(FakePlanner(), sort(source, ((1, True, True),)), True).name == "TemporalSort"
