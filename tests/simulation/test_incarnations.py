"""Output of a job that starts from scratch must not be mixed with that of an earlier job, whatever their ids are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from millstream.cluster.job_events import CheckpointDone, EpochDone
from millstream.cluster.leadership import GENERATIONS
from millstream.common import Types, WatermarkStrategy
from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.job.job_status import JobStatus
from millstream_chaos.cases.leaders import create_leadership
from millstream_chaos.simulation import ROOT, Faults, Setup, World, find_operation, run
from millstream_chaos.storage.faulty_files import SimulatedCrash

_seen: list[WriterContext] = []
_committed: list[str] = []


@dataclass(frozen=True)
class Noting(Sink):
    """Records the context with which each epoch is written, and the owners of committed output."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        _seen.append(context)
        return _Noting(context)

    def create_committer(self) -> Committer:
        return _Committing()


class _Noting(SinkWriter):
    def __init__(self, context: WriterContext) -> None:
        self._context = context

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None: ...

    def prepare_commit(self) -> list[Any]:
        return [self._context.job]


class _Committing(Committer):
    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        _committed.extend(committables)


def program(environment: Any) -> Any:
    source = NumberSequenceSource(1, 40)
    numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").set_parallelism(1)
    mapped = numbers.uid("numbers").map(lambda number: number, Types.LONG()).uid("mapped").set_parallelism(1)
    mapped.sink_to(Noting()).uid("noting").set_parallelism(1)
    return mapped


SETUP = Setup(program, parallelism=1, epoch_records=5, checkpoint_every=2, incarnation="one")
SECOND = replace(SETUP, incarnation="two")


@pytest.fixture(autouse=True)
def _empty() -> None:
    _seen.clear()
    _committed.clear()


def owners() -> list[str]:
    return list(dict.fromkeys(context.job for context in _seen))


def die_at(kind: type, number: int) -> Callable[[Any, Any], None]:
    def listen(observation: Any, _: Any) -> None:
        if isinstance(observation, kind) and observation.epoch == number:
            raise SimulatedCrash

    return listen


def test_a_job_keeps_its_incarnation_through_recoveries() -> None:
    with World() as world:
        assert run(SETUP, world, listen=die_at(CheckpointDone, 4)).crashed
        assert run(SECOND, world, Faults(engine=frozenset({2}))).status is JobStatus.FINISHED
    assert owners() == ["job-one"]


@pytest.mark.parametrize("kind", [EpochDone, CheckpointDone])
def test_the_next_leader_keeps_the_incarnation_of_its_predecessor(kind: type) -> None:
    """The fence keeps it before there is a checkpoint."""
    with World() as world:
        listen = die_at(kind, 1 if kind is EpochDone else 2)
        assert run(SETUP, world, listen=listen, leadership=create_leadership(world, "first")).crashed
        after = run(SECOND, world, leadership=create_leadership(world, "second"))
        assert after.status is JobStatus.FINISHED
    assert owners() == ["job-one"]


def test_a_job_that_starts_again_under_the_same_id_has_another_incarnation() -> None:
    """Delete the directory of the leases, as the guide says."""
    with World() as world:
        assert run(SETUP, world, leadership=create_leadership(world, "first")).status is JobStatus.FINISHED
        for name in world.disk.list("/leases/job"):
            world.disk.remove(f"/leases/job/{name}")
        again = run(SECOND, world, leadership=create_leadership(world, "first"))
        assert again.status is JobStatus.FINISHED
    assert owners() == ["job-one", "job-two"]


def test_a_job_started_from_a_savepoint_has_another_incarnation() -> None:
    def listen(observation: Any, master: Any) -> None:
        if isinstance(observation, EpochDone) and observation.epoch == 3:
            master.savepoint("/savepoints", stop=True)

    with World() as world:
        assert run(SETUP, world, listen=listen).status is JobStatus.FINISHED
        path = f"/savepoints/{world.disk.list('/savepoints')[0]}"
        resumed = replace(SECOND, options={"execution.state-recovery.path": path})
        assert run(resumed, world, listen=die_at(CheckpointDone, 6)).crashed
        assert run(replace(resumed, incarnation="three"), world).status is JobStatus.FINISHED
    assert owners() == ["job-one", "job-two"]


def test_output_staged_before_is_committed_under_its_own_name() -> None:
    at = find_operation(SETUP, "chk-2/_metadata")
    _seen.clear()
    _committed.clear()
    with World() as world:
        assert run(SETUP, world, Faults(storage=(at, "after"))).crashed
        assert _committed == ["job-one"] * 2
        resumed = replace(SECOND, job="new", options={"execution.state-recovery.path": f"{ROOT}/job/chk-2"})
        assert run(resumed, world).status is JobStatus.FINISHED
    assert _committed == ["job-one"] * 4 + ["new-two"] * 4


def test_a_job_restored_from_an_earlier_release_keeps_its_names() -> None:
    with World() as world:
        assert run(replace(SETUP, incarnation=""), world, listen=die_at(CheckpointDone, 4)).crashed
        path = f"{ROOT}/job/chk-2/_metadata"
        assert b"incarnation" not in world.disk.read_bytes(path)
        assert run(SECOND, world).status is JobStatus.FINISHED
    assert owners() == ["job"]


def test_terms_continue_when_the_lease_is_deleted_and_checkpoints_are_kept() -> None:
    """Attempts and logs of plans are named by terms."""
    with World() as world:
        for holder, epoch in (("first", 2), ("second", 4)):
            assert run(
                SETUP, world, listen=die_at(CheckpointDone, epoch), leadership=create_leadership(world, holder)
            ).crashed
        for name in world.disk.list("/leases/job"):
            world.disk.remove(f"/leases/job/{name}")
        assert run(SECOND, world, leadership=create_leadership(world, "third")).status is JobStatus.FINISHED
    generations = [int(context.attempt.split("-")[0]) for context in _seen]
    assert generations == sorted(generations)
    assert generations[-1] // GENERATIONS == 3


def test_a_rescale_keeps_the_generation_of_the_last_recovery() -> None:
    def listen(observation: Any, master: Any) -> None:
        if isinstance(observation, EpochDone) and observation.epoch in {1, 5}:
            master.rescale(1)

    with World() as world:
        assert run(SETUP, world, Faults(engine=frozenset({3})), listen=listen).status is JobStatus.FINISHED
    found = [(context.epoch, int(context.attempt.split("-")[0]), context.recovered) for context in _seen]
    assert [recovered for _, _, recovered in found] == [0, 0, 0, *[found[3][1]] * (len(found) - 3)]
    assert len({generation for _, generation, _ in found}) == 4


def test_a_job_restored_before_committed_output_has_another_incarnation() -> None:
    """Output that it writes again is not mistaken for committed output."""
    setup = replace(SETUP, repeats=True, options={"millstream.recovery.allow-older-checkpoint": "true"})
    setup = replace(setup, options={**setup.options, "execution.checkpointing.num-retained": "3"})
    with World() as world:
        assert run(setup, world, listen=die_at(CheckpointDone, 6)).crashed
        world.disk.files[f"{ROOT}/job/chk-3/_metadata"] = b"damaged"
        assert run(setup, world, listen=die_at(CheckpointDone, 8)).crashed
        assert run(setup, world).status is JobStatus.FINISHED
    first, second = owners()
    assert first == "job-one" != second
