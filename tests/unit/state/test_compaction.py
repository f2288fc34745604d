"""Bases in parts: no epoch writes or holds more than its budget, and the files always hold the complete state."""

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.checkpoint import state_tables
from millstream.state import backend
from millstream.state.backend import OperatorState
from millstream.state.compaction import Rewrite
from millstream.state.deltas import Redistribution
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.state.lmdb import LmdbStore
from millstream.state.snapshot import write_snapshot
from millstream.state.store import ABSENT
from millstream.types.factory import Types

GROUPS = 16
WINDOW = "a window"


class Files:
    """State files; those that the lineage does not name are removed."""

    def __init__(self):
        self.data, self.reads, self.written = {}, [], []

    def read(self, handle):
        self.reads.append(handle.name)
        assert hashlib.sha256(self.data[handle.name]).hexdigest() == handle.sha256
        return self.data[handle.name]

    def write(self, name, data):
        assert name not in self.data
        self.data[name] = data
        self.written.append(name)
        return Handle(name, len(data), hashlib.sha256(data).hexdigest(), 0)

    def sweep(self, *lineages):
        needed = {handle.name for lineage in lineages for handle in lineage.handles}
        self.data = {name: data for name, data in self.data.items() if name in needed}


class Subtask:
    """The state of one subtask in a worker, on disk if it has a directory."""

    def __init__(self, directory=None, subtask=0, parallelism=1):
        groups = range_of(subtask, parallelism, GROUPS)
        self.store = None if directory is None else LmdbStore(directory)
        open_store = None if self.store is None else (lambda: self.store)
        self.state = OperatorState(groups, subtask, parallelism, KeyGrouper(GROUPS), Types.LONG(), open_store)
        self.keyed = self.state.table("keyed", Types.LONG())
        self.timers = self.state.table("timers", Types.LONG(), in_memory=True)
        self.rules = self.state.table("rules", Types.LONG(), Redistribution.BROADCAST, key_type=Types.LONG())
        chunks = Redistribution.CUT
        self.chunks = self.state.table("chunks", Types.LONG(), chunks, key_type=Types.STRING(), restrict=lambda v, _: v)

    def run(self, lineage, files, epoch, changes, wanted=None):
        """Run one epoch; returns the lineage after it."""
        self.state.advance(lineage, files.read)
        for table, namespace, key, value in changes:
            self.state.tables[table].put(namespace, key, ABSENT if value is None else value)
        written = write_snapshot(self.state, lineage, wanted, files, epoch, lambda which: f"f{epoch}{which}")
        return lineage.extend(*written)

    def content(self):
        return {
            (name, namespace, key): value
            for name, table in self.state.tables.items()
            for namespace in table.namespaces()
            for key, value in table.scan(namespace)
        }


def applied(model, changes):
    after = dict(model)
    for table, namespace, key, value in changes:
        after[table, namespace, key] = value
    return {at: value for at, value in after.items() if value is not None}


numbers = st.none() | st.integers(0, 99)
entries = st.one_of(
    st.tuples(st.just("keyed"), st.sampled_from([None, WINDOW]), st.integers(0, 30), numbers),
    st.tuples(st.just("timers"), st.none(), st.integers(0, 30), numbers),
    st.tuples(st.just("rules"), st.none(), st.integers(0, 3), numbers),
    st.tuples(st.just("chunks"), st.just(WINDOW), st.sampled_from("abc"), numbers),
)
orders = st.none() | st.integers(0, 9) | st.builds(Rewrite, st.sampled_from([1, 2, 99]), st.integers(1, 12))
epochs = st.lists(st.tuples(st.lists(entries, max_size=8), orders), min_size=1, max_size=8)


def within(lineage, wanted):
    """A number means a file of changes; 0 is everything."""
    if isinstance(wanted, int) and wanted:
        return None if not lineage.deltas else len(lineage.bases) + wanted % len(lineage.deltas)
    return wanted


