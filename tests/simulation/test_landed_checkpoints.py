"""A job ends after a checkpoint was published and before the job knows or commits: no output of the checkpoint is
lost."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from millstream.checkpoint.savepoint import open_snapshot
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.failures import CheckpointExpired
from millstream.cluster.job_events import EpochDone
from millstream.cluster.job_execution import JobExecution
from millstream.cluster.job_master import JobMaster
from millstream.cluster.leadership import Leadership
from millstream.cluster.publishing import PublishAttempt
from millstream.cluster.recovery import Recovery
from millstream.common import Types, WatermarkStrategy
from millstream.common.serialization import Encoder
from millstream.connectors.files.commit import FileCommitter
from millstream.datastream.connectors.file_system import BucketAssigner, FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.errors import ExternalError
from millstream.job.job_status import JobStatus
from millstream_chaos.cases.leaders import create_leadership
from millstream_chaos.simulation import ROOT, Life, Setup, World, run

LAST = 40


def setup_of(out: Path, **how: Any) -> Setup:
    def program(environment: Any) -> Any:
        files = FileSink.for_row_format(str(out), Encoder.simple_string_encoder())
        files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        source = NumberSequenceSource(1, LAST)
        numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
        texts = numbers.map(str, Types.STRING()).uid("texts")
        texts.sink_to(files.build()).uid("files")
        return texts

    return Setup(program, parallelism=1, epoch_records=4, **{"checkpoint_every": 2, **how})


def lines(out: Path) -> list[int]:
    return sorted(int(line) for part in out.glob("part*") for line in part.read_text().split())


@dataclass
class Trouble:
    """What goes wrong once the checkpoint `number` exists. `cancels`: the job is cancelled at the same time."""

    monkeypatch: pytest.MonkeyPatch
    cancels: bool
    number: int = 3
    masters: list[JobMaster] = field(default_factory=list)
    begun: bool = False

    def fail(self, problem: str) -> None:
        self.begun = True
        if self.cancels:
            self.masters[0].cancel()
        raise ExternalError(problem)

    def expires(self) -> None:
        """The checkpoint is published, but the job hears that it expired."""
        publish = PublishAttempt.run

        def late(attempt: PublishAttempt) -> Any:
            published = publish(attempt)
            if attempt.metadata.checkpoint == self.number:
                self.begun = True
                raise CheckpointExpired(self.number, 1)
            return published

        self.monkeypatch.setattr(PublishAttempt, "run", late)

    def cannot_find(self) -> None:
        """Storage cannot be read when the job recovers."""
        find = Recovery._find_checkpoint

        def find_or_fail(recovery: Recovery) -> Any:
            if self.begun:
                self.fail("the storage cannot be read")
            return find(recovery)

        self.monkeypatch.setattr(Recovery, "_find_checkpoint", find_or_fail)

    def cannot_read_lease(self, path: str, world: World) -> None:
        """The lease cannot be read after the checkpoint, once."""
        verify = Leadership.verify

        def verified(leader: Leadership) -> None:
            if world.disk.exists(path) and not self.begun:
                self.fail("the lease cannot be read")
            verify(leader)

        self.monkeypatch.setattr(Leadership, "verify", verified)

    def cannot_list(self) -> None:
        """The checkpoint is published, but it cannot be confirmed that there is no newer one."""

        def confirm(_: Checkpoints, number: int) -> None:
            if number == self.number:
                self.fail("the checkpoints cannot be listed")

        self.monkeypatch.setattr(Checkpoints, "_confirm", confirm)


def run_life(world: World, setup: Setup, trouble: Trouble, leader: Leadership | None = None, **savepoint: Any) -> Life:
    def listen(observation: Any, master: JobMaster) -> None:
        if not trouble.masters:
            trouble.masters.append(master)
        if savepoint and isinstance(observation, EpochDone) and observation.epoch == 5:
            master.savepoint("/savepoints", **savepoint)

    life = run(setup, world, listen=listen, leadership=leader)
    trouble.monkeypatch.undo()
    assert trouble.begun
    assert life.status is (JobStatus.CANCELED if trouble.cancels else JobStatus.FAILED)
    return life


def check_output(world: World, out: Path, setup: Setup, life: Life, number: int, last: int) -> None:
    """All rows up to `last` are committed, or a job that starts from the checkpoint commits them."""
    if life.status is JobStatus.CANCELED:
        assert lines(out) == list(range(1, last + 1))
        assert [path.name for path in out.glob(".staging/*") if path.is_file()] == []
        return
    path = {"execution.state-recovery.path": f"{ROOT}/job/chk-{number}"}
    ended = open_snapshot(path["execution.state-recovery.path"], CheckpointStorage(ROOT, "new", fs=world.disk))
    assert any(ended.metadata.committables.values())
    again = run(replace(setup, job="new", options=path), world)
    assert again.status is JobStatus.FINISHED, again.failure
    assert lines(out) == list(range(1, LAST + 1))


def restarting(attempts: int) -> dict[str, str]:
    return {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": str(attempts)}


@pytest.mark.parametrize("cancels", [True, False], ids=["canceled", "failed"])
def test_a_checkpoint_that_expired_and_exists_and_a_recovery_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancels: bool, caplog: pytest.LogCaptureFixture
) -> None:
    setup, trouble = setup_of(tmp_path, options=restarting(1)), Trouble(monkeypatch, cancels)
    trouble.expires()
    trouble.cannot_find()
    with World() as world, caplog.at_level(logging.ERROR):
        life = run_life(world, setup, trouble)
        assert (f"{ROOT}/job/chk-3 is kept: a job that starts from it" in caplog.text) is not cancels
        check_output(world, tmp_path, setup, life, 3, 24)


@pytest.mark.parametrize("cancels", [True, False], ids=["canceled", "failed"])
def test_a_lease_that_cannot_be_read_between_a_checkpoint_and_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancels: bool
) -> None:
    setup = setup_of(tmp_path, options={"restart-strategy.type": "none"})
    trouble = Trouble(monkeypatch, cancels)
    with World() as world:
        trouble.cannot_read_lease(f"{ROOT}/job/chk-4/_metadata", world)  # the first one is the fence
        life = run_life(world, setup, trouble, create_leadership(world, "this"))
        check_output(world, tmp_path, setup, life, 4, 24)


@pytest.mark.parametrize("cancels", [True, False], ids=["canceled", "failed"])
def test_a_checkpoint_that_cannot_be_confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancels: bool) -> None:
    setup = setup_of(tmp_path, options={"restart-strategy.type": "none"})
    trouble = Trouble(monkeypatch, cancels)
    trouble.cannot_list()
    with World() as world:
        life = run_life(world, setup, trouble)
        check_output(world, tmp_path, setup, life, 3, 24)


def test_a_stop_whose_last_checkpoint_expired_and_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup, trouble = setup_of(tmp_path, options={"restart-strategy.type": "none"}), Trouble(monkeypatch, cancels=True)
    trouble.expires()
    resolve = JobExecution.resolve_checkpoints

    def resolve_and_cancel(execution: JobExecution) -> Any:
        numbers = resolve(execution)
        execution.cancel()
        return numbers

    monkeypatch.setattr(JobExecution, "resolve_checkpoints", resolve_and_cancel)
    with World() as world:
        life = run_life(world, setup, trouble, stop=True)
        assert len(world.disk.list("/savepoints")) == 1
        check_output(world, tmp_path, setup, life, 3, 20)


def test_a_stop_whose_lease_cannot_be_read_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup, trouble = setup_of(tmp_path, options={"restart-strategy.type": "none"}), Trouble(monkeypatch, cancels=True)
    with World() as world:
        trouble.cannot_read_lease(f"{ROOT}/job/chk-4/_metadata", world)
        life = run_life(world, setup, trouble, create_leadership(world, "this"), stop=True)
        check_output(world, tmp_path, setup, life, 4, 20)


@pytest.mark.parametrize("how", [{}, {"stop": True}], ids=["savepoint", "stop"])
def test_without_checkpoints_the_savepoint_that_names_the_output_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: dict[str, bool]
) -> None:
    """The commit after the savepoint fails: a job that starts from it commits."""
    setup, trouble = setup_of(tmp_path, checkpoint_every=None), Trouble(monkeypatch, cancels=False)

    def refuse(_: FileCommitter, checkpoint: int, committables: Sequence[Any]) -> None:
        trouble.fail("the file system is read-only")

    monkeypatch.setattr(FileCommitter, "commit", refuse)
    with World() as world, caplog.at_level(logging.ERROR):
        run_life(world, setup, trouble, **(how or {"drain": False}))
        path = f"/savepoints/{world.disk.list('/savepoints')[0]}"
        assert f"{path} is kept: a job that starts from it" in caplog.text
        options = {"execution.state-recovery.path": path}
        assert run(replace(setup, job="new", options=options), world).status is JobStatus.FINISHED
    assert lines(tmp_path) == list(range(1, LAST + 1))
