"""The budget of the next epoch follows from the cost of the last ones, within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cluster.sizing import EpochSize


@given(st.integers(0, 10**7), st.floats(0, 1000), st.integers(1000, 10**7))
def test_the_budget_moves_in_bounded_steps(records, seconds, before):
    size = EpochSize(1.0, records=before).after(records, seconds)
    steps = min(max(1.0 / max(seconds, 0.001), 2), 8)
    assert max(1000, before // 4) <= size.records <= max(1000, before * steps)


@given(st.integers(1000, 10**6), st.floats(1e-7, 1e-4))
def test_a_large_step_does_not_exceed_the_target(before, cost):
    size = EpochSize(1.0, records=before).after(before, before * cost)
    assert size.records <= max(1000, 2 * before, 1.0 / cost)


def test_the_budget_converges_at_a_constant_cost():
    size = EpochSize(1.0)
    for _ in range(40):
        size = size.after(size.budget, 0.05 + size.budget * 1e-4)
    assert abs(0.05 + size.budget * 1e-4 - 1.0) < 0.1


def test_a_limit_is_kept():
    assert EpochSize(1.0, most=7).budget == 7


def test_an_epoch_that_was_too_large_makes_the_next_ones_smaller_for_a_while():
    size = EpochSize(1.0).too_large(8_000)
    assert size.budget == 2_000
    assert size.too_large(None).budget == 500
    assert EpochSize(1.0).too_large(3).too_large(1).budget == 1
    needed = []
    for _ in range(5):
        epochs = 0
        while size.budget < 8_000:
            size, epochs = size.after(size.budget, 0.01), epochs + 1
        needed.append(epochs)
        size = size.too_large(8_000)
        assert size.budget == 4_000, "the size that was proven"
    assert needed == [33, 17, 33, 65, 129], "from a quarter, then from the half, for longer each time"


def size_after(size, epochs):
    for _ in range(epochs):
        size = size.after(size.budget, size.budget * 1e-5 + 0.05)
    return size


@pytest.mark.parametrize("every", [20, 50, 300, 3_000])
def test_occasional_failures_do_not_reduce_epochs_permanently(every):
    size = size_after(EpochSize(1.0), 100)
    usual = size.budget
    for _ in range(100):
        if not size.is_small(None):  # one that is small is repeated as it is
            size = size.too_large(None)
        size = size_after(size, every)
    assert size.budget >= usual // 8


def test_a_limit_without_effect_is_removed():
    size = EpochSize(1.0)
    for _ in range(8):  # one epoch that is cut eight times
        size = size.too_large(None)
    assert size.budget == 1
    size = size_after(size, 200)
    assert size.limit is None
    assert size.proven is None
    assert size.patience == 0
    assert size.budget > 50_000


def test_a_source_with_few_records_does_not_increase_the_budget():
    assert EpochSize(1.0, records=20_000).after(10, 0.051).records <= 20_000


def test_small_epochs_do_not_prove_that_full_epochs_succeed():
    size = EpochSize(1.0).too_large(8_000)
    for _ in range(1_000):
        size = size.after(10, 0.05)
    assert size.limit == 2_000
    assert size_after(size, 100).limit is None