@pytest.mark.parametrize("disk", [True, False], ids=["disk", "heap"])
def test_the_remaining_files_are_the_state_at_any_time_and_parallelism(disk):
    """Restores from it during and after a renewal of the base, with the same and with another parallelism."""

    @settings(max_examples=60)
    @given(epochs, st.integers(1, 3))
    def check(turns, parallelism):
        with tempfile.TemporaryDirectory() as directory:
            own = Subtask(Path(directory) if disk else None)
            files, lineage, model = Files(), Lineage(), {}
            for epoch, (changes, wanted) in enumerate(turns, 1):
                model = applied(model, changes)
                lineage = own.run(lineage, files, epoch, changes, within(lineage, wanted))
                files.sweep(lineage)
                again = Lineage(tuple(Handle.from_json(handle.to_json()) for handle in lineage.own))
                assert again == lineage
                fresh = Subtask()
                fresh.state.advance(lineage, files.read)
                assert fresh.content() == model, f"epoch {epoch}"
                tables = state_tables.read_tables(lineage, files.read)
                spaces = {(s.name, *at) for s, c in tables for at in zip(c.namespaces, c.keys, c.values, strict=True)}
                assert spaces == {(*at, value) for at, value in model.items()}
            restored = Lineage(restored=((0, lineage.own),)) if lineage.own else Lineage()
            parts = [Subtask(None, subtask, parallelism) for subtask in range(parallelism)]
            for part in parts:
                part.state.advance(restored, files.read)
            for table in ("keyed", "timers"):
                found = [{at: value for at, value in part.content().items() if at[0] == table} for part in parts]
                assert sum(map(len, found)) == len([at for at in model if at[0] == table])
                assert {at: v for each in found for at, v in each.items()}.items() <= model.items()
            chunks = {(*at[:2], f"00000/{at[2]}"): value for at, value in model.items() if at[0] == "chunks"}
            for part in parts:
                assert {at: value for at, value in part.content().items() if at[0] == "chunks"} == chunks
            own.state.advance(lineage, files.read)
            assert own.content() == model, "the worker that wrote it"
            own.state.close()

    check()


def fill_store(directory, files, keys=400):
    """A store of many keys, written in few epochs, and its lineage."""
    own, lineage = Subtask(directory), Lineage()
    for epoch in range(1, 5):
        changes = [("keyed", None, key, epoch) for key in range(keys) if key % 4 == epoch - 1]
        lineage = own.run(lineage, files, epoch, changes)
    return own, lineage


class Watched:
    """A store that counts the entries it reads between two files."""

    def __init__(self, store, files):
        self.store, self.files, self.read, self.at = store, files, [0], 0

    def __getattr__(self, name):
        return getattr(self.store, name)

    def group(self, table, group):
        found = self.store.group(table, group)
        if self.at != len(self.files.written):
            self.at = len(self.files.written)
            self.read.append(0)
        self.read[-1] += len(found[1])
        return found


def test_an_epoch_rewrites_as_much_as_ordered_with_one_part_in_memory(tmp_path):
    files = Files()
    own, lineage = fill_store(tmp_path, files)
    own.store = watched = Watched(own.store, files)
    own.state._store = watched
    own.keyed.store = watched
    limit, largest = 60, max(len(watched.store.group("keyed", group)[1]) for group in range(GROUPS))
    assert limit < 400 / 4 < 400
    model = {("keyed", None, key): key % 4 + 1 for key in range(400)}
    for epoch in range(5, 40):
        before = len(files.written)
        gone = [("keyed", None, key, None) for key in range(399 - 4 * epoch, 403 - 4 * epoch)]
        changes = [("keyed", None, epoch, -epoch), *gone]
        model = applied(model, changes)
        lineage = own.run(lineage, files, epoch, changes, Rewrite(1, rows=limit))
        written = files.written[before:]
        assert len(written) == 2, "one part, and what changed"
        assert lineage.own[-1].rows == len(changes)
        part = next(handle for handle in lineage.bases if handle.name == written[0])
        assert part.rows <= limit + largest
        assert all(handle.epoch > epoch - 20 for handle in lineage.own), "files that nobody renews stay"
        fresh = Subtask()
        fresh.state.advance(lineage, files.read)
        assert fresh.content() == model, "what was gone is back"
    assert max(watched.read) <= limit + largest
    assert len(lineage.bases) <= 400 // (limit // 2)


