"""The machine of a session cluster."""

from __future__ import annotations

import pytest

from millstream.cluster.session.machine import (
    Action,
    Answer,
    Archive,
    CancelJobs,
    CancelRequested,
    Event,
    Forgotten,
    JobEnded,
    ProgramEnded,
    ProgramLost,
    ProgramStatus,
    Session,
    SlotsRequested,
    Start,
    Submitted,
    on_event,
)
from millstream.cluster.session.slots import Granted, SlotPool, SlotRequest, Waiting


def run(session: Session, *events: Event) -> tuple[Session, list[Action]]:
    actions: list[Action] = []
    for event in events:
        session, next_actions = on_event(session, event)
        actions += next_actions
    return session, actions


def request(program: str, slots: int) -> SlotsRequested:
    return SlotsRequested(SlotRequest(program, f"job of {program}", slots))


def test_a_job_waits_until_another_one_has_ended() -> None:
    session, actions = run(Session(SlotPool(2)), Submitted("p"), Submitted("q"), request("p", 2), request("q", 1))
    assert actions[:3] == [Start("p"), Start("q"), Answer(SlotRequest("p", "job of p", 2), Granted())]
    assert isinstance(actions[3], Answer)
    assert isinstance(actions[3].verdict, Waiting)
    assert session.programs["q"].waits == {"job of q": "waits for 1 slots: 0 of 2 are free"}
    session, actions = run(session, JobEnded("p", "job of p"))
    assert actions == [Answer(SlotRequest("q", "job of q", 1), Granted())]
    assert session.programs["q"].waits == {}


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (ProgramEnded("p"), ProgramStatus.FINISHED),
        (ProgramEnded("p", "a bug"), ProgramStatus.FAILED),
        (ProgramEnded("p", is_cancelled=True), ProgramStatus.CANCELED),
        (ProgramLost("p", "it was killed", at=0), ProgramStatus.FAILED),
    ],
)
def test_a_program_that_has_ended_is_archived_once_and_has_no_slots(event: Event, status: ProgramStatus) -> None:
    session, _ = run(Session(SlotPool(2)), Submitted("p"), request("p", 2))
    session, actions = run(session, event, ProgramLost("p", "again", at=0), CancelRequested("p"))
    assert actions == [Archive("p")]
    assert (session.programs["p"].status, session.slots.free) == (status, 2)


def test_a_lost_program_starts_again_if_its_jobs_can_be_recovered() -> None:
    session, _ = run(Session(SlotPool(2), recovers=True), Submitted("p"), request("p", 2))
    session, actions = run(session, ProgramLost("p", "it was killed", at=0))
    assert actions == [Start("p")]
    assert (session.programs["p"].restarts, session.slots.free) == (1, 2)
    session, actions = run(session, *(ProgramLost("p", "it was killed", at=at) for at in range(1, 11)))
    assert actions[-1] == Archive("p")
    assert session.programs["p"].status is ProgramStatus.FAILED


def test_a_program_that_is_lost_occasionally_always_starts_again() -> None:
    hourly = (ProgramLost("p", "Spark was lost", at=3_600_000 * hour) for hour in range(100))
    session, actions = run(Session(SlotPool(2), recovers=True), Submitted("p"), *hourly)
    assert actions == [Start("p")] * 101
    assert (session.programs["p"].restarts, session.programs["p"].status) == (100, ProgramStatus.RUNNING)


def test_only_a_program_that_has_ended_is_forgotten() -> None:
    session, _ = run(Session(SlotPool(2)), Submitted("p"), Submitted("q"), ProgramEnded("p"), Forgotten("p"))
    assert list(session.programs) == ["q"]
    with pytest.raises(ValueError, match="program q has not ended: RUNNING"):
        run(session, Forgotten("q"))


def test_a_cancelled_program_is_cancelled_however_it_ends() -> None:
    session, actions = run(
        Session(SlotPool(2), recovers=True), Submitted("p"), CancelRequested("p"), CancelRequested("p")
    )
    assert actions == [Start("p"), CancelJobs("p")]
    session, actions = run(session, ProgramLost("p", "it was killed", at=0))
    assert actions == [Archive("p")]
    assert session.programs["p"].status is ProgramStatus.CANCELED
