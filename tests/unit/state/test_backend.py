"""State is versioned by epoch: any worker that runs an epoch, with any store, sees exactly the accepted changes."""

import hashlib
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.state.backend import OperatorState
from millstream.state.compaction import Rewrite
from millstream.state.deltas import Changes, Redistribution
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.state.lmdb import LmdbStore
from millstream.state.snapshot import write_snapshot
from millstream.state.store import ABSENT
from millstream.types.factory import Types
from millstream.windows.window import TimeWindow

MAX_PARALLELISM = 16

# ------------------------------------------------------------------------------------------------------- lineages


class Chain:
    """A lineage with the content of its files: small dictionaries, with None for a deleted entry."""

    def __init__(self):
        self.lineage, self.files, self.content, self.history = Lineage(), {}, {}, [("", {})]

    def accept(self, changes, since):
        """Write one epoch as a task does and accept it as the JobMaster does: its changes, alone or merged with those
        of `own[since:]`."""
        number = len(self.history)
        own = self.lineage.own
        base = since == 0
        merged = {} if since is None else {k: v for old in own[since:] for k, v in self.files[old.name].items()}
        merged.update(changes)
        self.content = applied(self.content, changes)
        self.files[f"f{number}"] = dict(self.content) if base else merged
        covers = () if since is None or base else tuple(old.name for old in own[since:])
        self.lineage = self.lineage.extend(Handle(f"f{number}", 1, "", number, base=base, covers=covers))
        self.history.append((self.lineage.version, dict(self.content)))


def applied(content, changes):
    merged = {**content, **changes}
    return {key: value for key, value in merged.items() if value is not None}


chains = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), st.none() | st.integers(0, 9), min_size=1, max_size=3),
        st.none() | st.floats(0, 1),
    ),
    max_size=12,
)


@given(chains)
def test_a_store_at_any_accepted_version_is_advanced_or_rebuilt(steps):
    chain = Chain()
    for changes, part in steps:
        own = len(chain.lineage.own)
        chain.accept(changes, None if part is None or own == 0 else int(part * own))
    whole = {}
    for handle in chain.lineage.handles:
        whole = applied(whole, chain.files[handle.name])
    assert whole == chain.content, "everything from the beginning"
    for version, before in chain.history:
        missing = chain.lineage.missing(version)
        if missing is not None:
            for handle in missing:
                before = applied(before, chain.files[handle.name])
            assert before == chain.content, f"from {version}"
    assert chain.lineage.missing(chain.lineage.version) == ()
    if steps:
        assert chain.lineage.missing("never accepted") is None


def test_a_store_inside_a_merged_file_reads_it_and_one_before_a_base_is_rebuilt():
    chain = Chain()
    for since in (None, None, None, None, 1):
        chain.accept({"a": 1}, since)
    assert [handle.name for handle in chain.lineage.own] == ["f1", "f5"]
    assert [handle.name for handle in chain.lineage.missing("f3")] == ["f5"]
    chain.accept({"b": 1}, 0)
    assert [handle.name for handle in chain.lineage.own] == ["f6"]
    assert chain.lineage.missing("f3") is None
    assert chain.lineage.missing("") is None


def test_handles_survive_json():
    handle = Handle("n", 3, "ab", 7, 2, base=True, covers=("x", "y"))
    assert Handle.from_json(handle.to_json()) == handle


# ---------------------------------------------------------------------------------------- workers that take turns

NAMESPACES = (None, TimeWindow(0, 10), TimeWindow(5, 15))
TABLES = {
    "typed": Types.LONG(),
    "untyped": Types.PICKLED_BYTE_ARRAY(),
    "asked for late": Types.LIST(Types.LONG()),
}
KEYS = [f"k{n}" for n in range(6)]


class Files:
    def __init__(self):
        self.data = {}

    def read(self, handle):
        assert hashlib.sha256(self.data[handle.name]).hexdigest() == handle.sha256
        return self.data[handle.name]

    def write(self, name, data, **more):
        self.data[name] = data
        return Handle(name, len(data), hashlib.sha256(data).hexdigest(), 0, **more)


