"""Only one driver leads at a time, and standby drivers need no common clock to detect a lost leader."""

import errno
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.storage import CheckpointStorage
from millstream.checkpoint.storage_errors import CheckpointTaken
from millstream.cluster.checkpoint_schedule import CheckpointSchedule
from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.job_events import EpochDone
from millstream.cluster.leader_progress import LeaderProgress
from millstream.cluster.leadership import Leadership, LeadershipGivenUp, LeadershipLost, NotLeading, take_over
from millstream.cluster.lease import FileLease, Held, Outcome, Watch
from millstream.common import Types, WatermarkStrategy
from millstream.datastream import DataStream, StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.functions import MapFunction
from millstream.files.errors import StorageFailure
from millstream.job.job_status import JobStatus
from millstream.testing import ManualClock
from millstream_chaos.cases.leaders import create_leadership, run_stopped_leaders
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import OUTPUT, ROOT, Faults, Setup, World, compute_reference, run
from millstream_chaos.storage.faulty_files import FaultyFileSystem


def test_one_of_many_drivers_takes_a_term(tmp_path: Path) -> None:
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


def test_a_lease_expires_by_the_readers_clock_if_it_is_not_renewed() -> None:
    watch = Watch().after(Held(1, "a", 0), 100.0)
    assert not watch.is_expired(105.9, 6)
    assert watch.is_expired(106.0, 6)
    watch = watch.after(Held(1, "a", 1), 105.0)
    assert not watch.is_expired(110.0, 6)
    watch = watch.after(Held(1, "a", 1), 109.0)
    assert watch.is_expired(111.0, 6)
    assert not watch.after(Held(2, "b", 0), 111.0).is_expired(112.0, 6)


def member(directory: Path, holder: str, clock: ManualClock) -> Leadership:
    lease = FileLease(str(directory))
    return Leadership(lease, holder, 6.0, clock.precise, clock.sleep, renews_itself=False)


def test_a_leader_that_was_paused_detects_that_it_was_replaced(tmp_path: Path) -> None:
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

    prepared: list[float] = []
    before = clock.precise()
    with pytest.raises(NotLeading):
        second.wait(stopped, lambda: prepared.append(clock.precise() - before))
    first.verify()
    assert len(prepared) == 1
    assert prepared[0] > 30  # the leader began long before


def test_a_standby_returns_how_the_job_ended(tmp_path: Path) -> None:
    clock = ManualClock()
    first, second = member(tmp_path, "first", clock), member(tmp_path, "second", clock)
    first.wait(lambda: False)
    first.conclude("FINISHED", None)
    first.conclude("FAILED", "too late")
    assert second.wait(lambda: False) == Outcome("FINISHED")
    assert second.term == 0


SETUP = Setup(PROGRAMS["tumbling"], epoch_records=15, checkpoint_every=1)


def test_a_later_driver_does_not_run_a_finished_job_again() -> None:
    with World() as world:
        assert run(SETUP, world, leadership=create_leadership(world, "first")).status is JobStatus.FINISHED
        before = world.visible()
        later = run(SETUP, world, leadership=create_leadership(world, "second"))
        assert later.status is JobStatus.FINISHED
        assert not later.epochs
        assert world.visible() == before == compute_reference(SETUP)


def checkpoints_of(world, term):
    made = Checkpoints(CheckpointStorage(ROOT, "job", fs=world.disk), CheckpointSchedule(1), temporary=False)
    made.lead(term)
    return made


def metadata(number, generation):
    return metadata_of(number, generation, {})


def metadata_of(number, generation, committables):
    return CheckpointMetadata(
        checkpoint=number,
        epoch=number,
        generation=generation,
        job_id="job",
        job_name="job",
        timestamp=0,
        now=0,
        operators=(),
        committables=committables,
    )


def test_the_fence_of_a_later_term_stops_checkpoints_of_an_earlier_one() -> None:
    """Even if the old leader cannot see that there is a new one."""
    with World() as world:
        first, second = create_leadership(world, "first"), create_leadership(world, "second")
        first.wait(lambda: False)
        old, new = checkpoints_of(world, 1), checkpoints_of(world, 2)
        committed = []

        def commit(found):
            committed.append(found.checkpoint)

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


