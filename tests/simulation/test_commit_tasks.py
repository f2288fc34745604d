"""A committer that hands its work to tasks: in a running job, in a recovery, and in the takeover of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from millstream.cluster.leadership import LeadershipLost
from millstream.common import Types, WatermarkStrategy
from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connector.slot_task import SlotTask
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.errors import ExternalError
from millstream.job.job_status import JobStatus
from millstream_chaos.cases.leaders import create_leadership
from millstream_chaos.simulation import Setup, World, run
from millstream_chaos.storage.faulty_files import SimulatedCrash

_rows: dict[str, list[int]] = {}  # what each attempt has made visible
_owners: list[str] = []
_failing: list[BaseException] = []  # raised by the next tasks


@dataclass(frozen=True)
class ByTasks(Sink):
    """Committables contain the rows; tasks make them visible."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(context)

    def create_committer(self) -> Committer:
        return _Committer()


class _Writer(SinkWriter):
    def __init__(self, context: WriterContext) -> None:
        self._context, self._rows = context, []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._rows.extend(int(value) for value in values)

    def prepare_commit(self) -> list[Any]:
        return [[f"{self._context.epoch}-{self._context.subtask}", self._context.subtask, self._rows]]


@dataclass(frozen=True)
class _Show:
    name: str
    rows: list[int]

    def __call__(self) -> int:
        if _failing:
            raise _failing.pop()
        _rows[self.name] = self.rows
        return len(self.rows)


class _Committer(Committer):
    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        _owners.append(self.workers.owner)
        tasks = [SlotTask(subtask, _Show(name, rows)) for name, subtask, rows in committables]
        assert self.workers.run_tasks(tasks) == [len(rows) for _, _, rows in committables]


def program(environment: Any) -> Any:
    numbers = environment.from_source(NumberSequenceSource(1, 40), WatermarkStrategy.no_watermarks(), "numbers")
    mapped = numbers.uid("numbers").map(lambda number: number, Types.LONG()).uid("mapped")
    mapped.sink_to(ByTasks()).uid("shown")
    return mapped


SETUP = Setup(program, parallelism=2, epoch_records=5, checkpoint_every=2, incarnation="one")


@pytest.fixture(autouse=True)
def _empty() -> None:
    _rows.clear()
    _owners.clear()
    _failing.clear()


def visible_rows() -> list[int]:
    return sorted(row for rows in _rows.values() for row in rows)


def test_tasks_that_fail_are_repeated_by_the_recovery() -> None:
    _failing.extend([ExternalError("gone"), ExternalError("gone again")])
    with World() as world:
        assert run(SETUP, world).status is JobStatus.FINISHED
    assert visible_rows() == list(range(1, 41))
    assert set(_owners) == {"job-one"}


def test_a_new_leader_commits_by_tasks_before_it_has_restored_anything() -> None:
    """The leader dies between the publish of a checkpoint and its commit."""
    _failing.append(SimulatedCrash())
    with World() as world:
        assert run(SETUP, world, leadership=create_leadership(world, "first")).crashed
        assert _rows == {}
        after = run(replace(SETUP, incarnation="two"), world, leadership=create_leadership(world, "second"))
        assert after.status is JobStatus.FINISHED
    assert visible_rows() == list(range(1, 41))
    assert list(dict.fromkeys(_owners)) == ["job-one", "job-two"]


def test_a_driver_knows_whether_it_leads() -> None:
    with World() as world:
        first = create_leadership(world, "first")
        asked: list[bool] = []

        def listen(_: Any, master: Any) -> None:
            if not asked:
                asked.append(master._execution.workers.leads())
                first.term -= 1
                with pytest.raises(LeadershipLost):
                    master._execution.workers.leads()
                first.term += 1

        assert run(SETUP, world, listen=listen, leadership=first).status is JobStatus.FINISHED
    assert asked == [True]
    with World() as world:
        finished = run(SETUP, world, listen=lambda _, master: asked.append(master._execution.workers.leads()))
    assert finished.status is JobStatus.FINISHED
    assert asked[1:]
    assert not any(asked[1:])
