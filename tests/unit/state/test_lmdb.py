"""The disk backend: one version at a time, with any names and keys, and concurrent writers."""

import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.state import lmdb
from millstream.state.deltas import Changes
from millstream.state.key_groups import KeyGrouper
from millstream.state.lmdb import LmdbStore, LocalDiskFull
from millstream.state.store import ABSENT
from millstream.windows.window import CountWindow, GlobalWindow, TimeWindow


def changes(entries):
    """Changes of {(namespace, key): value}, ABSENT for deleted."""
    spaces, keys = zip(*entries, strict=True) if entries else ((), ())
    gone = [value is ABSENT for value in entries.values()]
    return Changes(spaces, keys, gone, [None if v is ABSENT else v for v in entries.values()])


@pytest.fixture
def store(tmp_path):
    opened = LmdbStore(tmp_path)
    yield opened
    opened.close()


NAMESPACES = (None, TimeWindow(0, 10), TimeWindow(0, 266), CountWindow(3), GlobalWindow.get(), 7, "x" * 600)
KEYS = ("", "a", "a" * 600, "a" * 601, 1, -1, 2.5, None, (1, "a"), b"\x00\xff", TimeWindow)


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.tuples(
            st.sampled_from(["t", "tt", "user/" + "n" * 300, "user/" + "n" * 301]),
            st.sampled_from(NAMESPACES),
            st.sampled_from(KEYS[:-1]),
        ),
        st.integers(),
    )
)
def test_entries_of_different_tables_namespaces_and_keys_are_separate(tmp_path_factory, entries):
    store = LmdbStore(tmp_path_factory.mktemp("store"))
    tables = {name for name, _, _ in entries}
    parts = [(t, changes({at[1:]: v for at, v in entries.items() if at[0] == t})) for t in tables]
    store.apply(parts, "v1", replace=True)
    store.refresh()
    for (table, namespace, key), value in entries.items():
        assert store.get(table, namespace, key) == value
    for table in tables:
        spaces = {space for name, space, _ in entries if name == table}
        assert set(store.namespaces(table)) == spaces
        for space in spaces:
            expected = {key: v for (name, at, key), v in entries.items() if (name, at) == (table, space)}
            assert dict(store.scan(table, space)) == expected
    store.close()


def test_deleted_entries_are_gone_and_replace_deletes_everything(store):
    store.apply([("t", changes({(None, "a"): 1, (None, "b"): 2}))], "v1", replace=True)
    store.refresh()
    store.apply([("t", changes({(None, "a"): ABSENT, (None, "c"): 3}))], "v2", replace=False)
    store.refresh()
    assert dict(store.scan("t", None)) == {"b": 2, "c": 3}
    store.apply([("t", changes({(None, "d"): 4}))], "v3", replace=True)
    store.refresh()
    assert (store.version, dict(store.scan("t", None))) == ("v3", {"d": 4})


def test_reads_are_of_one_version_until_a_refresh(store):
    store.apply([("t", changes({(None, "a"): 1}))], "v1", replace=True)
    store.refresh()
    other = LmdbStore.__new__(LmdbStore)  # another worker of this host: the same file with its own snapshot
    other.__dict__.update(store.__dict__, _reading=None)
    other.apply([("t", changes({(None, "a"): 2}))], "v2", replace=False)
    assert (store.version, store.get("t", None, "a")) == ("v1", 1)
    store.refresh()
    assert (store.version, store.get("t", None, "a")) == ("v2", 2)


def test_changes_are_not_applied_to_another_version(store):
    store.apply([("t", changes({(None, "a"): 1}))], "v1", replace=True)
    store.refresh()
    other = LmdbStore.__new__(LmdbStore)
    other.__dict__.update(store.__dict__, _reading=None)
    other.apply([("t", changes({(None, "b"): 1}))], "elsewhere", replace=True)
    store.apply([("t", changes({(None, "c"): 1}))], "v2", replace=False)
    store.refresh()
    assert (store.version, dict(store.scan("t", None))) == ("elsewhere", {"b": 1})


def test_large_values_are_views_that_are_valid_while_their_version_is_read(store):
    large = np.arange(1 << 15, dtype=np.int64)
    values = {"small": b"few", "large": large.tobytes(), "larger": bytes(1 << 20)}
    store.apply([("t", changes({(None, key): value for key, value in values.items()}))], "v1", replace=True)
    store.refresh()
    first, again = dict(store.chunks("t")), dict(store.chunks("t"))
    assert first == values
    assert all(first[key] is again[key] for key in values)
    found = np.frombuffer(first["large"], dtype=np.int64)
    assert not found.flags.owndata
    assert found.flags.aligned
    assert (found == large).all()
    assert dict(store.scan("t", None)) == values
    assert store.get("t", None, "large") == values["large"]
    assert type(store.get("t", None, "large")) is bytes
    del found
    store.apply([("t", changes({(None, "large"): ABSENT, (None, "small"): b"fewer"}))], "v2", replace=False)
    store.refresh()
    assert dict(store.chunks("t")) == {"small": b"fewer", "larger": values["larger"]}