def test_an_earlier_leader_cannot_use_an_abandoned_number_after_the_fence() -> None:
    """Its checkpoint 2 failed, so the fence took that number; checkpoint 3 would be behind the fence."""
    with World() as world:
        first, second = create_leadership(world, "first"), create_leadership(world, "second")
        first.wait(lambda: False)
        files = FaultyFileSystem(world.disk)
        old = Checkpoints(CheckpointStorage(ROOT, "job", fs=files), CheckpointSchedule(1), temporary=False)
        old.lead(1)
        began = take_over(first, old, lambda *_: None, metadata(0, 0))
        files.crash_at, files.mode, files.lasting = len(files.operations), "eio", 10
        with pytest.raises(StorageFailure):
            old.complete(metadata(2, began.generation), world.clock)
        files.crash_at = None
        second.wait(lambda: False)
        new = checkpoints_of(world, 2)
        fence = take_over(second, new, lambda *_: None, metadata(0, 0))
        assert (fence.checkpoint, old.next_id) == (2, 3)
        for _ in range(2):
            with pytest.raises(CheckpointTaken):
                old.complete(metadata(old.next_id, began.generation), world.clock)
        assert new.numbers() == [1, 2]
        assert new.latest_intact() == fence


def test_a_leader_that_lost_its_lease_does_not_begin_a_term() -> None:
    with World() as world:
        first, second = create_leadership(world, "first"), create_leadership(world, "second")
        first.wait(lambda: False)
        second.wait(lambda: False)
        checkpoints = checkpoints_of(world, 1)
        with pytest.raises(LeadershipLost):
            take_over(first, checkpoints, lambda found: None, metadata(0, 0))
        assert checkpoints.numbers() == []


def test_a_replaced_leader_cannot_write_the_outcome_of_the_job(tmp_path: Path) -> None:
    clock = ManualClock()
    first, second = member(tmp_path, "first", clock), member(tmp_path, "second", clock)
    for each in (first, second):
        each.wait(lambda: False)
    assert not first.announce_end(JobStatus.FINISHED, None)
    assert not member(tmp_path, "never led", clock).announce_end(JobStatus.CANCELED, None)
    assert FileLease(str(tmp_path)).outcome() is None
    assert second.announce_end(JobStatus.FINISHED, None)
    assert FileLease(str(tmp_path)).outcome() == Outcome("FINISHED")


def test_old_terms_are_deleted_but_no_term_can_be_taken_twice(tmp_path: Path) -> None:
    lease = FileLease(str(tmp_path))
    for term in range(1, 16):
        assert lease.take(term, f"driver {term}")
        lease.renew(term, 1)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("term-")) == [
        f"term-{term:010d}" for term in range(6, 16)
    ]
    assert len(list(tmp_path.iterdir())) <= 21
    assert not any(lease.take(term, "late") for term in range(6, 16))
    assert lease.held() == Held(15, "driver 15", 1)


class Racing(Checkpoints):
    """The old leader publishes its next checkpoint just before the fence of the new leader."""

    def publish_new(self, metadata: CheckpointMetadata) -> None:
        if self.theirs is not None:
            theirs, self.theirs = self.theirs, None
            theirs.complete(metadata_of(theirs.next_id, 1 << 20, {"sink": ("staged",)}), self.clock)
        super().publish_new(metadata)


def test_a_checkpoint_created_before_the_fence_is_restored() -> None:
    """It is committed by the new leader, and the fence names nothing of it any more."""
    with World() as world:
        first, second = create_leadership(world, "first"), create_leadership(world, "second")
        first.wait(lambda: False)
        old = checkpoints_of(world, 1)
        take_over(first, old, lambda found: None, metadata(0, 0))
        second.wait(lambda: False)
        new = Racing(CheckpointStorage(ROOT, "job", fs=world.disk), CheckpointSchedule(1), temporary=False)
        new.lead(2)
        new.theirs, new.clock = old, world.clock
        committed = []
        fence = take_over(
            second, new, lambda found: committed.append((found.checkpoint, dict(found.committables))), metadata(0, 0)
        )
        assert (fence.checkpoint, fence.epoch, dict(fence.committables)) == (3, 2, {})
        assert committed[-1] == (2, {"sink": ("staged",)})
        with pytest.raises(CheckpointTaken):
            old.complete(metadata(old.next_id, 1 << 20), world.clock)


