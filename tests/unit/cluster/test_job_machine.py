"""A job goes from CREATED to a final status; what cannot happen raises with the history."""

import pytest

from millstream.cluster.events import (
    CancelEpoch,
    CancelRequested,
    EpochFailed,
    Finish,
    InputEnded,
    Restarted,
    RestoreAfter,
    RunEpochs,
    Started,
    Stopped,
)
from millstream.cluster.job_machine import Job, UnexpectedEvent, on_event
from millstream.cluster.restarts import FixedDelay
from millstream.job.job_status import JobStatus

EVENTS = (Started(), EpochFailed("x", 0), Restarted(), InputEnded(), CancelRequested(), Stopped())
EXPECTED = {
    JobStatus.CREATED: {Started, EpochFailed, CancelRequested},
    JobStatus.RUNNING: {EpochFailed, InputEnded, CancelRequested},
    JobStatus.RESTARTING: {EpochFailed, Restarted, CancelRequested},
    JobStatus.CANCELLING: {EpochFailed, InputEnded, Stopped, CancelRequested},
    JobStatus.FINISHED: {CancelRequested},
    JobStatus.FAILED: {CancelRequested},
    JobStatus.CANCELED: {CancelRequested},
}


def after(*events, strategy=None):
    job, actions = Job(strategy=strategy or FixedDelay(2, 10)), ()
    for event in events:
        job, actions = on_event(job, event)
    return job, actions


def test_a_job_that_fails_twice_and_finishes():
    job, actions = after(Started())
    assert (job.status, actions) == (JobStatus.RUNNING, (RunEpochs(),))
    job, actions = on_event(job, EpochFailed("disk", 5))
    assert (job.status, actions, job.cause, job.restarts) == (JobStatus.RESTARTING, (RestoreAfter(10),), "disk", 1)
    job, _ = on_event(job, EpochFailed("disk again", 6))
    assert (job.status, job.cause, job.restarts) == (JobStatus.RESTARTING, "disk again", 2)
    job, _ = on_event(job, Restarted())
    job, actions = on_event(job, InputEnded())
    assert (job.status, actions) == (JobStatus.FINISHED, (Finish(),))
    assert job.history == ("CREATED", "RUNNING", "RESTARTING", "RESTARTING", "RUNNING", "FINISHED")


def test_no_restart_is_left():
    job, actions = after(
        Started(), EpochFailed("a", 0), Restarted(), EpochFailed("b", 0), Restarted(), EpochFailed("c", 0)
    )
    assert (job.status, job.cause, actions) == (JobStatus.FAILED, "c", (Finish(),))


def test_what_a_restart_cannot_help_fails_at_once():
    job, actions = after(EpochFailed("wrong program", 0, retryable=False))
    assert (job.status, actions) == (JobStatus.FAILED, (Finish(),))


def test_cancel_ends_the_epoch_first():
    job, actions = after(Started(), CancelRequested())
    assert (job.status, actions) == (JobStatus.CANCELLING, (CancelEpoch(),))
    for event in (Stopped(), EpochFailed("late", 0), InputEnded()):
        assert on_event(job, event)[0].status is JobStatus.CANCELED


@pytest.mark.parametrize("status", EXPECTED)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_unexpected_event_raises_with_the_history(status, event):
    job = Job(status=status, strategy=FixedDelay(1, 0), history=("CREATED", "RUNNING", status.name))
    if type(event) in EXPECTED[status]:
        on_event(job, event)
        return
    with pytest.raises(UnexpectedEvent, match=f"unexpected {type(event).__name__}.*CREATED > RUNNING > {status.name}"):
        on_event(job, event)


def test_history_stays_short():
    job = Job(strategy=FixedDelay(1000, 0))
    job, _ = on_event(job, Started())
    for _ in range(200):
        job, _ = on_event(job, EpochFailed("x", 0))
        job, _ = on_event(job, Restarted())
    assert len(job.history) <= 51
