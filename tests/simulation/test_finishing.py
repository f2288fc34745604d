"""A committer completes pending output when its driver has ended the job, and not while another driver may run the
job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from millstream.cluster.job_events import EpochDone
from millstream.cluster.lease import FileLease
from millstream.common import Types, WatermarkStrategy
from millstream.connector.serialization_schema import Encoder
from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connectors.files import BucketAssigner, FileCompactor, FileCompactStrategy, FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.job.job_status import JobStatus
from millstream_chaos.cases.leaders import create_leadership
from millstream_chaos.simulation import Faults, Life, Setup, World, run

_calls: list[str] = []


@dataclass(frozen=True)
class Noting(Sink):
    """Records how its committer is called at the end."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer()

    def create_committer(self) -> Committer:
        return _Committer()


class _Writer(SinkWriter):
    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None: ...

    def prepare_commit(self) -> list[Any]:
        return ["staged"]


class _Committer(Committer):
    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None: ...

    def abort(self, committables: Sequence[Any]) -> None:
        _calls.append("abort")

    def finish(self) -> None:
        _calls.append("finish")

    def close(self) -> None:
        _calls.append("close")


def setup_of(sink: Sink) -> Setup:
    def program(environment: Any) -> Any:
        source = NumberSequenceSource(1, 40)
        numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").set_parallelism(1)
        mapped = numbers.uid("numbers").map(lambda number: number, Types.LONG()).uid("mapped").set_parallelism(1)
        mapped.sink_to(sink).uid("noting").set_parallelism(1)
        return mapped

    return Setup(program, parallelism=1, epoch_records=5, checkpoint_every=1)


def live(how: str, sink: Sink, world: World) -> Life:
    """Run a driver that finishes, is cancelled, fails, or is replaced after its fourth epoch."""

    def listen(observation: Any, master: Any) -> None:
        if isinstance(observation, EpochDone) and observation.epoch == 4:
            if how == "canceled":
                master.cancel()
            elif how == "replaced":
                assert FileLease("/leases/job", world.files).take(2, "another")

    setup, faults = setup_of(sink), Faults(engine=frozenset({4}) if how == "failed" else frozenset())
    if how == "failed":
        setup = replace(setup, options={"restart-strategy.type": "none"})
    return run(setup, world, faults, listen=listen, leadership=create_leadership(world, "this"))


@pytest.mark.parametrize("how", ["finished", "canceled", "failed", "replaced"])
def test_only_the_driver_that_ended_the_job_completes_its_output(how: str) -> None:
    _calls.clear()
    with World() as world:
        status = live(how, Noting(), world).status
    assert status is (JobStatus.SUSPENDED if how == "replaced" else JobStatus[how.upper()])
    calls = [call for call in _calls if call != "abort"]
    assert calls == (["finish", "close"] if how in ("finished", "canceled") else ["close"])


@pytest.mark.parametrize("how", ["finished", "canceled", "replaced"])
def test_pending_files_are_compacted_by_the_driver_that_ended_the_job(tmp_path: Path, how: str) -> None:
    strategy = FileCompactStrategy.builder().set_size_threshold(1 << 30).build()
    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink = builder.enable_compact(strategy, FileCompactor.concat_file_compactor()).build()
    with World() as world:
        live(how, sink, world)
    shown = [path for path in tmp_path.iterdir() if path.is_file()]
    waiting = list((tmp_path / ".staging/pending").glob("*"))
    assert (len(shown), bool(waiting)) == ((0, True) if how == "replaced" else (1, False))