def test_a_sweep_keeps_files_of_later_terms() -> None:
    with World() as world:
        old = checkpoints_of(world, 1)
        old.files().write(f"operator-0-5-{1 << 20}-0.1", b"old")
        old.files().write(f"operator-0-5-{(2 << 20) + 1}-0.1", b"new")
        old.sweep([])
        assert old.storage.files() == [f"job/shared/operator-0-5-{(2 << 20) + 1}-0.1"]


def publishing(setup: Setup, *, begins: bool = False) -> list[int]:
    """The storage operations with which a leader publishes checkpoints or starts to publish them."""
    with World() as world:
        done = list(enumerate(run(setup, world, leadership=create_leadership(world, "first")).operations))
    if begins:
        return [number for number, each in done if each.name == "make_dirs" and "/chk-" in each.path]
    return [number for number, each in done if each.name == "move_new" and each.target.endswith("/_metadata")]


KEEPING_ONE = Setup(
    PROGRAMS["tumbling"],
    epoch_records=15,
    checkpoint_every=1,
    options={
        "execution.checkpointing.num-retained": "1",
        "execution.checkpointing.tolerable-failed-checkpoints": "100",
    },
)


def test_a_checkpoint_whose_number_became_free_again_is_ignored() -> None:
    """An old leader begins to make a checkpoint when another one leads, to the end: checkpoints of that number have
    come and gone, so it can make it. It finds out before it commits, and takes its checkpoint back."""
    expected = compute_reference(KEEPING_ONE)
    points = publishing(KEEPING_ONE, begins=True)
    assert len(points) > 4
    for number in points:
        with World() as world:
            second, first = run_stopped_leaders(KEEPING_ONE, world, [number], None)
            assert second.status is JobStatus.FINISHED
            assert first.status is JobStatus.SUSPENDED, number
            assert world.visible() == expected, number
            assert not [path for path in world.disk.files if path.endswith("/_metadata")], number


def test_a_checkpoint_that_a_new_leader_committed_is_not_deleted() -> None:
    """A leader is stopped as soon as it has made a checkpoint. The next one commits what that names, and dies before
    its fence; the first wakes up, and a third one leads."""
    setup = replace(KEEPING_ONE, program=PROGRAMS["union"], epoch_records=30)
    expected = compute_reference(setup)
    for number in publishing(setup):
        for dies_after in range(6, 13):
            with World() as world:
                run_stopped_leaders(setup, world, [number + 1], dies_after)
                assert world.visible() == expected, (number, dies_after)


def test_an_old_leader_ends_at_its_first_failed_checkpoint() -> None:
    """Whatever number of failed checkpoints the job tolerates."""
    for number in publishing(KEEPING_ONE)[1:]:
        with World() as world:
            seen, lives = [], []

            def meanwhile(done: int, number=number, world=world, seen=seen, lives=lives) -> None:
                if done == number and not lives:
                    lives.append(len(seen))
                    other = create_leadership(world, "second")
                    assert run(KEEPING_ONE, world, Faults(storage=(12, "after")), leadership=other).crashed

            first = run(
                KEEPING_ONE,
                world,
                listen=lambda observation, _, seen=seen: seen.append(observation),
                leadership=create_leadership(world, "first"),
                meanwhile=meanwhile,
            )
            assert first.status is JobStatus.SUSPENDED
            assert not [each for each in seen[lives[0] :] if isinstance(each, EpochDone)]
            assert first.master.job.restarts == 0


def test_an_old_leader_does_not_abort_output_of_its_last_checkpoint() -> None:
    """It is stopped between a checkpoint and its commit. Another one, which has read that checkpoint and is about to
    commit it, may need what was staged even when the first wakes up and ends."""
    expected = compute_reference(KEEPING_ONE)
    points = [number + 1 for number in publishing(KEEPING_ONE)]
    with World() as world:
        staged = []

        def meanwhile(at: int) -> None:
            if at in points and not staged:
                staged.extend(path for path in world.disk.files if path.startswith(f"{OUTPUT}/staged/"))
                if staged:
                    create_leadership(world, "second").wait(lambda: False)

        first = run(KEEPING_ONE, world, leadership=create_leadership(world, "first"), meanwhile=meanwhile)
        assert first.status is JobStatus.SUSPENDED
        assert staged
        assert all(path in world.disk.files for path in staged)
        assert run(KEEPING_ONE, world, leadership=create_leadership(world, "third")).status is JobStatus.FINISHED
        assert world.visible() == expected


