"""The slots of a session cluster."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.cluster.session.slots import Granted, Refused, SlotPool, SlotRequest, Waiting


def test_a_job_that_does_not_fit_waits_with_a_reason_and_is_granted_in_order() -> None:
    pool, first = SlotPool(4).request(SlotRequest("p", "a", 3))
    assert first == Granted()
    pool, second = pool.request(SlotRequest("p", "b", 2))
    assert second == Waiting("waits for 2 slots: 1 of 4 are free")
    pool, third = pool.request(SlotRequest("q", "c", 1))  # there are enough slots, but it must not overtake the first
    assert third == Waiting("waits for 1 slots: 1 of 4 are free, and 1 jobs wait before it")
    pool, granted = pool.release("p", "a")
    assert [request.job for request in granted] == ["b", "c"]
    assert pool.free == 1


def test_a_job_that_can_never_fit_is_refused() -> None:
    pool, verdict = SlotPool(4).request(SlotRequest("p", "a", 5))
    assert verdict == Refused("the job needs 5 slots, and the cluster has 4")
    assert pool == SlotPool(4)


def test_a_rescaled_job_gets_more_slots_immediately_or_keeps_its_own() -> None:
    pool, _ = SlotPool(4).request(SlotRequest("p", "a", 1))
    pool, _ = pool.request(SlotRequest("q", "b", 2))
    pool, refused = pool.request(SlotRequest("p", "a", 3))
    assert refused == Refused("the job needs 2 more slots, and 1 are free")
    pool, granted = pool.request(SlotRequest("p", "a", 2))
    assert (granted, pool.free) == (Granted(), 0)


Steps = st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("abc"), st.integers(0, 6)), max_size=30)


@given(Steps)
def test_granted_slots_never_exceed_the_total(steps: list[tuple[str, str, int]]) -> None:
    pool = SlotPool(5)
    for program, job, slots in steps:
        before = pool
        pool = pool.request(SlotRequest(program, job, slots))[0] if slots else pool.release(program, job)[0]
        assert pool.free >= 0
        if pool.waiting and pool.waiting == before.waiting:
            # after a release, no request waits for which there are enough slots
            assert pool.waiting[0].slots > pool.free or slots
