"""Jobs that write tables: drivers that die, rescales while output is staged, and jobs that start from scratch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from millstream.cluster.job_events import CheckpointDone, EpochDone, RescaleDone
from millstream.common import Row, Types, WatermarkStrategy
from millstream.connector.sink import WriterContext
from millstream.datastream.connectors.delta import DeltaSink
from millstream.datastream.connectors.iceberg import IcebergSink, TableLoader
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.job.job_status import JobStatus
from millstream_chaos.cases.leaders import create_leadership
from millstream_chaos.simulation import Faults, Setup, World, run
from millstream_chaos.storage.faulty_files import SimulatedCrash

deltalake = pytest.importorskip("deltalake")

ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
LAST = 40


@dataclass(frozen=True)
class Table:
    """A table of one of the formats."""

    kind: str
    path: Path

    @property
    def loader(self) -> TableLoader:
        catalog = {"type": "sql", "uri": f"sqlite:///{self.path}/c.db", "warehouse": f"file://{self.path}/warehouse"}
        return TableLoader.from_catalog("test", catalog, "shop.items")

    def sink(self, *, overwrite: bool = False) -> Any:
        self.path.mkdir(exist_ok=True)
        if self.kind == "delta":
            made: Any = DeltaSink.for_row_data(f"{self.path}/table", ROWS).overwrite(overwrite).build()
        else:
            made = IcebergSink.for_row(self.loader, ROWS).create_table_if_missing().overwrite(overwrite).build()
        made.check()
        return made

    def ids(self) -> list[int]:
        if self.kind == "delta":
            read = deltalake.DeltaTable(f"{self.path}/table").to_pyarrow_table()
        else:
            with self.loader.open_table() as (_, table):
                read = table.scan().to_arrow()
        return sorted(read.column("id").to_pylist())

    def live(self) -> set[str]:
        if self.kind == "delta":
            return {Path(uri).name for uri in deltalake.DeltaTable(f"{self.path}/table").file_uris()}
        with self.loader.open_table() as (_, table):
            return {Path(task.file.file_path).name for task in table.scan().plan_files()}

    def files(self) -> set[str]:
        return {path.name for path in self.path.rglob("part-*.parquet")}


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    pytest.importorskip("pyiceberg")
    return Table(request.param, tmp_path)


def setup_of(
    table: Table, first: int = 1, last: int = LAST, *, overwrite: bool = False, every: int = 2, **how: Any
) -> Setup:
    def program(environment: Any) -> Any:
        sink = table.sink(overwrite=overwrite)  # built anew by every driver
        source = NumberSequenceSource(first, last)
        numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").set_parallelism(1)
        rows = numbers.uid("numbers").rebalance().map(lambda n: Row(n, str(n)), ROWS).uid("rows")
        rows.sink_to(sink).uid("table")
        return rows

    return Setup(program, epoch_records=4, checkpoint_every=every, **how)


def die_after(kind: type, epoch: int) -> Callable[[Any, Any], None]:
    def listen(observation: Any, _: Any) -> None:
        if isinstance(observation, kind) and observation.epoch == epoch:
            raise SimulatedCrash

    return listen


def append(table: Table, first: int, last: int) -> None:
    with World() as world:
        assert run(setup_of(table, first, last, job=f"other{first}"), world).status is JobStatus.FINISHED


@pytest.mark.parametrize("every", [2, 3])
def test_staged_output_survives_a_rescale(table: Table, every: int) -> None:
    def listen(observation: Any, master: Any) -> None:
        if isinstance(observation, EpochDone) and observation.epoch <= every + 1:
            master.rescale(1 + observation.epoch % 3)

    with World() as world:
        life = run(setup_of(table, every=every), world, listen=listen)
    assert life.status is JobStatus.FINISHED, life.failure
    assert len([each for each in life.seen if isinstance(each, RescaleDone)]) > every
    assert table.ids() == list(range(1, LAST + 1))


def test_a_job_that_starts_again_under_its_id_adds_its_rows(table: Table) -> None:
    """The lease is deleted, as the guide says; epochs, terms and attempts begin again."""
    with World() as world:
        first = setup_of(table, incarnation="one")
        assert run(first, world, leadership=create_leadership(world, "first")).status is JobStatus.FINISHED
        for name in world.disk.list("/leases/job"):
            world.disk.remove(f"/leases/job/{name}")
        second = setup_of(table, 101, 120, incarnation="two")
        assert run(second, world, leadership=create_leadership(world, "first")).status is JobStatus.FINISHED
    assert table.ids() == [*range(1, LAST + 1), *range(101, 121)]


@pytest.mark.parametrize("after", [2, 4])
def test_overwriting_survives_the_death_of_a_driver(table: Table, after: int) -> None:
    append(table, -9, -5)
    with World() as world:
        replacing = setup_of(table, overwrite=True)
        assert run(replacing, world, listen=die_after(CheckpointDone, after)).crashed
        assert table.ids() == list(range(1, 4 * after + 1))
        append(table, 1001, 1004)
        assert run(replacing, world).status is JobStatus.FINISHED
    assert table.ids() == [*range(1, LAST + 1), *range(1001, 1005)]


def test_overwriting_survives_a_takeover_before_the_commit(table: Table) -> None:
    append(table, -9, -5)
    replacing = setup_of(table, overwrite=True)
    with World() as world:
        done = run(setup_of(Table(table.kind, table.path / "probe"), overwrite=True), world, leadership=_leader(world))
        at = next(n for n, each in enumerate(done.operations) if each.target.endswith("chk-4/_metadata"))
    with World() as world:
        assert run(replacing, world, Faults(storage=(at, "after")), leadership=_leader(world)).crashed
        assert run(replacing, world, leadership=_leader(world)).status is JobStatus.FINISHED
    assert table.ids() == list(range(1, LAST + 1))


def _leader(world: World) -> Any:
    return create_leadership(world, "any")


def test_overwriting_continues_from_a_savepoint(table: Table) -> None:
    def listen(observation: Any, master: Any) -> None:
        if isinstance(observation, EpochDone) and observation.epoch == 5:
            master.savepoint("/savepoints", stop=True)

    append(table, -9, -5)
    with World() as world:
        replacing = setup_of(table, overwrite=True)
        assert run(replacing, world, listen=listen).status is JobStatus.FINISHED
        path = {"execution.state-recovery.path": f"/savepoints/{world.disk.list('/savepoints')[0]}"}
        assert run(replace(replacing, job="resumed", options=path), world).status is JobStatus.FINISHED
    assert table.ids() == list(range(1, LAST + 1))


def test_overwriting_a_new_table_keeps_the_rows_of_the_job(table: Table) -> None:
    with World() as world:
        replacing = setup_of(table, overwrite=True)
        assert run(replacing, world, listen=die_after(CheckpointDone, 4)).crashed
        assert run(replacing, world).status is JobStatus.FINISHED
    assert table.ids() == list(range(1, LAST + 1))


def test_files_of_dead_attempts_are_removed(table: Table) -> None:
    other = Table(table.kind, table.path)
    with World() as world:  # another job's files stay, although nobody has committed them yet
        assert run(setup_of(other, 501, 504, job="other"), world, listen=die_after(EpochDone, 1)).crashed
        foreign = table.files()
        assert foreign
    with World() as world:
        assert run(setup_of(table, every=3), world, listen=die_after(EpochDone, 5)).crashed
        assert table.files() - table.live() - foreign
        life = run(setup_of(table, every=3), world, Faults(engine=frozenset({3}), attempts="twice"))
        assert life.status is JobStatus.FINISHED
    assert table.ids() == list(range(1, LAST + 1))
    assert table.files() == table.live() | foreign


def test_a_driver_that_may_have_been_replaced_removes_nothing_when_it_closes(table: Table) -> None:
    """It commits epochs 1 and 2; of both there are files that no commit names."""

    def staged(epoch: int, attempt: str) -> Any:
        writer = sink.create_writer(WriterContext("job", "table", 0, 1, epoch, attempt, 0))
        writer.write([Row(epoch, attempt)], None)
        return json.loads(json.dumps(writer.prepare_commit()))

    sink = table.sink()
    committer = sink.create_committer()
    committer.commit(1, staged(1, "0-a"))
    second, other = staged(2, "0-a"), staged(2, "0-b")
    committer.commit(2, second)
    before = table.files()
    committer.close()
    assert table.files() == before
    committer.finish()
    committer.close()
    assert len(before - table.files()) == len(other) == 1
    assert table.files() == table.live()


@pytest.mark.parametrize(("umask", "rights"), [(0o022, 0o644), (0o077, 0o600)])
def test_data_files_follow_the_umask_for_the_readers_of_the_table(table: Table, umask: int, rights: int) -> None:
    """The commit does not move files: readers of the table read the staged files themselves."""
    before = os.umask(umask)
    try:
        append(table, 1, 4)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in table.path.rglob("part-*.parquet")} == {rights}


def test_a_crash_around_a_checkpoint_duplicates_nothing(table: Table) -> None:
    with World() as world:
        done = run(setup_of(Table(table.kind, table.path / "probe")), world).operations
    published = next(number for number, each in enumerate(done) if each.target.endswith("chk-3/_metadata"))
    for number in range(published - 1, published + 2):  # the last one is after the commit
        crashed = Table(table.kind, table.path / str(number))
        with World() as world:
            assert run(setup_of(crashed), world, Faults(storage=(number, "after"))).crashed
            assert run(setup_of(crashed), world).status is JobStatus.FINISHED
        assert crashed.ids() == list(range(1, LAST + 1)), done[number]