def test_an_old_leader_does_not_write_to_the_log_of_a_later_term() -> None:
    """It is stopped before it logs a plan. The next leader, which has logged others, dies; then the first wakes up."""
    with World() as world:
        done = run(KEEPING_ONE, world, leadership=create_leadership(world, "first")).operations
    for number in [n for n, each in enumerate(done) if each.name == "append_bytes"][2:4]:
        with World() as world:
            logged = []

            def meanwhile(at: int, number=number, world=world, logged=logged) -> None:
                if at == number and not logged:
                    logged.append({})
                    other = create_leadership(world, "second")
                    assert run(KEEPING_ONE, world, Faults(storage=(60, "after")), leadership=other).crashed
                    logged[0] = {path: data for path, data in world.disk.files.items() if path.endswith(".log")}

            first = run(KEEPING_ONE, world, leadership=create_leadership(world, "first"), meanwhile=meanwhile)
            assert first.status is JobStatus.SUSPENDED
            changed = [path for path, data in logged[0].items() if world.disk.files.get(path) != data]
            assert changed == [f"{ROOT}/job/epochs-1.log"]
            assert len(logged[0]) == 2


class Impatient(Leadership):
    """A driver that is cancelled as soon as it waits for the lease."""

    def wait(self, stopped, *others):
        stopped.__self__.request()
        return super().wait(stopped, *others)


def test_cancelling_a_standby_does_not_affect_the_leader() -> None:
    with World() as world:
        leader = create_leadership(world, "first")
        leader.wait(lambda: False)
        files = dict(world.disk.files)
        lease = FileLease("/leases/job", world.files)
        standby = Impatient(lease, "second", 6.0, world.clock.precise, world.clock.sleep, renews_itself=False)
        life = run(SETUP, world, leadership=standby)
        assert life.status is JobStatus.CANCELED
        assert world.disk.files == files
        leader.verify()


class Faltering(FileLease):
    """The first heartbeat cannot be written."""

    failed = False

    def renew(self, term, beat):
        if not self.failed:
            self.failed = True
            raise StorageFailure("renew the lease in", self.directory, OSError(5, "no"))
        super().renew(term, beat)


def test_a_leader_renews_its_lease_until_its_driver_ends(tmp_path: Path) -> None:
    """In real time: after a failed heartbeat the leader sends the next one. A driver that ends while the job runs on
    does not report an end of the job, and the next driver leads."""
    clock = time.monotonic
    first = Leadership(Faltering(str(tmp_path)), "first", 1.0, clock, time.sleep)
    second = Leadership(FileLease(str(tmp_path)), "second", 1.0, clock, time.sleep)
    assert first.wait(lambda: False) is None
    until = clock() + 2.0
    with pytest.raises(NotLeading):
        second.wait(lambda: clock() > until)
    first.verify()
    assert not first.announce_end(JobStatus.SUSPENDED, None)
    assert second.wait(lambda: clock() > until + 30.0) is None
    assert second.term == 2
    assert second.announce_end(JobStatus.FAILED, "why")
    assert FileLease(str(tmp_path)).outcome() == Outcome("FAILED", "why")


class Unreadable(FileLease):
    """Reads of the lease fail between two counts."""

    def __init__(self, directory: str, first: int, last: int) -> None:
        super().__init__(directory)
        self.fails, self.looks = range(first, last + 1), 0

    def held(self):
        self.looks += 1
        if self.looks in self.fails:
            raise StorageFailure("look at the lease in", self.directory, OSError(5, "Input/output error"))
        return super().held()


def test_a_standby_tolerates_failing_reads_of_the_lease_and_leads_later(tmp_path: Path) -> None:
    clock = ManualClock()
    first = member(tmp_path, "first", clock)
    first.wait(lambda: False)
    lease = Unreadable(str(tmp_path), 3, 8)
    second = Leadership(lease, "second", 6.0, clock.precise, clock.sleep, renews_itself=False, patience=60.0)
    assert second.wait(lambda: False) is None
    assert second.term == 2
    assert lease.looks > 8


