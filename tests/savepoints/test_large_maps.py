"""A large map is written entry by entry, and every reader assembles the same map."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.checkpoint import state_tables
from millstream.state import table as state_table
from millstream.state.backend import OperatorState
from millstream.state.deltas import Patch
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.state.lmdb import LmdbStore
from millstream.state.snapshot import write_snapshot
from millstream.state.views import Scope, create_view
from millstream.state_descriptors.descriptors import MapStateDescriptor, StateTtlConfig
from millstream.times import Time
from millstream.types.factory import Types

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 1), st.integers(0, 12), st.integers(0, 99)),
        st.tuples(st.just("remove"), st.integers(0, 1), st.integers(0, 12)),
        st.tuples(st.just("clear"), st.integers(0, 1)),
        st.tuples(st.just("fill"), st.integers(0, 1), st.integers(0, 12)),
        st.tuples(st.just("epoch")),
        st.tuples(st.just("merge"), st.integers(0, 3)),
        st.tuples(st.just("lose")),
        st.tuples(st.just("fail")),
    ),
    max_size=60,
)


class Job:
    """One subtask with one map state; its files; and the worker it is in."""

    def __init__(self, open_store, ttl) -> None:
        self.open_store, self.ttl = open_store, ttl
        self.files: dict[str, bytes] = {}
        self.lineage = Lineage()
        self.state: OperatorState | None = None
        self.lose()

    def lose(self) -> None:
        """Another worker takes over."""
        self.close()
        self.state = OperatorState(range_of(0, 1, 128), 0, 1, KeyGrouper(128), Types.LONG(), self.open_store)
        self.scope = Scope()
        descriptor = MapStateDescriptor("map", Types.LONG(), Types.LONG())
        if self.ttl:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(9)).build())
        self.view = create_view(descriptor, self.state, self.scope)
        self.state.advance(self.lineage, self.read)

    def close(self) -> None:
        if self.state is not None:
            self.state.close()

    def read(self, handle: Handle) -> bytes:
        return self.files[handle.name]

    def write(self, name: str, data: bytes) -> Handle:
        self.files[name] = data
        return Handle(name, len(data), hashlib.sha256(data).hexdigest(), 0)

    def epoch(self, since: int | None = None) -> None:
        """What changed is accepted, as a file of its own or merged with others."""
        if since is not None and not self.lineage.own:
            since = None
        number = len(self.files)
        written = write_snapshot(self.state, self.lineage, since, self, number, lambda which: f"file-{number}{which}")
        self.lineage = self.lineage.extend(*written)
        self.state.advance(self.lineage, self.read)

    def fail(self) -> None:
        """An attempt fails."""
        self.state.abandon()
        self.state.advance(self.lineage, self.read)

    def shown(self) -> dict[int, dict[int, int]]:
        found = {}
        for key in (0, 1):
            self.scope.key = key
            found[key] = dict(self.view.items())
        return found

    def stored(self) -> dict[int, dict[int, int]]:
        """As the state processor would read the files."""
        tables = state_tables.read_tables(self.lineage, self.read)
        found: dict[int, dict[int, int]] = {0: {}, 1: {}}
        for _, changes in tables:
            found.update(zip(changes.keys, changes.values, strict=True))
        return found


@pytest.mark.parametrize("ttl", [False, True], ids=["for ever", "ttl"])
@pytest.mark.parametrize("disk", [False, True], ids=["hashmap", "lmdb"])
def test_a_map_has_the_entries_that_were_put(monkeypatch, disk, ttl):
    monkeypatch.setattr(state_table, "_LARGE_MAP", 2)
    patched = []

    @settings(max_examples=60)
    @given(STEPS)
    def check(steps):
        with (
            tempfile.TemporaryDirectory() as directory,
            closing(Job((lambda: LmdbStore(Path(directory))) if disk else None, ttl)) as job,
        ):
            model: dict[int, dict[int, int]] = {0: {}, 1: {}}
            accepted = {0: {}, 1: {}}
            for step, *how in [("fill", 0, 9), ("fill", 1, 9), ("epoch",), *steps]:
                job.scope.key = how[0] if how else 0
                match step:
                    case "put":
                        job.view.put(how[1], how[2])
                        model[how[0]][how[1]] = how[2]
                    case "remove":
                        job.view.remove(how[1])
                        model[how[0]].pop(how[1], None)
                    case "clear":
                        job.view.clear()
                        model[how[0]].clear()
                    case "fill":
                        job.view.put_all({entry: entry for entry in range(how[1])})
                        model[how[0]].update({entry: entry for entry in range(how[1])})
                    case "epoch" | "merge":
                        patched.append(any(table.changes().patched for table in job.state.tables.values()))
                        job.epoch(how[0] if how and how[0] < len(job.lineage.own) else None)
                        accepted = {key: dict(entries) for key, entries in model.items()}
                        if not ttl:
                            assert job.stored() == accepted
                    case "fail" | "lose":
                        job.fail() if step == "fail" else job.lose()
                        model = {key: dict(entries) for key, entries in accepted.items()}
                assert job.shown() == model
            job.lose()
            assert job.shown() == accepted

    check()
    assert any(patched), "no map was ever written in part"


def test_a_change_of_one_entry_writes_one_entry():
    job = Job(None, False)
    job.scope.key = 0
    job.view.put_all({number: number for number in range(10_000)})
    job.epoch()
    job.view.put(5, 6)
    job.view.remove(7)
    job.epoch()
    first, second = (handle.size for handle in job.lineage.own)
    assert first > 100_000
    assert second < 3_000
    job.lose()
    assert len(job.shown()[0]) == 9_999
    assert job.shown()[0][5] == 6


SMALL = st.dictionaries(st.integers(0, 5), st.integers(0, 9))


@st.composite
def patches(draw):
    entries = draw(SMALL)
    return Patch(entries, tuple(draw(st.sets(st.integers(0, 5))) - entries.keys()))


@given(SMALL, patches(), patches(), patches())
def test_consecutive_patches_are_merged(before, first, second, third):
    one_by_one = third.apply_to(second.apply_to(first.apply_to(dict(before))))
    assert third.merge_after(second.merge_after(first)).apply_to(dict(before)) == one_by_one
    assert third.merge_after(second).apply_to(first.apply_to(dict(before))) == one_by_one