def operator_state(subtask=0, parallelism=1, open_store=None, cache_limit=None):
    key_range = range_of(subtask, parallelism, MAX_PARALLELISM)
    grouper = KeyGrouper(MAX_PARALLELISM)
    return OperatorState(key_range, subtask, parallelism, grouper, Types.STRING(), open_store, cache_limit)


class Worker:
    """A process that runs the subtask, with its live state and an optional store on its disk."""

    def __init__(self, directory=None, cache_limit=None, **shape):
        self.open_store = None if directory is None else (lambda: LmdbStore(directory))
        self.state = operator_state(open_store=self.open_store, cache_limit=cache_limit, **shape)
        self.state.table("typed", TABLES["typed"])
        self.timers = self.state.table("timers", Types.LIST(Types.LONG()), in_memory=True)

    def table(self, name):
        return self.timers if name == "timers" else self.state.table(name, TABLES[name])

    def content(self):
        return {
            (name, namespace, key): value
            for name, table in self.state.tables.items()
            for namespace in table.namespaces()
            for key, value in table.scan(namespace)
        }


def value_of(table, number):
    return {"typed": number, "untyped": ("x", number), "asked for late": [number], "timers": [number]}[table]


places = st.tuples(st.sampled_from([*TABLES, "timers"]), st.sampled_from(NAMESPACES), st.sampled_from(KEYS))
operations = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete", "get", "clear"]), places, st.integers(0, 99)), max_size=6
)
rounds = st.lists(
    st.tuples(
        st.integers(0, 1),
        operations,
        st.sampled_from(["accepted", "accepted", "accepted", "lost", "failed"]),
        st.none() | st.floats(0, 1) | st.just(0) | st.builds(Rewrite, st.integers(1, 3), st.integers(1, 4)),
    ),
    max_size=10,
)


def apply_operations(worker, model, todo):
    for name, place, number in todo:
        table, (_, namespace, key) = worker.table(place[0]), place
        if name == "put":
            table.put(namespace, key, value_of(place[0], number))
            model[place] = value_of(place[0], number)
        elif name == "delete":
            table.delete(namespace, key)
            model.pop(place, None)
        elif name == "clear":
            table.clear_namespace(namespace)
            for gone in [each for each in model if each[:2] == place[:2]]:
                del model[gone]
        else:
            assert table.get(namespace, key) == model.get(place, ABSENT)


def epoch(worker, lineage, files, model, number, todo, outcome, part):
    """Run one epoch as a task does; returns the lineage and the content after it."""
    worker.state.advance(lineage, files.read)
    assert worker.content() == model, "state before the epoch"
    after = dict(model)
    apply_operations(worker, after, todo)
    assert worker.content() == after, "state inside the epoch"
    if outcome == "failed":
        worker.state.abandon()
        return lineage, model
    wanted = part
    if isinstance(part, float):
        first = len(lineage.bases)
        wanted = None if not lineage.deltas else first + int(part * len(lineage.deltas))
    if lineage.restored:
        wanted = 0
    stem = f"e{number}-{id(worker)}-{len(files.data)}"
    written = write_snapshot(worker.state, lineage, wanted, files, number, lambda which: f"{stem}{which}")
    return (lineage, model) if outcome == "lost" else (lineage.extend(*written), after)


@pytest.mark.parametrize("kinds", ["heap heap", "heap disk", "disk disk"])
@settings(max_examples=60)
@given(rounds, st.sampled_from([None, 0, 3]))
def test_two_alternating_workers_agree_with_a_dictionary(kinds, turns, cache_limit):
    with ExitStack() as stack:
        workers = []
        for kind in kinds.split():
            home = Path(stack.enter_context(tempfile.TemporaryDirectory())) if kind == "disk" else None
            workers.append(Worker(home, cache_limit))
            stack.callback(workers[-1].state.close)
        lineage, files, model = Lineage(), Files(), {}
        for number, (who, todo, outcome, part) in enumerate(turns, 1):
            lineage, model = epoch(workers[who], lineage, files, model, number, todo, outcome, part)
        fresh = Worker()
        fresh.state.advance(lineage, files.read)
        assert fresh.content() == model, "a worker that begins now"


