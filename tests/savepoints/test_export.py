"""Savepoints are written by tasks, each a slice of the state; no state passes through the driver."""

from __future__ import annotations

import random
import threading

import pytest

from millstream.checkpoint import packing, state_tables
from millstream.checkpoint.export import Export, SavepointNotShared, run_locally
from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.savepoint import open_snapshot, write_savepoint
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.state_tables import Slice, read_slice, read_tables
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.job_events import EpochDone
from millstream.job.job_status import JobStatus
from millstream.job.savepoints import SavepointFormatType
from millstream.runtime.memory import SubtaskMemory
from millstream.state import deltas
from millstream.state.deltas import Changes, Patch, Redistribution, TableSchema
from millstream.state.handles import Handle, Lineage, Part
from millstream.state.key_groups import KeyGrouper, KeyGroupRange, range_of
from millstream.testing.inline_engine import InlineEngine
from millstream.types.factory import Types
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run
from millstream_chaos.storage.memory_files import MemoryFileSystem

RESTARTS = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "5"}
KEYED = TableSchema("user/count", Types.LONG(), Types.LONG(), Redistribution.KEYED, "value")
MAPS = TableSchema("user/map", Types.STRING(), Types.MAP(Types.STRING(), Types.LONG()), Redistribution.KEYED, "map")
CHUNKS = TableSchema("chunks", Types.STRING(), Types.PICKLED_BYTE_ARRAY(), Redistribution.CUT)
LISTED = TableSchema("operator/list", Types.LONG(), Types.LONG(), Redistribution.SPLIT, "list")


