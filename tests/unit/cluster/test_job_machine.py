"""A job goes from CREATED to a final status by transitions; impossible events raise errors."""

import pytest

from millstream.cluster.job_machine import Job, UnexpectedEvent, on_event
from millstream.cluster.machine_events import (
    BoundaryReached,
    CancelEpoch,
    CancelRequested,
    CheckpointCompleted,
    CheckpointDamaged,
    CheckpointSkipped,
    Concluded,
    EpochAccepted,
    EpochFailed,
    Finish,
    NothingToRead,
    Position,
    ReachBoundary,
    ReadRequests,
    RequestsRead,
    Rescale,
    Rescaled,
    Restore,
    RestoreAfter,
    Restored,
    RunEpoch,
    SavepointNotWritten,
    SavepointWritten,
    Start,
    Stopped,
    Submitted,
    Superseded,
    TakeCheckpoint,
    Wait,
    Waited,
    WriteSavepoint,
)
from millstream.cluster.restarts import FixedDelay
from millstream.job.job_status import JobStatus

RUNNING = Job(status=JobStatus.RUNNING, strategy=FixedDelay(2, 10), history=("CREATED", "RUNNING"))
BETWEEN_EPOCHS = {
    BoundaryReached(),
    RequestsRead(),
    Rescaled(),
    EpochAccepted(Position(epochs=1)),
    NothingToRead(),
    Waited(),
    CheckpointCompleted(),
    CheckpointSkipped(),
    SavepointWritten(),
    SavepointNotWritten(),
}
ANYWHERE = {Restored(), EpochFailed("x", 0), CheckpointDamaged(), CancelRequested(), Superseded("other")}
CONCLUDED = Concluded(JobStatus.FINISHED, None)
EXPECTED = {
    JobStatus.CREATED: {Submitted(), CONCLUDED, *ANYWHERE},
    JobStatus.RUNNING: {*BETWEEN_EPOCHS, *ANYWHERE},
    JobStatus.RESTARTING: {CONCLUDED, *ANYWHERE},
    JobStatus.CANCELLING: {Stopped()},
    JobStatus.FINISHED: set(),
    JobStatus.FAILED: set(),
    JobStatus.CANCELED: set(),
    JobStatus.SUSPENDED: set(),
}
EVENTS = sorted({*BETWEEN_EPOCHS, *ANYWHERE, Submitted(), Stopped(), CONCLUDED}, key=repr)


def after(*events, strategy=None):
    job, action = Job(strategy=strategy or FixedDelay(2, 10)), None
    for event in events:
        job, action = on_event(job, event)
    return job, action


def at(event, **position):
    """The action after an event in a running job at a position."""
    job, action = on_event(on_event(RUNNING, Restored(Position(**position)))[0], event)
    return job.status, action


def test_a_job_that_fails_twice_and_finishes():
    assert after(Submitted())[1] == Start()
    job, action = after(Submitted(), Restored())
    assert (job.status, action) == (JobStatus.RUNNING, ReachBoundary())
    job, action = on_event(job, EpochFailed("disk", 5))
    assert (job.status, action, job.cause, job.restarts) == (JobStatus.RESTARTING, RestoreAfter(10), "disk", 1)
    job, _ = on_event(job, EpochFailed("disk again", 6))
    assert (job.status, job.cause, job.restarts) == (JobStatus.RESTARTING, "disk again", 2)
    job, _ = on_event(job, Restored())
    job, action = on_event(job, EpochAccepted(Position(epochs=1), is_last=True))
    assert action == TakeCheckpoint(is_final=True)
    job, action = on_event(job, CheckpointCompleted(is_final=True))
    assert (job.status, action) == (JobStatus.FINISHED, Finish())
    assert job.history == ("CREATED", "RUNNING", "RESTARTING", "RESTARTING", "RUNNING", "FINISHED")


def test_a_job_without_remaining_restarts_fails():
    job, action = after(
        Restored(), EpochFailed("a", 0), Restored(), EpochFailed("b", 0), Restored(), EpochFailed("c", 0)
    )
    assert (job.status, job.cause, action) == (JobStatus.FAILED, "c", Finish())


def test_a_failure_that_no_restart_helps_fails_the_job_immediately():
    job, action = after(EpochFailed("wrong program", 0, retryable=False))
    assert (job.status, action) == (JobStatus.FAILED, Finish())


def test_a_damaged_checkpoint_is_skipped_without_a_restart():
    job, action = after(Restored(), CheckpointDamaged())
    assert (job.status, job.restarts, action) == (JobStatus.RUNNING, 0, Restore())
    job, action = after(Restored(), EpochFailed("x", 0), CheckpointDamaged(), Restored())
    assert (job.status, job.restarts, action) == (JobStatus.RUNNING, 1, ReachBoundary())


def test_cancel_ends_the_epoch_first():
    job, action = after(Restored(), CancelRequested())
    assert (job.status, action) == (JobStatus.CANCELLING, CancelEpoch())
    job, action = on_event(job, Stopped())
    assert (job.status, action) == (JobStatus.CANCELED, Finish())