def test_a_reopened_store_has_its_version(tmp_path):
    first = LmdbStore(tmp_path)
    first.apply([("t", changes({(TimeWindow(0, 5), "a"): [1, "x"]}))], "v1", replace=True)
    first.close()
    again = LmdbStore(tmp_path)
    assert (again.version, again.get("t", TimeWindow(0, 5), "a")) == ("v1", [1, "x"])
    again.close()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of four megabytes."""
    where = tmp_path / "small"
    where.mkdir()
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(where)], capture_output=True, text=True, check=False
        )
    except OSError as problem:
        pytest.skip(f"no mount command: {problem}")
    if mounted.returncode:
        pytest.skip(f"this user may not mount a file system: {mounted.stderr.strip()}")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def numbered(epoch, count=500):
    return [("t", changes({(None, f"{epoch}-{number}"): b"x" * 200 for number in range(count)}))]


def test_a_full_disk_is_an_error_that_names_the_directory(small_disk):
    store = LmdbStore(small_disk / "op-0")
    store.set_key_groups(KeyGrouper(128))
    epoch = 0

    def fill():
        nonlocal epoch
        for epoch in range(100):
            store.apply(numbered(epoch), f"v{epoch}", replace=False)
            store.refresh()

    with pytest.raises(LocalDiskFull, match=f"disk full.*{small_disk}.*hint: free space"):
        fill()
    last = f"v{epoch - 1}"
    store.close()
    store = LmdbStore(small_disk / "op-0")  # it has earlier changes, and none of the failed epoch
    store.refresh()
    assert store.version == last
    assert store.get("t", None, f"{epoch - 1}-0") == b"x" * 200
    assert store.get("t", None, f"{epoch}-0") is ABSENT
    store.close()


def test_a_store_on_a_full_disk_is_not_opened(small_disk):
    (small_disk / "other").write_bytes(bytes(4 << 20))
    with pytest.raises(LocalDiskFull):
        LmdbStore(small_disk / "op-0")


def test_a_file_is_compact_and_private(store, tmp_path):
    store.apply(numbered(1), "v1", replace=False)
    assert os.path.getsize(tmp_path / "data.mdb") < 2 << 20
    for name in ("data.mdb", "lock.mdb"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


READER = """
import sys, time
from pathlib import Path
from millstream.state.key_groups import KeyGrouper
from millstream.state.lmdb import LmdbStore
store = LmdbStore(Path(sys.argv[1]))
store.set_key_groups(KeyGrouper(128))
store.refresh()
print(store.version, flush=True)
time.sleep(600)
"""


def test_a_worker_killed_while_it_reads_does_not_make_the_file_grow(store, tmp_path):
    store.set_key_groups(KeyGrouper(128))

    def epochs(first, count):
        for epoch in range(first, first + count):
            store.apply(numbered(0), f"v{epoch}", replace=False)
            store.refresh()
            store.release()
        return (tmp_path / "data.mdb").stat().st_blocks

    before = epochs(0, 3)
    with subprocess.Popen([sys.executable, "-c", READER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout.readline().strip() == "v2"
        reader.send_signal(signal.SIGKILL)
    assert epochs(3, 20) <= 2 * before


OTHER_PROCESS = """
import sys
from pathlib import Path
from millstream.state import lmdb
lmdb._FIRST_MAP_SIZE = 1 << 20
store = lmdb.LmdbStore(Path(sys.argv[1]))
print(store.version, flush=True)
sys.stdin.readline()
store.refresh()
print(store.version, flush=True)
"""


def test_a_store_outgrows_its_map_and_another_process_follows(tmp_path, monkeypatch):
    monkeypatch.setattr(lmdb, "_FIRST_MAP_SIZE", 1 << 20)
    store = LmdbStore(tmp_path)
    store.set_key_groups(KeyGrouper(128))
    store.apply(numbered(0), "v1", replace=True)
    large = [("t", changes({(None, number): bytes(100_000) for number in range(100)}))]
    begin = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path)]
    with subprocess.Popen(begin, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "v1\n"
        while store.version != "v2":
            store.apply(large, "v2", replace=True)
            store.refresh()
        assert other.communicate("\n")[0] == "v2\n"
    store.close()