def test_restored_state_is_written_part_by_part(tmp_path):
    files = Files()
    _, lineage = fill_store(tmp_path / "old", files)
    other = Subtask(tmp_path / "new", 0, 2)
    other.store = watched = Watched(other.store, files)
    other.state._store = watched
    other.keyed.store = watched
    after = other.run(Lineage(restored=((0, lineage.own),)), files, 5, [], Rewrite(1, rows=30))
    assert len(after.bases) > 3
    assert not after.restored
    assert max(watched.read) <= 30 + 40
    files.sweep(after)
    last = other.run(after, files, 6, [("keyed", None, 1, 1)])
    assert files.reads[-1] == after.deltas[-1].name, "the store begins again"
    fresh = Subtask(None, 0, 2)
    fresh.state.advance(last, files.read)
    ours = {key for key in range(400) if KeyGrouper(GROUPS).of(key) < GROUPS // 2}
    assert {key for _, _, key in fresh.content()} == ours | {1}


def test_a_new_base_does_not_rebuild_a_store(tmp_path):
    files = Files()
    own, lineage = fill_store(tmp_path, files)
    for epoch, wanted in enumerate((0, Rewrite(1, rows=50), Rewrite(9, rows=50), 0, None), 5):
        files.reads.clear()
        lineage = own.run(lineage, files, epoch, [("keyed", None, epoch, 0)], wanted)
        assert len(files.reads) <= 1, f"epoch {epoch} reads what the epoch before it changed"


def test_restoring_keeps_one_file_in_memory_and_reads_each_once(tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "_CACHED_BYTES", 0)
    files = Files()
    own, lineage = fill_store(tmp_path / "one", files)
    for epoch in range(5, 9):
        lineage = own.run(lineage, files, epoch, [("timers", None, epoch, 1)], Rewrite(1, rows=60))
    files.reads.clear()
    fresh = Subtask(tmp_path / "two")
    fresh.state.advance(lineage, files.read)
    assert sorted(files.reads) == sorted(handle.name for handle in lineage.own)
    assert fresh.content() == own.content()


def test_another_parallelism_does_not_read_parts_of_other_key_groups(tmp_path):
    files = Files()
    own, lineage = fill_store(tmp_path, files)
    grouper = KeyGrouper(GROUPS)
    lineage = own.run(lineage, files, 5, [("keyed", None, 0, 1)], Rewrite(99, rows=50))
    assert len(lineage.bases) > 4
    files.reads.clear()
    last = Subtask(None, 3, 4)
    last.state.advance(Lineage(restored=((0, lineage.own),)), files.read)
    for handle in lineage.bases[1:]:
        assert (handle.name in files.reads) is handle.part.groups.intersects(range_of(3, 4, GROUPS))
    assert last.content() == {at: value for at, value in own.content().items() if grouper.of(at[2]) >= 12}


def test_chunks_of_many_keys_are_spread_over_parts_and_all_are_read_at_another_parallelism(tmp_path):
    files = Files()
    own, lineage = Subtask(tmp_path, 1, 2), Lineage()
    lineage = own.run(lineage, files, 1, [("chunks", None, f"c{each}", each) for each in range(40)])
    for epoch in range(2, 20):
        changes = [("chunks", None, f"c{epoch}", None), ("chunks", None, f"d{epoch}", epoch)]
        lineage = own.run(lineage, files, epoch, changes, Rewrite(1, rows=10))
        files.sweep(lineage)
        assert all(handle.rows <= 20 for handle in lineage.bases)
    assert len(lineage.bases) > 2
    assert all(handle.epoch > 1 for handle in lineage.own), "files that nobody renews stay"
    content = {(table, space, f"00000/{key}"): value for (table, space, key), value in own.content().items()}
    assert len(content) == 40
    other = Subtask(None, 0, 3)
    other.state.advance(Lineage(restored=((1, lineage.own),)), files.read)
    assert other.content() == content


def test_chunks_that_the_epoch_itself_wrote_fill_a_part_too(tmp_path):
    own = Subtask(tmp_path)
    kind = Types.PRIMITIVE_ARRAY(Types.BYTE())
    own.state.table("bytes", kind, Redistribution.CUT, key_type=Types.STRING(), restrict=lambda value, _: value)
    written = [("bytes", None, f"c{each}", bytes(1000)) for each in range(80)]
    lineage = own.run(Lineage(), Files(), 1, written, Rewrite(1, size=5000))
    assert 0 < lineage.bases[0].rows <= 20


def test_a_base_of_one_file_is_rewritten_in_parts_too(tmp_path):
    """A file as an earlier release or the other backend wrote it."""
    files = Files()
    heap, lineage = Subtask(), Lineage()
    lineage = heap.run(lineage, files, 1, [("keyed", None, key, key) for key in range(400)], 0)
    assert [handle.part for handle in lineage.own] == [None]
    disk = Subtask(tmp_path)
    for epoch in range(2, 12):
        lineage = disk.run(lineage, files, epoch, [("keyed", None, 7, epoch)], Rewrite(1, rows=100))
        files.sweep(lineage)
        fresh = Subtask()
        fresh.state.advance(lineage, files.read)
        assert fresh.content() == {("keyed", None, key): epoch if key == 7 else key for key in range(400)}
    assert all(handle.epoch > 1 for handle in lineage.own)


def test_a_store_ordered_by_other_key_groups_is_not_used(tmp_path):
    store = LmdbStore(tmp_path)
    store.set_key_groups(KeyGrouper(GROUPS))
    store.apply([], "v1", replace=True)
    store.set_key_groups(KeyGrouper(GROUPS))
    store.refresh()
    assert store.version == "v1"
    store.set_key_groups(KeyGrouper(2 * GROUPS))
    store.refresh()
    assert store.version == ""
    store.close()