def test_another_driver_ends_or_leads_the_job():
    job, action = after(Submitted(), Concluded(JobStatus.FAILED, "disk"))
    assert (job.status, job.cause, action) == (JobStatus.FAILED, "disk", Finish())
    job, action = after(Restored(), Superseded("host:1 leads"))
    assert (job.status, job.cause, action) == (JobStatus.SUSPENDED, "host:1 leads", Finish())


def test_a_cycle_without_requests():
    assert at(BoundaryReached(), epochs=1) == (JobStatus.RUNNING, ReadRequests())
    assert at(RequestsRead(), epochs=1) == (JobStatus.RUNNING, RunEpoch())
    assert at(EpochAccepted(Position(epochs=2))) == (JobStatus.RUNNING, ReachBoundary())
    assert at(EpochAccepted(Position(epochs=2), checkpoint_due=True)) == (JobStatus.RUNNING, TakeCheckpoint())
    assert at(CheckpointCompleted()) == at(CheckpointSkipped()) == (JobStatus.RUNNING, ReachBoundary())


def test_an_epoch_knows_how_often_the_job_restarted():
    _, action = after(Restored(), EpochFailed("x", 0), Restored(), RequestsRead())
    assert action == RunEpoch(restarts=1)


def test_logged_plans_are_replayed_until_none_is_left():
    job, action = after(Restored(Position(replay=2)), RequestsRead())
    assert action == RunEpoch(replay=True)
    job, _ = on_event(job, EpochAccepted(Position(epochs=1, replay=1)))
    assert on_event(job, RequestsRead())[1] == RunEpoch(replay=True)
    job, _ = on_event(job, EpochAccepted(Position(epochs=2)))
    assert on_event(job, RequestsRead())[1] == RunEpoch()


def test_a_job_without_input_waits_after_its_checkpoint():
    job, action = after(Restored(), NothingToRead())
    assert action == Wait()
    job, action = after(Restored(), NothingToRead(checkpoint_due=True))
    assert action == TakeCheckpoint()
    for outcome in (CheckpointCompleted(), CheckpointSkipped()):
        idle, action = on_event(job, outcome)
        assert action == Wait()
        idle, action = on_event(idle, Waited())
        assert action == ReachBoundary()
        assert on_event(idle, CheckpointCompleted())[1] == ReachBoundary(), "it waits once"


def test_a_rescale_waits_until_restored_state_is_written_and_plans_are_replayed():
    ordered = RequestsRead(rescale=True)
    assert at(ordered, epochs=1) == (JobStatus.RUNNING, Rescale())
    assert at(ordered) == (JobStatus.RUNNING, Rescale()), "a job with nothing to restore need not run before"
    assert at(ordered, replay=1) == (JobStatus.RUNNING, RunEpoch(replay=True))
    assert at(ordered, has_restored_files=True) == (JobStatus.RUNNING, RunEpoch())
    assert at(Rescaled(Position(has_restored_files=True)), epochs=3) == (JobStatus.RUNNING, RunEpoch())


def test_a_savepoint_waits_until_an_epoch_has_run_and_nothing_is_replayed():
    asked = BoundaryReached(savepoint=True)
    assert at(asked, epochs=1) == (JobStatus.RUNNING, WriteSavepoint())
    assert at(asked) == at(asked, epochs=1, replay=1) == (JobStatus.RUNNING, ReadRequests())
    assert at(asked, is_over=True) == (JobStatus.FINISHED, Finish())


def test_what_follows_a_savepoint():
    assert at(SavepointWritten()) == at(SavepointNotWritten()) == (JobStatus.RUNNING, ReachBoundary())
    assert at(SavepointWritten(stop=True)) == (JobStatus.FINISHED, Finish())
    assert at(SavepointWritten(cancel=True)) == (JobStatus.CANCELLING, CancelEpoch())


def test_a_job_whose_input_is_processed_only_commits():
    assert at(BoundaryReached(), is_over=True) == (JobStatus.FINISHED, Finish())
    assert at(BoundaryReached(), awaits_commit=True) == (JobStatus.RUNNING, TakeCheckpoint(is_final=True))


@pytest.mark.parametrize("status", EXPECTED)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_unexpected_event_raises_with_the_history(status, event):
    job = Job(status=status, strategy=FixedDelay(1, 0), history=("CREATED", "RUNNING", status.name))
    if event in EXPECTED[status]:
        on_event(job, event)
        return
    with pytest.raises(UnexpectedEvent, match=f"unexpected {type(event).__name__}.*CREATED > RUNNING > {status.name}"):
        on_event(job, event)


def test_history_stays_short():
    job = Job(strategy=FixedDelay(1000, 0))
    job, _ = on_event(job, Restored())
    for _ in range(200):
        job, _ = on_event(job, EpochFailed("x", 0))
        job, _ = on_event(job, Restored())
    assert len(job.history) <= 51
