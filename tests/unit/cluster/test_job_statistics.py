"""Statistics of a job from its events, and the jobs of a process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from millstream.cluster import dispatcher, job_statistics
from millstream.cluster.dispatcher import Dispatcher, NoSuchJob
from millstream.cluster.job_events import CheckpointDone, EpochDone, RescaleDone, StatusChanged, SubtaskEpoch
from millstream.cluster.job_statistics import JobStatistics, SubtaskTotals, VertexTime
from millstream.job.job_status import JobStatus


class Clock:
    time = 0

    def now(self) -> int:
        self.time += 10
        return self.time

    def precise(self) -> float:
        return self.time / 1000


def epoch(number: int, *subtasks: SubtaskEpoch) -> EpochDone:
    return EpochDone(number, 5, 2.0, 0, None, 1.0, {}, subtasks={"vertex": subtasks})


def test_events_are_summed_up() -> None:
    statistics = JobStatistics(Clock())
    statistics(StatusChanged(JobStatus.RUNNING, 0))
    before = statistics.get()
    statistics(epoch(1, SubtaskEpoch(0, 3, 1, 1.5, 100), SubtaskEpoch(1, 2, 2, 0.5, 90)))
    statistics(epoch(2, SubtaskEpoch(0, 1, 1, 0.5, 200), SubtaskEpoch(1, 4, 0, 0.5, 190)))
    statistics(CheckpointDone(1, 2, 10, 20, 3.0, "path"))
    statistics(StatusChanged(JobStatus.RESTARTING, 1, "ValueError: on purpose"))
    now = statistics.get()
    assert (now.epochs, now.epoch_ms, now.records, now.checkpoint_count, now.restarts) == (2, 4.0, 10, 1, 1)
    assert now.subtasks["vertex"] == (SubtaskTotals(4, 2, 2.0, 200), SubtaskTotals(6, 2, 1.0, 190))
    assert [(failure.event.cause, failure.event.is_final) for failure in now.failures] == [
        ("ValueError: on purpose", False)
    ]
    assert now.status_times == {JobStatus.CREATED: 10, JobStatus.RUNNING: 20, JobStatus.RESTARTING: 60}
    assert (before.epochs, before.subtasks) == (0, {})


def test_the_newest_epochs_are_kept_with_their_slowest_subtasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_statistics, "_EPOCH_VALUES", 3)
    statistics = JobStatistics(Clock())
    for number in range(1, 6):
        statistics(epoch(number, SubtaskEpoch(0, 3, 1, 1.0, 100), SubtaskEpoch(1, 2, 2, 4.0, 90)))
    samples = statistics.epoch_samples()
    assert [sample.event.epoch for sample in samples] == [3, 4, 5]
    assert samples[-1].event.vertices == {"vertex": VertexTime(longest_ms=4.0, subtask=1, average_ms=2.5)}


def test_another_parallelism_resets_totals() -> None:
    statistics = JobStatistics(Clock())
    statistics(epoch(1, SubtaskEpoch(0, 3, 1, 1.0, 0)))
    statistics(epoch(2, SubtaskEpoch(0, 1, 1, 1.0, 0), SubtaskEpoch(1, 1, 1, 1.0, 0)))
    statistics(RescaleDone(2, 2, 5.0))
    now = statistics.get()
    assert [totals.records_in for totals in now.subtasks["vertex"]] == [1, 1]
    assert [rescale.event.slots for rescale in now.rescales] == [2]


def test_a_dispatcher_forgets_the_oldest_ended_jobs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "_KEPT_ENDED", 2)
    jobs = Dispatcher()
    statuses = [JobStatus.RUNNING, JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED, JobStatus.RUNNING]
    for number, status in enumerate(statuses):
        statistics = SimpleNamespace(status=status)
        jobs.add(SimpleNamespace(id=str(number), statistics=lambda statistics=statistics: statistics))
    assert [job.id for job in jobs.jobs()] == ["0", "2", "3", "4"]
    assert jobs.job("4").id == "4"
    with pytest.raises(NoSuchJob):
        jobs.job("1")