def state(storage, subtask, parallelism, seed):
    """A base, then changes with deletions and changes of parts of maps; only keys that the subtask owns."""
    chance, grouper = random.Random(seed), KeyGrouper(16)
    owned = range_of(subtask, parallelism, 16)
    numbers = [key for key in range(400) if grouper.of(key) in owned]
    names = [key for key in map(str, range(60)) if grouper.of(key) in owned]
    handles = []
    for epoch in range(1, 5):
        keys = chance.sample(numbers, len(numbers) // epoch)
        gone = [epoch > 1 and chance.random() < 0.3 for _ in keys]
        changed = chance.sample(names, len(names) // epoch)
        entries = [{str(epoch): epoch} if epoch == 1 else Patch({str(epoch): epoch}, ("1",)) for _ in changed]
        chunks = [f"{subtask}/{n}" for n in range(10 * epoch)]
        data = deltas.encode(
            [
                (KEYED, Changes([None] * len(keys), keys, gone, [key * epoch for key in keys])),
                (MAPS, Changes([None] * len(changed), changed, [False] * len(changed), entries, epoch > 1)),
                (CHUNKS, Changes([None] * len(chunks), chunks, [False] * len(chunks), [(epoch,)] * len(chunks))),
                (LISTED, Changes([None], [0], [False], [epoch])),
            ]
        )
        stored = storage.write(f"shared/op-{subtask}-{epoch}-0-{seed}", data)
        handles.append(Handle(stored.name, stored.size, stored.sha256, epoch, len(keys), base=epoch == 1))
    return Lineage(tuple(handles))


@pytest.fixture
def storage():
    disk = MemoryFileSystem()
    disk.make_dirs("/store")
    return CheckpointStorage("/store", "job", fs=disk)


def snapshot(storage, parallelism=2):
    lineages = tuple(state(storage, subtask, parallelism, 7) for subtask in range(parallelism))
    operator = OperatorSnapshot("op", "op", "op", parallelism, 16, lineages, (SubtaskMemory(),) * parallelism)
    return CheckpointMetadata(1, 4, 0, "job", "job", 0, 0, (operator,))


def entries(found):
    return {(schema.name, space, key): value for schema, changes in found for space, key, _, value in changes.rows()}


@pytest.mark.parametrize("rows", [1, 100, 10_000])
def test_the_slices_of_a_subtask_are_its_state(storage, monkeypatch, rows):
    monkeypatch.setattr(state_tables, "_SLICE_ROWS", rows)
    monkeypatch.setattr(deltas, "_SLICE_ROWS", 16)
    (operator,) = snapshot(storage).operators
    read = StateReader(storage).read
    for subtask, lineage in enumerate(operator.lineages):
        whole = entries(read_tables(lineage, read))
        slices = Slice.split(operator, subtask)
        assert len(slices) == {1: 8, 100: len(slices), 10_000: 1}[rows]
        pieces = [entries(read_slice(lineage, read, part)) for part in slices]
        assert sum(map(len, pieces)) == len(whole) > 100
        assert {name: value for piece in pieces for name, value in piece.items()} == whole


def test_a_slice_reads_only_the_bases_of_its_key_groups():
    operator = OperatorSnapshot("op", "op", "op", 1, 16, (Lineage(),), (SubtaskMemory(),))
    everything = KeyGroupRange(0, 15)
    first, last = (
        Handle("x", 1, "", 1, part=Part(r, r, everything)) for r in (KeyGroupRange(0, 7), KeyGroupRange(8, 15))
    )
    halves = [Slice(index, 2, range_of(0, 1, operator.max_parallelism), 16) for index in range(2)]
    assert [half.needs_file(first) for half in halves] == [True, False]
    assert [half.needs_file(last) for half in halves] == [True, True], "what has no key is read with the first slice"


def test_a_large_subtask_has_several_files_and_restores_to_the_same(storage, monkeypatch):
    metadata = snapshot(storage)
    whole = write_savepoint(metadata, storage, "/store/whole")
    monkeypatch.setattr(state_tables, "_SLICE_ROWS", 100)
    parts = write_savepoint(metadata, storage, "/store/parts")
    assert len(parts.metadata.handles) > len(whole.metadata.handles)
    for subtask in range(2):
        found = [
            entries(read_tables(each.metadata.operators[0].lineages[subtask], each.reader().read))
            for each in (whole, parts)
        ]
        assert found[0] == found[1]
    open_snapshot("/store/parts", storage).verify()


@pytest.mark.parametrize("form", ["canonical", "native"])
def test_a_directory_that_only_workers_see_is_refused(storage, form):
    elsewhere = MemoryFileSystem()
    elsewhere.make_dirs("/store")

    def run_elsewhere(tasks):
        before = dict(storage._fs.files)
        results = run_locally(tasks)
        storage._fs.files = before  # what the worker wrote is on a disk of its own
        return results

    with pytest.raises(SavepointNotShared, match="the driver and all executors see"):
        write_savepoint(snapshot(storage), storage, "/store/savepoint", form, run_elsewhere)
    assert not storage.of("/store", "").exists("savepoint")


def test_tasks_are_of_bounded_size(storage, monkeypatch):
    monkeypatch.setattr("millstream.checkpoint.export._NATIVE_TASK_BYTES", 1)
    metadata = snapshot(storage)
    assert len(Export(metadata, storage, "/store/s", "native").tasks) == len(metadata.handles)


def test_a_pack_is_of_bounded_size(storage, monkeypatch):
    monkeypatch.setattr(packing, "LARGEST", 4_000)
    monkeypatch.setattr(packing, "FEWEST", 2)
    metadata = snapshot(storage)
    packs = {handle.pack: 0 for handle in packing.pack_small_files(metadata, storage).handles}
    assert len(packs) > 1
    for handle in packing.pack_small_files(metadata, storage).handles:
        assert StateReader(storage).read(handle)


@pytest.mark.parametrize("form", ["CANONICAL", "NATIVE"])
def test_no_state_is_read_by_the_driver(monkeypatch, form):
    """Not for a savepoint of a job that goes on, not for one it stops with, not to restart, not to start from one."""
    at_work = threading.local()
    for name in ("run_epoch", "run_tasks"):
        original = getattr(InlineEngine, name)

        def work(self, argument, original=original):
            at_work.depth = getattr(at_work, "depth", 0) + 1
            try:
                return original(self, argument)
            finally:
                at_work.depth -= 1

        monkeypatch.setattr(InlineEngine, name, work)
    read, reads = StateReader.read, []

    def checked(self, handle):
        assert getattr(at_work, "depth", 0), "the driver reads state"
        reads.append(handle)
        return read(self, handle)

    monkeypatch.setattr(StateReader, "read", checked)
    asked = []

    def listen(observation, master):
        if isinstance(observation, EpochDone) and observation.epoch in (2, 4) and len(asked) < observation.epoch // 2:
            how = {"stop": True} if observation.epoch == 4 else {}
            asked.append(master.savepoint("/savepoints", form=SavepointFormatType[form], **how))

    setup = Setup(PROGRAMS["interval_join"], epoch_records=30, checkpoint_every=1, options=RESTARTS)
    with World() as world:
        run(setup, world, Faults(engine=frozenset({1})), listen=listen)
        first, last = (each.result(0) for each in asked)
        assert first != last
        assert reads
        options = {**RESTARTS, "execution.state-recovery.path": last}
        life = run(Setup(setup.program, job="other", epoch_records=30, checkpoint_every=1, options=options), world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert world.visible() == compute_reference(setup)
