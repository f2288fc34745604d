"""Output that a checkpoint names is committed by the job that starts from it, or dropped on request."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from millstream.checkpoint.compatibility import DeclaredOperator, Outcome, compare
from millstream.checkpoint.restore import OperatorShape, StateNotClaimed
from millstream.checkpoint.savepoint import open_snapshot
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.job_events import EpochDone, RescaleDone
from millstream.cluster.sinks import OutputNotClaimed
from millstream.common import Types, WatermarkStrategy
from millstream.common.serialization import Encoder
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.file_system import BucketAssigner, FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.job.job_status import JobStatus
from millstream_chaos.cases.leaders import create_leadership
from millstream_chaos.simulation import ROOT, Faults, Setup, World, find_operation, run

ALLOWED = {"execution.state-recovery.ignore-unclaimed-state": "true"}


def setup_of(out: Path, uid: str = "files", sink: Any = None) -> Setup:
    def program(environment: Any) -> Any:
        files = FileSink.for_row_format(str(out), Encoder.simple_string_encoder())
        files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        source = NumberSequenceSource(1, 40)
        numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
        texts = numbers.map(str, Types.STRING()).uid("texts")
        texts.sink_to(sink or files.build()).uid(uid)
        return texts

    return Setup(program, parallelism=1, epoch_records=4, checkpoint_every=2)


def lines(out: Path) -> list[int]:
    return sorted(int(line) for part in out.glob("part*") for line in part.read_text().split())


def crashed_before_a_commit(world: World, tmp_path: Path, **how: Any) -> Path:
    """A job that dies when its third checkpoint is published: two epochs of it are staged."""
    at = find_operation(setup_of(tmp_path / "probe"), "chk-3/_metadata")
    out = tmp_path / "out"
    assert run(setup_of(out), world, Faults(storage=(at, "after")), **how).crashed
    assert lines(out) == list(range(1, 17))
    return out


def resumed(setup: Setup, **options: str) -> Setup:
    path = {"execution.state-recovery.path": f"{ROOT}/job/chk-3"}
    return replace(setup, job="new", options={**path, **options})


def test_a_sink_whose_uid_has_changed_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with World() as world:
        out = crashed_before_a_commit(world, tmp_path)
        life = run(resumed(setup_of(out, "renamed")), world)
        assert isinstance(life.failure, StateNotClaimed)
        assert "'Sink: FileSink' (2 committables of staged output)" in str(life.failure)
        assert life.master is not None
        assert life.master.job.restarts == 0
        with caplog.at_level(logging.WARNING):
            life = run(resumed(setup_of(out, "renamed"), **ALLOWED), world)
        assert life.status is JobStatus.FINISHED
        assert "'Sink: FileSink' (2 committables of staged output)" in caplog.text
        assert lines(out) == [*range(1, 17), *range(25, 41)]


def test_a_sink_without_committer_does_not_claim_staged_output(tmp_path: Path) -> None:
    with World() as world:
        out = crashed_before_a_commit(world, tmp_path)
        life = run(resumed(setup_of(out, sink=BlackHoleSink())), world)
        assert isinstance(life.failure, OutputNotClaimed)
        assert life.master is not None
        assert life.master.job.restarts == 0


def test_a_leader_with_another_program_leaves_the_output_to_a_leader_with_the_right_one(tmp_path: Path) -> None:
    """The fence of a term names no output: it is made only when all of it is committed."""
    at = _point_of_leader(tmp_path)
    with World() as world:
        out = tmp_path / "out"
        first = create_leadership(world, "first")
        assert run(setup_of(out), world, Faults(storage=(at, "after")), leadership=first).crashed
        before = lines(out)
        wrong = run(setup_of(out, "renamed"), world, leadership=create_leadership(world, "second"))
        assert isinstance(wrong.failure, OutputNotClaimed)
        assert lines(out) == before
        world.disk.remove("/leases/job/outcome")
        right = run(setup_of(out), world, leadership=create_leadership(world, "third"))
        assert right.status is JobStatus.FINISHED
        assert lines(out) == list(range(1, 41))


def _point_of_leader(tmp_path: Path) -> int:
    with World() as world:
        done = run(setup_of(tmp_path / "probe"), world, leadership=create_leadership(world, "first")).operations
    return next(number for number, each in enumerate(done) if each.target.endswith("chk-3/_metadata"))


@pytest.mark.parametrize(("allow", "fate"), [(False, Outcome.REFUSED), (True, Outcome.DROPPED)])
def test_a_check_reports_unclaimed_output_before_the_start(tmp_path: Path, allow: bool, fate: Outcome) -> None:
    with World() as world:
        crashed_before_a_commit(world, tmp_path)
        snapshot = open_snapshot(f"{ROOT}/job/chk-3", CheckpointStorage(ROOT, "new", fs=world.disk))
        metadata = snapshot.metadata
    kept = [each for each in metadata.operators if each.uid != "files"]
    program = [
        DeclaredOperator(OperatorShape(each.operator, each.name, 1, each.max_parallelism), each.uid) for each in kept
    ]
    verdicts = {each.operator: each for each in compare(metadata, None, program, allow_unclaimed=allow)}
    assert verdicts["files"].outcome is fate
    assert verdicts["files"].notes[0] == "2 committables of its output were staged and not committed"


@pytest.mark.parametrize("every", [2, 3])
def test_staged_output_survives_a_rescale_after_every_epoch(tmp_path: Path, every: int) -> None:
    def listen(observation: Any, master: Any) -> None:
        if isinstance(observation, EpochDone) and observation.epoch <= every + 1:
            master.rescale(1 + observation.epoch % 3)

    out = tmp_path / "out"
    with World() as world:
        life = run(replace(setup_of(out), checkpoint_every=every), world, listen=listen)
    assert life.status is JobStatus.FINISHED
    assert len([each for each in life.seen if isinstance(each, RescaleDone)]) > every
    assert lines(out) == list(range(1, 41))
    assert [path.name for path in out.iterdir() if not path.name.startswith("part-")] == []
