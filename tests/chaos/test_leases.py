"""One driver leads at a time; how the others find out needs no common clock."""

import threading
from pathlib import Path

import pytest

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.storage import CheckpointStorage, CheckpointTaken
from millstream.cluster.checkpoint_machine import Schedule
from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.leadership import Leadership, LeadershipLost, NotLeading, take_over
from millstream.cluster.lease import FileLease, Held, Outcome, Watch
from millstream.model.job_status import JobStatus
from millstream.testing.chaos_leaders import leadership
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import ROOT, ManualClock, Setup, World, reference, run


def test_of_many_drivers_one_takes_a_term(tmp_path: Path) -> None:
    lease = FileLease(str(tmp_path / "lease"))
    start = threading.Barrier(8)
    won = []

    def take(holder: str) -> None:
        start.wait()
        if lease.take(1, holder):
            won.append(holder)

    drivers = [threading.Thread(target=take, args=(str(number),)) for number in range(8)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert len(won) == 1
    assert lease.held() == Held(1, won[0], 0)
    assert not [path.name for path in (tmp_path / "lease").iterdir() if path.name.startswith(".")]


def test_a_lease_expires_by_the_readers_own_clock_and_only_when_nothing_moves() -> None:
    watch = Watch().after(Held(1, "a", 0), 100.0)
    assert not watch.expired(105.9, 6)
    assert watch.expired(106.0, 6)
    watch = watch.after(Held(1, "a", 1), 105.0)
    assert not watch.expired(110.0, 6)
    watch = watch.after(Held(1, "a", 1), 109.0)
    assert watch.expired(111.0, 6)
    assert not watch.after(Held(2, "b", 0), 111.0).expired(112.0, 6)


def member(directory: Path, holder: str, clock: ManualClock) -> Leadership:
    lease = FileLease(str(directory))
    return Leadership(lease, holder, 6.0, clock.precise, clock.sleep, renews_itself=False)


def test_a_leader_that_was_silent_finds_that_it_leads_no_more(tmp_path: Path) -> None:
    clock = ManualClock()
    first, second = member(tmp_path, "first", clock), member(tmp_path, "second", clock)
    assert first.wait(lambda: False) is None
    first.verify()
    before = clock.precise()
    assert second.wait(lambda: False) is None
    assert 6.0 <= clock.precise() - before < 7.0
    assert (first.term, second.term) == (1, 2)
    second.verify()
    with pytest.raises(LeadershipLost, match=r"led in term 1, but second took over in term 2"):
        first.verify()


def test_a_leader_that_renews_keeps_the_lease(tmp_path: Path) -> None:
    clock = ManualClock()
    first, second = member(tmp_path, "first", clock), member(tmp_path, "second", clock)
    first.wait(lambda: False)
    looks = 0

    def stopped() -> bool:
        nonlocal looks
        looks += 1
        if looks % 4 == 0:
            first.renew()
        return looks > 200

    with pytest.raises(NotLeading):
        second.wait(stopped)
    first.verify()


def test_who_waits_learns_how_the_job_ended(tmp_path: Path) -> None:
    clock = ManualClock()
    first, second = member(tmp_path, "first", clock), member(tmp_path, "second", clock)
    first.wait(lambda: False)
    first.conclude("FINISHED", None)
    first.conclude("FAILED", "too late")
    assert second.wait(lambda: False) == Outcome("FINISHED")
    assert second.term == 0


SETUP = Setup(PROGRAMS["tumbling"], epoch_records=15, checkpoint_every=1)


def test_a_job_that_finished_is_not_run_again_by_a_driver_that_comes_later() -> None:
    with World() as world:
        assert run(SETUP, world, leadership=leadership(world, "first")).status is JobStatus.FINISHED
        before = world.visible()
        later = run(SETUP, world, leadership=leadership(world, "second"))
        assert later.status is JobStatus.FINISHED
        assert not later.epochs
        assert world.visible() == before == reference(SETUP)


def checkpoints_of(world, term):
    made = Checkpoints(CheckpointStorage(ROOT, "job", fs=world.disk), Schedule(1), temporary=False)
    made.lead(term)
    return made


def metadata(number, generation):
    return CheckpointMetadata(
        checkpoint=number,
        epoch=number,
        generation=generation,
        job_id="job",
        job_name="job",
        timestamp=0,
        now=0,
        operators=(),
    )


def test_a_checkpoint_of_an_earlier_term_meets_the_fence_of_a_later_one() -> None:
    """Even if the old leader cannot see that there is a new one."""
    with World() as world:
        first, second = leadership(world, "first"), leadership(world, "second")
        first.wait(lambda: False)
        old, new = checkpoints_of(world, 1), checkpoints_of(world, 2)
        committed = []

        def commit(number, committables):
            committed.append(number)

        began = take_over(first, old, commit, metadata(0, 0))
        assert (began.checkpoint, old.next_id) == (1, 2)
        old.complete(metadata(2, began.generation), world.clock)
        second.wait(lambda: False)
        fence = take_over(second, new, commit, metadata(0, 0))
        assert (fence.checkpoint, fence.epoch) == (3, 2)
        assert fence.generation > began.generation
        assert committed == [2]
        with pytest.raises(CheckpointTaken):
            old.complete(metadata(old.next_id, began.generation), world.clock)
        assert new.latest_intact() == fence


def test_a_leader_that_lost_its_lease_does_not_begin_a_term() -> None:
    with World() as world:
        first, second = leadership(world, "first"), leadership(world, "second")
        first.wait(lambda: False)
        second.wait(lambda: False)
        checkpoints = checkpoints_of(world, 1)
        with pytest.raises(LeadershipLost):
            take_over(first, checkpoints, lambda number, committables: None, metadata(0, 0))
        assert checkpoints.numbers() == []


def test_a_sweep_spares_what_a_later_term_wrote() -> None:
    with World() as world:
        old = checkpoints_of(world, 1)
        old.files().write(f"operator-0-5-{1 << 20}-0.1", b"old")
        old.files().write(f"operator-0-5-{(2 << 20) + 1}-0.1", b"new")
        old.sweep([])
        assert old.storage.files() == [f"job/shared/operator-0-5-{(2 << 20) + 1}-0.1"]


class Impatient(Leadership):
    """A driver that is cancelled as soon as it waits."""

    def wait(self, stopped):
        stopped.__self__.set()
        return super().wait(stopped)


def test_a_cancelled_standby_leaves_the_leaders_job_alone() -> None:
    with World() as world:
        leader = leadership(world, "first")
        leader.wait(lambda: False)
        files = dict(world.disk.files)
        lease = FileLease("/leases/job", world.files)
        standby = Impatient(lease, "second", 6.0, world.clock.precise, world.clock.sleep, renews_itself=False)
        life = run(SETUP, world, leadership=standby)
        assert life.status is JobStatus.CANCELED
        assert world.disk.files == files
        leader.verify()