def test_an_attempt_that_was_not_accepted_has_no_effect():
    files, first, second = Files(), Worker(), Worker()
    lineage, model = epoch(first, Lineage(), files, {}, 1, [("put", ("typed", None, "k1"), 1)], "accepted", None)
    epoch(first, lineage, files, model, 2, [("put", ("typed", None, "k1"), 2)], "lost", None)
    epoch(second, lineage, files, model, 2, [("put", ("typed", None, "k2"), 3)], "failed", None)
    for worker in (first, second):
        worker.state.advance(lineage, files.read)
        assert worker.content() == {("typed", None, "k1"): 1}


def test_an_undeclared_table_survives_compaction():
    files, first = Files(), Worker()
    put = [("put", ("asked for late", TimeWindow(0, 10), "k1"), 7)]
    lineage, model = epoch(first, Lineage(), files, {}, 1, put, "accepted", None)
    other = Worker()
    lineage, model = epoch(other, lineage, files, model, 2, [("put", ("typed", None, "k1"), 1)], "accepted", 0)
    assert lineage.own[0].base
    fresh = Worker()
    fresh.state.advance(lineage, files.read)
    assert fresh.table("asked for late").get(TimeWindow(0, 10), "k1") == [7]


# ------------------------------------------------------------------------------------------------------- rescaling


def rescale(lineages, parallelism):
    chains = tuple((index, lineage.own) for index, lineage in enumerate(lineages) if lineage.own)
    return (Lineage(restored=chains),) * parallelism


def write_epoch(files, lineages, change, name, since=None):
    """Run one epoch on every subtask with `change(subtask, state)`; returns the lineages after it."""
    found = []
    for subtask, lineage in enumerate(lineages):
        state = operator_state(subtask, len(lineages))
        prepare(state)
        state.advance(lineage, files.read)
        change(subtask, state)
        wanted = 0 if lineage.restored else since
        stem = f"{name}-{subtask}"
        saved = write_snapshot(
            state, lineage, wanted, files, len(files.data), lambda which, stem=stem: f"{stem}{which}"
        )
        found.append(lineage.extend(*saved))
    return found


def prepare(state):
    state.table("keyed", Types.LONG())
    kinds = {"split": Redistribution.SPLIT, "union": Redistribution.UNION, "broadcast": Redistribution.BROADCAST}
    for name, how in kinds.items():
        state.table(name, Types.STRING(), how, key_type=Types.PICKLED_BYTE_ARRAY())


def contents(files, lineages, table):
    found = []
    for subtask, lineage in enumerate(lineages):
        state = operator_state(subtask, len(lineages))
        prepare(state)
        state.advance(lineage, files.read)
        found.append(dict(state.tables[table].scan(None)))
    return found


@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.sets(st.text(max_size=3), max_size=20))
@settings(max_examples=40)
def test_keyed_state_goes_to_the_owner_of_its_key_group(parallelisms, keys):
    files, grouper = Files(), KeyGrouper(MAX_PARALLELISM)
    lineages = [Lineage()] * parallelisms[0]

    def put(subtask, state):
        mine = range_of(subtask, parallelisms[0], MAX_PARALLELISM)
        for key in keys:
            if grouper.of(key) in mine:
                state.tables["keyed"].put(None, key, len(key))

    lineages = write_epoch(files, lineages, put, "first")
    for turn, parallelism in enumerate(parallelisms[1:]):
        lineages = write_epoch(files, rescale(lineages, parallelism), lambda *_: None, f"turn{turn}")
        parts = contents(files, lineages, "keyed")
        assert {key: value for part in parts for key, value in part.items()} == {key: len(key) for key in keys}
        for subtask, part in enumerate(parts):
            assert all(grouper.of(key) in range_of(subtask, parallelism, MAX_PARALLELISM) for key in part)


def place(number):
    return f"{number:012d}"


