"""Laws of the number sequence: both bounds, and each number once, whatever the splits."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import budgets, everything, replaying, restarting

from millstream.connector.source import Budget
from millstream.connectors.sequence import BadSequence, NumberSequenceSource


@given(
    st.integers(-50, 50), st.integers(0, 200), st.integers(1, 7), st.integers(1, 90), st.integers(1, 40), st.booleans()
)
def test_ranges_do_not_change_records(start, length, parallelism, records, block, restart):
    source = NumberSequenceSource(start, start + length)
    between = restarting(source, 8 - parallelism) if restart else lambda same: same
    found = everything(source, parallelism, records=records, block=block, between=between)
    assert sorted(found) == list(range(start, start + length + 1))


def test_one_reader_reads_all_numbers_in_order():
    assert everything(NumberSequenceSource(-3, 60), 1, records=7) == list(range(-3, 61))


def test_the_largest_64_bit_integers_are_included():
    top = 2**63 - 1
    assert everything(NumberSequenceSource(top - 2, top)) == [top - 2, top - 1, top]


def test_there_are_at_most_as_many_splits_as_readers_and_none_is_empty():
    enumerator = NumberSequenceSource(1, 3).create_enumerator(8)
    assert enumerator.splits() == ["0000", "0001", "0002"]
    assert enumerator.lag() == 3


@given(st.integers(1, 5), st.integers(1, 60))
def test_a_plan_uses_the_whole_budget_while_numbers_are_left(parallelism, records):
    enumerator = NumberSequenceSource(0, 999).create_enumerator(parallelism)
    assert sum(part.records for part in enumerator.plan(Budget(records, 1, 0))) == records


def test_a_held_split_is_not_planned():
    enumerator = NumberSequenceSource(0, 9).create_enumerator(2)
    assert {part.split for part in enumerator.plan(Budget(100, 1, 0, frozenset({"0000"})))} == {"0001"}
    assert not enumerator.finished()
    assert {part.split for part in enumerator.plan(Budget(100, 1, 0))} == {"0000"}


@given(st.integers(0, 4), st.integers(1, 4))
def test_replaying_and_planning_have_the_same_positions(epochs, parallelism):
    source = NumberSequenceSource(0, 99)
    planned = source.create_enumerator(parallelism)
    for _, budget in zip(range(epochs), budgets(13)):
        planned.plan(budget)
    assert replaying(source, parallelism, epochs, 13).snapshot() == planned.snapshot()


@pytest.mark.parametrize(("start", "end"), [(1, 0), (0, 2**63), (-(2**63) - 1, 0), ("a", "b")])
def test_bounds_without_numbers_between_them_are_refused(start, end):
    with pytest.raises(BadSequence):
        NumberSequenceSource(start, end)


def test_the_description_can_be_pickled():
    source = NumberSequenceSource(1, 2)
    assert pickle.loads(pickle.dumps(source)) == source