def test_a_standby_that_can_never_read_the_lease_ends_with_an_error() -> None:
    with World() as world:
        lease = Unreadable("/leases/job", 3, 1 << 30)
        lease._fs = world.files
        FileLease("/leases/job", world.files).take(1, "first")
        clock = world.clock
        standby = Leadership(lease, "second", 6.0, clock.precise, clock.sleep, renews_itself=False, patience=60.0)
        before = clock.precise()
        life = run(replace(SETUP, options={"restart-strategy.type": "exponential-delay"}), world, leadership=standby)
        assert life.status is JobStatus.SUSPENDED
        assert str(life.failure).startswith("this driver stood by and could not read the lease for 60 s: ")
        assert 60.0 <= clock.precise() - before < 75.0


def test_a_leader_that_could_not_begin_its_term_begins_it_when_storage_is_back() -> None:
    """Without the fence of its term, an earlier leader could continue."""
    setup = replace(SETUP, options={"restart-strategy.type": "exponential-delay"})
    begins = publishing(setup, begins=True)[0]
    with World() as world:
        life = run(setup, world, Faults(storage=(begins, "eio")), leadership=create_leadership(world, "first"))
        assert life.status is JobStatus.FINISHED
        assert world.visible() == compute_reference(SETUP)
        assert life.master.job.restarts == 1
        made = [each.id for each in life.checkpoints]
        assert made == list(range(2, 2 + len(made)))  # the first one is the fence


def test_a_leader_whose_job_makes_no_progress_gives_up_its_lease() -> None:
    """An epoch that fails repeatedly is no progress; a job without input makes progress."""
    with World() as world:
        clock, lease = world.clock, FileLease("/leases/job", world.files)
        leader = Leadership(lease, "first", 6.0, clock.precise, clock.sleep, renews_itself=False, patience=600.0)

        def look(_: object, master: object) -> None:
            leader.give_up_if_stuck()  # as the thread that renews does

        failing = Faults(engine=frozenset(range(3, 1 << 10)))
        setup = replace(SETUP, options={"restart-strategy.type": "exponential-delay"})
        life = run(setup, world, failing, listen=look, leadership=leader)
        assert life.status is JobStatus.SUSPENDED
        assert re.match(r"the job made no progress for 600 s, .* lease of term 1: the engine failed", str(life.failure))
        assert lease.outcome() is None
        second = create_leadership(world, "second")
        after = run(setup, world, leadership=second)
        assert (after.status, second.term) == (JobStatus.FINISHED, 2)


class Refuse(MapFunction):
    """Cannot process a value."""

    def map(self, value: int) -> int:
        if value > 30:
            msg = f"{value} is refused"
            raise ValueError(msg)
        return value


def numbers(*, refused: bool = False) -> Setup:
    """A job with an epoch for every ten numbers, whose first checkpoint is far away."""

    def program(env: StreamExecutionEnvironment) -> DataStream:
        stream = env.from_source(NumberSequenceSource(1, 90), WatermarkStrategy.no_watermarks(), "n", Types.LONG())
        return stream.map(Refuse(), Types.LONG()) if refused else stream

    options = {
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.max-backoff": "20 s",
    }
    return Setup(program, parallelism=1, epoch_records=10, checkpoint_every=100, options=options)


def patient_leadership(world: World, patience: float = 600.0) -> Leadership:
    lease, clock = FileLease("/leases/job", world.files), world.clock
    return Leadership(lease, "first", 6.0, clock.precise, clock.sleep, renews_itself=False, patience=patience)


def test_replayed_epochs_do_not_count_as_progress() -> None:
    """The job fails at epoch 4 for ever, and replays the three before it each time."""
    with World() as world:
        leader = patient_leadership(world)
        life = run(numbers(refused=True), world, listen=lambda *_: leader.give_up_if_stuck(), leadership=leader)
        assert life.status is JobStatus.SUSPENDED
        assert re.match(r"the job made no progress for 600 s, [^:]*: .*31 is refused", str(life.failure), re.DOTALL)
        assert 600 <= world.clock.precise() - World.BEGIN / 1000 < 700
        assert {done.epoch for done in life.epochs} == {1, 2, 3}