def test_list_state_is_redistributed_without_loss():
    files = Files()

    def first(subtask, state):
        for number in range(4):
            state.tables["split"].put(None, place(number), f"{subtask}.{number}")

    def second(subtask, state):
        state.tables["split"].delete(None, place(1))
        state.tables["split"].put(None, place(0), f"{subtask}.new")

    lineages = write_epoch(files, [Lineage()] * 2, first, "first")
    lineages = write_epoch(files, lineages, second, "second")
    expected = sorted(f"{subtask}.{what}" for subtask in range(2) for what in ("new", "2", "3"))
    for parallelism in (1, 3, 2):
        lineages = write_epoch(files, rescale(lineages, parallelism), lambda *_: None, f"p{parallelism}")
        parts = contents(files, lineages, "split")
        assert sorted(value for part in parts for value in part.values()) == expected
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_union_lists_go_to_all_and_broadcast_state_is_one_copy():
    files = Files()

    def first(subtask, state):
        state.tables["union"].put(None, place(0), f"union {subtask}")
        state.tables["broadcast"].put(None, "rule", "same")

    lineages = rescale(write_epoch(files, [Lineage()] * 2, first, "first"), 3)
    for part in contents(files, lineages, "union"):
        assert sorted(part.values()) == ["union 0", "union 1"]
    assert contents(files, lineages, "broadcast") == [{"rule": "same"}] * 3


def test_the_store_of_another_parallelism_is_not_used(tmp_path):
    """A rescale keeps the files, but changes which of their keys a subtask owns."""
    files, keys = Files(), [f"key {n}" for n in range(30)]

    def put(_, state):
        for key in keys:
            state.tables["keyed"].put(None, key, 1)

    lineage = write_epoch(files, [Lineage()], put, "first")[0]
    found = []
    for parallelism, start in ((1, lineage), (3, *rescale([lineage], 1)), (2, *rescale([lineage], 1))):
        state = operator_state(0, parallelism, lambda: LmdbStore(tmp_path))
        prepare(state)
        state.advance(start, files.read)
        found.append({key for key, _ in state.tables["keyed"].scan(None)})
        state.close()
    owned = [
        {k for k in keys if KeyGrouper(MAX_PARALLELISM).of(k) in range_of(0, p, MAX_PARALLELISM)} for p in (1, 3, 2)
    ]
    assert found == owned


def test_a_store_is_opened_with_the_first_table_that_it_holds(tmp_path):
    before = LmdbStore(tmp_path)
    before.set_key_groups(KeyGrouper(MAX_PARALLELISM))
    before.apply([("typed", Changes([None], ["key"], [False], [1]))], "of an earlier deployment", replace=True)
    before.close()
    opened = []

    def open_store():
        opened.append(LmdbStore(tmp_path))
        return opened[0]

    state = operator_state(open_store=open_store)
    state.table("timers", Types.LIST(Types.LONG()), in_memory=True)
    state.advance(Lineage(), {}.__getitem__)
    assert not opened
    assert state.table("typed", TABLES["typed"]).get(None, "key") is ABSENT
    assert len(opened) == 1
    state.close()


def test_a_store_that_another_process_wrote_is_not_emptied(tmp_path):
    applied = []

    class Recording(LmdbStore):
        def apply(self, changes, version, *, replace):
            applied.append(version)
            super().apply(changes, version, replace=replace)

    other = operator_state()
    other.table("typed", TABLES["typed"]).put(None, "key", 1)
    data, _ = other.encode_delta()
    written = LmdbStore(tmp_path)
    written.set_key_groups(KeyGrouper(MAX_PARALLELISM))
    written.apply([("typed", Changes([None], ["key"], [False], [1]))], "d1", replace=True)
    written.close()
    state = operator_state(open_store=lambda: Recording(tmp_path))
    state.advance(Lineage(), {}.__getitem__)  # this process ran the first epoch, another one the second
    state.end_epoch("")
    state.advance(Lineage((Handle("d1", len(data), "", 1),)), lambda handle: data)
    assert state.table("typed", TABLES["typed"]).get(None, "key") == 1
    assert not applied
    state.close()
