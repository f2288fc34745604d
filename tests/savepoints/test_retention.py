"""No sequence of checkpoints, savepoints and restores deletes a snapshot from which a job may still start."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.savepoint import open_snapshot, write_savepoint
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.checkpoint_lookup import AllCheckpointsDamaged
from millstream.cluster.checkpoint_schedule import CheckpointSchedule
from millstream.cluster.checkpoints import Checkpoints
from millstream.files.errors import CorruptFile
from millstream.runtime.memory import SubtaskMemory
from millstream.state import deltas
from millstream.state.deltas import Changes, TableSchema
from millstream.state.handles import Handle, Lineage
from millstream.state.snapshot import StateFileDamaged
from millstream.testing import ManualClock
from millstream.types.factory import Types
from millstream_chaos.storage.memory_files import MemoryFileSystem

ROOT, SAVED = "/checkpoints", "/savepoints"
SCHEMA = TableSchema("user/x", Types.LONG(), Types.LONG())


class History:
    """Jobs on one disk, run as a driver does: an epoch writes or merges files, a checkpoint references them."""

    def __init__(self) -> None:
        self.disk = MemoryFileSystem()
        for directory in (ROOT, SAVED):
            self.disk.make_dirs(directory)
        self.jobs = 0
        self.savepoints: list[str] = []  # those, and checkpoints of jobs that are over, that nobody may delete
        self.releases: list = []
        self.pending: list[CheckpointMetadata] = []
        self.new_job(None, claim=False, keep=1)

    def storage(self, root=ROOT, job=""):
        return CheckpointStorage(root, job, fs=self.disk)

    def new_job(self, path, *, claim, keep):
        if self.jobs:
            self.savepoints += self.retained()
        self.jobs += 1
        self.job, self.keep, self.epoch = f"job{self.jobs}", keep, 0
        self.checkpoints = Checkpoints(self.storage(job=self.job), CheckpointSchedule(1), temporary=False)
        self.lineages = [Lineage(), Lineage()]
        self.contents: dict[int, int] = {}
        self.restored = path
        if path is not None:
            metadata = self.checkpoints.open(path)
            if claim:
                self.checkpoints.claim(path)
                self.savepoints = [each for each in self.savepoints if each != path]
            self.write(base=True)
            assert metadata is not None
        self.checkpoints.start(0, 0)

    def write(self, *, base=False, since=None, subtask=0):
        self.epoch += 1
        self.contents[self.epoch % 7] = self.epoch
        keys = list(self.contents)
        data = deltas.encode(
            [(SCHEMA, Changes([None] * len(keys), keys, [False] * len(keys), [*self.contents.values()]))]
        )
        stored = self.checkpoints.storage.write(f"shared/op-{subtask}-{self.epoch}-0-i0", data)
        own = self.lineages[subtask].own
        covers = () if since is None else tuple(each.name for each in own[since:])
        handle = Handle(stored.name, stored.size, stored.sha256, self.epoch, len(keys), base=base, covers=covers)
        self.lineages[subtask] = self.lineages[subtask].extend(handle)

    def snapshot(self):
        operator = OperatorSnapshot("op", "op", "op", 2, 128, tuple(self.lineages), (SubtaskMemory(),) * 2)
        return CheckpointMetadata(
            self.checkpoints.next_id, max(self.epoch, 1), 0, self.job, "name", self.epoch, 0, (operator,)
        )

    def checkpoint(self):
        metadata, _ = self.checkpoints.complete(self.snapshot(), ManualClock())
        self.lineages = list(metadata.operators[0].lineages)
        self.checkpoints.retire(keep=self.keep)

    def begin_savepoint(self):
        metadata = self.snapshot()
        self.releases.append(self.checkpoints.pin(metadata.handles))
        self.pending.append(metadata)

    def finish_savepoint(self, form):
        if self.pending:
            metadata, release = self.pending.pop(0), self.releases.pop(0)
            path = f"{SAVED}/savepoint-{metadata.job_id}-{metadata.epoch}-{len(self.savepoints)}-{self.jobs}"
            write_savepoint(metadata, self.storage(job=metadata.job_id), path, form)
            release()
            self.savepoints.append(path)

    def retained(self):
        storage = self.checkpoints.storage
        return [f"{ROOT}/{self.job}/chk-{number}" for number in storage.list_checkpoints()]

    def check(self):
        for path in [*self.savepoints, *self.retained()]:
            open_snapshot(path, self.storage()).verify()
        for lineage in self.lineages:
            for handle in lineage.own:
                data = self.disk.files[f"{ROOT}/{handle.file}"][handle.offset : handle.offset + handle.size]
                assert hashlib.sha256(data).hexdigest() == handle.sha256


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 1)),
        st.tuples(st.just("merge"), st.integers(0, 3)),
        st.just(("base", 0)),
        st.just(("checkpoint", 0)),
        st.just(("begin savepoint", 0)),
        st.tuples(st.just("finish savepoint"), st.sampled_from(["canonical", "native"])),
        st.tuples(st.just("restore"), st.tuples(st.booleans(), st.integers(0, 9), st.integers(1, 3))),
        st.tuples(st.just("end"), st.booleans()),
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(STEPS)
def test_retained_checkpoints_keep_all_their_files(steps):
    history = History()
    for step, how in steps:
        match step:
            case "write":
                for number in range(1 + 5 * how):
                    history.write(subtask=number % 2)
            case "merge" if history.lineages[0].own:
                history.write(since=min(how, len(history.lineages[0].own) - 1))
            case "base":
                history.write(base=True)
            case "checkpoint":
                history.checkpoint()
            case "begin savepoint":
                history.begin_savepoint()
            case "finish savepoint":
                history.finish_savepoint(how)
            case "restore":
                claim, which, keep = how
                while history.pending:
                    history.finish_savepoint("canonical")
                choices = history.savepoints + history.retained()
                if choices:
                    history.new_job(choices[which % len(choices)], claim=claim, keep=keep)
            case "end":
                while history.pending:
                    history.finish_savepoint("native")
                kept = history.retained() if how else []
                history.checkpoints.close(keep=how)
                for path in kept:
                    open_snapshot(path, history.storage()).verify()
                history.new_job(None, claim=False, keep=1)
        history.check()


def test_many_small_files_become_one():
    history = History()
    for number in range(20):
        history.write(subtask=number % 2)
    history.checkpoint()
    assert len(history.checkpoints.storage.files()) == 1
    before = list(history.lineages)
    for number in range(20):
        history.write(subtask=number % 2)
    history.checkpoint()
    assert len(history.checkpoints.storage.files()) == 2
    assert history.lineages[0].own[: len(before[0].own)] == before[0].own
    history.check()


def test_files_of_a_savepoint_under_way_are_kept():
    history = History()
    history.write()
    history.begin_savepoint()
    history.write(base=True)
    history.checkpoint()
    history.write(base=True)
    history.checkpoint()
    history.finish_savepoint("canonical")
    history.check()
    history.checkpoint()
    assert len(history.checkpoints.storage.files()) == 1


def test_deleting_a_claimed_checkpoint_keeps_files_of_other_checkpoints():
    history = History()
    history.keep = 3
    for _ in range(3):
        history.write()
        history.checkpoint()
    first = history.retained()[0]
    history.new_job(first, claim=True, keep=1)
    history.write()
    history.checkpoint()
    assert not history.disk.exists(first)
    assert len(history.savepoints) == 2
    history.check()


def test_damage_in_a_pack_is_reported():
    history = History()
    for number in range(20):
        history.write(subtask=number % 2)
    history.checkpoint()
    (pack,) = history.checkpoints.storage.files()
    data = bytearray(history.disk.files[f"{ROOT}/{pack}"])
    data[len(data) // 2] ^= 1
    history.disk.files[f"{ROOT}/{pack}"] = bytes(data)
    with pytest.raises(CorruptFile, match="from byte"):
        open_snapshot(history.retained()[0], history.storage()).verify()
    files, handles = (
        history.checkpoints.files(),
        open_snapshot(history.retained()[0], history.storage()).metadata.handles,
    )
    with pytest.raises(StateFileDamaged, match="from byte") as damaged:
        list(map(files.read, handles))
    assert history.checkpoints.note_damage(damaged.value)
    with pytest.raises(AllCheckpointsDamaged, match="pack-1"):
        history.checkpoints.latest_intact()


def test_the_log_does_not_grow_without_checkpoints():
    disk = MemoryFileSystem()
    disk.make_dirs(ROOT)
    made = Checkpoints(CheckpointStorage(ROOT, "job", fs=disk), CheckpointSchedule(None), temporary=True)
    for epoch in range(1, 50):
        made.log_plan({"epoch": epoch, "now": 0, "sources": {}})
    assert not made.storage.read_log("epochs.log")