@pytest.mark.parametrize("every", [1, 2, 100])
def test_a_job_whose_checkpoints_cannot_be_published_makes_no_progress(every: int) -> None:
    """Plans and state can be written and checkpoint numbers voided; only metadata does not fit."""
    with World() as world:
        leader = patient_leadership(world)

        def no_space(_: int) -> None:
            assert world.faulty is not None
            operation = world.faulty.operations[-1]
            if "_metadata" in operation.path and operation.name == "write_bytes" and operation.size > 1000:
                raise OSError(errno.ENOSPC, "No space left on device", operation.path)

        setup = replace(numbers(), checkpoint_every=every)
        life = run(setup, world, listen=lambda *_: leader.give_up_if_stuck(), leadership=leader, meanwhile=no_space)
        assert life.status is JobStatus.SUSPENDED
        assert re.match(r"the job made no progress for 600 s, .* no space left", str(life.failure))
        assert world.clock.precise() - World.BEGIN / 1000 < 700
        second = create_leadership(world, "second")
        assert run(setup, world, leadership=second).status is JobStatus.FINISHED
        assert sorted(map(int, world.visible())) == list(range(1, 91))


def test_replanned_epochs_count_as_progress() -> None:
    calls = []

    class Watched(Leadership):
        def report_progress(self) -> None:
            calls.append("moved")
            super().report_progress()

    with World() as world:
        leader = Watched(FileLease("/leases/job", world.files), "first", 6.0, world.clock.precise, world.clock.sleep)
        leader_progress = LeaderProgress(leader)

        def moves(act: Callable[[], None]) -> bool:
            calls.clear()
            act()
            return bool(calls)

        assert [moves(lambda e=epoch: leader_progress.on_epoch_accepted(e)) for epoch in (1, 2, 3, 1, 2, 3, 4)] == [
            *(True, True, True),
            *(False, False, False),
            True,
        ]
        leader_progress.on_epochs_replanned(3)
        assert not moves(lambda: leader_progress.on_epoch_accepted(2))
        assert moves(lambda: leader_progress.on_epoch_accepted(3))
        assert moves(leader_progress.on_idle)
        leader_progress.on_checkpoint_failed()
        assert not moves(leader_progress.on_idle)
        assert not moves(lambda: leader_progress.on_epoch_accepted(9))
        assert moves(leader_progress.on_savepoint_piece)
        assert moves(leader_progress.on_checkpoint_completed)
        assert moves(lambda: leader_progress.on_epoch_accepted(10))
        assert not moves(lambda: leader_progress.on_epoch_accepted(9))


def test_every_piece_of_a_savepoint_counts_as_progress() -> None:
    """A piece takes 400 seconds and there are two for each slot; the leader may take 600."""
    setup = Setup(PROGRAMS["reminders"], parallelism=2, epoch_records=7, checkpoint_every=1)
    rounds = []
    with World() as world:
        leader = patient_leadership(world)

        def stop(observation: object, master: Any) -> None:
            leader.give_up_if_stuck()
            if isinstance(observation, EpochDone) and observation.epoch == 3:
                run_tasks = master._execution.engine.run_tasks

                def slow(tasks: Sequence[Any]) -> Any:
                    rounds.append(len(tasks))
                    for _ in range(0, len(tasks), 2):
                        world.clock.sleep(400)
                        leader.give_up_if_stuck()
                    return run_tasks(tasks)

                master._execution.engine.run_tasks = slow
                master.savepoint("/savepoints", stop=True)

        life = run(setup, world, listen=stop, leadership=leader)
        assert life.status is JobStatus.FINISHED, life.failure
        assert rounds == [2, 2], "each round has its own deadline"


def test_a_job_that_progresses_or_is_idle_keeps_its_leader() -> None:
    clock = ManualClock()
    with World() as world:
        lease = FileLease("/leases/job", world.files)
        leader = Leadership(lease, "first", 6.0, clock.precise, clock.sleep, renews_itself=False, patience=600.0)
        leader.wait(lambda: False)
        for _ in range(10):
            clock.sleep(599.0)
            assert not leader.give_up_if_stuck()
            leader.report_progress()
        clock.sleep(600.0)
        assert leader.give_up_if_stuck()
        with pytest.raises(LeadershipGivenUp):
            leader.report_progress()
        with pytest.raises(LeadershipGivenUp):
            leader.verify()
